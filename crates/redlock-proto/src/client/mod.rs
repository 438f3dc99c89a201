//! The client as a state machine: acquisitions, leases, rounds and the watch over the nodes.
//!
//! [`Client`] passes what its driver tells it to the part concerned, and [`round_results`] does so with the results of
//! rounds; each part owns its state.
//! From below: [`nodes`], [`token_proposals`] and [`rounds`], which all others share as the [`context`]; then [`leases`]
//! and the [`watch`] over the nodes; and [`acquisitions`], which end in leases.

mod acquire;
mod acquisitions;
mod config;
mod context;
mod effect;
mod job_state;
mod leases;
mod listening;
mod nodes;
mod notice;
mod read_job;
mod round_results;
mod rounds;
mod timers;
mod token_proposals;
mod watch;

use std::{fmt, sync::Arc, time::Duration};

pub use self::{
    acquire::{Acquire, NotAfter, NotClaimed, TickClaim},
    config::{Ask, Backlog, ClientConfig, Entropy, FanOut, Now},
    effect::{Effect, NotExtended, NotReleased},
    job_state::{JobRecord, JobState},
    notice::{Forgot, Majority, Notice},
};
use self::{
    acquisitions::Acquisitions, context::Context, leases::Leases, nodes::Nodes, rounds::RoundKind,
    timers::Timer,
};
use crate::{
    Answer, ClockReading, Gift, Instant, MarkState, NodeAnswer, NodeKey, NodeTime, Note, Reply,
    RequestError, RunId, Standing, Word,
};

/// The state and the decisions of a client, without input and output.
///
/// Its driver owns the sockets and the clock.
/// The driver tells the client what happened, each time with a reading of its clocks, and carries out the
/// [`Effect`]s that [`poll_effect`](Self::poll_effect) returns; it calls [`on_timer`](Self::on_timer) no later
/// than [`next_timer`](Self::next_timer) says.
/// The same inputs give the same effects, so the simulation and the real client run the same code.
///
/// Three things are asked of the driver:
///
/// * numbers of acquisitions are those of a [`Slab`](crate::Slab), each kept while an acquisition or a lease uses it;
/// * requests to one node are sent in the order of their effects, over one connection at a time, and those meant
///   for another connection in the form that this needs;
/// * the outcome of each request is reported exactly once, and an error that says it was not executed is a promise.
pub struct Client {
    acquisitions: Acquisitions,
    leases: Leases,
    cx: Context,
}

impl Client {
    /// Makes a client that knows nothing of its nodes yet.
    pub fn new(config: ClientConfig, entropy: impl Entropy + 'static) -> Self {
        Self {
            acquisitions: Acquisitions::default(),
            leases: Leases::default(),
            cx: Context::new(config, Box::new(entropy)),
        }
    }

    /// Attempts to win a lease, until `wait_until`; nothing else uses `id`.
    pub fn acquire(&mut self, id: u64, request: impl Into<Box<Acquire>>, now: Now) {
        let Self { leases, cx, .. } = self;
        self.acquisitions
            .start(id, request.into(), None, leases, cx, now);
    }

    /// Attempts once to win an exclusive lease on the keys of a lease that its holder shares, which is not in the way;
    /// nothing else uses `id`.
    ///
    /// The exclusive lease is asked for on the terms of the shared one, and ends when that would at the latest.
    /// The shared lease stays as it is, whatever comes of this.
    /// Once the exclusive lease is won, the holder must release the shared one, if that is still valid; else another may
    /// have had the keys in between, and the holder must release the exclusive one.
    pub fn upgrade(&mut self, lease: u64, id: u64, now: Now) {
        let Self { leases, cx, .. } = self;
        self.acquisitions.upgrade(lease, id, leases, cx, now);
    }

