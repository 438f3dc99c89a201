use std::time::Duration;

use super::{Instant, nanos};

/// The lengths of time that make a lease.
///
/// They are how long nodes keep it, how much of that the holder may use, and how much must be left for it to be handed
/// out at all.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Timing {
    // invariant: the ttl exceeds the drift by more than the minimum validity
    // All in nanoseconds, as a moment is.
    ttl: u64,
    drift: u64,
    min_validity: u64,
    lock_delay: u64,
}

impl Timing {
    /// Returns the lengths of time of a lease of `ttl`, which has at least `min_validity` left when it is handed out.
    ///
    /// The rates of clocks differ by at most `clock_rate_error` (0.01 is one per cent).
    ///
    /// Returns `None` if such a lease could never be handed out, or if `clock_rate_error` is not a
    /// number between 0 and 0.25.
    pub fn new(ttl: Duration, clock_rate_error: f64, min_validity: Duration) -> Option<Self> {
        if !(0.0..=0.25).contains(&clock_rate_error) {
            return None;
        }
        // The holder's clock may be slow by the error and the node's fast by it, hence twice.
        let drift = ttl.mul_f64(2.0 * clock_rate_error) + STEPS;
        let usable = ttl.checked_sub(drift)?;
        (!min_validity.is_zero() && usable >= min_validity).then_some(Self {
            ttl: nanos(ttl),
            drift: nanos(drift),
            min_validity: nanos(min_validity),
            lock_delay: 0,
        })
    }

    /// Adds a rest of `lock_delay` after a lease that was not released: nodes keep its key for that much longer than
    /// the holder may rely on it.
    ///
    /// What a crashed holder had under way can end in that time (Chubby's and Consul's lock-delay).
    pub const fn with_lock_delay(mut self, lock_delay: Duration) -> Self {
        self.lock_delay = nanos(lock_delay);
        self
    }

    /// Returns how long the lease is for, after it was granted or extended.
    pub const fn ttl(self) -> Duration {
        Duration::from_nanos(self.ttl)
    }

    /// Returns how long a node keeps the key after it granted or extended it.
    pub const fn key_ttl(self) -> Duration {
        Duration::from_nanos(self.ttl.saturating_add(self.lock_delay))
    }

    /// Returns for how much longer a node keeps the key of a lease that was not released.
    pub const fn lock_delay(self) -> Duration {
        Duration::from_nanos(self.lock_delay)
    }

    /// Returns the part of the ttl that is kept back for the difference between clocks.
    pub const fn drift(self) -> Duration {
        Duration::from_nanos(self.drift)
    }

    /// Returns what must be left of the lease when it is handed out.
    pub const fn min_validity(self) -> Duration {
        Duration::from_nanos(self.min_validity)
    }

    /// Returns how long before its deadline a lease is in danger: a third of the ttl, and a thirtieth for timers that
    /// are late.
    ///
    /// Renewal begins earlier than that, unless more than a sixth of the ttl is kept back for each of the clocks.
    pub fn warning(self) -> Duration {
        self.ttl() / 3 + self.ttl() / 30
    }

    /// Returns the moment up to which a lease is valid whose requests were sent after `start`.
    ///
    /// `start` is read before the first byte is sent: no node can have begun to count earlier, so no
    /// node lets the key go before this moment.
    pub fn deadline(self, start: Instant) -> Instant {
        start + (self.ttl() - self.drift())
    }

    /// Returns for how long a node gives the key to a caller that waited in line: as long as the minimum validity, and a
    /// second.
    ///
    /// A caller that lives asked a second ago at most, and the time counts from then.
    /// One that died in the meantime keeps others waiting for that long.
    pub fn grant(self) -> Duration {
        let least = self.min_validity + nanos(LONGEST_SINCE_ASKED + STEPS);
        let usable = u128::from(self.ttl - self.rate());
        let nanos = (u128::from(least) * u128::from(self.ttl)).div_ceil(usable);
        // Nodes count in whole milliseconds.
        let millis = u64::try_from(nanos.div_ceil(1_000_000)).unwrap_or(u64::MAX);
        Duration::from_millis(millis).min(self.ttl())
    }

    /// Returns the moment up to which a lease is valid for which nodes gave the key for `grant`, after they had handled
    /// requests that were sent after `start`.
    pub fn given(self, start: Instant, grant: Duration) -> Instant {
        let grant = grant.min(self.ttl());
        // In a shorter time, clocks go apart by less.
        let drift = (u128::from(self.rate()) * grant.as_nanos()).div_ceil(self.ttl.into());
        let drift = Duration::from_nanos(u64::try_from(drift).unwrap_or(self.drift));
        start + grant.saturating_sub(drift + STEPS)
    }

