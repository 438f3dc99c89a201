//! The loop: events in, requests out.

use std::{collections::HashMap, sync::Arc, time::Duration};

use redlock_proto::{Instant, NodeKey, Outcome, OwnerId, Quorum, RetryPolicy, Timing, Verb};
use tokio::{
    select,
    sync::{
        mpsc::{self, error::SendError},
        oneshot, watch,
    },
    task::yield_now,
};

use super::{
    acquisitions::Acquisition,
    command::{Command, WeakEngineHandle},
    leases::HeldLease,
    link::{Done, LinkState, Op, OpError},
    round::{Round, RoundKind},
    timers::Timers,
};
use crate::{AcquireError, NodeAnswer, NodeReport, clock::Clock};

/// What the driver needs to know of its client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EngineConfig {
    pub(crate) quorum: Quorum,
    pub(crate) clock: Clock,
    pub(crate) retry: RetryPolicy,
    /// How long a round may take to be decided.
    pub(crate) node_timeout: Duration,
}

/// The task that owns all business: acquisitions, leases, rounds.
pub(super) struct Driver {
    pub(super) config: EngineConfig,
    pub(super) handles: WeakEngineHandle,
    pub(super) acquisitions: HashMap<u64, Acquisition>,
    pub(super) leases: HashMap<u64, HeldLease>,
    pub(super) rounds: HashMap<u64, Round>,
    pub(super) timers: Timers<Timer>,
    pub(super) closing: bool,
    outboxes: Vec<Outbox>,
    next_round: u64,
    closers: Vec<oneshot::Sender<()>>,
}

/// What can be due.
#[derive(Clone, Copy, Debug)]
pub(super) enum Timer {
    RoundLimit(u64),
    Retry(u64),
    Lease(u64),
}

/// The requests gathered for one node.
#[derive(Debug)]
pub(super) struct Outbox {
    name: Arc<str>,
    link: mpsc::UnboundedSender<Vec<Op>>,
    state: watch::Receiver<LinkState>,
    gathered: Vec<Op>,
}

impl Outbox {
    pub(super) fn new(
        name: Arc<str>,
        link: mpsc::UnboundedSender<Vec<Op>>,
        state: watch::Receiver<LinkState>,
    ) -> Self {
        Self {
            name,
            link,
            state,
            gathered: Vec::new(),
        }
    }

    /// What is known of a node that was asked and has not answered.
    fn unanswered(&self) -> NodeAnswer {
        match &*self.state.borrow() {
            // Its last call may be among those that it executed.
            LinkState::Down(reason) => NodeAnswer::Unknown {
                reason: Arc::clone(reason),
            },
            LinkState::Connecting | LinkState::Up => NodeAnswer::Pending,
        }
    }
}

impl Driver {
    pub(super) fn new(
        config: EngineConfig,
        handles: WeakEngineHandle,
        outboxes: Vec<Outbox>,
    ) -> Self {
        Self {
            config,
            handles,
            acquisitions: HashMap::new(),
            leases: HashMap::new(),
            rounds: HashMap::new(),
            timers: Timers::new(),
            closing: false,
            outboxes,
            next_round: 0,
            closers: Vec::new(),
        }
    }

    /// Runs until no handle is left and everything is cleaned up.
    pub(super) async fn run(
        mut self,
        mut commands: mpsc::UnboundedReceiver<Command>,
        mut results: mpsc::UnboundedReceiver<Done>,
    ) {
        let mut abandoned = false;
        while !(abandoned && self.is_clean()) {
            let sleep = tokio::time::sleep(self.until_next_timer());
            select! {
                biased;
                result = results.recv() => self.on_result(result),
                command = commands.recv(), if !abandoned => match command {
                    Some(command) => self.on_command(command),
                    None => {
                        abandoned = true;
                        self.close(None);
                    }
                },
                () = sleep => {}
            }
            // Whatever else is ready joins the same calls to the nodes: one turn for the other tasks of
            // this thread, and no timer, so that a lone caller never waits.
            yield_now().await;
            while let Ok(result) = results.try_recv() {
                self.on_result(Some(result));
            }
            while let Ok(command) = commands.try_recv() {
                self.on_command(command);
            }
            self.on_timers();
            self.flush();
            self.answer_closers();
        }
    }

