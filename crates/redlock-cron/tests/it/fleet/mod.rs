//! Replicas in virtual time over nodes in memory, with skewed clocks, crashes and outages.

mod attempts;
mod backfills;
mod clocks;
mod control;
mod expectation;
mod hooks;
mod logs;
mod missed;
mod on_request;
mod once;
mod open_runs;
mod operators;
mod outcomes;
mod places;
mod policies;
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
use redlock_core::{MemoryNode, Redlock, Tick, Word};
use redlock_cron::{
    BoxError, ControlError, JobClock, JobMemory, JobStatus, Outcome, Run, ShutdownReport,
    SingletonJob, SingletonScheduler, SingletonSchedulerBuilder, TickReport,
};
use tokio::{
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    task::JoinSet,
    time::{Instant, sleep, sleep_until, timeout},
};

/// Three nodes, and a true time that all skews are relative to.
struct Fleet {
    nodes: Vec<MemoryNode>,
    origin: Instant,
    members: AtomicUsize,
}

/// A replica, of which most have one job.
struct Member {
    nodes: Vec<MemoryNode>,
    origin: Instant,
    /// By how much its clock is ahead of the nodes', in milliseconds.
    skew: i64,
    redlock: Redlock,
    jobs: SingletonScheduler,
    name: String,
    /// Those that wait for runs on request.
    requests: Mutex<JoinSet<()>>,
    reports: UnboundedReceiver<TickReport>,
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
        let builder = Redlock::builder().nodes(nodes).virtual_time();
        builder.build().await.unwrap()
    }

    /// Returns what the nodes remember of the job.
    async fn memory(&self) -> JobMemory {
        let client = self.client().await;
        let memory = redlock_cron::inspect(&client, "tests", "job")
            .await
            .unwrap();
        client.close().await;
        assert!(memory.is_known());
        memory
    }

    /// Returns the true time.
    fn now(&self) -> DateTime<Utc> {
        tick(0) + TimeDelta::from_std(self.origin.elapsed()).unwrap()
    }

    /// Sets the clocks of all nodes to the true time and `seconds`.
    fn set_clocks(&self, seconds: i64) {
        let time = self.now() + TimeDelta::seconds(seconds);
        self.nodes
            .iter()
            .for_each(|node| node.set_clock(time.into()));
    }

    /// Returns a replica whose clock is `skew` milliseconds ahead.
    async fn scheduler(
        &self,
        skew: i64,
        settings: impl FnOnce(SingletonSchedulerBuilder) -> SingletonSchedulerBuilder,
    ) -> Member {
        let (tell, reports) = unbounded_channel();
        let name = format!("member-{}", self.members.fetch_add(1, Ordering::Relaxed));
        let redlock = self.client().await;
        let builder = SingletonScheduler::standalone(redlock.clone());
        let builder = builder
            .namespace("tests")
            .replica(&*name)
            .clock(&JobClock::starting_at(
                self.now() + TimeDelta::milliseconds(skew),
            ))
            .on_outcome(move |report| drop(tell.send(report.clone())));
        Member {
            nodes: self.nodes.clone(),
            origin: self.origin,
            skew,
            redlock,
            jobs: settings(builder).build().unwrap(),
            name,
            requests: Mutex::default(),
            reports,
        }
    }

    /// Returns a replica with a job that is not woken up yet, and whose clock is `skew` milliseconds ahead.
    async fn member(&self, skew: i64, job: SingletonJob) -> Member {
        let member = self.scheduler(skew, |builder| builder).await;
        member.put(job).await;
        member
    }

    /// Returns a replica without a job, which was started.
    async fn host(&self) -> Member {
        self.host_with(|builder| builder).await
    }

    /// Returns a replica without a job, on which up to `most` runs may go on at the same time.
    async fn host_of(&self, most: usize) -> Member {
        self.host_with(|builder| builder.max_runs(most)).await
    }

    async fn host_with(
        &self,
        settings: impl FnOnce(SingletonSchedulerBuilder) -> SingletonSchedulerBuilder,
    ) -> Member {
        let host = self.scheduler(0, settings).await;
        host.jobs.start().await.unwrap();
        host
    }

    /// Returns three replicas with this job, which were started.
    async fn hosts(&self, job: impl Fn() -> SingletonJob) -> [Member; 3] {
        let hosts = [self.host().await, self.host().await, self.host().await];
        for host in &hosts {
            host.put(job()).await;
        }
        hosts
    }

    /// Claims the first run of a tick as a replica that does not begin it, and leaves it with this outcome.
    async fn claim_and_leave(&self, tick: DateTime<Utc>, outcome: &str) {
        let client = self.client().await;
        let job = redlock_cron::remembered_under("tests", "job").unwrap();
        let millis = u64::try_from(tick.timestamp_millis()).unwrap();
        let options = redlock_core::ClaimOptions::new("gone");
        let tick = Tick::from_millis(millis).unwrap();
        let redlock_core::ClaimOutcome::Won(claim) =
            client.claim(job, tick, options).await.unwrap()
        else {
            panic!("it was not won");
        };
        let ended = claim.finish(Word::new(outcome).unwrap(), Duration::ZERO);
        ended.await.unwrap();
        client.close().await;
    }

    /// Returns the most locks on any node, after the released ones are gone, which takes a turn of the client.
    async fn keys(&self) -> usize {
        sleep(Duration::from_millis(100)).await;
        self.nodes.iter().map(MemoryNode::keys).max().unwrap_or(0)
    }

    async fn sleep_until(&self, millisecond: u64) {
        sleep_until(self.origin + Duration::from_millis(millisecond)).await;
    }

    async fn until(&self, second: u64) {
        self.sleep_until(second * 1_000).await;
    }
}

