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
    releases: VecDeque<(Op, RequestError)>,
    due: Option<Instant>,
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
        self.releases.push_back((op, error));
        if self.releases.len() > config.pending_releases {
            self.releases.pop_front()
        } else {
            None
        }
    }

    /// There is a new connection: whatever is pending is due, in the form that another connection needs.
    pub(super) fn on_connected(&mut self, now: Instant) {
        for (op, _) in &mut self.releases {
            op.be_for_another_connection();
        }
        if !self.releases.is_empty() {
            self.due = Some(now);
        }
    }

    /// Returns when the next releases are due.
    pub(super) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Takes what is due, and what has become pointless.
    pub(super) fn take_due(&mut self, now: Instant) -> (Vec<Op>, Vec<(Op, RequestError)>) {
        if self.due.is_none_or(|due| due > now) {
            return (Vec::new(), Vec::new());
        }
        self.due = None;
        let all = self.releases.drain(..);
        let (over, due): (Vec<_>, Vec<_>) = all.partition(|(op, _)| op.is_over(now));
        (due.into_iter().map(|(op, _)| op).collect(), over)
    }
}
