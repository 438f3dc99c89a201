use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use redlock_core::{AcquireErrorKind, AcquireOptions, LockGuard, Mode, Redlock, SlotGuard, Wait};
use serde::{Deserialize, Serialize};
use tokio::{
    select,
    signal::unix::{SignalKind, signal},
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{Connect, Event, HistoryWriter, Moment, Random, now, polled};

/// Acquires, holds for a moment and releases, again and again, from many tasks, until it is asked to end at the latest.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Load {
    /// The file for its history.
    pub history: PathBuf,
    /// The nodes, and the time to live.
    pub connect: Connect,
    /// How many tasks there are.
    pub tasks: usize,
    /// How many resources there are; each acquisition is of one at random.
    pub keys: u64,
    /// How many slots each resource has; it is locked as a whole if there are none.
    pub slots: usize,
    /// How many acquires of a hundred share the resource; of these, one in four tries to have it alone while it goes on, and
    /// of the others, one in four lets others share it.
    pub shared_percent: u64,
    /// How many acquisitions all tasks make together.
    pub acquisitions: i64,
    /// For how long they go on, also if these were made before.
    pub at_least: Duration,
    /// After how long they end even so.
    pub at_most: Duration,
    /// How long an acquire waits.
    pub wait: Duration,
    /// A hold lasts up to this long, at random.
    pub hold: Duration,
    /// A task rests up to this long after each acquire, at random, so that others have their turn.
    pub rest: Duration,
    /// How many acquires of a hundred are dropped at a random point.
    pub cancelled_percent: u64,
}

/// What came of a [`Load`].
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct LoadSummary {
    /// Acquires that won.
    pub acquired: u64,
    /// Acquires that were dropped before they ended.
    pub cancelled: u64,
    /// Leases that were lost before their release.
    pub lost: u64,
    /// Acquires that failed, by kind.
    pub failed: BTreeMap<String, u64>,
    /// Releases that were not confirmed, by kind.
    pub unreleased: BTreeMap<String, u64>,
    /// Acquires that won what others may share.
    pub shared: u64,
    /// Leases that were downgraded.
    pub downgraded: u64,
    /// Leases that were upgraded.
    pub upgraded: u64,
    /// The longest acquire.
    pub slowest: Duration,
    /// The longest acquire of those that wanted a resource alone.
    pub slowest_alone: Duration,
    /// By how much an acquire exceeded its wait at most.
    pub most_over_wait: Duration,
}

impl Load {
    pub(super) async fn run(self) -> LoadSummary {
        let mut asked = signal(SignalKind::terminate()).expect("the process may have a handler");
        let redlock = self.connect.client().await;
        let shared = Arc::new(Shared {
            is_asked_to_end: AtomicBool::new(false),
            history: HistoryWriter::open(&self.history).expect("the history can be opened"),
            left: AtomicI64::new(self.acquisitions),
            leases: AtomicU64::new(0),
            at_least: now() + self.at_least,
            until: now() + self.at_most,
            load: self,
        });
        let mut tasks = JoinSet::new();
        for _ in 0..shared.load.tasks {
            tasks.spawn(Task::new(&shared, &redlock).run());
        }
        let mut summary = LoadSummary::default();
        loop {
            select! {
                _ = asked.recv() => shared.is_asked_to_end.store(true, Ordering::Relaxed),
                task = tasks.join_next() => match task {
                    Some(task) => summary.add(task.expect("a task does not panic")),
                    None => break,
                },
            }
        }
        redlock.close().await;
        summary
    }
}

struct Shared {
    load: Load,
    is_asked_to_end: AtomicBool,
    history: HistoryWriter,
    left: AtomicI64,
    leases: AtomicU64,
    at_least: Duration,
    until: Duration,
}

struct Task {
    shared: Arc<Shared>,
    redlock: Redlock,
    random: Random,
    summary: LoadSummary,
}

impl Task {
    fn new(shared: &Arc<Shared>, redlock: &Redlock) -> Self {
        Self {
            shared: Arc::clone(shared),
            redlock: redlock.clone(),
            random: Random::new(),
            summary: LoadSummary::default(),
        }
    }

    async fn run(mut self) -> LoadSummary {
        while !self.shared.is_asked_to_end.load(Ordering::Relaxed)
            && now() < self.shared.until
            && (self.shared.left.load(Ordering::Relaxed) > 0 || now() < self.shared.at_least)
        {
            self.step().await;
            sleep(self.random.below_duration(self.shared.load.rest)).await;
        }
        self.summary
    }

