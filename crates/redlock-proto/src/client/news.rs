//! What an operator is told of the nodes: each change once.

use std::fmt;

use super::{Client, Effect, Entropy, Link, Notice, Now};
use crate::{NotAVote, RunId};

/// What an operator was told last.
#[derive(Debug)]
pub(super) struct News {
    // invariant: one entry per node
    nodes: Vec<Told>,
    /// `None` until each node was reached, or was found not to be.
    level: Option<Level>,
}

#[derive(Clone, Debug, Default)]
struct Told {
    /// What was last told of this connection.
    vote: Option<Result<(), NotAVote>>,
    /// Whether it voted when it said so last.
    votes: bool,
    /// Which run of the server was seen last.
    run: Option<RunId>,
    /// Whether that run was seen to vote.
    voted: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Level {
    Lost,
    AtRisk,
    Safe,
}

/// What has become of the majority of nodes that vote.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must handle every change")]
pub enum Majority {
    /// There is none any more, or none yet: nothing is acquired or renewed.
    Lost,
    /// There is one again.
    Regained,
    /// It is lost with one more node.
    AtRisk,
    /// It outlives the loss of a node again.
    Safe,
}

/// Why a node may have forgotten leases, as far as the client has seen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Forgot {
    /// The client has not seen it vote.
    Unseen,
    /// It is another run of a server than before.
    Restarted,
    /// It is the same run, and its mark is gone.
    Emptied,
}

impl News {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            nodes: vec![Told::default(); nodes],
            level: None,
        }
    }

    /// The connection to a node was lost, or could not be made.
    pub(super) fn on_disconnected(&mut self, node: usize) {
        if let Some(told) = self.nodes.get_mut(node) {
            (told.vote, told.votes) = (None, false);
        }
    }
}

impl<E: Entropy> Client<E> {
    /// Says once when a node begins to vote or stops, and what becomes of the majority by that.
    pub(super) fn tell(&mut self, node: usize, vote: &Result<(), NotAVote>, now: Now) {
        let told = &mut self.news.nodes[node];
        // With nobody to compare its clock with, it is for the others to be told of.
        let votes = vote.is_ok() || told.votes && matches!(vote, Err(NotAVote::Alone));
        let changed = std::mem::replace(&mut told.votes, votes) != votes;
        let is_news = match (told.vote.as_ref(), vote) {
            // Nothing is wrong with a node that has nobody to compare its clock with: the others are told of.
            (_, Err(NotAVote::Alone)) | (None | Some(Ok(())), Ok(())) => false,
            (Some(Err(told)), Err(now)) => {
                std::mem::discriminant(told) != std::mem::discriminant(now)
            }
            _ => true,
        };
        let run = self.electorate.run(node);
        let forgot = match (&told.run, vote) {
            (Some(before), Err(NotAVote::Quarantined { .. })) if Some(before) != run => {
                Some(Forgot::Restarted)
            }
            (_, Err(NotAVote::Quarantined { .. })) if told.voted => Some(Forgot::Emptied),
            (_, Err(NotAVote::Quarantined { .. })) => Some(Forgot::Unseen),
            _ => None,
        };
        told.voted = vote.is_ok() || told.voted && told.run.as_ref() == run && forgot.is_none();
        told.run = run.cloned();
        if !matches!(vote, Err(NotAVote::Alone)) {
            told.vote = Some(vote.clone());
        }
        if is_news {
            let notice = match vote {
                Ok(()) => Notice::Votes { node },
                Err(reason) => Notice::DoesNotVote {
                    node,
                    reason: reason.clone(),
                    forgot,
                },
            };
            self.effects.push_back(Effect::Notice(notice));
        }
        if changed || self.news.level.is_none() {
            self.judge(now);
        }
    }

    /// Says what has become of the majority, if that has changed.
    pub(super) fn judge(&mut self, now: Now) {
        let is_settled = |link: &Link| !matches!(link, Link::Connecting);
        if self.closing || !self.links.iter().all(is_settled) {
            return;
        }
        let quorum = self.config.quorum;
        let counts = |node: &usize| {
            matches!(self.links[*node], Link::Up)
                && self.electorate.vote(*node, now.clock).is_ok()
                && !self.watches[*node].health.refuses_writes()
        };
        let (votes, needed) = (
            (0..quorum.nodes()).filter(counts).count(),
            quorum.majority(),
        );
        let level = match votes.checked_sub(needed) {
            None => Level::Lost,
            Some(0) if quorum.tolerated() > 0 => Level::AtRisk,
            Some(_) => Level::Safe,
        };
        let is = match (self.news.level.replace(level), level) {
            (None, Level::Safe) => return,
            (Some(before), level) if before == level => return,
            (_, Level::Lost) => Majority::Lost,
            (Some(Level::Lost), _) => Majority::Regained,
            (_, Level::AtRisk) => Majority::AtRisk,
            (_, Level::Safe) => Majority::Safe,
        };
        let notice = Notice::Majority { is, votes, needed };
        self.effects.push_back(Effect::Notice(notice));
    }
}

impl fmt::Display for Forgot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unseen => {
                "the namespace is new on it, or it restarted or was emptied before this client saw it vote"
            }
            Self::Restarted => "the server was restarted, or another has taken its place",
            Self::Emptied => "its keys were deleted, or its data was replaced",
        })
    }
}
