//! The link to one node: its connection, what is in flight on it, and what is owed to it.

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt, StreamExt};
use redlock_proto::{Answer, Entropy, NodeVerb, Reply, Request, RequestError, Space};
use tokio::{
    select,
    sync::{mpsc, watch},
    time::{Instant, sleep, sleep_until, timeout},
};

use super::{
    entropy::Source,
    flow::{Flow, LeftBehind},
    log,
    owed::Owed,
};
use crate::{
    clock::Clock,
    node::{Answers, CallError, Node, Session},
};

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
    /// Which connection it is meant for.
    pub(super) connection: u64,
    /// For a release: until when it is worth making, should it fail at first.
    pub(super) owed_until: Option<Instant>,
    /// It has failed before.
    pub(super) repeated: bool,
}

/// What a link tells the driver.
#[derive(Debug)]
pub(super) struct LinkEvent {
    pub(super) node: usize,
    pub(super) what: What,
}

#[derive(Debug)]
pub(super) enum What {
    /// A connection was made, and the node has said what it is.
    Connected {
        answer: Answer,
        sent: redlock_proto::Instant,
    },
    /// The connection was lost, or could not be made; what became of its requests follows.
    Disconnected { reason: Arc<str> },
    /// A call was answered.
    Answered {
        answer: Answer,
        rounds: Vec<u64>,
        sent: redlock_proto::Instant,
    },
    /// A request was not answered.
    Failed { round: u64, error: RequestError },
    /// A release was not answered, and is made again.
    Delayed { round: u64, error: RequestError },
    /// A release is not needed, for what it would undo was never sent.
    Needless { round: u64 },
}

/// The task that owns the connection to one node.
pub(super) struct Link {
    pub(super) index: usize,
    pub(super) node: Arc<dyn Node>,
    pub(super) config: LinkConfig,
    pub(super) ops: mpsc::UnboundedReceiver<Vec<Op>>,
    pub(super) events: mpsc::UnboundedSender<LinkEvent>,
    pub(super) space: Arc<Space>,
    pub(super) clock: Clock,
    pub(super) entropy: Source,
    pub(super) state: watch::Sender<LinkState>,
    pub(super) owed: Owed,
    /// How many connections there were.
    pub(super) connections: u64,
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
                Ok(Connected {
                    session,
                    answer,
                    sent,
                }) => {
                    self.connections += 1;
                    self.tell(What::Connected { answer, sent });
                    if let LinkState::Down(_) = self.state.send_replace(LinkState::Up) {
                        log::is_back(&self.node.name());
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
                log::is_down(&self.node.name(), &reason);
            }
            self.tell(What::Disconnected {
                reason: Arc::clone(&reason),
            });
            self.state.send_replace(LinkState::Down(reason));
            if failures > 0 && self.pause(failures).await.is_none() {
                return;
            }
            failures += 1;
        }
    }

    /// A new connection, over which the node has said what it is; `None` if the driver is gone.
    async fn connect(&mut self) -> Option<Result<Connected, Arc<str>>> {
        let limit = self.config.connect_timeout;
        let connecting = introduce(Arc::clone(&self.node), Arc::clone(&self.space), self.clock);
        let mut connecting = timeout(limit, connecting).boxed();
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
        let part = self.entropy.bits() % 128 + 128;
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
        let mut flow = Flow::new(session, Arc::clone(&self.space), self.clock);
        self.owed.on_connected();
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
                        flow.push(self.for_this_connection(ops?));
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

    /// Requests that were meant for an earlier connection, in the form that this one needs.
    ///
    /// The driver may not know yet that the connection is another.
    fn for_this_connection(&self, mut ops: Vec<Op>) -> Vec<Op> {
        for op in &mut ops {
            if op.connection != self.connections {
                op.request = op.request.clone().over_another_connection();
            }
        }
        ops
    }

    /// Sends what can be sent; an error is the reason why the connection is of no more use.
    async fn fill(&mut self, flow: &mut Flow) -> Result<(), Arc<str>> {
        let (due, over) = self.owed.take_due();
        flow.push_front(due.into_iter());
        for (op, error) in over {
            self.tell_failed(&op, error);
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
        let Some(call) = flow.answered(id) else {
            return Ok(());
        };
        let (ops, sent) = (call.ops, call.at);
        let error = match answer {
            Ok(answer) if answer.replies.len() == ops.len() => {
                self.answered(ops, answer, sent);
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

    /// Passes an answer on, but for releases that ended with an error: those are made again.
    fn answered(&mut self, ops: Vec<Op>, answer: Answer, sent: redlock_proto::Instant) {
        let Answer { standing, replies } = answer;
        let mut rounds = Vec::with_capacity(ops.len());
        let mut passed = Vec::with_capacity(ops.len());
        for (op, reply) in ops.into_iter().zip(replies) {
            match reply {
                Err(reason) if op.request.is_release() => self.fail(op, false, &reason),
                reply => {
                    rounds.push(op.round);
                    passed.push(reply);
                }
            }
        }
        let answer = Answer {
            standing,
            replies: passed,
        };
        self.tell(What::Answered {
            answer,
            rounds,
            sent,
        });
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
            self.tell(What::Needless { round: op.round });
        }
    }

    /// Reports a request that failed; a release is made again instead.
    fn fail(&mut self, op: Op, may_have_run: bool, reason: &Arc<str>) {
        let error = RequestError {
            may_have_run,
            reason: Arc::clone(reason),
        };
        let failed = match op.request.is_release() {
            true => {
                self.tell(What::Delayed {
                    round: op.round,
                    error: error.clone(),
                });
                self.owed.add(op, error)
            }
            false => Some((op, error)),
        };
        if let Some((op, error)) = failed {
            self.tell_failed(&op, error);
        }
    }

    fn tell_failed(&self, op: &Op, error: RequestError) {
        let round = op.round;
        self.tell(What::Failed { round, error });
    }

    fn tell(&self, what: What) {
        let node = self.index;
        // The driver outlives its links.
        let _ = self.events.send(LinkEvent { node, what });
    }
}

/// A connection, and what the node said when it was made.
struct Connected {
    session: Box<dyn Session>,
    answer: Answer,
    sent: redlock_proto::Instant,
}

/// Connects to a node and asks it what it is; nothing counts that a node says before.
async fn introduce(
    node: Arc<dyn Node>,
    space: Arc<Space>,
    clock: Clock,
) -> Result<Connected, Arc<str>> {
    let mut session = node.connect().await?;
    let sent = clock.now();
    let inspect = [Request::Node(NodeVerb::Inspect)];
    let answer = session.call(&space, &inspect).await;
    let answer = answer.map_err(|error| error.reason)?;
    match answer.replies.first() {
        Some(Ok(Reply::Facts(_))) => Ok(Connected {
            session,
            answer,
            sent,
        }),
        Some(Err(reason)) => Err(Arc::clone(reason)),
        _ => Err("the node does not say what it is".into()),
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
