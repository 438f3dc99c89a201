use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};
use redlock_proto::NodeAnswer;

use super::{
    Offsets,
    standing::NodeGauges,
    table::{ALL, describe},
    tell,
};
use crate::LossReason;

/// The metrics of one client; its handles are made once, so that nothing is allocated or looked up by name later.
#[derive(Clone)]
pub(crate) struct Meter {
    shared: Arc<MeterShared>,
    looked_at: Option<redlock_proto::Instant>,
}

struct MeterShared {
    namespace: Arc<str>,
    locks: Mutex<HashMap<Arc<str>, LockMeter>>,
    nodes: Vec<NodeMeter>,
    standing: NodeGauges,
}

impl Meter {
    pub(crate) fn new(namespace: &Arc<str>, majority: usize, nodes: &[Arc<str>]) -> Self {
        describe(ALL);
        let node = |node| NodeMeter::new(namespace, node);
        Self {
            shared: Arc::new(MeterShared {
                namespace: Arc::clone(namespace),
                locks: Mutex::default(),
                nodes: nodes.iter().map(node).collect(),
                standing: NodeGauges::new(namespace, majority, nodes),
            }),
            looked_at: None,
        }
    }

    /// Returns the metrics of the locks of a class.
    pub(crate) fn lock(&self, class: Option<&str>) -> LockMeter {
        let class = class.unwrap_or(UNNAMED);
        let locks = self.shared.locks.lock();
        // An entry is whole or not there.
        let mut locks = locks.unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = locks.get(class) {
            return lock.clone();
        }
        let class = if locks.len() < MOST_CLASSES {
            class
        } else {
            OTHER
        };
        if let Some(lock) = locks.get(class) {
            return lock.clone();
        }
        let lock = LockMeter::new(&self.shared.namespace, class);
        locks.entry(class.into()).or_insert(lock).clone()
    }

    /// Returns the metrics of the terms of an election, among those of the locks of its class.
    pub(crate) fn election(&self, class: &str) -> LockMeter {
        let lock = self.lock(Some(class)).0;
        let terms = Terms {
            leader: gauge!("redlock_leader", &lock.labels),
            won: counter!("redlock_terms_total", &lock.labels),
        };
        LockMeter(Arc::new(OfLock {
            terms: Some(terms),
            ..OfLock::clone(&lock)
        }))
    }

    pub(crate) fn node(&self, node: usize) -> NodeMeter {
        self.shared.nodes[node].clone()
    }

    /// Returns whether it is time to look at how nodes stand.
    pub(crate) fn is_due(&self, now: impl FnOnce() -> redlock_proto::Instant) -> bool {
        let looked_at = self.looked_at;
        looked_at.is_none_or(|at| now().saturating_since(at) >= LOOK_EVERY)
    }

    /// Notes how nodes stand, as [`NodeGauges::look`] says.
    pub(crate) fn look(
        &mut self,
        up: &[bool],
        answers: &[NodeAnswer],
        offsets: &Offsets,
        now: redlock_proto::Instant,
    ) {
        self.looked_at = Some(now);
        self.shared.standing.look(up, answers, offsets);
    }
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Meter(..)")
    }
}

/// The metrics of the locks of one class.
#[derive(Clone)]
pub(crate) struct LockMeter(Arc<OfLock>);

