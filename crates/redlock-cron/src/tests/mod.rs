//! Tests that look at one step of a claim or a clock, which no scheduler shows: `tests/it/fleet` has those of whole replicas.

mod claims;
mod clocks;
#[cfg(feature = "tokio-cron-scheduler")]
mod pulse;
mod steps;

#[expect(dead_code, reason = "tests of whole replicas use all of it")]
#[path = "../../tests/it/logged.rs"]
mod logged;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use redlock_core::{MemoryNode, Redlock, Series};
use tokio::time::{Instant, sleep, sleep_until};

use crate::{
    BoxError, Outcome, Run, SingletonJob,
    clock::WallClock,
    record::Reporter,
    replica::{Replica, WonClaim},
    tick::JobRunner,
};

/// Three nodes, and a true time that all skews are relative to.
struct Fleet {
    nodes: Vec<MemoryNode>,
    origin: Instant,
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
        }
    }

    async fn client(&self) -> Redlock {
        let builder = Redlock::builder().nodes(self.nodes.iter().cloned());
        builder.virtual_time().build().await.unwrap()
    }

    fn clock(&self, skew: i64) -> SkewedClock {
        SkewedClock {
            origin: self.origin,
            skew: TimeDelta::milliseconds(skew),
        }
    }

    async fn replica(&self, clock: impl WallClock + 'static) -> Arc<Replica> {
        let (client, observer) = (self.client().await, Reporter::new(None));
        Replica::new(client, "tests", None, observer, Arc::new(clock), None).unwrap()
    }

    /// Returns a replica with a job that nothing wakes up.
    async fn runner(&self, job: SingletonJob) -> Arc<JobRunner> {
        let replica = self.replica(self.clock(0)).await;
        Arc::new(JobRunner::new(&replica, job).unwrap())
    }

    /// Stops two of the nodes for six seconds.
    async fn outage(&self) {
        self.nodes[..2].iter().for_each(MemoryNode::stop);
        sleep(Duration::from_secs(6)).await;
        self.nodes[..2].iter().for_each(MemoryNode::start);
    }

    async fn sleep_until(&self, millisecond: u64) {
        sleep_until(self.origin + Duration::from_millis(millisecond)).await;
    }
}

impl JobRunner {
    /// Claims a run of a tick, which is not started.
    async fn won(&self, series: Series, tick: DateTime<Utc>, attempt: u32) -> WonClaim {
        let ask = crate::replica::ClaimRequest {
            attempt,
            start_within: self.job.settings.retry_within(),
            ..self.job.ask(series, tick, Duration::from_secs(5))
        };
        self.job.replica.claims.claim(ask).await.unwrap()
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
        job.spread(Duration::ZERO)
    }

    fn quick_job(&self, pattern: &str) -> SingletonJob {
        self.job(pattern, |_| async { Ok(()) })
    }
}

/// Due three seconds after the fleet's start, and every five seconds from then on.
const EVERY_FIVE_SECONDS: &str = "*/5 * * * * *";

/// Due three seconds after the fleet's start, and every minute from then on.
const MINUTE: &str = "5 * * * * *";

/// Returns the instant `second` seconds after the fleet's start.
fn tick(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_002 + second, 0).unwrap()
}
