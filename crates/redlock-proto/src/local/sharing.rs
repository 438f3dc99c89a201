use std::time::Duration;

use super::Terms;
use crate::{Instant, Mode};

/// A shared lease that callers of the process which has it may join, for a while.
///
/// Who joins asks no node, so nodes cannot tell that one of another process waits to have the keys alone.
/// So a lease is joined for [`LONGEST`](Self::LONGEST) only, and whoever comes later asks the nodes for another, which is
/// refused while somebody waits.
#[derive(Clone, Copy, Debug)]
pub struct OpenLease {
    terms: Terms,
    since: Instant,
}

impl OpenLease {
    /// The time after it was won in which a lease may be joined: 10 ms.
    ///
    /// It is what callers who have joined can add to the wait of one of another process.
    pub const LONGEST: Duration = Duration::from_millis(10);

    /// Opens a lease on these terms that was won at `since`; `None` if its holder has it alone, or for a limited time.
    pub fn new(terms: Terms, since: Instant) -> Option<Self> {
        (terms.mode() == Mode::Shared && !terms.is_limited()).then_some(Self { terms, since })
    }

    /// Returns whether it may be joined no more.
    pub fn is_over(&self, now: Instant) -> bool {
        now.saturating_since(self.since) >= Self::LONGEST
    }

    /// Returns whether a caller who asks on these terms may join it, while it is valid up to `deadline`.
    pub fn may_join(&self, terms: &Terms, deadline: Instant, now: Instant) -> bool {
        *terms == self.terms && !self.is_over(now) && terms.may_hand_out(deadline, now)
    }
}
