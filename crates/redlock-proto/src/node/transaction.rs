//! The answer to a transaction: plain requests, carried out by the store's own commands in one atomic step.
//!
//! Such commands cannot look at what others found before they act.
//! So a transaction takes a free key and counts, whether or not the node votes; the client judges afterwards whether that
//! was a vote.
//! What it cannot vouch for is [`Unclear`](Reply::Unclear): the link asks for it again in a call that looks first.

use std::sync::Arc;

use super::Mark;
use crate::{Answer, Keyspace, MarkState, NodeTime, Reply, Request, RunId, Standing, Verb};

/// The node's answer to a transaction, read in the step in which it carried the requests out.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a node must fill in every part of it"
)]
pub struct Transaction {
    /// The look at the node; `None` if it was only asked to release keys, or could not be read.
    pub look: Option<Look>,
    /// The floor of its counters; `None` if it could not be read.
    pub floor: Option<u64>,
    /// The outcome of each request.
    pub done: Vec<Done>,
}

/// The state of the node itself, as a transaction found it.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a node must fill in every part of it"
)]
pub struct Look {
    /// The text of its mark, if it has one.
    pub mark: Option<String>,
    /// True for a master.
    pub is_master: bool,
    /// The identity of its data: servers call it the replication id.
    pub data: Arc<str>,
    /// Its clock.
    pub time: NodeTime,
}

/// The outcome of one request of a transaction.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a client must handle every case")]
pub enum Done {
    /// It was to take a key.
    Took {
        /// True if the key was free, and is this owner's since then.
        is_owner: bool,
        /// The counter before, if it is one.
        before: Option<u64>,
        /// True if the counter is no less than the last of the tokens proposed.
        is_counted: bool,
    },
    /// It was to keep or release a key, if the owner has it.
    Compared {
        /// True if the owner had it.
        is_owner: bool,
        /// True if it was to release a key that callers wait for in line, and has left it as it was.
        is_awaited: bool,
    },
    /// It failed, and what became of it is not known.
    Failed,
}

impl Transaction {
    /// Judges what the node did.
    pub fn judge(&self, keyspace: &Keyspace, requests: &[Request]) -> Answer {
        let standing = self.look.as_ref().and_then(|look| look.standing(keyspace));
        let votes = standing.is_some();
        let replies = requests.iter().zip(&self.done);
        let replies = replies.map(|(request, done)| {
            let reply = self.reply(request, *done);
            // Only a node that votes grants anything.
            let is_clear = votes || !reply.grants(request);
            Ok(if is_clear { reply } else { Reply::Unclear })
        });
        Answer {
            replies: replies.collect(),
            standing,
        }
    }

    /// Returns the node's reply to a request, if the node votes.
    fn reply(&self, request: &Request, done: Done) -> Reply {
        match (verb(request), done) {
            (
                _,
                Done::Compared {
                    is_awaited: true, ..
                },
            ) => Reply::Unclear,
            (
                Some(Verb::Release { .. } | Verb::Extend { .. }),
                Done::Compared { is_owner: true, .. },
            ) => Reply::Done,
            (Some(Verb::Release { .. }), Done::Compared { .. }) => Reply::Missing,
            (
                Some(Verb::Acquire { proposal, .. }),
                Done::Took {
                    is_owner: true,
                    before,
                    is_counted: true,
                },
            ) if self.is_ahead(*proposal, before) => Reply::Taken { counter: *proposal },
            _ => Reply::Unclear,
        }
    }

    /// Returns whether a proposal is what the node would have counted to.
    fn is_ahead(&self, proposal: u64, before: Option<u64>) -> bool {
        let (Some(before), Some(floor)) = (before, self.floor) else {
            return false;
        };
        before.max(floor) < proposal
    }
}

impl Look {
    /// Returns where the node stands if it votes.
    ///
    /// The identity of a master's data names one run of its process, in which it was no replica since: so the run in the
    /// mark is the present one.
    /// If others name the server, the epoch in the mark must be that of the session.
    fn standing(&self, keyspace: &Keyspace) -> Option<Standing> {
        let mark = Mark::read(self.mark.as_deref()?)?;
        let votes =
            mark.votes() && self.is_master && *mark.data == *self.data && mark.is_of(keyspace);
        votes.then(|| Standing {
            state: MarkState::Voting,
            time: self.time,
            run: RunId::from(mark.run),
        })
    }
}

fn verb(request: &Request) -> Option<&Verb> {
    match request {
        Request::Lock { verb, .. } => Some(verb),
        _ => None,
    }
}
