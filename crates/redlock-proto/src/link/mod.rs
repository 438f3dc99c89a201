//! The link to one node: one connection at a time, what waits for it, and what is repeated when it fails.
//!
//! A [`Link`] stands between a [`Client`](crate::Client) and one node.
//! It decides which requests travel together, and which are shed because the node cannot keep up.
//! It decides which releases are repeated and in which form, when a silent connection is given up, and when the next
//! one is made.
//! Its driver owns the socket and the timer.
//! The client hears of it by [`LinkEvent`]s, in order.
//!
//! | file | decides |
//! |---|---|
//! | `config` | the limits |
//! | `traffic` | what travels together, and when a connection needs a heartbeat |
//! | `shed` | what a node that cannot keep up does not get |
//! | `refused` | which keys are not taken by transactions |
//! | `pending` | which releases are repeated, when, and for how long |
//! | `unfit_server` | when the client leaves a server that can never vote |
//! | `event` | what the client hears |

mod config;
mod event;
mod pending;
mod refused;
mod shed;
#[cfg(test)]
mod tests;
mod traffic;
mod unfit_server;

use std::{collections::VecDeque, fmt, sync::Arc};

pub use self::{config::LinkConfig, event::LinkEvent};
use self::{
    pending::PendingReleases,
    refused::RefusedKeys,
    traffic::{CallInFlight, QueuedRequest, Traffic},
    unfit_server::UnfitServer,
};
use crate::{
    Answer, Backlog, Entropy, Instant, MarkState, NodeVerb, Reply, Request, RequestError, Rounded,
    Standing,
};

/// The link to one node, without its socket and without its timer.
///
/// A driver tells it what happens, each time with a reading of the client's clock, and does what it says:
///
/// * it connects when [`begin_connect`](Self::begin_connect) says so, sends [`HELLO`] as the first call, and reports
///   by [`on_connected`](Self::on_connected) or [`on_lost`](Self::on_lost);
/// * it sends every [`next_call`](Self::next_call), in order, says by [`on_written`](Self::on_written) that it has, and
///   reports by [`on_answer`](Self::on_answer) or [`on_call_failed`](Self::on_call_failed);
/// * it tells the client of the [`backlog`](Self::backlog) before the client's timers;
/// * it drops the connection, and an attempt to connect, as soon as [`is_up`](Self::is_up) and
///   [`is_connecting`](Self::is_connecting) are false;
/// * it calls [`on_timer`](Self::on_timer) no earlier and hardly later than [`next_timer`](Self::next_timer) says;
/// * it passes every [`poll_event`](Self::poll_event) to the client, in order.
///
/// The same inputs give the same outputs, so the simulation and the real client run the same link.
pub struct Link {
    config: LinkConfig,
    entropy: Box<dyn Entropy>,
    phase: LinkPhase,
    /// Why nothing can be sent, unless it is up.
    reason: Arc<str>,
    /// How many connections there were.
    connections: u64,
    /// How many attempts in a row have made no connection that lasted.
    failures: u32,
    traffic: Traffic,
    pending: PendingReleases,
    unfit_server: UnfitServer,
    /// Whether the node voted, by its last answer over this connection.
    votes: bool,
    refused: RefusedKeys,
    next_call: u64,
    shed: u64,
    events: VecDeque<LinkEvent>,
}

/// The first call over each connection: nothing counts that a node says before it has said what it is.
pub const HELLO: [Request; 1] = [Request::Node(NodeVerb::Inspect)];

/// Requests that travel together.
#[derive(Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a driver must handle every part of it"
)]
pub struct Call {
    /// The number by which its answer is recognised.
    pub id: u64,
    /// The requests, in order; none in a heartbeat.
    pub requests: Vec<Request>,
    /// True if the node may carry it out as a [`Transaction`](crate::Transaction); else no reply is
    /// [`Unclear`](Reply::Unclear).
    pub is_transaction: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum LinkPhase {
    /// There is no connection, and the next one is tried at this moment.
    Down { until: Instant },
    /// A connection is being made; it is given up at this moment.
    Connecting { until: Instant },
    /// There is a connection.
    Up { since: Instant },
}

impl Link {
    /// Makes a link that connects at once.
    pub fn new(config: LinkConfig, entropy: impl Entropy + 'static) -> Self {
        Self {
            config,
            entropy: Box::new(entropy),
            phase: LinkPhase::Down {
                until: Instant::ORIGIN,
            },
            reason: "not connected yet".into(),
            connections: 0,
            failures: 0,
            traffic: Traffic::default(),
            pending: PendingReleases::default(),
            unfit_server: UnfitServer::default(),
            votes: false,
            refused: RefusedKeys::default(),
            next_call: 0,
            shed: 0,
            events: VecDeque::new(),
        }
    }