    async fn step(&mut self) {
        let load = &self.shared.load;
        let key = format!("key-{}", self.random.below(load.keys));
        let options = AcquireOptions::new().wait(Wait::UpTo(load.wait));
        let is_shared = self.random.below(100) < load.shared_percent;
        let options = if is_shared { options.shared() } else { options };
        let redlock = self.redlock.clone();
        let slots = load.slots;
        let acquire = async {
            if slots == 0 {
                return redlock.acquire_with(key, options).await;
            }
            let slots = redlock.slots(key, slots).expect("they are a few");
            let guard = slots.acquire_with(options).await;
            guard.map(SlotGuard::into_guard)
        };
        let started = now();
        let outcome = if self.random.below(100) < load.cancelled_percent {
            cut_short(acquire, &mut self.random).await
        } else {
            Some(acquire.await)
        };
        let took = now().saturating_sub(started);
        let summary = &mut self.summary;
        summary.slowest = summary.slowest.max(took);
        if !is_shared {
            summary.slowest_alone = summary.slowest_alone.max(took);
        }
        let over = took.saturating_sub(load.wait);
        summary.most_over_wait = summary.most_over_wait.max(over);
        match outcome {
            None => summary.cancelled += 1,
            Some(Err(error)) => count(&mut summary.failed, &error.kind()),
            Some(Ok(guard)) => self.hold(guard).await,
        }
    }

    async fn hold(&mut self, mut guard: LockGuard) {
        if self.shared.load.shared_percent > 0 && self.random.below(4) == 0 {
            // In the history, it is another hold from then on.
            self.hold_once(&guard).await;
            self.change_mode(&mut guard).await;
        }
        self.hold_once(&guard).await;
        self.summary.acquired += 1;
        self.summary.shared += u64::from(guard.mode() == Mode::Shared);
        self.shared.left.fetch_sub(1, Ordering::Relaxed);
        // Half are released and awaited, half dropped.
        if self.random.below(2) == 0
            && let Err(error) = guard.release().await
        {
            count(&mut self.summary.unreleased, &error.kind());
        }
    }

    async fn change_mode(&mut self, guard: &mut LockGuard) {
        if guard.mode() == Mode::Exclusive {
            match guard.downgrade().await {
                Ok(()) => self.summary.downgraded += 1,
                Err(error) => count(&mut self.summary.failed, &error.kind()),
            }
            return;
        }
        let token = guard.token();
        let upgraded = if self.random.below(100) < self.shared.load.cancelled_percent {
            cut_short(guard.try_upgrade(), &mut self.random).await
        } else {
            Some(guard.try_upgrade().await)
        };
        match upgraded {
            Some(Ok(())) => {
                assert!(guard.token() > token, "each lease has a token of its own");
                self.summary.upgraded += 1;
            }
            Some(Err(error)) if error.kind() != AcquireErrorKind::Contended => {
                count(&mut self.summary.failed, &error.kind());
            }
            None | Some(Err(_)) => {}
        }
    }

    async fn hold_once(&mut self, guard: &LockGuard) {
        let shared = &self.shared;
        let id = shared.leases.fetch_add(1, Ordering::Relaxed);
        let note = |moment| {
            let event = Event::of(guard.lease(), id, moment);
            shared.history.write(&event);
            event.is_valid()
        };
        note(Moment::Acquired);
        let end = now() + self.random.below_duration(shared.load.hold);
        // The hold of a lease that is lost ends in the history when it was last noted.
        while now() + NOTED_EACH < end {
            sleep(NOTED_EACH).await;
            note(Moment::Polled);
        }
        sleep(end.saturating_sub(now())).await;
        if !note(Moment::Releasing) {
            self.summary.lost += 1;
        }
    }
}

/// Drops `future` after a number of polls or a short while, unless it ends before.
async fn cut_short<F: Future>(future: F, random: &mut Random) -> Option<F::Output> {
    let polls = random.below(6);
    if polls > 3 {
        let limit = random.below_duration(Duration::from_millis(5));
        return timeout(limit, future).await.ok();
    }
    polled(future, polls).await
}

fn count(counts: &mut BTreeMap<String, u64>, kind: &impl std::fmt::Debug) {
    *counts.entry(format!("{kind:?}")).or_default() += 1;
}

impl LoadSummary {
    fn add(&mut self, other: Self) {
        self.acquired += other.acquired;
        self.cancelled += other.cancelled;
        self.lost += other.lost;
        for (kind, count) in other.failed {
            *self.failed.entry(kind).or_default() += count;
        }
        for (kind, count) in other.unreleased {
            *self.unreleased.entry(kind).or_default() += count;
        }
        self.shared += other.shared;
        self.downgraded += other.downgraded;
        self.upgraded += other.upgraded;
        self.slowest = self.slowest.max(other.slowest);
        self.slowest_alone = self.slowest_alone.max(other.slowest_alone);
        self.most_over_wait = self.most_over_wait.max(other.most_over_wait);
    }
}

/// How often a hold is noted while it lasts.
const NOTED_EACH: Duration = Duration::from_millis(100);
