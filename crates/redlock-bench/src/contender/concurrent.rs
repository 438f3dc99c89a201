//! Clients with tasks, on tokio's runtime of several threads as services have it.

use std::{
    process,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    runtime::Runtime,
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{
    Client, Outcome, TTL, Workload, hot,
    locks::Locks,
    sample::{Sample, Times},
};
use crate::{failed::Result, meter};

/// A client and the runtime that it is used from.
pub(super) struct Concurrent<L: Locks> {
    runtime: Runtime,
    locks: L,
    /// What it was told to keep.
    kept: Vec<L::Held>,
    /// How many tasks there were, for names that were not used before.
    tasks: u64,
}

impl<L: Locks> Concurrent<L> {
    pub(super) fn start(connect: impl Future<Output = Result<L>>) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?;
        let locks = runtime.block_on(connect)?;
        Ok(Self {
            runtime,
            locks,
            kept: Vec::new(),
            tasks: 0,
        })
    }

    /// Returns the beginning of the names of one task's keys.
    fn prefix(&mut self) -> String {
        self.tasks += 1;
        format!("bench:{}:{}", process::id(), self.tasks)
    }

    fn pairs(&mut self, tasks: usize, length: Duration) -> Result<Outcome> {
        let prefixes: Vec<_> = (0..tasks).map(|_| self.prefix()).collect();
        let locks = &self.locks;
        self.runtime.block_on(async {
            let sample = Sample::start();
            let until = meter::now() + length;
            let mut set = JoinSet::new();
            for prefix in prefixes {
                set.spawn(pairs(locks.clone(), prefix, until));
            }
            let mut times = Times::default();
            while let Some(task) = set.join_next().await {
                times.append(task?);
            }
            Ok(sample.end(times))
        })
    }

    /// Makes pairs without a look at how long each takes, whose memory would grow with their number.
    fn keys(&mut self, tasks: usize, count: u64) -> Result<Outcome> {
        let (keys, locks) = (self.new_keys(count), &self.locks);
        self.runtime.block_on(async {
            let sample = Sample::start();
            let mut set = JoinSet::new();
            for _ in 0..tasks {
                let (keys, locks) = (keys.clone(), locks.clone());
                set.spawn(async move {
                    let (mut done, mut failed) = (0, 0);
                    while let Some(key) = keys.next() {
                        let held = locks.acquire(&key, TTL).await;
                        let released = match held {
                            Some(held) => locks.release(held).await,
                            None => false,
                        };
                        if released { done += 1 } else { failed += 1 }
                    }
                    (done, failed)
                });
            }
            let (mut done, mut failed) = (0, 0);
            while let Some(task) = set.join_next().await {
                let task = task?;
                (done, failed) = (done + task.0, failed + task.1);
            }
            Ok(sample.end_of(done, failed))
        })
    }

    fn hold(&mut self, keys: &Keys, tasks: usize, ttl: Duration) -> Result<Outcome> {
        let count = keys.left.load(Ordering::Relaxed);
        let (locks, kept) = (&self.locks, &mut self.kept);
        self.runtime.block_on(async {
            let sample = Sample::start();
            let mut set = JoinSet::new();
            for _ in 0..tasks {
                let (keys, locks) = (keys.clone(), locks.clone());
                set.spawn(async move {
                    let mut all = Vec::new();
                    while let Some(key) = keys.next() {
                        all.extend(locks.acquire(&key, ttl).await);
                    }
                    all
                });
            }
            kept.reserve_exact(usize::try_from(count)?);
            let before = kept.len();
            while let Some(task) = set.join_next().await {
                kept.append(&mut task?);
            }
            let done = (kept.len() - before) as u64;
            Ok(sample.end_of(done, count - done))
        })
    }

    fn wait(&self, keys: &Keys, length: Duration) -> Result<Outcome> {
        let locks = &self.locks;
        self.runtime.block_on(async {
            let mut set = JoinSet::new();
            while let Some(key) = keys.next() {
                let locks = locks.clone();
                set.spawn(async move { timeout(length, locks.acquire(&key, TTL)).await.is_ok() });
            }
            sleep(length / 2).await;
            let sample = Sample::start();
            sleep(length / 4).await;
            let mut outcome = sample.end_of(0, 0);
            while let Some(task) = set.join_next().await {
                outcome.failed += u64::from(task?);
            }
            Ok(outcome)
        })
    }

    fn rest(&mut self, length: Duration) -> Outcome {
        let sample = Sample::start();
        self.runtime.block_on(async { sleep(length).await });
        let held = self.kept.iter().filter(|held| L::is_held(held)).count();
        sample.end_of(held as u64, (self.kept.len() - held) as u64)
    }

    fn new_keys(&mut self, count: u64) -> Keys {
        Keys::new(&self.prefix(), count)
    }
}

/// Names that several tasks take from.
#[derive(Clone, Debug)]
struct Keys {
    prefix: Arc<str>,
    left: Arc<AtomicU64>,
}

impl Keys {
    fn new(prefix: &str, count: u64) -> Self {
        Self {
            prefix: prefix.into(),
            left: Arc::new(AtomicU64::new(count)),
        }
    }

    fn next(&self) -> Option<String> {
        let next = |left: u64| left.checked_sub(1);
        let relaxed = Ordering::Relaxed;
        let number = self.left.fetch_update(relaxed, relaxed, next).ok()?;
        Some(format!("{}:{number}", self.prefix))
    }
}

impl<L: Locks> Client for Concurrent<L> {
    fn run(&mut self, workload: &Workload) -> Result<Outcome> {
        match *workload {
            Workload::Pairs { tasks, length } => self.pairs(tasks, length),
            Workload::Keys { tasks, count } => self.keys(tasks, count),
            Workload::HotKey {
                ref key,
                waiters,
                hold,
                length,
            } => {
                let run = hot::run(&self.locks, key, waiters, hold, length);
                self.runtime.block_on(run)
            }
            Workload::Hold {
                ref key,
                tasks,
                count,
                ttl,
            } => self.hold(&Keys::new(key, count), tasks, ttl),
            Workload::Wait {
                ref key,
                count,
                length,
            } => self.wait(&Keys::new(key, count), length),
            Workload::Rest { length } => Ok(self.rest(length)),
        }
    }
}

/// Acquires and releases one key after the other.
async fn pairs<L: Locks>(locks: L, prefix: String, until: Instant) -> Times {
    let mut times = Times::default();
    for number in 0_u64.. {
        let key = format!("{prefix}:{number}");
        let started = meter::now();
        if started >= until {
            break;
        }
        let Some(held) = locks.acquire(&key, TTL).await else {
            times.fail();
            continue;
        };
        let acquired = meter::now();
        if locks.release(held).await {
            times.add(started, acquired, meter::now());
        } else {
            times.fail();
        }
    }
    times
}
