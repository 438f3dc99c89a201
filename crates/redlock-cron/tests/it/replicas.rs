//! Several replicas on the real tokio-cron-scheduler, in real time.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    time::Duration,
};

use chrono::{DateTime, Datelike, SubsecRound, TimeDelta, Timelike, Utc};
use redlock_core::{MemoryNode, Redlock};
use redlock_cron::{
    Outcome, Run, SingletonJob, SingletonScheduler, TickReport, tokio_cron_scheduler::JobScheduler,
};
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    time::timeout,
};

async fn replica(
    nodes: &[MemoryNode],
    channels: usize,
    reports: UnboundedSender<TickReport>,
) -> SingletonScheduler {
    let redlock = Redlock::builder()
        .nodes(nodes.iter().cloned())
        .build()
        .await
        .unwrap();
    let scheduler = JobScheduler::new_with_channel_size(channels).await.unwrap();
    SingletonScheduler::builder(redlock, scheduler)
        .namespace("tests")
        .on_outcome(move |report| drop(reports.send(report.clone())))
        .build()
        .unwrap()
}

fn nodes() -> Vec<MemoryNode> {
    (0..3).map(|_| MemoryNode::new()).collect()
}

async fn next<T>(receiver: &mut UnboundedReceiver<T>) -> T {
    timeout(Duration::from_secs(30), receiver.recv())
        .await
        .unwrap()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_tick_of_every_second_runs_on_one_of_three_replicas() {
    let nodes = nodes();
    let (tell_start, mut starts) = unbounded_channel();
    let (tell_report, mut reports) = unbounded_channel();
    let mut replicas = Vec::new();
    for _ in 0..3 {
        let jobs = replica(&nodes, 200, tell_report.clone()).await;
        let started = tell_start.clone();
        let job = SingletonJob::cron("job", "* * * * * *", chrono_tz::UTC, move |run: Run| {
            let told = started.send(run.tick());
            async move { told }
        });
        jobs.add(job).await.unwrap();
        jobs.start().await.unwrap();
        replicas.push(jobs);
    }
    let mut outcomes: BTreeMap<DateTime<Utc>, Vec<Outcome>> = BTreeMap::new();
    let finished = |outcomes: &BTreeMap<_, Vec<Outcome>>| {
        outcomes
            .values()
            .filter(|outcomes| outcomes.len() == 3)
            .count()
    };
    while finished(&outcomes) < 4 {
        let report = next(&mut reports).await;
        outcomes
            .entry(report.tick())
            .or_default()
            .push(report.outcome());
    }
    for jobs in &replicas {
        assert!(jobs.shutdown(Duration::from_secs(10)).await.is_clean());
    }
    drop((replicas, tell_start));
    let mut ran = 0;
    for (tick, outcomes) in outcomes.iter().filter(|(_, outcomes)| outcomes.len() == 3) {
        let started = outcomes
            .iter()
            .filter(|outcome| outcome.was_started())
            .count();
        // A machine that stood still for a whole tick comes to the next one only, on every replica.
        if outcomes.iter().all(|outcome| *outcome == Outcome::TooLate) {
            continue;
        }
        assert_eq!(started, 1, "{tick}: {outcomes:?}");
        assert!(outcomes.contains(&Outcome::Ok), "{tick}: {outcomes:?}");
        ran += 1;
    }
    assert!(ran > 0, "{outcomes:?}");
    let mut seen = BTreeSet::new();
    while let Some(tick) = next_start(&mut starts) {
        assert!(seen.insert(tick), "{tick} ran twice");
    }
}

fn next_start(starts: &mut UnboundedReceiver<DateTime<Utc>>) -> Option<DateTime<Utc>> {
    starts.try_recv().ok()
}

/// However few places the scheduler's channels have.
#[tokio::test(flavor = "multi_thread")]
async fn all_of_many_jobs_due_in_one_second_run() {
    const JOBS: usize = 200;
    let (tell_report, mut reports) = unbounded_channel();
    let jobs = replica(&nodes(), 2, tell_report).await;
    let tick = (Utc::now() + TimeDelta::seconds(8)).trunc_subsecs(0);
    let pattern = format!(
        "{} {} {} {} {} *",
        tick.second(),
        tick.minute(),
        tick.hour(),
        tick.day(),
        tick.month()
    );
    for index in 0..JOBS {
        let job = SingletonJob::cron(
            format!("job-{index}"),
            pattern.as_str(),
            chrono_tz::UTC,
            |_| async { Ok::<_, Infallible>(()) },
        );
        jobs.add(job).await.unwrap();
    }
    assert!(Utc::now() < tick, "the jobs were added too slowly");
    jobs.start().await.unwrap();
    let mut ran = BTreeSet::new();
    while ran.len() < JOBS {
        let report = next(&mut reports).await;
        assert_eq!(
            (report.tick(), report.outcome()),
            (tick, Outcome::Ok),
            "{report:?}"
        );
        assert!(ran.insert(report.job().to_owned()), "{report:?}");
    }
    assert!(jobs.shutdown(Duration::ZERO).await.is_clean());
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_the_scheduler_drops_its_runs_and_frees_the_job() {
    let nodes = nodes();
    let (tell_report, mut reports) = unbounded_channel();
    let (tell_start, mut starts) = unbounded_channel();
    let jobs = replica(&nodes, 200, tell_report).await;
    let job = SingletonJob::cron("job", "* * * * * *", chrono_tz::UTC, move |run: Run| {
        let told = tell_start.send(run.tick());
        async move {
            told?;
            std::future::pending::<()>().await;
            Ok::<_, redlock_cron::BoxError>(())
        }
    });
    jobs.add(job).await.unwrap();
    jobs.start().await.unwrap();
    let tick = next(&mut starts).await;
    drop(jobs);
    let outcome = timeout(Duration::from_secs(30), async {
        loop {
            let report = next(&mut reports).await;
            if report.tick() == tick {
                break report.outcome();
            }
        }
    });
    assert_eq!(outcome.await.unwrap(), Outcome::Aborted);
    // The other end closes when nothing of the job is left.
    assert_eq!(
        timeout(Duration::from_secs(30), starts.recv())
            .await
            .unwrap(),
        None
    );
}
