//! The link to one node: its connection, what is in flight on it, and what is owed to it.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use futures_util::{FutureExt, StreamExt};
use redlock_proto::{Reply, Request, Verb};
use tokio::{
    select,
    sync::{mpsc, watch},
    time::{Instant, sleep, sleep_until, timeout},
};

use super::{flow::Flow, tasks::random_bits};
use crate::node::{Answers, Node, Session};

/// The limits of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkConfig {
    /// How long a connection may take to be made.
    pub(crate) connect_timeout: Duration,
    /// How long a call may be in flight before the node is left behind.
    pub(crate) lag_after: Duration,
}

/// Whether a node can be reached.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum LinkState {
    /// The first connection is being made.
    Connecting,
    Up,
    Down(Arc<str>),
}

/// A request on its way to a node.
#[derive(Debug)]
pub(super) struct Op {
    pub(super) request: Request,
    /// The round that wants to know what becomes of it.
    pub(super) round: Option<u64>,
    /// For a release: until when it is worth delivering, should the connection be gone.
    pub(super) owed_until: Option<Instant>,
}

/// What became of an [`Op`].
#[derive(Debug)]
pub(super) struct Done {
    pub(super) node: usize,
    pub(super) round: u64,
    pub(super) result: Result<Reply, OpError>,
}

/// Why a request has no reply.
#[derive(Clone, Debug)]
pub(super) struct OpError {
    pub(super) may_have_run: bool,
    pub(super) reason: Arc<str>,
}

/// The task that owns the connection to one node.
pub(super) struct Link {
    pub(super) index: usize,
    pub(super) node: Arc<dyn Node>,
    pub(super) config: LinkConfig,
    pub(super) ops: mpsc::UnboundedReceiver<Vec<Op>>,
    pub(super) done: mpsc::UnboundedSender<Done>,
    pub(super) state: watch::Sender<LinkState>,
    pub(super) owed: VecDeque<Op>,
}

impl Link {
    /// Keeps the node connected and passes requests to it until the driver is gone.
    pub(super) async fn run(mut self) {
        let mut failures = 0;
        loop {
            let Some(connected) = self.connect().await else {
                return;
            };
            let reason = match connected {
                Ok(session) => {
                    if let LinkState::Down(_) = self.state.send_replace(LinkState::Up) {
                        tracing::info!(node = %self.node.name(), "node is back");
                    }
                    let since = Instant::now();
                    let Some(reason) = self.serve(session).await else {
                        return;
                    };
                    // A node that accepts connections and drops them is not tried in a tight loop.
                    if since.elapsed() >= LONGEST_PAUSE {
                        failures = 0;
                    }
                    reason
                }
                Err(reason) => reason,
            };
            if !matches!(&*self.state.borrow(), LinkState::Down(_)) {
                tracing::warn!(node = %self.node.name(), %reason, "node is down");
            }
            self.state.send_replace(LinkState::Down(reason));
            if failures > 0 && self.pause(failures).await.is_none() {
                return;
            }
            failures += 1;
        }
    }

    /// A new connection; `None` if the driver is gone.
    async fn connect(&mut self) -> Option<Result<Box<dyn Session>, Arc<str>>> {
        let limit = self.config.connect_timeout;
        let mut connecting = timeout(limit, self.node.connect()).boxed();
        loop {
            select! {
                biased;
                connected = &mut connecting => {
                    let late = |_| Err(format!("no connection within {limit:?}").into());
                    return Some(connected.unwrap_or_else(late));
                }
                ops = self.ops.recv() => self.turn_away(ops?),
            }
        }
    }

    /// Waits before the next connection is tried; `None` if the driver is gone.
    async fn pause(&mut self, failures: u32) -> Option<()> {
        let longest = SHORTEST_PAUSE
            .saturating_mul(1 << failures.min(8))
            .min(LONGEST_PAUSE);
        // Between half and all of it, so that the clients of a node that came back do not all
        // arrive at once.
        let part = random_bits() % 128 + 128;
        let mut over = Box::pin(sleep(longest * u32::try_from(part).unwrap_or(256) / 256));
        loop {
            select! {
                biased;
                () = &mut over => return Some(()),
                ops = self.ops.recv() => self.turn_away(ops?),
            }
        }
    }

    /// Answers requests that cannot be sent now.
    fn turn_away(&mut self, ops: Vec<Op>) {
        let reason = match &*self.state.borrow() {
            LinkState::Down(reason) => Arc::clone(reason),
            LinkState::Connecting | LinkState::Up => "not connected yet".into(),
        };
        for op in ops {
            self.fail(op, false, &reason);
        }
    }

    /// Passes requests on; returns why the connection was given up, `None` if the driver is gone.
    async fn serve(&mut self, session: Box<dyn Session>) -> Option<Arc<str>> {
        let mut flow = Flow::new(session);
        let now = Instant::now();
        let owed = self
            .owed
            .drain(..)
            .filter(|op| op.owed_until.is_some_and(|until| until > now));
        flow.queue.extend(owed);
        loop {
            let filled = self.fill(&mut flow).await;
            let next_check = flow.next_check(&self.config);
            let lost = match filled {
                Err(lost) => Some(lost),
                Ok(()) => select! {
                    biased;
                    Some((id, answer)) = flow.calls.next() => self.answer(&mut flow, id, answer).err(),
                    ops = self.ops.recv() => {
                        flow.queue.extend(ops?);
                        self.leave_behind(&mut flow);
                        None
                    }
                    () = sleep_until(next_check) => self.check(&mut flow),
                },
            };
            if let Some(reason) = lost {
                let in_flight = std::mem::take(&mut flow.in_flight);
                for op in in_flight.into_values().flat_map(|call| call.ops) {
                    self.fail(op, true, &reason);
                }
                for op in flow.again.drain(..).chain(flow.queue.drain(..)) {
                    self.fail(op, false, &reason);
                }
                return Some(reason);
            }
        }
    }

