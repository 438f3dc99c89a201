use std::time::Duration;

use crate::{Acquire, Fairness, Instant, LockMode, SlotCount, Timing, TokenBlock};

/// The terms of a lease; only a caller that asks for the same can take it over.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a driver must settle every part of it"
)]
pub struct LeaseTerms {
    /// `true` if others may hold it too.
    pub is_shared: bool,
    /// The lengths of time of the lease.
    pub timing: Timing,
    /// `true` if it is extended without being asked.
    pub renew: bool,
    /// The longest time for which it may be held, however often it is extended.
    pub max_hold: Option<Duration>,
    /// The number of slots of which it is one.
    pub slots: Option<u8>,
    /// The order in which callers have the key.
    pub fairness: Fairness,
}

impl LeaseTerms {
    /// Returns the terms of an acquisition.
    pub fn of(acquire: &Acquire) -> Self {
        Self {
            slots: acquire.keys.slots().map(SlotCount::count),
            is_shared: acquire.mode == LockMode::Shared,
            timing: acquire.timing,
            renew: acquire.renew,
            max_hold: acquire.max_hold,
            fairness: acquire.fairness,
        }
    }

    /// Returns whether enough is left of a lease that is valid up to `deadline`.
    pub(super) fn may_hand_out(&self, deadline: Instant, now: Instant) -> bool {
        self.timing.may_hand_out(deadline, now)
    }
}

/// A lease between two holders of one process.
///
/// Nothing extends it meanwhile, so that a caller that is never polled does not keep others out for longer than the
/// lease's time to live.
#[derive(Clone, Copy, Debug)]
pub struct ParkedLease {
    /// The tokens of the next holder; `None` if that must contend.
    tokens: Option<TokenBlock>,
    terms: LeaseTerms,
    deadline: Instant,
}

impl ParkedLease {
    /// Parks a lease that is held under the first of these tokens and lasts until `deadline`.
    ///
    /// `None` if it cannot be handed over: it has no token left, or may be held for a limited time only.
    /// Under [`Fairness::Strict`] it is parked only until the next caller has entered the line.
    pub fn new(tokens: TokenBlock, terms: LeaseTerms, deadline: Instant) -> Option<Self> {
        let tokens = match terms.fairness {
            Fairness::Strict => None,
            Fairness::Cohort if terms.max_hold.is_some() => return None,
            Fairness::Cohort => Some(tokens.hand_over()?),
        };
        Some(Self {
            tokens,
            terms,
            deadline,
        })
    }

    /// Returns up to when the lease is valid.
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Returns the tokens of the next holder, for a caller that asks for the lease on these terms, if enough of it is
    /// left.
    pub fn take_over(self, terms: &LeaseTerms, now: Instant) -> Option<TokenBlock> {
        let fits = *terms == self.terms && terms.may_hand_out(self.deadline, now);
        self.tokens.filter(|_| fits)
    }
}

/// A shared lease that callers of the process which has it may join, for a while.
///
/// A caller that joins asks no node, so nodes cannot tell it that a writer of another process waits.
/// So a lease is joined for a short time only, and a caller that comes later asks the nodes for another one, which they
/// refuse while a writer waits.
/// A node remembers a few holders of a key, so the time grows with the age of the oldest lease that the process still has:
/// a process whose readers hold for long has few leases all the same, and a writer waits for them anyway.
#[derive(Clone, Copy, Debug)]
pub struct OpenLease {
    terms: LeaseTerms,
    since: Instant,
}

impl OpenLease {
    /// The least time after it was won in which a lease may be joined: 10 ms.
    pub const LEAST: Duration = Duration::from_millis(10);

    /// The part of the oldest lease's age in which a lease may be joined: a third.
    pub const PART: u32 = 3;

    /// Opens a lease on these terms that was won at `since`; `None` if it is exclusive, or held for a limited time.
    pub fn new(terms: LeaseTerms, since: Instant) -> Option<Self> {
        (terms.is_shared && terms.max_hold.is_none()).then_some(Self { terms, since })
    }

    /// Returns whether a caller that asks on these terms may join it, while it is valid up to `deadline`.
    ///
    /// `oldest` is the oldest lease on the same keys that the process still has; it may be this one.
    pub fn may_join(
        &self,
        terms: &LeaseTerms,
        oldest: &Self,
        deadline: Instant,
        now: Instant,
    ) -> bool {
        let part = now.saturating_since(oldest.since) / Self::PART;
        let is_open = now.saturating_since(self.since) < part.max(Self::LEAST);
        *terms == self.terms && is_open && terms.may_hand_out(deadline, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    const MS: Duration = Duration::from_millis(1);

    fn at(ms: u64) -> Instant {
        Instant::from_origin(Duration::from_millis(ms))
    }

    fn terms(ttl: u32, renew: bool, max_hold: Option<Duration>) -> LeaseTerms {
        LeaseTerms {
            is_shared: false,
            timing: Timing::new(ttl * MS, 0.01, ttl * MS / 10).unwrap(),
            renew,
            max_hold,
            slots: None,
            fairness: Fairness::Cohort,
        }
    }

    fn tokens(count: u32) -> TokenBlock {
        TokenBlock::new(7, count).unwrap()
    }

    // Shows: T3.8.
    #[test]
    fn the_next_holder_has_the_next_token() {
        let terms = terms(1_000, true, None);
        let parked = ParkedLease::new(tokens(2), terms, at(900)).unwrap();
        let next = parked.take_over(&terms, at(100)).unwrap();
        assert_eq!(next.first().get(), 8);
        assert!(ParkedLease::new(next, terms, at(900)).is_none(), "the last");
    }

    #[test]
    fn a_lease_that_ends_however_often_it_is_extended_is_not_handed_over() {
        let terms = terms(1_000, true, Some(5_000 * MS));
        assert!(ParkedLease::new(tokens(2), terms, at(900)).is_none());
    }

    // Shows: T1.11.
    #[test]
    fn only_who_asks_for_the_same_takes_a_lease_over_and_only_while_enough_is_left() {
        let same = terms(1_000, true, None);
        let parked = ParkedLease::new(tokens(2), same, at(900)).unwrap();
        for other in [terms(1_001, true, None), terms(1_000, false, None)] {
            assert!(parked.take_over(&other, at(100)).is_none());
        }
        assert!(parked.take_over(&same, at(799)).is_some());
        assert!(parked.take_over(&same, at(801)).is_none());
    }
}
