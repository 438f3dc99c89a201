//! The news of the nodes for an operator: each change once.

use super::super::{Forgot, Majority, Notice, outbox::Outbox};
use crate::{NotAVote, Quorum, RunId};

/// The last notices to an operator.
#[derive(Debug)]
pub(super) struct News {
    // invariant: one entry per node
    nodes: Vec<Told>,
    /// `None` until each node was reached, or was found not to be.
    level: Option<Level>,
    /// Whether no majority has voted since the first look, which found a first start.
    is_first_start: bool,
}

#[derive(Clone, Debug, Default)]
struct Told {
    /// The vote in the last notice about this connection.
    vote: Option<Result<(), NotAVote>>,
    /// Whether it voted when it said so last.
    votes: bool,
    /// Which run of the server was seen last.
    run: Option<RunId>,
    /// Whether that run was seen to vote.
    voted: bool,
    /// Whether the news of its quarantine waits for the first look at all nodes.
    is_held_back: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Level {
    Lost,
    AtRisk,
    Safe,
}

impl News {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            nodes: vec![Told::default(); nodes],
            level: None,
            is_first_start: false,
        }
    }

    /// Returns whether no majority has voted yet, because the nodes are new to the namespace or have lost all of it.
    pub(super) const fn is_first_start(&self) -> bool {
        self.is_first_start
    }

    /// Returns whether the majority was not judged yet.
    pub(super) const fn is_unjudged(&self) -> bool {
        self.level.is_none()
    }

    /// Takes in that the connection to a node was lost, or could not be made.
    pub(super) fn on_disconnected(&mut self, node: usize) {
        if let Some(told) = self.nodes.get_mut(node) {
            (told.vote, told.votes) = (None, false);
        }
    }

    /// Says when a node begins to vote or stops, each change once; returns whether the majority is to be judged.
    ///
    /// `vote` is what the node's last answers come to, in that run of a server.
    pub(super) fn tell(
        &mut self,
        node: usize,
        vote: &Result<(), NotAVote>,
        run: Option<&RunId>,
        outbox: &mut Outbox,
    ) -> bool {
        let told = &mut self.nodes[node];
        // A node that becomes `Alone` counts as before: the other nodes are down, and are reported instead.
        let votes = vote.is_ok() || told.votes && matches!(vote, Err(NotAVote::Alone));
        let changed = std::mem::replace(&mut told.votes, votes) != votes;
        let is_news = match (told.vote.as_ref(), vote) {
            // A node is `Alone` because the other nodes are down; those are reported instead.
            (_, Err(NotAVote::Alone)) | (None | Some(Ok(())), Ok(())) => false,
            (Some(Err(told)), Err(now)) => {
                std::mem::discriminant(told) != std::mem::discriminant(now)
            }
            _ => true,
        };
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
        told.is_held_back = self.level.is_none() && forgot == Some(Forgot::Unseen);
        if is_news && !told.is_held_back {
            outbox.notice(match vote {
                Ok(()) => Notice::Votes { node },
                Err(reason) => Notice::DoesNotVote {
                    node,
                    reason: reason.clone(),
                    forgot,
                },
            });
        }
        changed || self.level.is_none()
    }

    /// Reports what the majority has become now that `votes` nodes vote, if that has changed.
    pub(super) fn judge(&mut self, votes: usize, quorum: Quorum, outbox: &mut Outbox) {
        let needed = quorum.majority();
        let level = match votes.checked_sub(needed) {
            None => Level::Lost,
            Some(0) if quorum.tolerated() > 0 => Level::AtRisk,
            Some(_) => Level::Safe,
        };
        if self.level.is_none() && self.begins(votes, needed, outbox) {
            (self.level, self.is_first_start) = (Some(Level::Lost), true);
            return;
        }
        self.is_first_start &= level == Level::Lost;
        let is = match (self.level.replace(level), level) {
            (None, Level::Safe) => return,
            (Some(before), level) if before == level => return,
            (_, Level::Lost) => Majority::Lost,
            (Some(Level::Lost), _) => Majority::Regained,
            (_, Level::AtRisk) => Majority::AtRisk,
            (_, Level::Safe) => Majority::Safe,
        };
        outbox.notice(Notice::Majority { is, votes, needed });
    }

    /// Tells what waits for the first look at all nodes; returns whether that is a first start, in place of all that.
    fn begins(&mut self, votes: usize, needed: usize, outbox: &mut Outbox) -> bool {
        let held_back = self
            .nodes
            .iter_mut()
            .enumerate()
            .filter_map(|(node, told)| {
                let is_held_back = std::mem::take(&mut told.is_held_back);
                let reason = told.vote.clone()?.err()?;
                is_held_back.then_some((node, reason))
            });
        let held_back: Vec<_> = held_back.collect();
        let waits = held_back.iter().filter_map(|(_, reason)| reason.ready_in());
        let mut waits: Vec<_> = waits.collect();
        waits.sort_unstable();
        if votes == 0
            && let Some(ready_in) = waits.get(needed - 1)
        {
            outbox.notice(Notice::FirstStart {
                nodes: waits.len(),
                ready_in: *ready_in,
            });
            return true;
        }
        for (node, reason) in held_back {
            outbox.notice(Notice::DoesNotVote {
                node,
                reason,
                forgot: Some(Forgot::Unseen),
            });
        }
        false
    }
}
