use std::{sync::Arc, time::Duration};

use super::{
    super::{nodes::Nodes, timers::TimerKey},
    RoundKind,
};
use crate::{
    ClockReading, Instant, Lock, NoClaim, NodeAnswer, NodeOutcome, NotAVote, Reply, RequestError,
    RunId, Vote, Votes, membership::Baseline,
};

/// One request to every node that is concerned, until each has had its outcome.
///
/// A round outlives its decision: a late answer still shows whether the node may have the key.
#[derive(Debug)]
pub(in super::super) struct Round {
    pub(in super::super) kind: RoundKind,
    pub(in super::super) started: Instant,
    /// What the nodes' clocks are compared with that have gone ahead since.
    pub(in super::super) baseline: Baseline,
    /// The requests whose outcome is still to come.
    pub(in super::super) open: usize,
    /// The time limit, while there is one.
    limit: Option<TimerKey>,
    /// How long a node may say nothing that owes it an outcome.
    patience: Duration,
    /// When it ends though its nodes answer others; `None` if it never does.
    ends: Option<Instant>,
    /// Whether it has ended for that reason.
    pub(in super::super) ran_out: bool,
    /// Whether that limit is for an attempt that has split the votes with another.
    is_split: bool,
    /// For an attempt: the keys whose counters it raises, and by how many tokens.
    pub(in super::super) counts: Option<(Arc<Lock>, u32)>,
    // invariant: one entry per node
    nodes: Vec<NodeProgress>,
}

/// The progress of a round at one node.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeProgress {
    /// Whether it was asked.
    is_asked: bool,
    /// Whether it has had its outcome.
    is_over: bool,
    /// What there is to say of it.
    answer: Option<NodeAnswer>,
}

impl Round {
    /// Makes a round that asks `nodes` nodes, and keeps what it hears in `spare`.
    ///
    /// It is started at `started`, when the clocks showed `baseline`; `patience` is its time limit, and `limit` the
    /// timer of that.
    pub(super) fn new(
        kind: RoundKind,
        (started, baseline): (Instant, Baseline),
        (nodes, mut spare): (usize, Vec<NodeProgress>),
        (patience, limit): (Duration, TimerKey),
    ) -> Self {
        spare.clear();
        spare.resize(nodes, NodeProgress::default());
        Self {
            // What takes longer than half the lease is no use.
            ends: kind.timing().map(|timing| started + timing.ttl() / 2),
            kind,
            patience,
            ran_out: false,
            started,
            baseline,
            open: 0,
            limit: Some(limit),
            is_split: false,
            counts: None,
            nodes: spare,
        }
    }

    /// Ends the round and returns the memory of what it has heard.
    pub(super) fn into_spare(self) -> Vec<NodeProgress> {
        self.nodes
    }

    /// Notes that one more request is sent, to this node.
    pub(in super::super) fn on_sent(&mut self, node: usize) {
        self.open += 1;
        if let Some(progress) = self.nodes.get_mut(node) {
            progress.is_asked = true;
        }
    }

    /// Ends the round at this moment at the latest.
    pub(in super::super) fn ends_by(&mut self, at: Instant) {
        self.ends = Some(self.ends.map_or(at, |ends| ends.min(at)));
    }

    /// Returns how much time is left when its timer is due at `now`.
    ///
    /// A node has had its time once it has said nothing for so long, though a call that was written waits for its answer.
    pub(in super::super) fn rest(&self, nodes: &Nodes, now: Instant) -> Rest {
        if self.is_split {
            return Rest::Over(Limit::Split);
        }
        let progress = self.nodes.iter().enumerate();
        let owing = progress.filter(|(_, progress)| progress.is_asked && !progress.is_over);
        let silent_at = owing.map(|(node, _)| nodes.silent_at(node, self.patience, now));
        let Some(at) = silent_at.max() else {
            return Rest::Over(Limit::Silence);
        };
        match self.ends() {
            // A request is written a little after its round was started: silence for most of its time is silence.
            Some(ends) if ends <= now && at <= now + self.patience / 2 => {
                Rest::Over(Limit::Silence)
            }
            Some(ends) if ends <= now => Rest::Over(Limit::RanOut),
            _ if at <= now => Rest::Over(Limit::Silence),
            ends => Rest::Until(ends.map_or(at, |ends| ends.min(at))),
        }
    }

    /// Returns when it ends though its nodes answer others, or asks the nodes that it holds back: these need time, too.
    fn ends(&self) -> Option<Instant> {
        let ends = self.ends?;
        let held_back = match &self.kind {
            RoundKind::Attempt { held_back, .. } => held_back.as_ref(),
            _ => None,
        };
        Some(match held_back {
            Some(_) => self.started + ends.saturating_since(self.started) / 2,
            None => ends,
        })
    }

