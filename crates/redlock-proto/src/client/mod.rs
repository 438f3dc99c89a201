//! The client as a state machine: acquisitions, leases, rounds and the watch over the nodes.

mod acquire;
mod claim;
mod commit;
mod hold;
mod round;
mod status;
mod timers;
mod watch;

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::Arc,
    time::Duration,
};

pub use self::{
    acquire::Acquire,
    claim::{Claim, NotClaimed},
    round::RequestError,
    status::JobState,
};
use self::{
    acquire::Acquisition,
    hold::Held,
    round::{Round, RoundKind},
    timers::Timers,
    watch::Watch,
};
use crate::{
    Electorate, Failure, Instant, Loss, MarkState, NodeAnswer, NodeTime, Outcome, OwnerId, Quorum,
    Reply, Request, RetryPolicy, RunRecord, Shard, Space, Standing, TokenBlock,
};

/// Everything a client decides, without anything it does.
///
/// Whoever drives it owns the sockets and the clock.
/// It tells the client what happened, each time with a reading of its clocks, and carries out the
/// [`Effect`]s that [`poll_effect`](Self::poll_effect) returns; it calls [`on_timer`](Self::on_timer) no later
/// than [`next_timer`](Self::next_timer) says.
/// The same inputs give the same effects, so the simulation and the real client run the same code.
///
/// Two things are asked of the driver:
///
/// * requests to one node are sent in the order of their effects, over one connection at a time, and those meant
///   for another connection in the form that this needs;
/// * what became of each request is told exactly once, and an error that says it was not executed is a
///   promise.
pub struct Client<E> {
    config: ClientConfig,
    entropy: E,
    electorate: Electorate,
    links: Vec<Link>,
    /// How many connections there were to each node.
    connections: Vec<u64>,
    watches: Vec<Watch>,
    /// The greatest counter seen, by shard.
    counters: Vec<u64>,
    acquisitions: BTreeMap<u64, Acquisition>,
    leases: BTreeMap<u64, Held>,
    rounds: BTreeMap<u64, Round>,
    next_round: u64,
    timers: Timers<Timer>,
    effects: VecDeque<Effect>,
    closing: bool,
}

/// What a client needs to know.
#[derive(Clone, Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a driver must settle every part of it"
)]
pub struct ClientConfig {
    /// How many nodes there are.
    pub quorum: Quorum,
    /// The namespace, and its quarantine.
    pub space: Space,
    /// When to try again.
    pub retry: RetryPolicy,
    /// How long a round may take to be decided.
    pub node_timeout: Duration,
}

/// A reading of the client's clocks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a driver must fill in every part of it"
)]
pub struct Now {
    /// The monotonic clock, on which everything is timed.
    pub clock: Instant,
    /// The wall clock, in microseconds since the Unix epoch.
    ///
    /// Fencing tokens are close to it, and nothing but their distance rests on it, unless a majority of the
    /// nodes loses its counters at once.
    pub wall: u64,
}

/// Where the client's randomness comes from.
pub trait Entropy {
    /// An owner that was never used before, from the operating system's generator.
    fn owner(&mut self) -> OwnerId;

    /// 64 random bits, for a delay.
    fn bits(&mut self) -> u64;
}

/// A number by which a driver recognises the answer to something it asked for.
pub type Ask = u64;

/// What a driver must do.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "a driver must handle every effect")]
pub enum Effect {
    /// Send a request to a node, and say what became of it under this number.
    Send {
        /// The node, from 0.
        node: usize,
        /// The number.
        round: u64,
        /// The request.
        request: Request,
        /// Which of the connections to the node it is meant for, by their number, from 1.
        ///
        /// Over any other it must be sent as [`Request::over_another_connection`] makes it: what it follows may
        /// still be on its way.
        connection: u64,
    },
    /// An acquisition has won a lease, which goes by the same number.
    Acquired {
        /// The acquisition, and from now on the lease.
        id: u64,
        /// Up to when it is valid.
        deadline: Instant,
        /// When it ends however often it is extended, if it does.
        ends: Option<Instant>,
        /// Its fencing tokens.
        tokens: TokenBlock,
    },
    /// A claim has won its tick, which was started from now on, and the lease under which it runs, which goes by the
    /// same number.
    Claimed {
        /// The claim, and from now on the lease.
        id: u64,
        /// Up to when the lease is valid.
        deadline: Instant,
        /// When it ends however often it is extended, if it does.
        ends: Option<Instant>,
        /// Its fencing token, and no other.
        tokens: TokenBlock,
        /// The newest run before it, as far as the nodes that voted remember.
        last: Option<RunRecord>,
    },
    /// A claim has not won its tick, and there is no use in another.
    NotClaimed {
        /// The claim.
        id: u64,
        /// Why.
        why: NotClaimed,
        /// What each node said.
        answers: Vec<NodeAnswer>,
    },
    /// What nodes remember of a job, as it was asked for.
    JobRead {
        /// Who asked.
        ask: Ask,
        /// What it comes to; `None` if too few nodes said.
        state: Option<JobState>,
        /// What each node said.
        answers: Vec<NodeAnswer>,
    },
    /// An acquisition or a claim has failed for good.
    NotAcquired {
        /// The acquisition.
        id: u64,
        /// Why; `None` if the client is closed.
        failure: Option<Failure>,
        /// What each node said.
        answers: Vec<NodeAnswer>,
    },
    /// A lease is valid for longer.
    Extended {
        /// The lease.
        lease: u64,
        /// Up to when.
        deadline: Instant,
    },
    /// A lease can no longer be relied on.
    Lost {
        /// The lease.
        lease: u64,
        /// Why.
        loss: Loss,
    },
    /// An extension that was asked for is over.
    ExtensionOver {
        /// Who asked.
        ask: Ask,
        /// Whether a majority confirmed it.
        result: Result<(), NotExtended>,
    },
    /// A release that was asked for is over.
    ReleaseOver {
        /// Who asked.
        ask: Ask,
        /// Whether a majority confirmed it.
        result: Result<(), NotReleased>,
    },
    /// The blessing that was asked for is over.
    Blessed {
        /// Who asked.
        ask: Ask,
        /// Where each node stands now.
        answers: Vec<NodeAnswer>,
    },
    /// Something an operator should know.
    Notice(Notice),
}