#[derive(Clone)]
struct OfLock {
    labels: [(&'static str, Arc<str>); 2],
    /// Those of an election.
    terms: Option<Terms>,
    acquires: Vec<(&'static str, Counter)>,
    /// Of callers of one key, and of several, once there are any.
    waiting: [OnceLock<WaitMetrics>; 2],
    hold_seconds: Histogram,
    held: Gauge,
    retries: Counter,
    extended: Counter,
    not_extended: Counter,
    endangered: Counter,
    losses: Vec<(LossReason, Counter)>,
    released: Counter,
}

/// The metrics of callers that wait.
#[derive(Clone)]
struct WaitMetrics {
    acquire_seconds: Histogram,
    wait_seconds: Histogram,
    waiters: Gauge,
}

impl WaitMetrics {
    fn new([namespace, lock]: [(&'static str, Arc<str>); 2], keys: &'static str) -> Self {
        let labels = [namespace, lock, ("keys", keys.into())];
        Self {
            acquire_seconds: histogram!("redlock_acquire_duration_seconds", &labels),
            wait_seconds: histogram!("redlock_wait_duration_seconds", &labels),
            waiters: gauge!("redlock_waiters", &labels),
        }
    }
}

/// The metrics that only the leases of an election have.
#[derive(Clone)]
struct Terms {
    leader: Gauge,
    won: Counter,
}

impl LockMeter {
    fn new(namespace: &Arc<str>, class: &str) -> Self {
        let class: Arc<str> = class.into();
        let labels = || {
            [
                ("namespace", Arc::clone(namespace)),
                ("lock", Arc::clone(&class)),
            ]
        };
        let with = |key: &'static str, value: &'static str| {
            let [namespace, lock] = labels();
            [namespace, lock, (key, value.into())]
        };
        let acquire = |result| {
            let count = counter!("redlock_acquire_total", &with("result", result));
            (result, count)
        };
        let loss = |(reason, name)| {
            let count = counter!("redlock_lost_total", &with("reason", name));
            (reason, count)
        };
        let extend = |result| counter!("redlock_extend_total", &with("result", result));
        Self(Arc::new(OfLock {
            labels: labels(),
            terms: None,
            acquires: RESULTS.iter().copied().map(acquire).collect(),
            waiting: [WaitMetrics::new(labels(), "one").into(), OnceLock::new()],
            hold_seconds: histogram!("redlock_hold_duration_seconds", &labels()),
            held: gauge!("redlock_held", &labels()),
            retries: counter!("redlock_acquire_retries_total", &labels()),
            extended: extend("confirmed"),
            not_extended: extend("unconfirmed"),
            endangered: counter!("redlock_endangered_total", &labels()),
            losses: REASONS.into_iter().map(loss).collect(),
            released: counter!("redlock_release_total", &labels()),
        }))
    }

    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self::new(&"none".into(), UNNAMED)
    }

    /// Returns the labels of all of them.
    pub(crate) fn labels(&self) -> [(&'static str, Arc<str>); 2] {
        self.0.labels.clone()
    }

    /// Tells the metrics of callers that wait for one key, or for several; a candidate is none of them, because it waits
    /// for as long as another one leads.
    fn of_waiting(&self, is_several: bool, work: impl FnOnce(&WaitMetrics)) {
        if self.0.terms.is_some() {
            return;
        }
        let new = || WaitMetrics::new(self.labels(), if is_several { "several" } else { "one" });
        tell(|| work(self.0.waiting[usize::from(is_several)].get_or_init(new)));
    }

    pub(crate) fn begins_to_wait(&self, is_several: bool) {
        self.of_waiting(is_several, |waiting| waiting.waiters.increment(1.0));
    }

    pub(crate) fn turn_began(&self, is_several: bool, waited: &Stopwatch) {
        let waited = waited.0.elapsed();
        self.of_waiting(is_several, |waiting| waiting.wait_seconds.record(waited));
    }

    pub(crate) fn stops_waiting(&self, is_several: bool) {
        self.of_waiting(is_several, |waiting| waiting.waiters.decrement(1.0));
    }

    /// Counts the end of an acquire that began to wait.
    pub(crate) fn acquire_ended(&self, is_several: bool, result: &'static str, took: &Stopwatch) {
        self.stops_waiting(is_several);
        let took = took.0.elapsed();
        self.of_waiting(is_several, |waiting| waiting.acquire_seconds.record(took));
        let mut acquires = self.0.acquires.iter();
        if let Some((_, count)) = acquires.find(|(of, _)| *of == result) {
            tell(|| count.increment(1));
        }
    }

    /// Counts a retry of an acquire.
    pub(crate) fn retries(&self) {
        tell(|| self.0.retries.increment(1));
    }

    pub(crate) fn lease_began(&self) {
        tell(|| self.0.held.increment(1.0));
        if let Some(terms) = &self.0.terms {
            tell(|| terms.leader.increment(1.0));
            tell(|| terms.won.increment(1));
        }
    }

    /// Counts the end of a lease.
    pub(crate) fn ended(&self, why: LossReason, held: &Stopwatch) {
        tell(|| self.0.held.decrement(1.0));
        if let Some(terms) = &self.0.terms {
            tell(|| terms.leader.decrement(1.0));
        }
        tell(|| self.0.hold_seconds.record(held.0.elapsed()));
        let mut losses = self.0.losses.iter();
        let lost = losses.find(|(reason, _)| *reason == why);
        let count = lost.map_or(&self.0.released, |(_, count)| count);
        tell(|| count.increment(1));
    }

    pub(crate) fn extended(&self, is_confirmed: bool) {
        let count = if is_confirmed {
            &self.0.extended
        } else {
            &self.0.not_extended
        };
        tell(|| count.increment(1));
    }

    pub(crate) fn endangered(&self) {
        tell(|| self.0.endangered.increment(1));
    }
}

impl fmt::Debug for LockMeter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LockMeter(..)")
    }
}

/// The metrics of one node.
#[derive(Clone)]
pub(crate) struct NodeMeter {
    answers: Counter,
    failures: Counter,
    seconds: Histogram,
}

impl NodeMeter {
    pub(crate) const IS_ON: bool = true;

    fn new(namespace: &Arc<str>, node: &Arc<str>) -> Self {
        let labels = [
            ("namespace", Arc::clone(namespace)),
            ("node", Arc::clone(node)),
        ];
        let requests = |result: &'static str| {
            let [namespace, node] = labels.clone();
            let labels = [namespace, node, ("result", result.into())];
            counter!("redlock_node_requests_total", &labels)
        };
        Self {
            answers: requests("ok"),
            failures: requests("error"),
            seconds: histogram!("redlock_node_request_duration_seconds", &labels),
        }
    }

    pub(crate) fn answered(&self, is_answer: bool, took: &Stopwatch) {
        let count = if is_answer {
            &self.answers
        } else {
            &self.failures
        };
        tell(|| count.increment(1));
        tell(|| self.seconds.record(took.0.elapsed()));
    }
}

impl fmt::Debug for NodeMeter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NodeMeter(..)")
    }
}

/// Real time, for what people look at; nothing is decided by it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "no deadline rests on it")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }
}

/// What an acquire can come to.
const RESULTS: &[&str] = &[
    "acquired",
    "contended",
    "no_quorum",
    "quarantined",
    "expired",
    "overloaded",
    "deadlock",
    "other_slots",
    "closed",
    "refused",
    "abandoned",
];

const REASONS: [(LossReason, &str); 4] = [
    (LossReason::Expired, "expired"),
    (LossReason::Revoked, "revoked"),
    (LossReason::ClockJump, "clock_jump"),
    (LossReason::MaxHold, "max_hold"),
];

/// The class of locks that have none.
const UNNAMED: &str = "unnamed";
/// The class of all locks beyond [`MOST_CLASSES`], so that classes that are made of keys have a bounded cost.
const OTHER: &str = "other";
const MOST_CLASSES: usize = 256;

/// How often metrics say how nodes stand, at most.
const LOOK_EVERY: Duration = Duration::from_secs(1);