    /// Returns whether it has a time limit still.
    pub(in super::super) const fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    /// Sets the time limit; returns the one before.
    pub(in super::super) fn limit(&mut self, limit: TimerKey) -> Option<TimerKey> {
        self.patience = limit.at().saturating_since(self.started);
        self.limit.replace(limit)
    }

    /// Sets the timer to look at the time limit again.
    pub(in super::super) const fn look_again(&mut self, limit: TimerKey) {
        self.limit = Some(limit);
    }

    /// Takes its time limit away.
    pub(in super::super) const fn take_limit(&mut self) -> Option<TimerKey> {
        self.limit.take()
    }

    /// Takes in that its time limit was reached.
    pub(in super::super) fn on_limit(&mut self, limit: Limit) {
        self.limit = None;
        self.is_split = false;
        self.ran_out = limit == Limit::RanOut;
    }

    /// Returns whether it has split the votes now and must not last beyond this.
    pub(in super::super) fn splits(&self, until: Instant) -> bool {
        !self.is_split && self.limit.is_some_and(|limit| until < limit.at())
    }

    /// Notes that the round has split the votes, and sets a shorter time limit; returns the one before.
    pub(in super::super) const fn split(&mut self, limit: TimerKey) -> Option<TimerKey> {
        self.is_split = true;
        self.limit.replace(limit)
    }

    /// Notes what became of a request and says how the protocol counts it; `None` if that was noted before.
    pub(in super::super) fn note(
        &mut self,
        node: usize,
        result: &Result<Reply, RequestError>,
        seen: Option<&(RunId, ClockReading)>,
        vote: impl Fn() -> Result<(), NotAVote>,
    ) -> Option<NodeOutcome> {
        if std::mem::replace(&mut self.nodes.get_mut(node)?.is_over, true) {
            return None;
        }
        self.open = self.open.saturating_sub(1);
        self.kind.note(node, seen, || vote().is_ok());
        let (outcome, answer) = match result {
            // It did not say where it stands.
            Ok(_) if seen.is_none() && self.kind.counts_votes() => {
                let reason = NotAVote::Unexamined;
                let not_a_vote = NodeOutcome::NotAVote { ready_in: None };
                (not_a_vote, NodeAnswer::NotAVote { reason })
            }
            Ok(reply) => self.outcome(reply, vote),
            Err(error) => {
                let outcome = if error.may_have_run {
                    NodeOutcome::Unknown
                } else {
                    NodeOutcome::NotExecuted
                };
                match vote() {
                    // What has to be changed says more than the error that comes of it.
                    Err(reason) if reason.needs_a_change() => {
                        (outcome, NodeAnswer::NotAVote { reason })
                    }
                    _ => (outcome, error.into()),
                }
            }
        };
        self.nodes[node].answer = Some(answer);
        Some(outcome)
    }

