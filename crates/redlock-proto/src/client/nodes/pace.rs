//! The time that nodes take to answer, and the nodes that keep attempts waiting.

use std::time::Duration;

/// What is known of how fast one node answers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    /// The smoothed time between a call and its answer; `None` before the first.
    smoothed: Option<Duration>,
    /// The smoothed distance of single answers from that.
    deviation: Duration,
    /// Whether an attempt had to do without its answer, and nothing has come since.
    is_late: bool,
}

impl Pace {
    /// Notes how long the answer to a call `took`.
    ///
    /// The estimate is the one of RFC 6298 for retransmissions.
    pub(super) fn on_answer(&mut self, took: Duration) {
        self.is_late = false;
        match &mut self.smoothed {
            None => {
                self.smoothed = Some(took);
                self.deviation = took / 2;
            }
            Some(smoothed) => {
                self.deviation = (self.deviation * 3 + smoothed.abs_diff(took)) / 4;
                *smoothed = (*smoothed * 7 + took) / 8;
            }
        }
    }

    /// Notes that an attempt goes on without the node's answer.
    pub(super) const fn on_late(&mut self) {
        self.is_late = true;
    }

    pub(super) const fn is_late(self) -> bool {
        self.is_late
    }

    /// Returns how long an answer is waited for before other nodes are asked instead.
    ///
    /// A request may wait for the call before it, so it is twice what a call takes at the most, as a rule.
    pub(super) fn patience(self) -> Duration {
        let most = self.smoothed.unwrap_or_default() + 4 * self.deviation;
        (2 * most).max(SHORTEST)
    }
}

/// Nodes that answer at once are not taken for slow because of the machine's own unrest.
const SHORTEST: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_steady_node_is_waited_for_twice_as_long_as_it_takes() {
        let mut pace = Pace::default();
        assert_eq!(pace.patience(), 2 * MS);
        for _ in 0..100 {
            pace.on_answer(8 * MS);
        }
        assert!(pace.patience() >= 16 * MS);
        assert!(pace.patience() < 17 * MS);
    }

    #[test]
    fn a_node_that_answers_unevenly_is_waited_for_longer() {
        let mut pace = Pace::default();
        for _ in 0..100 {
            pace.on_answer(2 * MS);
            pace.on_answer(6 * MS);
        }
        assert!(pace.patience() > 16 * MS, "{:?}", pace.patience());
    }

    #[test]
    fn a_late_node_is_late_until_it_answers() {
        let mut pace = Pace::default();
        pace.on_late();
        assert!(pace.is_late());
        pace.on_answer(MS);
        assert!(!pace.is_late());
    }
}
