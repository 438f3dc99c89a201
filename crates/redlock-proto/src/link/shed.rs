//! The requests that a node which cannot keep up does not get.

use std::collections::HashSet;

use super::{Link, LinkEvent, QueuedRequest, no_answer};
use crate::{Instant, JobVerb, OwnerId, Request, RequestError, Verb};

impl Link {
    /// Sheds the requests in the queue of a node that cannot keep up, instead of letting them pile up.
    ///
    /// A node that is silent is one; so is a node that answers, and for which requests wait as long as a connection may be
    /// silent: the client has long decided without the requests in its queue.
    /// Releases stay, because they must follow what may have been executed, unless they follow what is shed here.
    pub(super) fn shed(&mut self, now: Instant) {
        let Some(since) = self.traffic.waiting.front() else {
            return;
        };
        let queued = now.saturating_since(*since);
        let error = RequestError::not_executed(no_answer(self.traffic.silence(now).max(queued)));
        let mut needless = Vec::new();
        let mut unsent = HashSet::new();
        self.traffic.waiting.clear();
        for op in std::mem::take(&mut self.traffic.queue) {
            match fate(&op, &mut unsent) {
                Fate::Stays => self.traffic.queue.push_back(op),
                Fate::Needless => needless.push(op.round),
                Fate::Shed => {
                    self.shed += 1;
                    self.fail(op, &error, now);
                }
            }
        }
        for round in needless {
            self.events.push_back(LinkEvent::Needless { round });
        }
    }
}

/// What becomes of a request in the queue of a node that cannot keep up.
enum Fate {
    Stays,
    /// The request for the key that it would release was never sent.
    Needless,
    Shed,
}

/// Decides what becomes of a request, behind those of the owners that were `unsent` so far.
fn fate(op: &QueuedRequest, unsent: &mut HashSet<OwnerId>) -> Fate {
    match &op.request {
        Request::Lock { verb, lock } => match verb {
            Verb::Acquire { line, .. } => {
                // A holder that asks for what it lacks may have waited in line there before.
                let is_first = !line.is_some_and(|line| line.place.is_holders());
                if !op.may_have_run && is_first {
                    unsent.insert(lock.owner);
                }
                Fate::Shed
            }
            Verb::Release { .. } | Verb::Tombstone { .. } if unsent.contains(&lock.owner) => {
                Fate::Needless
            }
            Verb::Release { .. } | Verb::Tombstone { .. } => Fate::Stays,
            Verb::Extend { .. } | Verb::Heal { .. } => Fate::Shed,
        },
        Request::Job { verb, .. } => match verb {
            JobVerb::Record { .. } | JobVerb::Withdraw { .. } => Fate::Stays,
            JobVerb::Claim { owner, .. } => {
                unsent.insert(**owner);
                Fate::Shed
            }
            JobVerb::Commit { .. } | JobVerb::Read { .. } => Fate::Shed,
        },
        Request::Node(_) => Fate::Shed,
    }
}
