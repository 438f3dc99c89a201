use super::*;
use crate::pulse::Jobs;

/// A replica whose jobs come and go.
pub(super) struct Host {
    pub(super) jobs: Jobs,
    pub(super) replica: Arc<Replica>,
    pub(super) clock: SkewedClock,
    reports: UnboundedReceiver<TickReport>,
}

impl Host {
    pub(super) async fn new(fleet: &Fleet) -> Self {
        Self::limited(fleet, None).await
    }

    /// Returns a host on which up to `places` runs may go on at the same time; `None` is no limit.
    pub(super) async fn limited(fleet: &Fleet, places: Option<usize>) -> Self {
        let (tell, reports) = unbounded_channel();
        let hook = move |report: &TickReport| drop(tell.send(report.clone()));
        let observer = Observer::new(Some(Box::new(hook)));
        let clock = fleet.clock(0);
        let client = fleet.client().await;
        let replica =
            Replica::new(client, "tests", None, observer, Arc::new(clock), places).unwrap();
        Self {
            jobs: Jobs::new(Arc::clone(&replica)),
            replica,
            clock,
            reports,
        }
    }

    /// Adds or replaces a job as a scheduler that has started.
    pub(super) fn put(&self, job: SingletonJob) -> Arc<JobRunner> {
        let name = job.name.clone();
        let runner = JobRunner::new(&self.replica, job).unwrap();
        let runner = self.jobs.insert(name, runner);
        runner.wake();
        self.replica.tasks.spawn(Arc::clone(&runner).begin());
        runner
    }

    /// Ends as if its process had been killed.
    pub(super) async fn crash(self, fleet: &Fleet) {
        fleet.nodes.iter().for_each(MemoryNode::stop);
        self.replica.tasks.abandon();
        tokio::time::sleep(Duration::from_millis(10)).await;
        self.replica.claims.redlock.close().await;
        fleet.nodes.iter().for_each(MemoryNode::start);
    }

    pub(super) async fn remove(&self, grace: u64) -> Vec<DateTime<Utc>> {
        let runner = self.jobs.remove("job").expect("it has this job");
        let grace = Duration::from_secs(grace);
        let report = self.replica.tasks.end(&runner.job.ending, grace).await;
        report.unfinished().iter().map(|run| run.tick()).collect()
    }

    /// Wakes jobs up as the alarm does, up to a second.
    pub(super) async fn until(&self, second: i64) {
        while self.clock.now() < tick(second) {
            self.jobs.wake();
            self.jobs.look_at_nodes();
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }

    /// Returns what became of ticks, up to now.
    pub(super) fn seen(&mut self) -> Vec<(DateTime<Utc>, Outcome)> {
        let reports = self.reports().into_iter();
        reports
            .map(|report| (report.tick(), report.outcome()))
            .collect()
    }

    /// Returns the reports up to now.
    pub(super) fn reports(&mut self) -> Vec<TickReport> {
        std::iter::from_fn(|| self.reports.try_recv().ok()).collect()
    }
}

/// Wakes the jobs of all these replicas up, as their alarms do, for this time.
pub(super) async fn pass(hosts: &[&Host], seconds: u64) {
    for _ in 0..2 * seconds {
        for host in hosts {
            host.jobs.wake();
            host.jobs.look_at_nodes();
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Returns three replicas with this job.
pub(super) async fn hosts(fleet: &Fleet, job: impl Fn() -> SingletonJob) -> [Host; 3] {
    let hosts = [
        Host::new(fleet).await,
        Host::new(fleet).await,
        Host::new(fleet).await,
    ];
    for host in &hosts {
        host.put(job());
    }
    hosts
}
