use std::sync::Arc;

use super::{Ask, status::Reading, timers::TimerKey};
use crate::{
    Attempt, ClockReading, Extension, Instant, NoClaim, NodeAnswer, NodeTime, NotAVote, Outcome,
    OwnerId, Release, Reply, RunId, Shard, Survey, Vote, Votes,
};

/// One request to every node that is concerned, until each has had its outcome.
///
/// A round outlives its decision: what comes late still tells who may have the key.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) kind: RoundKind,
    pub(super) started: Instant,
    /// How far the nodes' clocks had gone ahead of the client's then.
    pub(super) jumped: i64,
    /// The requests whose outcome is still to come.
    pub(super) open: usize,
    /// The time limit, while the round is undecided.
    pub(super) limit: Option<TimerKey>,
    /// Whether that limit is for an attempt that has split the votes with another.
    pub(super) is_split: bool,
    /// For an attempt: the counter that it raises, and by how many tokens.
    pub(super) counts: Option<(Shard, u32)>,
    /// Which nodes have had their outcome.
    heard: Vec<bool>,
    answers: Vec<Option<NodeAnswer>>,
}

#[derive(Debug)]
pub(super) enum RoundKind {
    Attempt {
        acquisition: u64,
        owner: OwnerId,
        attempt: Attempt,
    },
    /// An attempt that was decided; its late outcomes concern the lease of this owner, if it became one.
    Decided { lease: Option<(u64, OwnerId)> },
    /// Nodes that have granted confirm the token, and the tick of a claim; the lease is handed out then.
    WriteBack {
        lease: u64,
        owner: OwnerId,
        extension: Extension,
    },
    Extension {
        lease: u64,
        extension: Extension,
        ask: Option<Ask>,
    },
    /// Nodes that had lost the key are given it again.
    Heal { lease: u64 },
    Release {
        release: Release,
        ask: Option<Ask>,
        ends: Instant,
    },
    /// Nodes are told what came of a run.
    Record,
    /// Nodes are asked what they remember of a job.
    Read { ask: Ask, reading: Reading },
    /// A node is asked where it stands, or what it is.
    Watch,
    /// Every node is asked for its counters, to find the floor of one whose quarantine began at `since`.
    Survey { survey: Survey, since: NodeTime },
    /// Every node is asked for its counters, to bless those that do not vote.
    Bless { survey: Survey, ask: Ask },
    /// A node that refused to write is asked to write something.
    Probe,
    /// Nodes are told to vote.
    Open { ask: Option<Ask>, nodes: Vec<usize> },
}

impl RoundKind {
    /// Whether nodes are asked for their votes.
    pub(super) fn asks_for_a_vote(&self) -> bool {
        matches!(self, Self::Attempt { .. } | Self::Decided { .. })
    }

    /// Notes a node's clock as its answer showed it, and which run of a server it is, where votes are counted.
    pub(super) fn note(&mut self, node: usize, seen: Option<&Seen>) {
        let Some(Seen { run, reading }) = seen else {
            return;
        };
        match self {
            Self::Attempt { attempt, .. } => attempt.note(node, run.clone(), *reading),
            Self::WriteBack { extension, .. } | Self::Extension { extension, .. } => {
                extension.note(node, run.clone(), *reading);
            }
            _ => {}
        }
    }

    /// Whether votes are counted, or would be if it was not decided.
    const fn counts_votes(&self) -> bool {
        matches!(
            self,
            Self::Attempt { .. }
                | Self::Decided { .. }
                | Self::WriteBack { .. }
                | Self::Extension { .. }
        )
    }

    /// Whether what this node is asked is a step of its own way back from quarantine.
    pub(super) fn looks_after(&self, node: usize) -> bool {
        match self {
            Self::Survey { survey, .. } => survey.node() == node,
            Self::Watch | Self::Open { .. } => true,
            _ => false,
        }
    }
}

/// Which server has answered, and what its clock showed.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) run: RunId,
    pub(super) reading: ClockReading,
}

/// Why a request has no reply.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a driver must fill in every part of it"
)]
pub struct RequestError {
    /// Whether the node may have run it, or may run it yet.
    pub may_have_run: bool,
    /// Why, in words for an operator and without credentials.
    pub reason: Arc<str>,
}

impl RequestError {
    pub(super) fn to_answer(&self) -> NodeAnswer {
        let reason = Arc::clone(&self.reason);
        match self.may_have_run {
            true => NodeAnswer::Unknown { reason },
            false => NodeAnswer::NotExecuted { reason },
        }
    }
}

impl Round {
    pub(super) fn new(kind: RoundKind, started: Instant, jumped: i64, nodes: usize) -> Self {
        Self {
            kind,
            started,
            jumped,
            open: 0,
            limit: None,
            is_split: false,
            counts: None,
            heard: vec![false; nodes],
            answers: vec![None; nodes],
        }
    }