    /// Returns the next thing for the client to hear.
    pub fn poll_event(&mut self) -> Option<LinkEvent> {
        self.events.pop_front()
    }

    /// Says when [`on_timer`](Self::on_timer), [`begin_connect`](Self::begin_connect) or
    /// [`next_call`](Self::next_call) has something to do, if nothing happens before.
    pub fn next_timer(&self) -> Instant {
        match self.phase {
            LinkPhase::Down { until } | LinkPhase::Connecting { until } => until,
            LinkPhase::Up { .. } => {
                let check = self.traffic.next_check(&self.config);
                let others = [self.pending.due(), self.unfit_server.due()];
                others.into_iter().flatten().fold(check, Instant::min)
            }
        }
    }

    /// Gives up a connection that is silent, that takes too long to be made, or whose server cannot vote because of
    /// what it is.
    ///
    /// Everything that had arrived at `now` must have been heard before: what lay unread in a socket is an answer.
    pub fn on_timer(&mut self, now: Instant) {
        match self.phase {
            LinkPhase::Connecting { until } if now >= until => {
                let limit = self.config.connect_timeout;
                self.on_lost(format!("no connection within {limit:?}").into(), now);
            }
            LinkPhase::Up { .. } => {
                if let Some((reason, is_known)) = self.unfit_server.take_due(now) {
                    return self.leave(reason, is_known, now);
                }
                let silence = self.traffic.silence(now);
                if silence >= self.config.give_up_after {
                    return self.on_lost(no_answer(silence), now);
                }
                self.traffic.lags |= self.traffic.lag(&self.config, now).is_some();
            }
            LinkPhase::Down { .. } | LinkPhase::Connecting { .. } => {}
        }
    }

    /// Begins to connect if it is time, and returns whether it does.
    pub fn begin_connect(&mut self, now: Instant) -> bool {
        let is_due = matches!(self.phase, LinkPhase::Down { until } if now >= until);
        if is_due {
            let until = now + self.config.connect_timeout;
            self.phase = LinkPhase::Connecting { until };
        }
        is_due
    }

    /// Takes in the node's answer to [`HELLO`], sent at `sent`, on a connection that was just made.
    pub fn on_connected(&mut self, answer: Answer, sent: Instant, now: Instant) {
        if !self.is_connecting() {
            return;
        }
        self.unfit_server = UnfitServer::default();
        match answer.replies.first() {
            Some(Ok(Reply::ServerInfo(server_info))) => {
                self.unfit_server
                    .on_server_info(server_info, now, &self.config, now);
            }
            Some(Err(reason)) => return self.on_lost(Arc::clone(reason), now),
            _ => return self.on_lost("the node does not say what it is".into(), now),
        }
        self.phase = LinkPhase::Up { since: now };
        self.connections += 1;
        self.votes = is_vote(answer.standing.as_ref());
        self.traffic.on_connected(now);
        self.pending.on_connected(now);
        self.events.push_back(LinkEvent::Connected { answer, sent });
    }

    /// Takes in that the connection was lost, or could not be made.
    pub fn on_lost(&mut self, reason: Arc<str>, now: Instant) {
        match self.phase {
            LinkPhase::Down { .. } => return,
            LinkPhase::Connecting { .. } => {}
            LinkPhase::Up { since } => {
                self.fail_all(&reason, now);
                if now.saturating_since(since) >= self.config.longest_pause {
                    self.failures = 0;
                }
            }
        }
        self.reason = Arc::clone(&reason);
        self.events.push_back(LinkEvent::Disconnected { reason });
        // A node that accepts connections and drops them is not tried in a tight loop.
        let until = match self.failures {
            0 => now,
            failures => now + self.config.pause(failures, self.entropy.bits()),
        };
        self.failures = self.failures.saturating_add(1);
        self.phase = LinkPhase::Down { until };
    }

    /// Takes the request of an [`Effect::Send`](crate::Effect::Send), to be sent behind those that wait.
    ///
    /// A request that was meant for an earlier connection is sent in the form that this one needs: the client may
    /// not know yet that the connection is another.
    pub fn push(&mut self, round: u64, request: Request, connection: u64, now: Instant) {
        let mut queued = QueuedRequest::new(round, request, now);
        if connection != self.connections {
            queued.be_for_another_connection();
        }
        if queued.request.enters_line() {
            // The release of the owner before it travels in the same call.
            self.refused.add(&queued.request, now);
        }
        queued.must_look_first =
            queued.request.enters_line() || self.refused.concern(&queued.request, now);
        match self.phase {
            LinkPhase::Up { .. } => self.traffic.push(queued, now),
            _ => {
                let error = RequestError::not_executed(Arc::clone(&self.reason));
                self.fail(queued, &error, now);
            }
        }
    }

