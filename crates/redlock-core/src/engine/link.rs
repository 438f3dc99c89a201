//! The link to one node: its connection, what is in flight on it, and what is owed to it.

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt, StreamExt};
use redlock_proto::{Reply, Request, Verb};
use tokio::{
    select,
    sync::{mpsc, watch},
    time::{Instant, sleep, sleep_until, timeout},
};

use super::{
    flow::{Flow, LeftBehind},
    owed::Owed,
    tasks::random_bits,
};
use crate::node::{Answers, CallError, Node, Session};

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
    pub(super) round: u64,
    /// For a release: until when it is worth making, should it fail at first.
    pub(super) owed_until: Option<Instant>,
    /// It has failed before.
    pub(super) repeated: bool,
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
    pub(super) owed: Owed,
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
        self.owed.due_now();
        loop {
            let filled = self.fill(&mut flow).await;
            let next_check = flow.next_check(&self.config);
            let next_check = self
                .owed
                .due()
                .map_or(next_check, |due| due.min(next_check));
            let lost = match filled {
                Err(lost) => Some(lost),
                Ok(()) => select! {
                    biased;
                    Some((id, answer)) = flow.calls.next() => self.answer(&mut flow, id, answer).err(),
                    ops = self.ops.recv() => {
                        flow.push(ops?);
                        None
                    }
                    () = sleep_until(next_check) => self.given_up(&flow),
                },
            };
            if let Some(reason) = lost {
                let (sent, unsent) = flow.into_ops();
                sent.for_each(|op| self.fail(op, true, &reason));
                unsent
                    .into_iter()
                    .for_each(|op| self.fail(op, false, &reason));
                return Some(reason);
            }
        }
    }

    /// Sends what can be sent; an error is the reason why the connection is of no more use.
    async fn fill(&mut self, flow: &mut Flow) -> Result<(), Arc<str>> {
        let (due, over) = self.owed.take_due();
        flow.push_front(due.into_iter());
        for (op, error) in over {
            self.report(&op, Err(error));
        }
        if let Some(left) = flow.leave_behind(self.config.lag_after) {
            self.leave_behind(left);
        }
        if flow.is_idle()
            && let Some((id, answer)) = flow.beat().await
        {
            self.answer(flow, id, answer)?;
        }
        while let Some(answered) = flow.send_next().await {
            if let Some((id, answer)) = answered {
                self.answer(flow, id, answer)?;
            }
        }
        Ok(())
    }

    /// Reports a call's answer; an error is the reason why the connection is of no more use.
    fn answer(&mut self, flow: &mut Flow, id: u64, answer: Answers) -> Result<(), Arc<str>> {
        let ops = flow.answered(id);
        let error = match answer {
            Ok(replies) if replies.len() == ops.len() => {
                for (op, reply) in ops.into_iter().zip(replies) {
                    match reply {
                        Ok(reply) => self.report(&op, Ok(reply)),
                        Err(reason) => self.fail(op, false, &reason),
                    }
                }
                return Ok(());
            }
            Ok(_) => CallError::lost("the node's answer has not one reply for each request"),
            Err(error) => error,
        };
        for op in ops {
            self.fail(op, error.may_have_run, &error.reason);
        }
        match error.session_lost {
            true => Err(error.reason),
            false => Ok(()),
        }
    }

    /// Why the connection is given up, if it is.
    fn given_up(&self, flow: &Flow) -> Option<Arc<str>> {
        let silence = flow.silence();
        (silence >= self.config.give_up_after())
            .then(|| format!("no answer for {} ms", silence.as_millis()).into())
    }

    /// Answers requests for a node that cannot keep up, instead of letting them pile up.
    fn leave_behind(&mut self, left: LeftBehind) {
        let reason = format!("no answer for {} ms", left.silence.as_millis()).into();
        for op in left.dropped {
            self.fail(op, false, &reason);
        }
        for op in left.needless {
            self.report(&op, Ok(Reply::Missing));
        }
    }

    /// Reports a request that failed; a release is made again instead.
    fn fail(&mut self, op: Op, may_have_run: bool, reason: &Arc<str>) {
        let error = OpError {
            may_have_run,
            reason: Arc::clone(reason),
        };
        let failed = match op.request.verb {
            Verb::Release => self.owed.add(op, error),
            Verb::Acquire { .. } | Verb::Extend { .. } => Some((op, error)),
        };
        if let Some((op, error)) = failed {
            self.report(&op, Err(error));
        }
    }

    fn report(&self, op: &Op, result: Result<Reply, OpError>) {
        // The driver outlives its links.
        let _ = self.done.send(Done {
            node: self.index,
            round: op.round,
            result,
        });
    }
}

impl LinkConfig {
    /// After how long without an answer the connection is replaced.
    pub(super) fn give_up_after(&self) -> Duration {
        (self.lag_after * 4).max(Duration::from_secs(2))
    }
}

const SHORTEST_PAUSE: Duration = Duration::from_millis(25);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