    /// Returns how far clocks may go apart within the ttl, in nanoseconds.
    fn rate(self) -> u64 {
        self.drift.saturating_sub(nanos(STEPS))
    }

    /// Returns whether a lease with this deadline may be handed out now.
    pub fn may_hand_out(self, deadline: Instant, now: Instant) -> bool {
        deadline.saturating_since(now) >= self.min_validity()
    }
}

/// How long ago a caller in line has asked at most: a second, and 20 ms for what is slow.
const LONGEST_SINCE_ASKED: Duration = Duration::from_millis(1_020);
/// What a lease loses by the millisecond steps in which nodes expire keys.
const STEPS: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // Shows: A1.
    #[test]
    fn drift_is_twice_the_rate_error_and_two_milliseconds() {
        let timing = Timing::new(Duration::from_secs(10), 0.01, Duration::from_millis(1)).unwrap();
        assert_eq!(timing.drift(), Duration::from_millis(202));
        assert_eq!(
            timing.deadline(Instant::from_origin(Duration::from_secs(1))),
            Instant::from_origin(Duration::from_millis(10_798))
        );
    }

    #[test]
    fn a_lease_that_could_never_be_handed_out_is_refused() {
        let new = |ttl, rate, min| {
            Timing::new(Duration::from_millis(ttl), rate, Duration::from_millis(min))
        };
        assert!(new(2, 0.0, 1).is_none());
        assert!(new(3, 0.0, 1).is_some());
        assert!(new(1000, 0.01, 979).is_none());
        assert!(new(1000, 0.01, 0).is_none());
        assert!(new(1000, f64::NAN, 1).is_none());
        assert!(new(1000, -0.01, 1).is_none());
        assert!(new(1000, 0.26, 1).is_none());
    }

    // Shows: R9.2.
    #[test]
    fn what_nodes_gave_is_valid_for_as_much_less_as_clocks_go_apart_in_that_time() {
        let ms = Duration::from_millis;
        let start = Instant::from_origin(ms(500));
        let timing = Timing::new(ms(30_000), 0.01, ms(200)).unwrap();
        assert_eq!(timing.grant(), ms(1_247));
        let a_second_later = timing.given(start, timing.grant()) - ms(1_000);
        assert!(timing.may_hand_out(a_second_later, start));
        assert_eq!(timing.given(start, ms(1_000)), start + ms(1_000 - 20 - 2));
        assert_eq!(timing.given(start, ms(30_000)), timing.deadline(start));
        assert_eq!(timing.given(start, ms(90_000)), timing.deadline(start));
        assert_eq!(timing.given(start, ms(1)), start);
        let long = Timing::new(ms(8_000), 0.25, ms(2_000)).unwrap();
        assert!(long.may_hand_out(long.given(start, long.grant()), start + ms(1_000)));
        let short = Timing::new(ms(500), 0.0, ms(50)).unwrap();
        assert_eq!(short.grant(), ms(500));
        assert_eq!(short.given(start, ms(500)), start + ms(498));
    }

    proptest! {
        /// redlock-rs computed `ttl - drift - elapsed` in unsigned numbers and granted locks of
        /// half a billion years; node-redlock handed out locks that had already expired.
        // Shows: T1.1.
        #[test]
        fn s02_remaining_time_never_underflows(
            ttl in 0u64..=u64::MAX / 2,
            rate in 0.0f64..=0.25,
            min in 0u64..=u64::MAX / 2,
            start in 0u64..=u64::MAX / 2,
            elapsed in prop_oneof![Just(0), Just(1), Just(u64::MAX / 2), any::<u64>()],
        ) {
            let nanos = Duration::from_nanos;
            let Some(timing) = Timing::new(nanos(ttl), rate, nanos(min)) else { return Ok(()) };
            let start = Instant::from_origin(nanos(start));
            let deadline = timing.deadline(start);
            let now = start + nanos(elapsed);
            prop_assert!(deadline > start);
            prop_assert!(deadline.saturating_since(now) <= nanos(ttl));
            prop_assert!(deadline + timing.drift() == start + timing.ttl());
            if nanos(elapsed) >= timing.ttl() - timing.drift() {
                prop_assert!(!timing.may_hand_out(deadline, now));
            }
        }
    }
}