    /// Returns the next call to send, if there is one and room for it.
    ///
    /// `now` is read before the first byte of the call is sent.
    /// Releases that are due go first, and requests are shed if the node cannot keep up.
    /// A connection on which nothing happens for a while gets a call without requests, so that one which died
    /// unnoticed is replaced before it is needed.
    pub fn next_call(&mut self, now: Instant) -> Option<Call> {
        if !self.is_up() {
            return None;
        }
        let (due, over) = self.pending.take_due(now);
        self.traffic.push_front(due);
        for (op, error) in over {
            self.tell_failed(&op, error);
        }
        if self.traffic.lags {
            self.shed(now);
        }
        let (ops, is_transaction) = self.traffic.next_ops(self.votes, &self.config, now)?;
        let requests = ops.iter().map(|op| op.request.clone()).collect();
        let id = self.next_call;
        self.next_call += 1;
        self.traffic.sent(id, now, ops, is_transaction);
        Some(Call {
            id,
            requests,
            is_transaction,
        })
    }

    /// Takes in that every call was handed over to be written; `now` is read after that.
    ///
    /// The time that a node has for its answer counts from then.
    pub fn on_written(&mut self, now: Instant) {
        self.traffic.on_written(now);
    }

    /// Returns how many requests wait to be sent, and since when the node keeps a call waiting.
    pub fn backlog(&self) -> Backlog {
        Backlog {
            unsent: self.traffic.queue.len(),
            awaited: self.traffic.awaited(),
        }
    }

    /// Takes in an answer to a call.
    pub fn on_answer(&mut self, call: u64, answer: Answer, now: Instant) {
        let Some(CallInFlight {
            sent,
            ops,
            is_transaction,
            ..
        }) = self.traffic.take_answered(call, now)
        else {
            return;
        };
        if answer.replies.len() != ops.len() {
            let reason = "the node's answer has not one reply for each request".into();
            return self.give_up_call(ops, &RequestError::unknown(reason), now);
        }
        let Answer { standing, replies } = answer;
        if let LinkPhase::Up { since } = self.phase {
            for reply in &replies {
                if let Ok(Reply::ServerInfo(server_info)) = reply {
                    self.unfit_server
                        .on_server_info(server_info, since, &self.config, now);
                }
            }
        }
        if standing.is_some() || ops.iter().any(|op| !op.request.is_release()) {
            self.votes = is_vote(standing.as_ref());
        }
        let mut results = Vec::with_capacity(ops.len());
        let mut unclear = Vec::new();
        for (op, reply) in ops.into_iter().zip(replies) {
            if let Ok(reply) = &reply {
                self.refused.note(&op.request, reply, now);
            }
            match reply {
                Ok(Reply::Unclear) if is_transaction => unclear.push(op),
                Err(reason) if op.request.is_release() => {
                    self.fail(op, &RequestError::not_executed(reason), now);
                }
                // An operation that ended with an error has changed nothing; a transaction before it may have.
                Err(reason) => {
                    let mut error = RequestError::not_executed(reason);
                    error.may_have_run = op.may_have_run;
                    results.push((op.round, Err(error)));
                }
                Ok(reply) => results.push((op.round, Ok(reply))),
            }
        }
        for op in self.ask_again(unclear, true, now) {
            match &op.request {
                request if request.is_release() => {
                    let reason = "the node did not say what it did".into();
                    self.fail(op, &RequestError::unknown(reason), now);
                }
                _ => results.push((op.round, Ok(Reply::Unclear))),
            }
        }
        self.events.push_back(LinkEvent::Answered {
            standing,
            results,
            sent,
        });
    }

    /// Asks again for what a transaction left unclear, or a server refused, in a call that looks first; returns what is not
    /// asked again.
    ///
    /// What was sent for the same owner since then would be undone by it: a key that its owner lets go, or shares by now.
    /// Releases are left to be repeated, by such a call too.
    fn ask_again(
        &mut self,
        unclear: Vec<QueuedRequest>,
        may_have_run: bool,
        now: Instant,
    ) -> Vec<QueuedRequest> {
        let (again, mut rest) = unclear.into_iter().partition::<Vec<_>, _>(|op| {
            let lock = match &op.request {
                Request::Lock { lock, .. } if !op.request.is_release() => lock,
                _ => return false,
            };
            !self.traffic.is_followed(lock.owner)
        });
        self.traffic.ask_again(again, may_have_run, now);
        for op in &mut rest {
            op.must_look_first = true;
        }
        rest
    }

