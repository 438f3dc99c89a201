//! Nodes that vote and grant nothing: what their last answers said of it.

use std::{sync::Arc, time::Duration};

use crate::{Instant, NodeAnswer};

/// What the last answers of a node said of its health.
#[derive(Debug, Default)]
pub(super) struct Health {
    trouble: Option<Trouble>,
    /// When it answered last.
    last_answer: Option<Instant>,
}

#[derive(Debug)]
struct Trouble {
    /// Its error.
    reason: Arc<str>,
    /// Whether it runs what it is asked, and refuses to write.
    ///
    /// Nothing but a write shows the end of that: a node without memory says where it stands all the same.
    refuses_writes: bool,
}

impl Health {
    /// Takes in that a node has answered: `looked` if it said where it stands, `wrote` if it wrote something for that.
    pub(super) fn on_reply(&mut self, looked: bool, wrote: bool, at: Instant) {
        let is_over = |trouble: &Trouble| wrote || looked && !trouble.refuses_writes;
        self.trouble.take_if(|trouble| is_over(trouble));
        self.last_answer = Some(at);
    }

    /// Takes in that a node answered a request with an error; `refuses_writes` if that is because it does not write.
    pub(super) fn on_error(&mut self, reason: &Arc<str>, refuses_writes: bool) {
        self.trouble = Some(Trouble {
            reason: Arc::clone(reason),
            refuses_writes,
        });
    }

    /// Returns its error if it runs what it is asked and refuses to write.
    ///
    /// The client asks it now and then whether it writes again.
    pub(super) fn refuses_writes(&self) -> Option<&Arc<str>> {
        let trouble = self.trouble.as_ref();
        trouble
            .filter(|trouble| trouble.refuses_writes)
            .map(|trouble| &trouble.reason)
    }

    /// Returns how a node stands that votes, as far as its mark and its clock go.
    pub(super) fn standing(&self) -> NodeAnswer {
        match &self.trouble {
            None => NodeAnswer::Reachable,
            Some(Trouble { reason, .. }) => NodeAnswer::Failing {
                reason: Arc::clone(reason),
            },
        }
    }

    /// Returns whether it answered a short while ago.
    pub(super) fn is_alive(&self, now: Instant) -> bool {
        self.last_answer
            .is_some_and(|last_answer| now < last_answer + ALIVE)
    }
}

/// Connections on which nothing happens are tried more often than this.
const ALIVE: Duration = Duration::from_secs(2);
