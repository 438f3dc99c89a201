//! The traffic on one connection.

use std::{
    collections::{BTreeMap, VecDeque},
    task::Poll,
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture, poll, stream::FuturesUnordered};
use redlock_proto::Request;
use tokio::{task::unconstrained, time::Instant};

use super::link::{LinkConfig, Op};
use crate::node::{Answers, Session};

/// What flows over one connection: what waits to be sent, and what waits for its answer.
pub(super) struct Flow {
    session: Box<dyn Session>,
    pub(super) queue: VecDeque<Op>,
    /// Releases that the node refused to run, to be sent once more.
    pub(super) again: VecDeque<Op>,
    pub(super) calls: FuturesUnordered<BoxFuture<'static, Answered>>,
    // By the order in which they were sent, so the first is the oldest.
    pub(super) in_flight: BTreeMap<u64, Call>,
    next_call: u64,
    pub(super) idle_since: Instant,
    /// An empty call is due.
    pub(super) beat: bool,
}

pub(super) struct Call {
    pub(super) sent: Instant,
    pub(super) ops: Vec<Op>,
    /// It repeats what was refused, and is not repeated itself.
    pub(super) again: bool,
}

pub(super) type Answered = (u64, Answers);

impl Flow {
    pub(super) fn new(session: Box<dyn Session>) -> Self {
        Self {
            session,
            queue: VecDeque::new(),
            again: VecDeque::new(),
            calls: FuturesUnordered::new(),
            in_flight: BTreeMap::new(),
            next_call: 0,
            idle_since: Instant::now(),
            beat: false,
        }
    }

    /// Makes one call; returns its answer if it is there already.
    pub(super) async fn send(&mut self, ops: Vec<Op>, again: bool) -> Option<Answered> {
        let id = self.next_call;
        self.next_call += 1;
        let requests: Vec<Request> = ops.iter().map(|op| op.request.clone()).collect();
        let call = self.session.call(&requests);
        // Unconstrained: a runtime that is out of budget would answer "pending" before the request
        // was passed on, and the next call would overtake this one.
        let mut call = unconstrained(async move { (id, call.await) }).boxed();
        self.in_flight.insert(
            id,
            Call {
                sent: Instant::now(),
                ops,
                again,
            },
        );
        match poll!(&mut call) {
            Poll::Ready(answered) => Some(answered),
            Poll::Pending => {
                self.calls.push(call);
                None
            }
        }
    }

    /// For how long the oldest call has waited for its answer.
    pub(super) fn silence(&self) -> Duration {
        self.in_flight
            .first_key_value()
            .map_or(Duration::ZERO, |(_, call)| call.sent.elapsed())
    }

    pub(super) fn next_check(&self, config: &LinkConfig) -> Instant {
        match self.in_flight.first_key_value() {
            None => self.idle_since + BEAT,
            Some((_, oldest)) if oldest.sent.elapsed() < config.lag_after => {
                oldest.sent + config.lag_after
            }
            Some((_, oldest)) => oldest.sent + config.give_up_after(),
        }
    }
}

/// A connection on which nothing happened for this long is tried.
const BEAT: Duration = Duration::from_secs(1);