    fn on_command(&mut self, command: Command) {
        match command {
            Command::Acquire { answer, .. } if self.closing => {
                // The caller may have gone away meanwhile.
                let _ = answer.send(Err(AcquireError::closed()));
            }
            Command::Acquire {
                id,
                request,
                answer,
            } => self.acquire(id, request, answer),
            Command::Abandon { id } => self.abandon(id),
            Command::Extend { lease, answer } => self.extend_now(lease, answer),
            Command::Release { lease, answer } => self.release(lease, answer),
            Command::Leave { lease } => self.leave(lease),
            Command::Close { answer } => self.close(Some(answer)),
        }
    }

    fn on_result(&mut self, result: Option<Done>) {
        let Some(done) = result else { return };
        let (id, node) = (done.round, done.node);
        let Some(round) = self.rounds.get_mut(&id) else {
            return;
        };
        let outcome = round.note(done);
        self.on_outcome(id, node, outcome);
        if self.rounds.get(&id).is_some_and(|round| round.open == 0) {
            self.decided(id);
            self.rounds.remove(&id);
        }
    }

    fn on_outcome(&mut self, id: u64, node: usize, outcome: Outcome) {
        let now = self.now();
        let Some(round) = self.rounds.get_mut(&id) else {
            return;
        };
        match &mut round.kind {
            RoundKind::Attempt { attempt, .. } => {
                if let Some(verdict) = attempt.on_outcome(node, outcome, now) {
                    self.attempted(id, verdict);
                }
            }
            RoundKind::Decided { lease: Some(lease) } => {
                if let Some(held) = self.leases.get_mut(lease) {
                    held.state.on_late_outcome(node, outcome);
                }
            }
            RoundKind::Decided { lease: None } => {}
            RoundKind::Extension { extension, .. } => {
                if let Some(verdict) = extension.on_outcome(node, outcome, now) {
                    self.extended(id, verdict);
                }
            }
            RoundKind::Release { release, .. } => {
                if let Some(verdict) = release.on_outcome(node, outcome) {
                    self.released(id, verdict);
                }
            }
        }
    }

    fn on_timers(&mut self) {
        let now = self.now();
        while let Some(timer) = self.timers.pop_due(now) {
            match timer {
                Timer::RoundLimit(id) => self.on_round_limit(id),
                Timer::Retry(id) => self.start_attempt(id),
                Timer::Lease(id) => self.on_lease_timer(id),
            }
        }
    }

    fn on_round_limit(&mut self, id: u64) {
        let now = self.now();
        let Some(round) = self.rounds.get_mut(&id) else {
            return;
        };
        round.limit = None;
        match &mut round.kind {
            RoundKind::Attempt { attempt, .. } => {
                if let Some(verdict) = attempt.on_time_limit(now) {
                    self.attempted(id, verdict);
                }
            }
            RoundKind::Decided { .. } => {}
            RoundKind::Extension { extension, .. } => {
                if let Some(verdict) = extension.on_time_limit(now) {
                    self.extended(id, verdict);
                }
            }
            RoundKind::Release { release, .. } => {
                if let Some(verdict) = release.on_time_limit() {
                    self.released(id, verdict);
                }
                // Whatever is still owed to a node is its link's business.
                self.rounds.remove(&id);
            }
        }
    }

    /// Starts a round with its time limit; requests are added by [`send`](Self::send).
    pub(super) fn start_round(
        &mut self,
        kind: RoundKind,
        started: Instant,
        limit: Duration,
    ) -> u64 {
        let id = self.next_round;
        self.next_round += 1;
        let mut round = Round::new(kind, started, self.config.quorum.nodes());
        let limit = self.timers.set(started + limit, Timer::RoundLimit(id));
        round.limit = Some(limit);
        self.rounds.insert(id, round);
        id
    }

