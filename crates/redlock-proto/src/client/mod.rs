//! The client as a state machine: acquisitions, leases, rounds and the watch over the nodes.

mod acquire;
mod claim;
mod commit;
mod effect;
mod health;
mod hold;
mod news;
mod outage;
mod result;
mod round;
mod settle;
mod status;
mod timers;
mod tokens;
mod watch;

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::Arc,
    time::Duration,
};

pub use self::{
    acquire::Acquire,
    claim::{Claim, NotAfter, NotClaimed},
    effect::{Effect, NotExtended, NotReleased, Notice},
    news::{Forgot, Majority},
    round::RequestError,
    status::JobState,
};
use self::{
    acquire::Acquisition,
    hold::Held,
    news::News,
    outage::Outage,
    round::{Round, RoundKind, Seen},
    timers::Timers,
    watch::Watch,
};
use crate::{
    ClockReading, Electorate, Instant, NodeAnswer, NodeTime, OwnerId, Quorum, Reply, Request,
    RetryPolicy, Shard, Space, Standing,
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
    outage: Outage,
    news: News,
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
            outage: Outage::new(nodes),
            news: News::new(nodes),
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
        let seen = standing.as_ref().map(|standing| Seen {
            run: standing.run.clone(),
            reading: ClockReading {
                time: standing.time,
                sent,
                received: now.clock,
            },
        });
        if let Some(standing) = standing {
            self.on_standing(node, standing, sent, now);
        }
        for (round, result) in results {
            self.note_health(node, round, &result, looked, now);
            self.on_result(node, round, result, seen.as_ref(), now);
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
            (Link::Up, Ok(())) => self.watches[node].health.standing(),
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

    /// Starts a round with its time limit; requests are added by [`send`](Self::send).
    fn start_round(&mut self, kind: RoundKind, limit: Duration, now: Now) -> u64 {
        let id = self.next_round;
        self.next_round += 1;
        let jumped = self.electorate.jumped();
        let mut round = Round::new(kind, now.clock, jumped, self.config.quorum.nodes());
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
        let had_time = now.clock >= round.started + self.config.node_timeout;
        let unanswered = |node: usize| match &self.links[node] {
            // Its last call may be among those that it executed.
            Link::Down(reason) => NodeAnswer::Unknown {
                reason: Arc::clone(reason),
            },
            Link::Connecting => NodeAnswer::Pending,
            Link::Up => match self.electorate.vote(node, now.clock) {
                // Whatever it answers would not count.
                Err(reason) if reason.needs_a_change() => NodeAnswer::NotAVote { reason },
                // The others decided before it could answer, so its last answers say more.
                vote if !had_time && self.watches[node].health.is_alive(now.clock) => match vote {
                    Ok(()) => self.watches[node].health.standing(),
                    Err(reason) => NodeAnswer::NotAVote { reason },
                },
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
