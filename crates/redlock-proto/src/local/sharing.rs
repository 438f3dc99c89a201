use std::time::Duration;

use super::LeaseTerms;
use crate::Instant;

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
        (terms.is_shared() && !terms.is_limited()).then_some(Self { terms, since })
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
