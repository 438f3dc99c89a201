//! The traffic on one connection.

use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    sync::Arc,
    task::Poll,
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture, poll, stream::FuturesUnordered};
use redlock_proto::{JobVerb, Request, Space, Verb};
use tokio::{task::unconstrained, time::Instant};

use super::link::{LinkConfig, Op};
use crate::{
    clock::Clock,
    node::{Answers, Session},
};

/// What flows over one connection: what waits to be sent, and what waits for its answer.
pub(super) struct Flow {
    session: Box<dyn Session>,
    space: Arc<Space>,
    clock: Clock,
    queue: VecDeque<Op>,
    /// Since when each request in the queue waits, releases aside.
    waiting: VecDeque<Instant>,
    pub(super) calls: FuturesUnordered<BoxFuture<'static, Answered>>,
    // By the order in which they were sent, so the first is the oldest.
    in_flight: BTreeMap<u64, Call>,
    next_call: u64,
    idle_since: Instant,
}

pub(super) struct Call {
    sent: Instant,
    /// When it was sent, on the client's clock.
    pub(super) at: redlock_proto::Instant,
    pub(super) ops: Vec<Op>,
}

pub(super) type Answered = (u64, Answers);

/// What is not sent to a node that cannot keep up.
pub(super) struct LeftBehind {
    /// For how long it has kept somebody waiting.
    pub(super) silence: Duration,
    /// Requests that were dropped.
    pub(super) dropped: Vec<Op>,
    /// Releases of what was dropped: there is nothing to give back.
    pub(super) needless: Vec<Op>,
}

impl Flow {
    pub(super) fn new(session: Box<dyn Session>, space: Arc<Space>, clock: Clock) -> Self {
        Self {
            session,
            space,
            clock,
            queue: VecDeque::new(),
            waiting: VecDeque::new(),
            calls: FuturesUnordered::new(),
            in_flight: BTreeMap::new(),
            next_call: 0,
            idle_since: Instant::now(),
        }
    }

    /// Adds requests behind those that wait.
    pub(super) fn push(&mut self, ops: Vec<Op>) {
        let requests = ops.iter().filter(|op| !op.request.is_release());
        let now = Instant::now();
        self.waiting.extend(requests.map(|_| now));
        self.queue.extend(ops);
    }

    /// Adds releases before those that wait; they may overtake, as each is its owner's last request.
    pub(super) fn push_front(&mut self, releases: impl DoubleEndedIterator<Item = Op>) {
        for release in releases.rev() {
            self.queue.push_front(release);
        }
    }

    /// Sends the next call, if there is something to send and room for it; returns its answer if it is
    /// there already.
    ///
    /// The call is polled as it is made, so that calls are on their way in the order of the queue.
    pub(super) async fn send_next(&mut self) -> Option<Option<Answered>> {
        if self.queue.is_empty() || self.in_flight.len() >= MOST_CALLS {
            return None;
        }
        let take = self.queue.len().min(MOST_OPS_PER_CALL);
        let ops: Vec<Op> = self.queue.drain(..take).collect();
        let requests = ops.iter().filter(|op| !op.request.is_release());
        self.waiting.drain(..requests.count());
        Some(self.send(ops).await)
    }

    /// Sends an empty call, so that a connection that died unnoticed is replaced before it is needed.
    pub(super) async fn beat(&mut self) -> Option<Answered> {
        self.send(Vec::new()).await
    }

    async fn send(&mut self, ops: Vec<Op>) -> Option<Answered> {
        let id = self.next_call;
        self.next_call += 1;
        let requests: Vec<Request> = ops.iter().map(|op| op.request.clone()).collect();
        // Read before the first byte is sent.
        let at = self.clock.now();
        let call = self.session.call(&self.space, &requests);
        // Unconstrained: a runtime that is out of budget would answer "pending" before the request
        // was passed on, and the next call would overtake this one.
        let mut call = unconstrained(async move { (id, call.await) }).boxed();
        let sent = Instant::now();
        self.in_flight.insert(id, Call { sent, at, ops });
        match poll!(&mut call) {
            Poll::Ready(answered) => Some(answered),
            Poll::Pending => {
                self.calls.push(call);
                None
            }
        }
    }

    /// The call that was answered.
    pub(super) fn answered(&mut self, id: u64) -> Option<Call> {
        self.idle_since = Instant::now();
        self.in_flight.remove(&id)
    }

    /// For how long the oldest call has waited for its answer.
    pub(super) fn silence(&self) -> Duration {
        self.in_flight
            .first_key_value()
            .map_or(Duration::ZERO, |(_, call)| call.sent.elapsed())
    }

    /// Whether nothing is in flight and nothing was for a while.
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight.is_empty() && self.idle_since.elapsed() >= BEAT
    }

    /// When something is to be looked at, if nothing happens before.
    pub(super) fn next_check(&self, config: &LinkConfig) -> Instant {
        match self.in_flight.first_key_value() {
            None => self.idle_since + BEAT,
            Some((_, oldest)) if oldest.sent.elapsed() < config.lag_after => {
                oldest.sent + config.lag_after
            }
            Some((_, oldest)) => oldest.sent + config.give_up_after(),
        }
    }

    /// Takes out of the queue what a node that cannot keep up will not get.
    ///
    /// A node that is silent is one; so is a node that answers each call in time and is asked for more
    /// than it can do: whoever made the requests in its queue has long decided without them.
    /// Releases stay, for they must follow what may have been executed, unless they follow what is
    /// dropped here.
    pub(super) fn leave_behind(&mut self, lag_after: Duration) -> Option<LeftBehind> {
        let waited = self.waiting.front()?.elapsed();
        let silence = self.silence().max(waited);
        if silence < lag_after {
            return None;
        }
        let mut left = LeftBehind {
            silence,
            dropped: Vec::new(),
            needless: Vec::new(),
        };
        let mut unsent = HashSet::new();
        for op in std::mem::take(&mut self.queue) {
            match &op.request {
                Request::Lock { verb, owner, .. } => match verb {
                    Verb::Acquire { .. } => {
                        unsent.insert(*owner);
                        left.dropped.push(op);
                    }
                    Verb::Release { .. } | Verb::Bury { .. } if unsent.contains(owner) => {
                        left.needless.push(op);
                    }
                    Verb::Release { .. } | Verb::Bury { .. } => self.queue.push_back(op),
                    Verb::Extend { .. } | Verb::Heal { .. } => left.dropped.push(op),
                },
                Request::Job {
                    verb: JobVerb::Withdraw { .. },
                    ..
                } => self.queue.push_back(op),
                Request::Job { verb, .. } => {
                    if let JobVerb::Claim { owner, .. } = verb {
                        unsent.insert(*owner);
                    }
                    left.dropped.push(op);
                }
                Request::Node(_) => left.dropped.push(op),
            }
        }
        self.waiting.clear();
        Some(left)
    }

    /// All that is left when the connection is lost: what was sent, and what was not.
    pub(super) fn into_ops(self) -> (impl Iterator<Item = Op>, VecDeque<Op>) {
        let sent = self.in_flight.into_values().flat_map(|call| call.ops);
        (sent, self.queue)
    }
}

/// More operations in one script call gain nothing and keep the server from others for longer.
const MOST_OPS_PER_CALL: usize = 16;

/// Fewer than the calls that redis-rs buffers (50), so that a call is never kept waiting for room.
const MOST_CALLS: usize = 32;

/// A connection on which nothing happened for this long is tried.
pub(super) const BEAT: Duration = Duration::from_secs(1);
