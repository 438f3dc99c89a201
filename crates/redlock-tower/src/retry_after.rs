//! The time after which a request that was refused is worth another try.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use redlock_core::AcquireError;

/// The average time for which recent requests of a layer have held their locks.
#[derive(Debug, Default)]
pub(crate) struct HoldAverage {
    /// In nanoseconds; 0 before the first.
    usual: AtomicU64,
    /// How many hold a key at once, beyond one.
    others: u32,
}

impl HoldAverage {
    /// Makes the average of a layer with `slots` slots for each key.
    pub(crate) fn of_slots(slots: usize) -> Self {
        Self {
            usual: AtomicU64::new(0),
            others: u32::try_from(slots.saturating_sub(1)).unwrap_or(u32::MAX),
        }
    }

    /// Adds the time for which a request has held its lock.
    pub(crate) fn add(&self, time: Duration) {
        let latest = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1);
        // One of two that come at the same moment may be forgotten.
        let usual = match self.usual.load(Ordering::Relaxed) {
            0 => latest,
            usual => usual - usual / WEIGHT + latest / WEIGHT,
        };
        self.usual.store(usual.max(1), Ordering::Relaxed);
    }

    /// Returns how long a request holds its lock as a rule; `None` before one has.
    fn usual(&self) -> Option<Duration> {
        let usual = self.usual.load(Ordering::Relaxed);
        (usual > 0).then(|| Duration::from_nanos(usual))
    }

    /// Returns the time after which all requests ahead of the refused one are likely to be done.
    pub(crate) fn until_free(&self, refused: &AcquireError) -> Duration {
        let hold = self.usual().unwrap_or(SOON);
        let ahead = u32::try_from(refused.ahead()).unwrap_or(u32::MAX);
        // Requests wait for all slots of a key at once, so the slots share the requests ahead.
        let ahead = ahead.div_ceil(self.others.saturating_add(1));
        // A key that ends sooner is that of a holder which is gone, or one that is about to be renewed.
        let elsewhere = refused.remaining().map(|remaining| remaining.min(hold));
        let all = hold.saturating_mul(ahead);
        all.saturating_add(elsewhere.unwrap_or_default())
            .clamp(SOON, LONGEST)
    }
}

/// Adds up to a half, so that requests which were refused together do not come back together: a second at least, because
/// HTTP counts whole ones, and ten at most.
pub(crate) fn spread(after: Duration) -> Duration {
    let most = (after / 2).clamp(Duration::from_secs(1), Duration::from_secs(10));
    after.saturating_add(most.mul_f64(random()))
}

/// Returns a random number from 0 to 1, which need not be hard to guess.
fn random() -> f64 {
    // The keys of the standard library's hash maps are random.
    let bits = RandomState::new().build_hasher().finish();
    f64::from((bits >> 32) as u32) / f64::from(u32::MAX)
}

/// When a holder, a queue or a replica may well have made room.
pub(crate) const SOON: Duration = Duration::from_millis(500);
/// When nodes that are down may be back.
pub(crate) const OUTAGE: Duration = Duration::from_secs(4);
/// The longest pause: beyond it, an estimate is only a guess.
const LONGEST: Duration = Duration::from_secs(60);
/// How many requests it takes to change what is usual.
const WEIGHT: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn what_is_usual_follows_what_requests_do() {
        let average = HoldAverage::default();
        assert_eq!(average.usual(), None);
        average.add(8 * SECOND);
        assert_eq!(average.usual(), Some(8 * SECOND));
        average.add(16 * SECOND);
        assert_eq!(average.usual(), Some(9 * SECOND));
        (0..200).for_each(|_| average.add(Duration::ZERO));
        assert!(average.usual().unwrap() < Duration::from_micros(1));
        average.add(Duration::MAX);
        assert!(average.usual().unwrap() > SECOND);
    }

    #[test]
    fn a_pause_is_longer_by_a_half_at_most_and_a_second_at_least_may_be_added() {
        for (after, most) in [(0, 1_000), (500, 1_000), (8_000, 4_000), (60_000, 10_000)] {
            let [after, most] = [after, most].map(Duration::from_millis);
            let added: Vec<Duration> = (0..200).map(|_| spread(after) - after).collect();
            assert!(added.iter().all(|added| *added <= most), "{added:?}");
            assert!(added.iter().any(|added| *added > most / 2), "{added:?}");
            assert!(added.iter().any(|added| *added < most / 2), "{added:?}");
        }
        assert_eq!(spread(Duration::MAX), Duration::MAX);
    }
}
