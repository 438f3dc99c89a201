//! Replicas in virtual time: their wake-ups and clocks are put where a test wants them.

mod attempts;
mod backfills;
mod claims;
mod clocks;
mod control;
mod expectation;
mod hooks;
mod host;
mod logs;
mod missed;
mod on_request;
mod once;
mod open_runs;
mod operators;
mod outcomes;
mod places;
mod policies;
mod pulse;
mod registration;
mod removal;
mod requests;
mod requests_of_all;
mod retries;
mod shutdown;
mod skew;
mod tries;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use redlock_core::{MemoryNode, Redlock};
use tokio::{
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    time::{Instant, sleep_until, timeout},
};

use crate::{
    Action, BoxError, ControlError, JobMemory, Outcome, Run, ShutdownReport, SingletonJob,
    TickReport, clock::WallClock, control::Command, record::Observer, replica::Replica,
    tick::JobRunner,
};

/// Three nodes, and a true time that all skews are relative to.
struct Fleet {
    nodes: Vec<MemoryNode>,
    origin: Instant,
    members: AtomicUsize,
}

/// A replica with one job.
struct Member {
    nodes: Vec<MemoryNode>,
    runner: Arc<JobRunner>,
    clock: SkewedClock,
    reports: UnboundedReceiver<TickReport>,
}

/// Virtual time, off by a constant.
#[derive(Clone, Copy)]
struct SkewedClock {
    origin: Instant,
    skew: TimeDelta,
}

/// The ticks that were started, over all replicas.
#[derive(Clone, Default)]
struct Starts(Arc<Mutex<Vec<DateTime<Utc>>>>);

impl Fleet {
    fn new() -> Self {
        let nodes: Vec<_> = (0..3).map(|_| MemoryNode::new()).collect();
        nodes.iter().for_each(|node| node.set_clock(tick(0).into()));
        Self {
            nodes,
            origin: Instant::now(),
            members: AtomicUsize::new(0),
        }
    }

    async fn client(&self) -> Redlock {
        let nodes = self.nodes.iter().cloned();
        Redlock::builder()
            .nodes(nodes)
            .virtual_time()
            .build()
            .await
            .unwrap()
    }

    /// Returns what the nodes remember of the job.
    async fn memory(&self) -> JobMemory {
        let client = self.client().await;
        let memory = crate::inspect(&client, "tests", "job").await.unwrap();
        client.close().await;
        assert!(memory.is_known());
        memory
    }

    fn clock(&self, skew: i64) -> SkewedClock {
        SkewedClock {
            origin: self.origin,
            skew: TimeDelta::milliseconds(skew),
        }
    }

    /// Returns a replica whose clock is `skew` milliseconds ahead.
    async fn member(&self, skew: i64, job: SingletonJob) -> Member {
        let (tell, reports) = unbounded_channel();
        let hook = move |report: &TickReport| drop(tell.send(report.clone()));
        let observer = Observer::new(Some(Box::new(hook)));
        let clock = self.clock(skew);
        let client = self.client().await;
        let name = format!("member-{}", self.members.fetch_add(1, Ordering::Relaxed));
        let clock_of = Arc::new(clock);
        let replica = Replica::new(client, "tests", Some(name), observer, clock_of, None).unwrap();
        let runner = Arc::new(JobRunner::new(&replica, job).unwrap());
        Member {
            nodes: self.nodes.clone(),
            runner,
            clock,
            reports,
        }
    }

    /// Returns the most locks on any node, after the released ones are gone, which takes a turn of the client.
    async fn keys(&self) -> usize {
        tokio::time::sleep(Duration::from_millis(100)).await;
        self.nodes.iter().map(MemoryNode::keys).max().unwrap_or(0)
    }

    async fn sleep_until(&self, millisecond: u64) {
        sleep_until(self.origin + Duration::from_millis(millisecond)).await;
    }
}

impl JobRunner {
    /// Pauses or resumes the job on all replicas.
    async fn set_paused(&self, paused: bool) -> Result<(), ControlError> {
        let command = if paused {
            Command::Pause
        } else {
            Command::Resume
        };
        self.command(command, &Action::default()).await
    }
}

impl Member {
    /// Wakes the job up when this replica's clock shows `millisecond`.
    async fn wake_at(&self, millisecond: i64) {
        let true_time = TimeDelta::milliseconds(millisecond) - self.clock.skew;
        sleep_until(self.clock.origin + true_time.to_std().unwrap()).await;
        self.runner.wake();
    }

    /// Shuts the replica down, as at the end of its process.
    async fn shut_down(&self, grace: Duration) -> ShutdownReport {
        self.runner.job.replica.tasks.shut_down(grace).await
    }

    /// Does what comes before the first wake-up.
    fn begin(&self) {
        let runner = Arc::clone(&self.runner);
        self.runner.job.replica.tasks.spawn(runner.begin());
    }

    /// Returns the ticks that were reported with this outcome, up to now.
    fn ticks(&mut self, outcome: Outcome) -> Vec<DateTime<Utc>> {
        let reports = std::iter::from_fn(|| self.reports.try_recv().ok());
        let such = reports.filter(|report| report.outcome() == outcome);
        such.map(|report| report.tick()).collect()
    }

    /// Returns the next report, of this minute.
    async fn report(&mut self) -> TickReport {
        let report = timeout(Duration::from_secs(60), self.reports.recv());
        report.await.expect("no report").unwrap()
    }

    async fn outcome(&mut self) -> Outcome {
        self.report().await.outcome()
    }
}

impl WallClock for SkewedClock {
    fn now(&self) -> DateTime<Utc> {
        tick(0) + TimeDelta::from_std(self.origin.elapsed()).unwrap() + self.skew
    }
}

impl Starts {
    fn list(&self) -> Vec<DateTime<Utc>> {
        self.0.lock().unwrap().clone()
    }

    /// Returns a job that does `work`, and whose starts are listed here.
    fn job<F>(&self, pattern: &str, work: impl Fn(Run) -> F + Send + Sync + 'static) -> SingletonJob
    where
        F: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        let starts = Arc::clone(&self.0);
        let job = SingletonJob::cron("job", pattern, Tz::UTC, move |run| {
            starts.lock().unwrap().push(run.tick());
            work(run)
        });
        // Tests say when a replica asks for a tick.
        job.spread(Duration::ZERO)
    }

    /// Returns a job of five milliseconds.
    fn quick_job(&self, pattern: &str) -> SingletonJob {
        self.job(pattern, |_| async {
            tokio::time::sleep(Duration::from_millis(5)).await;
            Ok(())
        })
    }
}

/// Due three seconds after the fleet's start, and every five seconds from then on.
const EVERY_FIVE_SECONDS: &str = "*/5 * * * * *";

/// Returns the instant `second` seconds after the fleet's start.
fn tick(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_002 + second, 0).unwrap()
}