    /// Attempts to claim a tick and the lease under which its run goes on, until `wait_until`; nothing else uses `id`.
    ///
    /// The wait is for a lock that another holds, for a majority of nodes, and for the tick's window to open if it
    /// does in that time.
    /// Nodes that have granted are asked to remember the claim.
    /// If too few can, the client asks the nodes to forget it, and there is another attempt.
    /// If no majority can be reached, the client repeats the question to these nodes, with pauses, while the granted
    /// lease lasts.
    /// That may be longer than the wait.
    pub fn claim(&mut self, id: u64, request: impl Into<Box<Acquire>>, claim: TickClaim, now: Now) {
        let mut request = request.into();
        // The token is part of what nodes remember, so that it cannot be another holder's.
        request.tokens = 1;
        let Self { leases, cx, .. } = self;
        self.acquisitions
            .start(id, request, Some(claim), leases, cx, now);
    }

    /// Ends an acquisition because no caller waits for it any more: the client gives back what it took, or takes later.
    pub fn abandon(&mut self, id: u64, now: Now) {
        self.acquisitions
            .abandon(id, &mut self.leases, &mut self.cx, now);
    }

    /// Extends a lease because its holder asks for it, in a round of its own.
    pub fn extend(&mut self, lease: u64, ask: Ask, now: Now) {
        self.leases.extend(lease, ask, &mut self.cx, now);
    }

    /// Turns an exclusive lease into a shared one, and extends it: the round for `ask` makes its keys shared on the
    /// nodes.
    ///
    /// From now on it counts as shared, also if the round fails: nodes may have heard of it.
    pub fn downgrade(&mut self, lease: u64, ask: Ask, now: Now) {
        self.leases.downgrade(lease, ask, &mut self.cx, now);
    }

    /// Ends a lease: it is not extended any more, and nodes are asked to release the key.
    ///
    /// A run under the lease that goes on, and whose end was not reported, is recorded as
    /// [`DROPPED`](crate::RunRecord::DROPPED).
    pub fn release(&mut self, lease: u64, ask: Option<Ask>, now: Now) {
        self.leases.release(lease, ask, &mut self.cx, now);
    }

    /// Ends a lease and leaves its key to its time to live: nothing is extended any more.
    pub fn leave(&mut self, lease: u64) {
        self.leases.leave(lease, &mut self.cx);
    }

    /// Parks a lease whose holder is gone, until the next one in the same process is there.
    ///
    /// It is not extended meanwhile, so that it ends if no holder comes.
    pub fn park(&mut self, lease: u64) {
        self.leases.park(lease, &mut self.cx);
    }

    /// Gives a parked lease to its next holder; returns up to when it is valid, `None` if it is over.
    pub fn resume(&mut self, lease: u64, now: Now) -> Option<Instant> {
        self.leases.resume(lease, &mut self.cx, now)
    }

    /// Ends a lease because a caller has seen its deadline pass, and acts on it: an extension that is confirmed now
    /// must not bring it back.
    pub fn expire(&mut self, lease: u64, now: Now) {
        self.leases.expire(lease, &mut self.cx, now);
    }

    /// Says what came of the run under a lease, which is about to be released.
    pub fn finish(
        &mut self,
        lease: u64,
        outcome: Word,
        took: Duration,
        note: Option<Note>,
        now: Now,
    ) {
        self.leases
            .finish(lease, outcome, took, note, &mut self.cx, now);
    }

    /// Asks every node what it remembers of a job, and whether its lock is free; or only the node `at`.
    pub fn read_job(
        &mut self,
        ask: Ask,
        job: &NodeKey,
        lock: &NodeKey,
        at: Option<usize>,
        now: Now,
    ) {
        self.cx.read_job(ask, (job, lock), at, now);
    }

    /// Lets every node vote at once that is only quarantined.
    ///
    /// The caller vouches that none of these nodes has forgotten a lease that may still be valid.
    pub fn bless(&mut self, ask: Ask, now: Now) {
        watch::bless(ask, &mut self.cx, now);
    }

    /// Ends every acquisition; leases stay until they are released.
    pub fn close(&mut self, now: Now) {
        self.cx.close();
        self.acquisitions.close(&mut self.leases, &mut self.cx, now);
    }

