//! The requests that wait in this client, and whether nodes owe answers.

use std::time::Duration;

use super::Nodes;
use crate::{Backlog, Instant};

impl Nodes {
    /// Notes what the link to a node has before it.
    pub(in super::super) fn on_backlog(&mut self, node: usize, backlog: Backlog) {
        self.backlogs[node] = Some(backlog);
    }

    /// Notes that a request for a node was handed to its link.
    pub(in super::super) fn on_sent(&mut self, node: usize) {
        if let Some(backlog) = &mut self.backlogs[node] {
            backlog.unsent += 1;
        }
    }

    /// Returns when a node has said nothing for `patience` though it owes an answer, if it says nothing up to then.
    ///
    /// What was not written yet waits in this client, and not for the node.
    /// This is `now` at the latest where nothing is known of the link.
    pub(in super::super) fn silent_at(
        &self,
        node: usize,
        patience: Duration,
        now: Instant,
    ) -> Instant {
        match self.backlogs[node] {
            None => now,
            Some(backlog) => backlog.awaited.unwrap_or(now) + patience,
        }
    }

    /// Returns whether the requests of another attempt would be sent soon: fewer than the limit wait to be sent to a
    /// majority of the nodes.
    ///
    /// A node that has said nothing for `node_timeout` keeps no attempt waiting, which would fail there at once.
    pub(in super::super) fn have_room(&self, node_timeout: Duration, now: Instant) -> bool {
        let has_room = |node: &usize| {
            let unsent = self.backlogs[*node].map_or(0, |backlog| backlog.unsent);
            unsent < self.most_unsent || self.silent_at(*node, node_timeout, now) <= now
        };
        self.all().filter(has_room).count() >= self.quorum.majority()
    }
}
