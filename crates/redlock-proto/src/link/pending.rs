//! The releases that a node has not confirmed.

use std::collections::VecDeque;

use super::{LinkConfig, Op};
use crate::{Instant, RequestError};

/// Releases that met a broken connection or an error, and are repeated.
///
/// Each is repeated at once the first time and with pauses after that, until the node has answered or the key has
/// ended by itself.
#[derive(Debug, Default)]
pub(super) struct PendingReleases {
    releases: VecDeque<Pending>,
    /// When the first of them is due.
    due: Option<Instant>,
}

#[derive(Debug)]
struct Pending {
    op: Op,
    error: RequestError,
    due: Instant,
}

impl PendingReleases {
    /// Keeps a release; returns one that is not worth keeping, with its last error.
    pub(super) fn add(
        &mut self,
        mut op: Op,
        error: RequestError,
        config: &LinkConfig,
        now: Instant,
    ) -> Option<(Op, RequestError)> {
        // Each has a time of its own: one that fails for the first time has the others repeated no sooner.
        let due = if op.is_repeated {
            now + config.heartbeat
        } else {
            now
        };
        op.is_repeated = true;
        if op.is_over(now) {
            return Some((op, error));
        }
        self.due = Some(self.due.map_or(due, |before| before.min(due)));
        self.releases.push_back(Pending { op, error, due });
        if self.releases.len() > config.pending_releases {
            let oldest = self.releases.pop_front()?;
            Some((oldest.op, oldest.error))
        } else {
            None
        }
    }

    /// There is a new connection: whatever is pending is due, in the form that another connection needs.
    pub(super) fn on_connected(&mut self, now: Instant) {
        for Pending { op, due, .. } in &mut self.releases {
            op.be_for_another_connection();
            *due = now;
        }
        if !self.releases.is_empty() {
            self.due = Some(now);
        }
    }

    /// Returns when the next releases are due.
    pub(super) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Takes what is due, and what has become pointless, each in order.
    pub(super) fn take_due(&mut self, now: Instant) -> (Vec<Op>, Vec<(Op, RequestError)>) {
        let (mut due, mut over) = (Vec::new(), Vec::new());
        if self.due.is_none_or(|due| due > now) {
            return (due, over);
        }
        for pending in std::mem::take(&mut self.releases) {
            if pending.op.is_over(now) {
                over.push((pending.op, pending.error));
            } else if pending.due <= now {
                due.push(pending.op);
            } else {
                self.releases.push_back(pending);
            }
        }
        self.due = self.releases.iter().map(|pending| pending.due).min();
        (due, over)
    }
}