    /// Returns the next thing to do, in order.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.cx.outbox.pop()
    }

    /// Returns when [`on_timer`](Self::on_timer) has something to do at the earliest.
    pub fn next_timer(&self) -> Option<Instant> {
        self.cx.timers.next_due()
    }

    /// Starts the attempts of acquisitions that wait for requests before theirs to be sent, as far as there is room.
    ///
    /// [`on_timer`](Self::on_timer) does so too, after the renewals that are due.
    pub fn admit(&mut self, now: Now) {
        let Self { leases, cx, .. } = self;
        self.acquisitions.admit(leases, cx, now);
    }

    /// Does what is due, because time has passed, or because there is room for the requests of acquisitions that wait.
    pub fn on_timer(&mut self, now: Now) {
        while let Some(timer) = self.cx.timers.pop_due(now.clock) {
            let Self { leases, cx, .. } = self;
            match timer {
                Timer::RoundLimit(id) => self.on_round_limit(id, now),
                Timer::Retry(id) => self.acquisitions.on_timer(id, leases, cx, now),
                Timer::Lease(id) => leases.on_timer(id, cx, now),
                Timer::Sign => self.acquisitions.sign(cx, now),
                Timer::Watch(node) => watch::on_timer(node, cx, now),
                Timer::Listening => {
                    let (timers, outbox) = (&mut cx.timers, &mut cx.outbox);
                    cx.listening.on_timer(now.clock, timers, outbox);
                }
            }
        }
        // After the renewals, so that these are sent first.
        self.admit(now);
    }

    /// Takes in what the link to a node has before it, as it is once everything was heard that had arrived.
    ///
    /// The driver says so for each node before [`on_timer`](Self::on_timer).
    pub fn on_backlog(&mut self, node: usize, backlog: Backlog) {
        self.cx.nodes.on_backlog(node, backlog);
    }

    /// Takes in a node's answer to [`NodeVerb::Inspect`](crate::NodeVerb::Inspect), sent at `sent`, on a connection
    /// that was just made.
    pub fn on_connected(&mut self, node: usize, answer: Answer, sent: Instant, now: Now) {
        self.cx.nodes.on_connected(node);
        if let Some(standing) = answer.standing {
            self.on_standing(node, standing, sent, now);
        }
        let server_info = match answer.replies.into_iter().next() {
            Some(Ok(Reply::ServerInfo(server_info))) => Some(server_info),
            _ => None,
        };
        let Self { leases, cx, .. } = self;
        watch::on_connected(node, server_info, cx, now);
        let is_awaited = |id| self.acquisitions.is_under_way(id);
        leases.on_connected(node, is_awaited, cx, now);
    }

    /// Takes in that the connection to a node was lost or could not be made.
    ///
    /// The driver reports the results of the requests on it separately.
    pub fn on_disconnected(&mut self, node: usize, reason: Arc<str>, now: Now) {
        self.cx.nodes.on_disconnected(node, reason, now.clock);
        self.cx.listening.on_listening(node, false);
        watch::on_disconnected(node, &mut self.cx);
        self.cx.judge(now);
        self.on_node_lost(node, now);
    }

    /// Takes in an answer to a call, or its failure.
    ///
    /// It has the node's standing, if the node said so, and the result of each request, by the number that it was sent
    /// under.
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
        if looked {
            let took = now.clock.saturating_since(sent);
            self.cx.nodes.on_answer(node, took);
        }
        let seen = standing.as_ref().map(|standing| {
            let reading = ClockReading {
                time: standing.time,
                sent,
                received: now.clock,
            };
            (standing.run.clone(), reading)
        });
        if let Some(standing) = standing {
            self.on_standing(node, standing, sent, now);
        }
        // It is the same for all requests of the call, but for those behind one that lets the node vote.
        let mut vote = self.cx.nodes.vote_by_mark(node);
        for (round, result) in results {
            let passed = self.passed_to_own(result.as_ref().ok(), seen.as_ref());
            self.cx.note_health(node, round, &result, looked, now);
            let opens = self
                .cx
                .rounds
                .get(round)
                .is_some_and(|round| matches!(round.kind, RoundKind::Open { .. }));
            let outcome = self
                .cx
                .note(node, round, &result, seen.as_ref(), &vote, now);
            if let Some(outcome) = outcome {
                self.on_outcome(round, node, outcome, result.ok(), now);
                self.cx.forget_if_over(round);
            }
            if let Some(gift) = passed {
                self.on_gift(node, gift, now);
            }
            if opens {
                vote = self.cx.nodes.vote_by_mark(node);
            }
        }
        if looked {
            watch::on_standing(node, &mut self.cx, now);
        }
    }

    /// Takes in whether the driver hears what a node publishes for this client.
    pub fn on_listening(&mut self, node: usize, is_heard: bool, now: Now) {
        let has_heard = self.cx.hears();
        self.cx.listening.on_listening(node, is_heard);
        // What it has published before is lost, and the callers whose messages were not heard.
        // Or no caller hears of its turn any more: each must ask instead.
        if is_heard || has_heard && !self.cx.hears() {
            self.acquisitions.ask_soon(now.clock, &mut self.cx, now);
        }
    }

    /// Takes in a message by which a node says that it has given a key to a caller that waited in line.
    pub fn on_gift(&mut self, node: usize, gift: Gift, now: Now) {
        let Self { leases, cx, .. } = self;
        self.acquisitions.on_gift(node, gift, leases, cx, now);
    }

    /// Returns what the answer to a release says of a key that a caller of this client has now.
    fn passed_to_own(
        &self,
        reply: Option<&Reply>,
        seen: Option<&(RunId, ClockReading)>,
    ) -> Option<Gift> {
        let (run, reading) = seen?;
        match *reply? {
            Reply::Passed {
                client,
                round,
                counter,
                ..
            } if self.cx.listening.is_own(client) => Some(Gift {
                round,
                counter,
                time: reading.time,
                run: run.clone(),
            }),
            _ => None,
        }
    }

    /// Takes in that a release failed and will be made again, so that there is no outcome yet; `error` is for callers
    /// that give up meanwhile.
    pub(crate) fn on_delayed(&mut self, node: usize, round: u64, error: &RequestError) {
        if let Some(round) = self.cx.rounds.get_mut(round) {
            round.on_delayed(node, error.into());
        }
    }

    /// Returns whether nothing is left to clean up; leases that are held are no clean-up.
    pub fn is_clean(&self) -> bool {
        self.acquisitions.len() == 0 && self.cx.rounds.are_clean()
    }

    /// Returns where each node stands.
    pub fn standing(&self, now: Now) -> Vec<NodeAnswer> {
        self.cx.nodes.standing(now)
    }

    /// Returns what the nodes' wall clocks show, as far as their last answers tell, if a majority's agree.
    pub fn node_time(&self, now: Now) -> Option<NodeTime> {
        self.cx.nodes.common_time(now.clock)
    }

    /// Returns what the wall clock of one node shows, whether it agrees with the others' or not; `None` if the node was not
    /// heard lately.
    pub fn time_of(&self, node: usize, now: Now) -> Option<NodeTime> {
        self.cx.nodes.node_time(node, now.clock)
    }

    /// Returns how many requests wait for their outcome, with one for each round that is kept though it awaits none.
    ///
    /// This is for leak checks.
    pub fn open_requests(&self) -> usize {
        self.cx.rounds.open_requests()
    }

    fn on_standing(&mut self, node: usize, standing: Standing, sent: Instant, now: Now) {
        let nodes = &mut self.cx.nodes;
        let step = self.leases.least_step();
        let votes = |nodes: &Nodes| nodes.mark(node) == Some(&MarkState::Voting);
        let voted = votes(nodes);
        let is_ahead = nodes.on_standing(node, standing, sent, now.clock, step);
        let is_lost = voted && !votes(nodes);
        if !voted && votes(nodes) {
            // It may have no line any more.
            self.acquisitions.ask_soon(now.clock, &mut self.cx, now);
        }
        if is_ahead {
            let is_awaited = |id| self.acquisitions.is_under_way(id);
            self.leases.on_jump(is_awaited, &mut self.cx, now);
        }
        if is_lost {
            self.on_node_lost(node, now);
        }
    }

    /// Spreads leases to other nodes, because a node was lost that they may need.
    fn on_node_lost(&mut self, node: usize, now: Now) {
        let is_awaited = |id| self.acquisitions.is_under_way(id);
        self.leases
            .on_node_lost(node, is_awaited, &mut self.cx, now);
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("acquisitions", &self.acquisitions.len())
            .field("leases", &self.leases.len())
            .field("rounds", &self.cx.rounds.len())
            .finish_non_exhaustive()
    }
}