/// An extension that moved no deadline.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a driver must handle every part of it"
)]
pub struct NotExtended {
    /// Whether the lease is lost; else it keeps its deadline.
    pub lost: bool,
    /// What each node said; empty if none was asked.
    pub answers: Vec<NodeAnswer>,
}

/// A release that no majority confirmed in time.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a driver must handle every part of it"
)]
pub struct NotReleased {
    /// Within which time the key ends on the nodes that did not confirm.
    pub ends_within: Duration,
    /// What each node said.
    pub answers: Vec<NodeAnswer>,
}

/// Something an operator should know.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Notice {
    /// A node's grants are votes from now on.
    Votes {
        /// The node.
        node: usize,
    },
    /// A node's grants are no votes any more.
    DoesNotVote {
        /// The node.
        node: usize,
        /// Why.
        reason: crate::NotAVote,
    },
    /// A majority lost its counters at once, so the order of tokens rested on the wall clock at this moment.
    FencingDegraded {
        /// The node whose counters were restored.
        node: usize,
    },
    /// An extension was not confirmed by a majority; the lease keeps its deadline.
    ExtensionFailed,
}

#[derive(Clone, Debug)]
enum Link {
    Connecting,
    Up,
    Down(Arc<str>),
}

/// What can be due.
#[derive(Clone, Copy, Debug)]
enum Timer {
    RoundLimit(u64),
    Retry(u64),
    Lease(u64),
    Watch(usize),
}

impl<E: Entropy> Client<E> {
    /// A client that knows nothing of its nodes yet.
    pub fn new(config: ClientConfig, entropy: E) -> Self {
        let nodes = config.quorum.nodes();
        Self {
            electorate: Electorate::new(config.quorum, *config.space.quarantine()),
            config,
            entropy,
            links: vec![Link::Connecting; nodes],
            connections: vec![0; nodes],
            watches: (0..nodes).map(|_| Watch::default()).collect(),
            counters: vec![0; usize::from(Shard::COUNT)],
            acquisitions: BTreeMap::new(),
            leases: BTreeMap::new(),
            rounds: BTreeMap::new(),
            next_round: 0,
            timers: Timers::new(),
            effects: VecDeque::new(),
            closing: false,
        }
    }

    /// The next thing to do, in order.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// When [`on_timer`](Self::on_timer) has something to do at the earliest.
    pub fn next_timer(&self) -> Option<Instant> {
        self.timers.next_due()
    }

    /// Time has passed.
    pub fn on_timer(&mut self, now: Now) {
        while let Some(timer) = self.timers.pop_due(now.clock) {
            match timer {
                Timer::RoundLimit(id) => self.on_round_limit(id, now),
                Timer::Retry(id) => self.try_again(id, now),
                Timer::Lease(id) => self.on_lease_timer(id, now),
                Timer::Watch(node) => self.on_watch(node, now),
            }
        }
    }

    /// A call was answered, or failed: where the node stands, if it said so, and what became of each request, by
    /// the number that it was sent under.
    ///
    /// The call was sent at `sent`, and a failure of the call as a whole is one of each request.
    pub fn on_answer(
        &mut self,
        node: usize,
        standing: Option<Standing>,
        results: impl IntoIterator<Item = (u64, Result<Reply, RequestError>)>,
        sent: Instant,
        now: Now,
    ) {
        let looked = standing.is_some();
        if let Some(standing) = standing {
            self.on_standing(node, standing, sent, now);
        }
        for (round, result) in results {
            self.on_result(node, round, result, now);
        }
        if looked {
            self.follow_standing(node, now);
        }
    }