    /// Takes in that a call has no answer and will have none; with `is_lost`, the connection is lost too.
    pub fn on_call_failed(&mut self, call: u64, error: &RequestError, is_lost: bool, now: Instant) {
        let Some(CallInFlight {
            mut ops,
            is_transaction,
            ..
        }) = self.traffic.take_answered(call, now)
        else {
            return;
        };
        if is_lost {
            return self.give_up_call(ops, error, now);
        }
        if is_transaction && !error.may_have_run {
            ops = self.ask_again(ops, false, now);
        }
        for op in ops {
            self.fail(op, error, now);
        }
    }

    /// Takes in that the server refused a call as one that cannot vote because of what it is, such as a replica.
    ///
    /// The link leaves such a server at the next [`on_timer`](Self::on_timer), but keeps each connection for a second
    /// at least; the next one leads to where the node's name leads by then.
    pub fn on_wrong_server(&mut self, reason: Arc<str>, now: Instant) {
        if let LinkPhase::Up { since } = self.phase {
            self.unfit_server
                .on_refusal(reason, since, &self.config, now);
        }
    }

    /// Returns whether there is a connection.
    pub const fn is_up(&self) -> bool {
        matches!(self.phase, LinkPhase::Up { .. })
    }

    /// Returns whether a connection is being made.
    pub const fn is_connecting(&self) -> bool {
        matches!(self.phase, LinkPhase::Connecting { .. })
    }

    /// Returns how many requests were shed because the node could not keep up.
    pub const fn requests_shed(&self) -> u64 {
        self.shed
    }

    /// Returns the requests that wait to be sent, in order; for leak checks.
    pub fn unsent(&self) -> impl Iterator<Item = &Request> {
        self.traffic.queue().map(|op| &op.request)
    }

    /// Returns how many requests have no outcome yet, releases to be repeated aside; for leak checks.
    pub fn open_requests(&self) -> usize {
        self.traffic.len()
    }

    /// Takes in that a call has failed, and its connection with it.
    fn give_up_call(&mut self, ops: Vec<QueuedRequest>, error: &RequestError, now: Instant) {
        for op in ops {
            self.fail(op, error, now);
        }
        self.on_lost(Arc::clone(&error.reason), now);
    }

    /// Ends a session whose server cannot vote because of what it is, to look at once where the node's name leads now.
    ///
    /// If the client knows what the server is, it hears of what is there next, and of nothing in between.
    fn leave(&mut self, reason: Arc<str>, is_known: bool, now: Instant) {
        if !is_known {
            return self.on_lost(reason, now);
        }
        self.fail_all(&reason, now);
        self.reason = reason;
        self.phase = LinkPhase::Down { until: now };
    }

    /// Says that all requests failed, because their connection ends.
    fn fail_all(&mut self, reason: &Arc<str>, now: Instant) {
        let (sent, unsent) = self.traffic.take_all();
        let error = RequestError::unknown(Arc::clone(reason));
        for op in sent {
            self.fail(op, &error, now);
        }
        let error = RequestError::not_executed(Arc::clone(reason));
        for op in unsent {
            self.fail(op, &error, now);
        }
    }

    /// Says that a request failed; a release is repeated instead.
    fn fail(&mut self, op: QueuedRequest, error: &RequestError, now: Instant) {
        let error = error.clone();
        if !op.request.is_release() {
            return self.tell_failed(&op, error);
        }
        self.events.push_back(LinkEvent::Delayed {
            round: op.round,
            error: error.clone(),
        });
        if let Some((op, error)) = self.pending.add(op, error, &self.config, now) {
            self.tell_failed(&op, error);
        }
    }

    fn tell_failed(&mut self, op: &QueuedRequest, mut error: RequestError) {
        let round = op.round;
        error.may_have_run |= op.may_have_run;
        self.events.push_back(LinkEvent::Failed { round, error });
    }
}

fn is_vote(standing: Option<&Standing>) -> bool {
    standing.is_some_and(|standing| standing.state == MarkState::Voting)
}

fn no_answer(silence: std::time::Duration) -> Arc<str> {
    format!("no answer for {}", Rounded(silence)).into()
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("phase", &self.phase)
            .field("connections", &self.connections)
            .field("traffic", &self.traffic)
            .finish_non_exhaustive()
    }
}