    /// Sends what is queued, as much as may be in flight.
    ///
    /// Each call is polled as it is made, so that calls are on their way in the order of the queue.
    async fn fill(&mut self, flow: &mut Flow) -> Result<(), Arc<str>> {
        if std::mem::take(&mut flow.beat)
            && let Some((id, answer)) = flow.send(Vec::new(), false).await
        {
            self.answer(flow, id, answer)?;
        }
        while flow.in_flight.len() < MOST_CALLS && !flow.again.is_empty() {
            let take = flow.again.len().min(MOST_OPS_PER_CALL);
            let ops: Vec<Op> = flow.again.drain(..take).collect();
            if let Some((id, answer)) = flow.send(ops, true).await {
                self.answer(flow, id, answer)?;
            }
        }
        while flow.in_flight.len() < MOST_CALLS && !flow.queue.is_empty() {
            let take = flow.queue.len().min(MOST_OPS_PER_CALL);
            let ops: Vec<Op> = flow.queue.drain(..take).collect();
            if let Some((id, answer)) = flow.send(ops, false).await {
                self.answer(flow, id, answer)?;
            }
        }
        Ok(())
    }

    /// Reports a call's answer; an error is the reason why the connection is of no more use.
    fn answer(&mut self, flow: &mut Flow, id: u64, answer: Answers) -> Result<(), Arc<str>> {
        flow.idle_since = Instant::now();
        let (ops, again) = flow
            .in_flight
            .remove(&id)
            .map(|call| (call.ops, call.again))
            .unwrap_or_default();
        let error = match answer {
            Ok(replies) => {
                for (op, reply) in ops.into_iter().zip(replies) {
                    match reply {
                        Ok(reply) => self.report(&op, Ok(reply)),
                        Err(reason) => self.report(
                            &op,
                            Err(OpError {
                                may_have_run: false,
                                reason,
                            }),
                        ),
                    }
                }
                return Ok(());
            }
            Err(error) => error,
        };
        let refused = !error.may_have_run && !error.session_lost;
        for op in ops {
            match op.request.verb {
                // The node goes on and may have forgotten no more than the script, as after
                // `SCRIPT FLUSH`. A release may be overtaken: it is the last request of its owner.
                Verb::Release if refused && !again => flow.again.push_back(op),
                _ => self.fail(op, error.may_have_run, &error.reason),
            }
        }
        match error.session_lost {
            true => Err(error.reason),
            false => Ok(()),
        }
    }

    /// Looks after a connection on which nothing has happened for a while.
    fn check(&mut self, flow: &mut Flow) -> Option<Arc<str>> {
        if flow.in_flight.is_empty() {
            // An empty call: a connection that died unnoticed is replaced before it is needed.
            flow.beat = true;
            return None;
        }
        let silence = flow.silence();
        if silence >= self.config.give_up_after() {
            return Some(format!("no answer for {} ms", silence.as_millis()).into());
        }
        self.leave_behind(flow);
        None
    }

    /// While the node lags, answers requests for it instead of letting them pile up.
    ///
    /// Releases stay: they must follow, in order, what may have been executed.
    fn leave_behind(&mut self, flow: &mut Flow) {
        let silence = flow.silence();
        if silence < self.config.lag_after {
            return;
        }
        let reason = format!("no answer for {} ms", silence.as_millis()).into();
        for op in std::mem::take(&mut flow.queue) {
            match op.request.verb {
                Verb::Release => flow.queue.push_back(op),
                Verb::Acquire { .. } | Verb::Extend { .. } => self.fail(op, false, &reason),
            }
        }
    }

    fn fail(&mut self, op: Op, may_have_run: bool, reason: &Arc<str>) {
        let reason = Arc::clone(reason);
        self.report(
            &op,
            Err(OpError {
                may_have_run,
                reason,
            }),
        );
        if op.owed_until.is_some() {
            // Nobody waits for it any more, but the node should still be told.
            if self.owed.len() == MOST_OWED {
                self.owed.pop_front();
            }
            self.owed.push_back(Op { round: None, ..op });
        }
    }

    fn report(&self, op: &Op, result: Result<Reply, OpError>) {
        if let Some(round) = op.round {
            // The driver outlives its links.
            let _ = self.done.send(Done {
                node: self.index,
                round,
                result,
            });
        }
    }
}

impl LinkConfig {
    /// After how long without an answer the connection is replaced.
    pub(super) fn give_up_after(&self) -> Duration {
        (self.lag_after * 4).max(Duration::from_secs(2))
    }
}

/// More operations in one script call gain nothing and keep the server from others for longer.
const MOST_OPS_PER_CALL: usize = 16;

/// Fewer than the calls that redis-rs buffers (50), so that a call is never kept waiting for room.
const MOST_CALLS: usize = 32;

/// What a node is owed is bounded; the oldest releases are those that end by themselves first.
const MOST_OWED: usize = 10_000;

const SHORTEST_PAUSE: Duration = Duration::from_millis(25);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