    /// A release failed and will be made again, so there is no outcome yet; `error` is for whoever gives up meanwhile.
    pub fn on_delayed(&mut self, node: usize, round: u64, error: &RequestError) {
        if let Some(round) = self.rounds.get_mut(&round) {
            round.say(node, error.to_answer());
        }
    }

    /// Ends every acquisition; leases stay until they are released.
    pub fn close(&mut self, now: Now) {
        self.closing = true;
        let ids: Vec<u64> = self.acquisitions.keys().copied().collect();
        for id in ids {
            self.end(id, now);
        }
    }

    /// Whether nothing is left to clean up; leases that are held are no clean-up.
    pub fn is_clean(&self) -> bool {
        let is_cleanup = |round: &Round| {
            round.limit.is_some()
                && matches!(round.kind, RoundKind::Release { .. } | RoundKind::Record)
        };
        self.acquisitions.is_empty() && !self.rounds.values().any(is_cleanup)
    }

    /// Where each node stands.
    pub fn standing(&self, now: Now) -> Vec<NodeAnswer> {
        let stands = |node| match (&self.links[node], self.electorate.vote(node, now.clock)) {
            (Link::Connecting, _) => NodeAnswer::Pending,
            (Link::Down(reason), _) => NodeAnswer::NotExecuted {
                reason: Arc::clone(reason),
            },
            (Link::Up, Ok(())) => NodeAnswer::Reachable,
            (Link::Up, Err(reason)) => NodeAnswer::NotAVote { reason },
        };
        (0..self.config.quorum.nodes()).map(stands).collect()
    }

    /// What the nodes' wall clocks show, as far as their last answers tell, if a majority's agree.
    pub fn node_time(&self, now: Now) -> Option<NodeTime> {
        self.electorate.common_time(now.clock)
    }

    /// How many requests wait for their outcome; for those who look for leaks.
    pub fn open_requests(&self) -> usize {
        self.rounds.values().map(|round| round.open).sum()
    }

    fn on_result(&mut self, node: usize, id: u64, result: Result<Reply, RequestError>, now: Now) {
        let Some(round) = self.rounds.get_mut(&id) else {
            return;
        };
        let vote = || self.electorate.vote(node, now.clock);
        // A node is asked once in a round; what is told twice is heard once.
        let Some(outcome) = round.note(node, &result, vote) else {
            return;
        };
        if let Err(error) = &result
            && round.kind.looks_after(node)
        {
            let reason = Arc::clone(&error.reason);
            self.electorate.on_trouble(node, reason);
        }
        if let Ok(reply) = &result {
            self.note_counter(id, reply);
        }
        self.on_outcome(id, node, outcome, result.ok(), now);
        if self.rounds.get(&id).is_some_and(|round| round.open == 0) {
            self.decided(id);
            self.rounds.remove(&id);
        }
    }

    fn on_outcome(
        &mut self,
        id: u64,
        node: usize,
        outcome: Outcome,
        reply: Option<Reply>,
        now: Now,
    ) {
        let Some(round) = self.rounds.get_mut(&id) else {
            return;
        };
        match &mut round.kind {
            RoundKind::Attempt {
                attempt,
                acquisition,
                ..
            } => {
                let acquisition = *acquisition;
                let mut verdict = attempt.on_outcome(node, outcome, now.clock);
                if let Some(reply) = &reply
                    && self.note_claim(acquisition, node, reply, now)
                {
                    verdict = verdict.or_else(|| self.abandoned(id, now));
                }
                if let Some(verdict) = verdict {
                    self.attempted(id, verdict, now);
                }
            }
            RoundKind::Record => {}
            RoundKind::Read { reading, .. } => {
                let votes = self.electorate.vote(node, now.clock).is_ok();
                reading.note(reply, votes);
                if round.open == 0 {
                    self.job_read(id, now);
                }
            }
            RoundKind::Decided { lease } => {
                if let Some(held) = lease.and_then(|lease| self.leases.get_mut(&lease)) {
                    held.state.on_late_outcome(node, outcome);
                }
            }
            RoundKind::WriteBack { extension, lease } => {
                if let Some(held) = self.leases.get_mut(lease) {
                    held.state.on_extension_outcome(node, outcome);
                }
                if let Some(verdict) = extension.on_outcome(node, outcome, now.clock) {
                    self.written_back(id, verdict, now);
                }
            }
            RoundKind::Extension {
                extension, lease, ..
            } => {
                let lease = *lease;
                if let Some(held) = self.leases.get_mut(&lease) {
                    held.state.on_extension_outcome(node, outcome);
                }
                if let Some(verdict) = extension.on_outcome(node, outcome, now.clock) {
                    self.extended(id, verdict, now);
                } else if let Some(verdict) = extension.verdict() {
                    self.heal(lease, node, verdict, outcome, now);
                }
            }
            RoundKind::Heal { lease } => {
                if let Some(held) = self.leases.get_mut(lease) {
                    held.state.on_late_outcome(node, outcome);
                }
            }
            RoundKind::Release { release, .. } => {
                if let Some(verdict) = release.on_outcome(node, outcome) {
                    self.released(id, verdict, now);
                }
            }
            RoundKind::Watch => self.watched(node, reply),
            RoundKind::Survey { survey, .. } | RoundKind::Bless { survey, .. } => {
                let voting = self.electorate.state(node) == Some(&MarkState::Voting);
                match reply {
                    Some(Reply::Greatest(counter)) => survey.on_reading(node, voting, counter),
                    _ => survey.on_failure(node),
                }
                if survey.is_complete() || matches!(survey.floor(), Some(crate::Floor::Known(_))) {
                    self.surveyed(id, now);
                }
            }
            RoundKind::Open { .. } => self.opened(id, node, reply.as_ref(), now),
        }
    }