    /// Notes what became of a request and says how the protocol counts it; `None` if that was noted before.
    pub(super) fn note(
        &mut self,
        node: usize,
        result: &Result<Reply, RequestError>,
        seen: Option<&Seen>,
        vote: impl FnOnce() -> Result<(), NotAVote>,
    ) -> Option<Outcome> {
        if std::mem::replace(self.heard.get_mut(node)?, true) {
            return None;
        }
        self.open = self.open.saturating_sub(1);
        self.kind.note(node, seen);
        let (outcome, answer) = match result {
            // It did not say where it stands.
            Ok(_) if seen.is_none() && self.kind.counts_votes() => {
                let reason = NotAVote::Unexamined;
                let not_a_vote = Outcome::NotAVote { ready_in: None };
                (not_a_vote, NodeAnswer::NotAVote { reason })
            }
            Ok(reply) => self.count(reply, vote),
            Err(error) => {
                let outcome = match error.may_have_run {
                    true => Outcome::Unknown,
                    false => Outcome::NotExecuted,
                };
                match vote() {
                    // What has to be changed says more than the error that comes of it.
                    Err(reason) if reason.needs_a_change() => {
                        (outcome, NodeAnswer::NotAVote { reason })
                    }
                    _ => (outcome, error.to_answer()),
                }
            }
        };
        self.answers[node] = Some(answer);
        Some(outcome)
    }

    /// Notes of nodes whose grants do not count that it is so.
    pub(super) fn say_uncounted(
        &mut self,
        votes: &Votes,
        same_server: impl Fn(usize) -> Option<usize>,
    ) {
        let granted = |answer: &Option<NodeAnswer>| *answer == Some(NodeAnswer::Granted);
        let mut granted = self
            .answers
            .iter()
            .enumerate()
            .filter(|(_, answer)| granted(answer));
        let is_split = granted.any(|(node, _)| !votes.counts(node) && same_server(node).is_none());
        for (node, answer) in self.answers.iter_mut().enumerate() {
            // Where no majority agrees, nobody's clock is known to be right.
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

    /// Notes what there is to say of a node without an outcome: one that is not asked, or will be again.
    pub(super) fn say(&mut self, node: usize, answer: NodeAnswer) {
        if let Some(noted) = self.answers.get_mut(node) {
            *noted = Some(answer);
        }
    }

    /// Whether no outcome is to come any more.
    pub(super) fn is_over(&self) -> bool {
        // While it is undecided, it may be joined by a node whose vote is late.
        let may_grow = matches!(self.kind, RoundKind::WriteBack { .. }) && self.limit.is_some();
        self.open == 0 && !may_grow
    }

    /// Which nodes have confirmed, or were not heard of at all.
    pub(super) fn confirmed_or_silent(&self, votes: &Votes) -> Vec<bool> {
        let confirmed = |vote| matches!(vote, Vote::Cast(Outcome::Granted { .. }));
        let heard = self.heard.iter().zip(votes.iter());
        heard
            .map(|(heard, vote)| !heard || confirmed(vote))
            .collect()
    }

    /// What a node said, for an error; `None` if it has said nothing.
    pub(super) fn answer(&self, node: usize) -> Option<NodeAnswer> {
        self.answers.get(node)?.clone()
    }

    /// Where the node stands is asked only if it matters.
    fn count(
        &self,
        reply: &Reply,
        vote: impl FnOnce() -> Result<(), NotAVote>,
    ) -> (Outcome, NodeAnswer) {
        let is_release = matches!(self.kind, RoundKind::Release { .. });
        let outcome = reply.outcome();
        let answer = match reply {
            // A node need not vote to let a key go.
            Reply::Done if is_release => NodeAnswer::Released,
            Reply::Done
            | Reply::Taken { .. }
            | Reply::Claimed { .. }
            | Reply::Facts(_)
            | Reply::Greatest(_)
            | Reply::Runs { .. } => match vote() {
                Ok(()) if matches!(reply, Reply::Runs { .. }) => NodeAnswer::Reachable,
                Ok(()) => NodeAnswer::Granted,
                Err(reason) => {
                    let ready_in = reason.ready_in();
                    let not_a_vote = Outcome::NotAVote { ready_in };
                    return (not_a_vote, NodeAnswer::NotAVote { reason });
                }
            },
            // What was claimed was claimed, whoever says so.
            Reply::NoClaim(refusal @ NoClaim::Passed(_)) => refusal.into(),
            Reply::NoClaim(refusal) => match vote() {
                Ok(()) => refusal.into(),
                // Nor does its clock say anything.
                Err(reason) => NodeAnswer::NotAVote { reason },
            },
            Reply::Held { remaining, .. } => NodeAnswer::Held {
                remaining: *remaining,
            },
            Reply::Missing => NodeAnswer::Missing,
            Reply::Buried => NodeAnswer::NotExecuted {
                reason: "it came after its own release".into(),
            },
            Reply::Unlike => match vote() {
                Err(reason) => NodeAnswer::NotAVote { reason },
                Ok(()) => NodeAnswer::NotExecuted {
                    reason: "clients with another max_ttl use this namespace there".into(),
                },
            },
        };
        (outcome, answer)
    }
}
