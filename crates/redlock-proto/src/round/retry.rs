use std::time::Duration;

use crate::{Failure, FailureKind, Instant};

/// The policy for trying again after an [`Attempt`](crate::Attempt) that failed.
///
/// The delay is random, so that contenders which split the votes do not meet again; it grows, so that
/// many of them do not crowd the nodes; it is not shorter than the failed attempt took, so that a
/// majority can be had in it; and it never goes past the moment at which the remaining times that
/// nodes reported allow a majority, so that a lease that ends is noticed when it ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RetryPolicy {
    // invariant: 0 < shortest <= longest
    shortest: Duration,
    longest: Duration,
}

/// The step that follows a failed attempt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must handle every case")]
pub enum RetryDecision {
    /// Start the next attempt at this moment, with a fresh owner.
    RetryAt(Instant),
    /// The wait is over: report the failure.
    GiveUp,
}

impl RetryPolicy {
    /// Makes a policy with delays between `shortest` and `longest`; `None` unless 0 < `shortest` ≤ `longest`.
    pub const fn new(shortest: Duration, longest: Duration) -> Option<Self> {
        if shortest.is_zero() || shortest.as_nanos() > longest.as_nanos() {
            return None;
        }
        Some(Self { shortest, longest })
    }

    /// Returns the longest delay between two attempts.
    pub const fn longest(&self) -> Duration {
        self.longest
    }

    /// Returns a policy whose delays grow to a quarter of the longest at most.
    pub fn hurried(&self) -> Self {
        Self {
            longest: (self.longest / 4).max(self.shortest),
            ..*self
        }
    }

    /// Returns what follows the failure of the `attempts`-th attempt of a caller that waits until `wait_until`.
    ///
    /// `random` is 64 fresh random bits.
    pub fn next(
        &self,
        failure: &Failure,
        attempts: u32,
        wait_until: Instant,
        now: Instant,
        random: u64,
    ) -> RetryDecision {
        if now >= wait_until || failure.kind == FailureKind::Abandoned {
            return RetryDecision::GiveUp;
        }
        let low = self.shortest.max(failure.took).min(self.longest);
        let high = low.saturating_mul(1 << attempts.min(16)).min(self.longest);
        let delay = low + fraction(high - low, random);
        let mut at = now + delay;
        if let Some(free_at) = failure.majority_free_at {
            // Nodes count in whole milliseconds and their clocks are not ours, so the moment itself
            // is a little too early; the spread keeps all waiters from arriving in it together.
            let spread = Duration::from_millis(1) + fraction(self.shortest, random);
            at = at.min(free_at.max(now) + spread);
        }
        RetryDecision::RetryAt(at.max(now + self.least()).min(wait_until))
    }

    /// Returns the least pause between two attempts.
    pub fn least(&self) -> Duration {
        self.shortest / 2
    }
}

/// Returns `random` out of 2^64 parts of `whole`.
fn fraction(whole: Duration, random: u64) -> Duration {
    let nanos = whole.as_nanos().saturating_mul(u128::from(random)) >> 64;
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(ms: u64) -> Instant {
        Instant::from_origin(Duration::from_millis(ms))
    }

    fn contended(took: u64, free_at: Option<u64>) -> Failure {
        Failure {
            kind: FailureKind::Contended,
            give_back: Vec::new(),
            majority_free_at: free_at.map(at),
            quorum_ready_in: None,
            took: Duration::from_millis(took),
        }
    }

    fn policy() -> RetryPolicy {
        RetryPolicy::new(Duration::from_millis(10), Duration::from_millis(250)).unwrap()
    }

    #[test]
    fn a_wait_ends_by_its_deadline() {
        let next = policy().next(&contended(1, None), 20, at(1_005), at(1_000), u64::MAX);
        assert_eq!(next, RetryDecision::RetryAt(at(1_005)));
        let next = policy().next(&contended(1, None), 21, at(1_005), at(1_005), 0);
        assert_eq!(next, RetryDecision::GiveUp);
    }

    #[test]
    fn a_lease_that_ends_is_noticed_when_it_ends() {
        let next = policy().next(
            &contended(1, Some(1_020)),
            20,
            at(9_000),
            at(1_000),
            u64::MAX / 2,
        );
        let RetryDecision::RetryAt(retry_at) = next else {
            panic!("{next:?}")
        };
        assert!(retry_at > at(1_020) && retry_at < at(1_031), "{retry_at}");
    }

    proptest! {
        #[test]
        fn l08_waiting_never_spins(
            took in 0u64..5_000, free_at in prop::option::of(0u64..5_000),
            attempts in 0u32..100, random in any::<u64>(),
        ) {
            let now = at(2_500);
            let next = policy().next(&contended(took, free_at), attempts, at(1 << 40), now, random);
            let RetryDecision::RetryAt(retry_at) = next else { panic!("{next:?}") };
            prop_assert!(retry_at.saturating_since(now) >= Duration::from_millis(5));
            prop_assert!(retry_at.saturating_since(now) <= Duration::from_millis(250));
        }
    }
}