    fn on_round_limit(&mut self, id: u64, now: Now) {
        let Some(round) = self.rounds.get_mut(&id) else {
            return;
        };
        round.limit = None;
        match &mut round.kind {
            RoundKind::Attempt { attempt, .. } => {
                if let Some(verdict) = attempt.on_time_limit(now.clock) {
                    self.attempted(id, verdict, now);
                }
            }
            RoundKind::Decided { .. } | RoundKind::Heal { .. } => {}
            RoundKind::WriteBack { extension, .. } => {
                if let Some(verdict) = extension.on_time_limit(now.clock) {
                    self.written_back(id, verdict, now);
                }
            }
            RoundKind::Extension { extension, .. } => {
                if let Some(verdict) = extension.on_time_limit(now.clock) {
                    self.extended(id, verdict, now);
                }
            }
            RoundKind::Release { release, .. } => {
                if let Some(verdict) = release.on_time_limit() {
                    self.released(id, verdict, now);
                }
                // Whatever is still owed to a node is its link's business.
                self.rounds.remove(&id);
            }
            RoundKind::Survey { .. } | RoundKind::Bless { .. } => self.surveyed(id, now),
            RoundKind::Open { .. } => self.opening_over(id, now),
            RoundKind::Read { .. } => self.job_read(id, now),
            RoundKind::Watch | RoundKind::Record => {
                self.rounds.remove(&id);
            }
        }
    }

    /// Starts a round with its time limit; requests are added by [`send`](Self::send).
    fn start_round(&mut self, kind: RoundKind, limit: Duration, now: Now) -> u64 {
        let id = self.next_round;
        self.next_round += 1;
        let mut round = Round::new(kind, now.clock, self.config.quorum.nodes());
        let limit = self.timers.set(now.clock + limit, Timer::RoundLimit(id));
        round.limit = Some(limit);
        self.rounds.insert(id, round);
        id
    }

    /// A round needs its time limit no longer.
    fn decided(&mut self, id: u64) {
        if let Some(limit) = self
            .rounds
            .get_mut(&id)
            .and_then(|round| round.limit.take())
        {
            self.timers.cancel(limit);
        }
    }

    fn send(&mut self, node: usize, round: u64, request: Request) {
        if let Some(round) = self.rounds.get_mut(&round) {
            round.open += 1;
        }
        self.effects.push_back(Effect::Send {
            node,
            round,
            request,
            connection: self.connections[node],
        });
    }

    /// What each node said in a round, for an error.
    fn answers(&self, round: u64, now: Now) -> Vec<NodeAnswer> {
        let Some(round) = self.rounds.get(&round) else {
            return Vec::new();
        };
        let unanswered = |node: usize| match &self.links[node] {
            // Its last call may be among those that it executed.
            Link::Down(reason) => NodeAnswer::Unknown {
                reason: Arc::clone(reason),
            },
            Link::Connecting => NodeAnswer::Pending,
            Link::Up => match self.electorate.vote(node, now.clock) {
                // Whatever it answers would not count.
                Err(reason) if reason.needs_a_change() => NodeAnswer::NotAVote { reason },
                _ => NodeAnswer::Pending,
            },
        };
        (0..self.config.quorum.nodes())
            .map(|node| round.answer(node).unwrap_or_else(|| unanswered(node)))
            .collect()
    }
}

impl<E> fmt::Debug for Client<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("acquisitions", &self.acquisitions.len())
            .field("leases", &self.leases.len())
            .field("rounds", &self.rounds.len())
            .finish_non_exhaustive()
    }
}