impl Member {
    /// Starts the replica when its clock shows `millisecond`, unless it has started: then it only waits.
    async fn wake_at(&self, millisecond: i64) {
        let true_time = TimeDelta::milliseconds(millisecond - self.skew);
        sleep_until(self.origin + true_time.to_std().unwrap()).await;
        self.begin().await;
    }

    /// Starts the replica, if it has not started.
    async fn begin(&self) {
        let _ = self.jobs.start().await;
    }

    /// Adds the job, or replaces it.
    async fn put(&self, job: SingletonJob) {
        self.jobs.replace(job).await.unwrap();
    }

    /// Removes the job, and returns the ticks of its runs that were dropped.
    async fn remove(&self, grace: u64) -> Vec<DateTime<Utc>> {
        let report = self.jobs.remove("job", Duration::from_secs(grace)).await;
        let report = report.unwrap();
        report.unfinished().iter().map(|run| run.tick()).collect()
    }

    /// Shuts the replica down, as at the end of its process.
    async fn shut_down(&self, grace: Duration) -> ShutdownReport {
        self.jobs.shutdown(grace).await
    }

    /// Ends as if its process had been killed.
    async fn crash(self) {
        self.nodes.iter().for_each(MemoryNode::stop);
        drop((self.jobs, self.requests));
        sleep(Duration::from_millis(10)).await;
        self.redlock.close().await;
        self.nodes.iter().for_each(MemoryNode::start);
    }

    async fn trigger(&self) -> TickReport {
        self.jobs.trigger_now("job").await.unwrap()
    }

    /// Asks for a run of the job, which goes on in a task.
    fn request(&self) {
        self.request_of("job");
    }

    fn request_of(&self, job: &'static str) {
        let jobs = self.jobs.clone();
        let request = async move { drop(jobs.trigger_now(job).await) };
        self.requests.lock().unwrap().spawn(request);
    }

    async fn status(&self) -> JobStatus {
        self.jobs.status("job").await.unwrap()
    }

    async fn set_paused(&self, paused: bool) -> Result<(), ControlError> {
        match paused {
            true => self.jobs.pause("job").await,
            false => self.jobs.resume("job").await,
        }
    }

    /// Returns the reports up to now.
    fn reports(&mut self) -> Vec<TickReport> {
        std::iter::from_fn(|| self.reports.try_recv().ok()).collect()
    }

    /// Returns what became of ticks, up to now.
    fn seen(&mut self) -> Vec<(DateTime<Utc>, Outcome)> {
        let reports = self.reports().into_iter();
        reports
            .map(|report| (report.tick(), report.outcome()))
            .collect()
    }

    /// Returns the ticks that were reported with this outcome, up to now.
    fn ticks(&mut self, outcome: Outcome) -> Vec<DateTime<Utc>> {
        let seen = self.seen().into_iter();
        seen.filter(|(_, of)| *of == outcome)
            .map(|(tick, _)| tick)
            .collect()
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

impl Starts {
    fn list(&self) -> Vec<DateTime<Utc>> {
        self.0.lock().unwrap().clone()
    }

    /// Returns a job that does `work`, and whose starts are listed here.
    fn job<F>(&self, pattern: &str, work: impl Fn(Run) -> F + Send + Sync + 'static) -> SingletonJob
    where
        F: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        self.named("job", pattern, work)
    }

    fn named<F>(
        &self,
        name: &str,
        pattern: &str,
        work: impl Fn(Run) -> F + Send + Sync + 'static,
    ) -> SingletonJob
    where
        F: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        let starts = Arc::clone(&self.0);
        let job = SingletonJob::cron(name, pattern, Tz::UTC, move |run| {
            starts.lock().unwrap().push(run.tick());
            work(run)
        });
        // Tests say when a replica asks for a tick.
        job.spread(Duration::ZERO)
    }

    /// Returns a job of no time, in a zone.
    fn in_zone(&self, pattern: &str, zone: Tz) -> SingletonJob {
        let starts = Arc::clone(&self.0);
        SingletonJob::cron("job", pattern, zone, move |run: Run| {
            starts.lock().unwrap().push(run.tick());
            async { Ok::<_, BoxError>(()) }
        })
    }

    /// Returns a job of five milliseconds.
    fn quick_job(&self, pattern: &str) -> SingletonJob {
        self.job(pattern, |_| async {
            sleep(Duration::from_millis(5)).await;
            Ok(())
        })
    }

    /// Returns a job whose runs take `seconds`.
    fn job_of(&self, pattern: &str, seconds: u64) -> SingletonJob {
        self.job(pattern, move |_| async move {
            sleep(Duration::from_secs(seconds)).await;
            Ok(())
        })
    }
}

/// Due three seconds after the fleet's start, and every five seconds from then on.
const EVERY_FIVE_SECONDS: &str = "*/5 * * * * *";

/// Due three seconds after the fleet's start, and every minute from then on.
const MINUTE: &str = "5 * * * * *";

/// Not due in these tests.
const IN_JULY: &str = "0 0 0 1 7 *";

/// Lets time pass.
async fn pass(seconds: u64) {
    sleep(Duration::from_secs(seconds)).await;
}

/// Returns the instant `second` seconds after the fleet's start.
fn tick(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_002 + second, 0).unwrap()
}