    /// The time limit of a round for such a lease: what takes longer than half the lease is no use.
    pub(super) fn limit_within(&self, timing: &Timing) -> Duration {
        self.config.node_timeout.min(timing.ttl() / 2)
    }

    /// A round needs its time limit no longer.
    pub(super) fn decided(&mut self, id: u64) {
        if let Some(limit) = self
            .rounds
            .get_mut(&id)
            .and_then(|round| round.limit.take())
        {
            self.timers.cancel(limit);
        }
    }

    /// Gathers a request for a node; it is sent when the present events are all handled.
    pub(super) fn send(
        &mut self,
        node: usize,
        round: u64,
        verb: Verb,
        key: &NodeKey,
        owner: OwnerId,
        owed_until: Option<tokio::time::Instant>,
    ) {
        if let Some(round) = self.rounds.get_mut(&round) {
            round.open += 1;
        }
        let request = redlock_proto::Request {
            verb,
            key: key.clone(),
            owner,
        };
        self.outboxes[node].gathered.push(Op {
            request,
            round,
            owed_until,
            repeated: false,
        });
    }

    /// Up to when a release is worth delivering: the key has ended by itself then.
    pub(super) fn owed_until(timing: &Timing) -> Option<tokio::time::Instant> {
        Some(tokio::time::Instant::now() + timing.ttl())
    }

    pub(super) fn now(&self) -> Instant {
        self.config.clock.now()
    }

    /// A line per node on a round, for an error.
    pub(super) fn reports(&self, round: u64) -> Vec<NodeReport> {
        let Some(round) = self.rounds.get(&round) else {
            return Vec::new();
        };
        let report = |(node, outbox): (usize, &Outbox)| NodeReport {
            node: Arc::clone(&outbox.name),
            answer: round.answer(node).unwrap_or_else(|| outbox.unanswered()),
        };
        self.outboxes.iter().enumerate().map(report).collect()
    }

    fn close(&mut self, answer: Option<oneshot::Sender<()>>) {
        self.closing = true;
        self.closers.extend(answer);
        self.end_acquisitions();
    }

    fn answer_closers(&mut self) {
        if !self.closers.is_empty() && self.is_clean() {
            for closer in self.closers.drain(..) {
                // Whoever asked may have stopped waiting.
                let _ = closer.send(());
            }
        }
    }

    /// Whether nothing is left to clean up.
    ///
    /// Leases that are still held are no clean-up.
    fn is_clean(&self) -> bool {
        let is_cleanup = |round: &Round| {
            round.limit.is_some() && matches!(round.kind, RoundKind::Release { .. })
        };
        self.acquisitions.is_empty() && !self.rounds.values().any(is_cleanup)
    }

    fn flush(&mut self) {
        let mut undelivered = Vec::new();
        for (node, outbox) in self.outboxes.iter_mut().enumerate() {
            if outbox.gathered.is_empty() {
                continue;
            }
            // A link ends before the driver only if the code of a node panicked.
            if let Err(SendError(ops)) = outbox.link.send(std::mem::take(&mut outbox.gathered)) {
                undelivered.extend(ops.into_iter().map(|op| (node, op.round)));
            }
        }
        for (node, round) in undelivered {
            let error = OpError {
                may_have_run: false,
                reason: "the node's code panicked".into(),
            };
            self.on_result(Some(Done {
                node,
                round,
                result: Err(error),
            }));
        }
    }

    /// While anything is timed, the clock is looked at this often: timers stop while the machine is
    /// suspended, and the client's clock does not.
    fn until_next_timer(&self) -> Duration {
        match self.timers.next_due() {
            Some(due) => due
                .saturating_since(self.now())
                .min(Duration::from_millis(250)),
            None => Duration::from_secs(3600),
        }
    }
}
