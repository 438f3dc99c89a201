//! The notices of the nodes' votes for an operator: each change once.

use super::{
    super::{Forgot, Majority, Now, effect::Outbox},
    NodeState, Nodes,
};
use crate::{NotAVote, Notice, RunId};

/// The last notice of a node's vote, and what the client had seen of the node by then.
#[derive(Debug, Default)]
pub(super) struct VoteNotice {
    /// The vote in the last notice about this connection.
    vote: Option<Result<(), NotAVote>>,
    /// Whether it voted when it said so last.
    votes: bool,
    /// Which run of the server was seen last.
    run: Option<RunId>,
    /// Whether that run was seen to vote.
    voted: bool,
    /// Whether the notice of its quarantine waits for the first look at all nodes.
    is_held_back: bool,
    /// Whether the first look found a first start, and this node is in quarantine since then.
    is_new: bool,
}

/// How many nodes a majority can lose.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum MajorityLevel {
    Lost,
    AtRisk,
    Safe,
}

impl VoteNotice {
    /// Takes in that the connection to the node was lost, or could not be made.
    pub(super) fn on_disconnected(&mut self) {
        (self.vote, self.votes) = (None, false);
    }
}

impl Nodes {
    /// Says when a node begins to vote or stops, each change once; returns whether the majority is to be judged.
    pub(in super::super) fn tell(&mut self, node: usize, now: Now, outbox: &mut Outbox) -> bool {
        let vote = &self.vote(node, now.clock);
        self.on_vote(node, vote.is_ok(), now.clock);
        let NodeState {
            session, notice, ..
        } = &mut self.nodes[node];
        let run = session.run.as_ref();
        // A node that becomes `Alone` counts as before: the other nodes are down, and are reported instead.
        let votes = vote.is_ok() || notice.votes && matches!(vote, Err(NotAVote::Alone));
        let changed = std::mem::replace(&mut notice.votes, votes) != votes;
        let is_news = match (notice.vote.as_ref(), vote) {
            // A node is `Alone` because the other nodes are down; those are reported instead.
            (_, Err(NotAVote::Alone)) | (None | Some(Ok(())), Ok(())) => false,
            (Some(Err(reported)), Err(now)) => {
                std::mem::discriminant(reported) != std::mem::discriminant(now)
            }
            _ => true,
        };
        let forgot = match (&notice.run, vote) {
            (Some(before), Err(NotAVote::Quarantined { .. })) if Some(before) != run => {
                Some(Forgot::Restarted)
            }
            (_, Err(NotAVote::Quarantined { .. })) if notice.voted => Some(Forgot::Emptied),
            (_, Err(NotAVote::Quarantined { .. })) => Some(Forgot::Unseen),
            _ => None,
        };
        notice.voted =
            vote.is_ok() || notice.voted && notice.run.as_ref() == run && forgot.is_none();
        notice.is_new &= vote.is_err() && notice.run.as_ref() == run;
        notice.run = run.cloned();
        if !matches!(vote, Err(NotAVote::Alone)) {
            notice.vote = Some(vote.clone());
        }
        notice.is_held_back = self.level.is_none() && forgot == Some(Forgot::Unseen);
        if is_news && !notice.is_held_back {
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

    /// Reports what the majority has become, if that has changed, once every node was reached or was found not to be.
    pub(in super::super) fn judge(&mut self, now: Now, outbox: &mut Outbox) {
        if !self.nodes.iter().all(NodeState::is_settled) {
            return;
        }
        if self.level.is_none() {
            // The first nodes had no others to compare their clocks with.
            for node in self
                .all()
                .filter(|node| self.is_up(*node))
                .collect::<Vec<_>>()
            {
                self.tell(node, now, outbox);
            }
        }
        let votes = self
            .all()
            .filter(|node| self.votes(*node, now) && !self.refuses_writes(*node));
        let (votes, needed) = (votes.count(), self.quorum.majority());
        let level = match votes.checked_sub(needed) {
            None => MajorityLevel::Lost,
            Some(0) if self.quorum.tolerated() > 0 => MajorityLevel::AtRisk,
            Some(_) => MajorityLevel::Safe,
        };
        if self.level.is_none() && self.begins(votes, needed, outbox) {
            self.level = Some(MajorityLevel::Lost);
            return;
        }
        let is = match (self.level.replace(level), level) {
            (None, MajorityLevel::Safe) => return,
            (Some(before), level) if before == level => return,
            (_, MajorityLevel::Lost) => Majority::Lost,
            (Some(MajorityLevel::Lost), _) => Majority::Regained,
            (_, MajorityLevel::AtRisk) => Majority::AtRisk,
            (_, MajorityLevel::Safe) => Majority::Safe,
        };
        outbox.notice(Notice::Majority { is, votes, needed });
    }

    /// Returns whether the first look found a first start, and a node is in quarantine since then.
    pub(in super::super) fn is_new(&self, node: usize) -> bool {
        self.nodes[node].notice.is_new
    }

    /// Tells what waits for the first look at all nodes; returns whether that is a first start, in place of all that.
    fn begins(&mut self, votes: usize, needed: usize, outbox: &mut Outbox) -> bool {
        let nodes = self.nodes.iter_mut().enumerate();
        let held_back = nodes.filter_map(|(node, NodeState { notice, .. })| {
            let is_held_back = std::mem::take(&mut notice.is_held_back);
            let reason = notice.vote.clone()?.err()?;
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
            for (node, _) in held_back {
                self.nodes[node].notice.is_new = true;
            }
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