    /// Notes of nodes whose grants do not count that it is so.
    pub(in super::super) fn say_uncounted(
        &mut self,
        votes: &Votes,
        same_server: impl Fn(usize) -> Option<usize>,
    ) {
        let granted = |progress: &NodeProgress| progress.answer == Some(NodeAnswer::Granted);
        let mut granted = self
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, progress)| granted(progress));
        let is_split = granted.any(|(node, _)| !votes.counts(node) && same_server(node).is_none());
        for (node, NodeProgress { answer, .. }) in self.nodes.iter_mut().enumerate() {
            // Where no majority agrees, no clock is known to be right.
            let counts = votes.counts(node) && (votes.is_won() || !is_split);
            if *answer == Some(NodeAnswer::Granted) && !counts {
                let reason = match same_server(node) {
                    Some(of) => NotAVote::SameServer { of },
                    None => NotAVote::Clock,
                };
                *answer = Some(NodeAnswer::NotAVote { reason });
            }
        }
    }

    /// Notes that a node's request failed and will be made again: it has had its time, and `answer` says what came of it.
    pub(in super::super) fn on_delayed(&mut self, node: usize, answer: NodeAnswer) {
        if let Some(progress) = self.nodes.get_mut(node) {
            progress.is_asked = false;
        }
        self.say(node, answer);
    }

    /// Notes what there is to say of a node without an outcome: one that is not asked, or will be again.
    pub(in super::super) fn say(&mut self, node: usize, answer: NodeAnswer) {
        if let Some(progress) = self.nodes.get_mut(node) {
            progress.answer = Some(answer);
        }
    }

    /// Returns whether it does not ask a node, for now.
    pub(in super::super) fn holds_back(&self, node: usize) -> bool {
        let RoundKind::Attempt { attempt, .. } = &self.kind else {
            return false;
        };
        attempt.votes().get(node) == Some(Vote::HeldBack)
    }

    /// Returns whether no outcome is to come any more.
    pub(in super::super) fn is_over(&self) -> bool {
        // While it is undecided, it may be joined by a node whose vote is late.
        // One that waits in line is undecided for as long as it waits.
        let may_grow = match &self.kind {
            RoundKind::WriteBack { .. } => self.limit.is_some(),
            RoundKind::Attempt { attempt, .. } => attempt.stands(),
            RoundKind::Decided { is_settling, .. } => *is_settling,
            _ => false,
        };
        self.open == 0 && !may_grow
    }

    /// Returns which nodes have confirmed, or were not heard of at all.
    pub(in super::super) fn confirmed_or_silent(&self, votes: &Votes) -> Vec<bool> {
        let confirmed = |vote| matches!(vote, Vote::Cast(NodeOutcome::Granted { .. }));
        let nodes = self.nodes.iter().zip(votes.iter());
        nodes
            .map(|(progress, vote)| !progress.is_over || confirmed(vote))
            .collect()
    }

    /// Returns what a node said, for an error; `None` if it has said nothing.
    pub(in super::super) fn answer(&self, node: usize) -> Option<NodeAnswer> {
        self.nodes.get(node)?.answer.clone()
    }

    /// Returns how a reply counts, and what to say of it; where the node stands is asked only if it matters.
    fn outcome(
        &self,
        reply: &Reply,
        vote: impl FnOnce() -> Result<(), NotAVote>,
    ) -> (NodeOutcome, NodeAnswer) {
        let is_release = matches!(self.kind, RoundKind::Release { .. });
        let outcome = reply.outcome();
        let answer = match reply {
            // A node need not vote to let a key go.
            Reply::Done | Reply::Passed { .. } if is_release && reply.is_done() => {
                NodeAnswer::Released
            }
            Reply::Done
            | Reply::Taken { .. }
            | Reply::Claimed { .. }
            | Reply::ServerInfo(_)
            | Reply::Greatest(_)
            | Reply::Runs { .. } => match vote() {
                Ok(()) if matches!(reply, Reply::Runs { .. }) => NodeAnswer::Reachable,
                Ok(()) => NodeAnswer::Granted,
                Err(reason) => {
                    let ready_in = reason.ready_in();
                    let not_a_vote = NodeOutcome::NotAVote { ready_in };
                    return (not_a_vote, NodeAnswer::NotAVote { reason });
                }
            },
            // A tick that was claimed stays claimed, also if the node that says so does not vote.
            Reply::NoClaim(refusal @ NoClaim::Passed(_)) => refusal.into(),
            Reply::NoClaim(refusal) => match vote() {
                Ok(()) => refusal.into(),
                // Nor does its clock say anything.
                Err(reason) => NodeAnswer::NotAVote { reason },
            },
            Reply::Held {
                remaining, holder, ..
            }
            | Reply::InLine {
                remaining, holder, ..
            } => NodeAnswer::Held {
                remaining: *remaining,
                holder: *holder,
            },
            Reply::OtherSlots { count, remaining } => NodeAnswer::OtherSlots {
                count: *count,
                remaining: *remaining,
            },
            Reply::Missing | Reply::Passed { .. } => NodeAnswer::Missing,
            Reply::Unclear => NodeAnswer::Unknown {
                reason: "it does not say whether it took the key".into(),
            },
            Reply::Tombstoned => NodeAnswer::NotExecuted {
                reason: "it came after its own release".into(),
            },
            Reply::PolicyMismatch => match vote() {
                Err(reason) => NodeAnswer::NotAVote { reason },
                Ok(()) => NodeAnswer::NotExecuted {
                    reason: "clients with another max_ttl use this namespace there".into(),
                },
            },
        };
        (outcome, answer)
    }
}

/// How much time a round has left when its timer is due.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum Rest {
    /// Its nodes have more: it is looked at again at this moment.
    Until(Instant),
    /// None.
    Over(Limit),
}

/// The limit that a round has reached.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in super::super) enum Limit {
    /// The one of an attempt that has split the votes.
    Split,
    /// Each node that owes an outcome has said nothing for as long as it may.
    Silence,
    /// It has lasted for too long, though a node that owes an outcome answers others, or was not sent its request yet.
    RanOut,
}
