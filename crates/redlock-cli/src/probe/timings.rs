use std::time::Duration;

use serde::Serialize;

use crate::output::millis;

/// How long something took, several times.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timings(
    // invariant: in ascending order
    Vec<Duration>,
);

impl Timings {
    pub(crate) fn new(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    /// Returns the time within which this share of them was done, from 0 to 100 per cent; zero if there is none.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        let last = self.0.len().saturating_sub(1);
        let at = (self.0.len() * percent).div_ceil(100).saturating_sub(1);
        self.0.get(at.min(last)).copied().unwrap_or_default()
    }

    /// Returns these and others together.
    pub(crate) fn and(self, others: Self) -> Self {
        Self::new([self.0, others.0].concat())
    }

    /// Returns how many there are.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }
}

/// Some of them, in milliseconds.
#[derive(Debug, Serialize)]
pub(crate) struct Percentiles {
    p50: f64,
    p99: f64,
    max: f64,
}

impl Percentiles {
    pub(crate) fn of(timings: &Timings) -> Self {
        Self {
            p50: millis(timings.percentile(50)),
            p99: millis(timings.percentile(99)),
            max: millis(timings.percentile(100)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_those_that_were_measured() {
        let ms = Duration::from_millis;
        let timings = Timings::new((1..=100).rev().map(ms).collect());
        assert_eq!(timings.percentile(50), ms(50));
        assert_eq!(timings.percentile(99), ms(99));
        assert_eq!(timings.percentile(100), ms(100));
        assert_eq!(Timings::new(vec![ms(7)]).percentile(1), ms(7));
        assert_eq!(Timings::default().percentile(50), Duration::ZERO);
    }
}
