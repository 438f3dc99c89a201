//! The keys that the node has refused lately.

use std::{collections::HashMap, time::Duration};

use crate::{Instant, NodeKey, Reply, Request, Verb};

/// The keys that another owner had at the last look, and when that was.
///
/// A transaction cannot name the owner of a key, so it is no use for a key that is contended.
#[derive(Debug, Default)]
pub(super) struct RefusedKeys {
    refused: HashMap<NodeKey, Instant>,
    /// With this many, those that are over are swept out.
    sweep_at: usize,
}

impl RefusedKeys {
    /// Takes in the reply to a request.
    pub(super) fn note(&mut self, request: &Request, reply: &Reply, now: Instant) {
        if let Reply::Held { .. } | Reply::InLine { .. } | Reply::Unclear = reply {
            self.add(request, now);
        }
    }

    /// Notes that a request meets another owner of its key.
    pub(super) fn add(&mut self, request: &Request, now: Instant) {
        if let Some(key) = wanted(request) {
            if self.refused.len() >= self.sweep_at {
                self.refused
                    .retain(|_, at| now.saturating_since(*at) < LATELY);
                self.sweep_at = (2 * self.refused.len()).max(64);
            }
            self.refused.insert(key.clone(), now);
        }
    }

    /// Returns whether a request wants a key that was refused lately.
    pub(super) fn concern(&self, request: &Request, now: Instant) -> bool {
        let refused = wanted(request).and_then(|key| self.refused.get(key));
        refused.is_some_and(|at| now.saturating_since(*at) < LATELY)
    }
}

/// Returns the key that a plain request wants to take, or to release: callers may wait for it in line.
fn wanted(request: &Request) -> Option<&NodeKey> {
    match request {
        Request::Lock {
            verb: Verb::Acquire { .. } | Verb::Release { .. },
            lock,
        } if request.is_plain() => Some(lock.keys.first()),
        _ => None,
    }
}

const LATELY: Duration = Duration::from_secs(1);
