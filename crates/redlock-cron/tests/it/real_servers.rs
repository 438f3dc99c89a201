//! Replicas over real masters, in real time.

#![cfg(unix)]

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use chrono::{DateTime, Utc};
use redlock_core::Redlock;
use redlock_cron::{
    BoxError, Delivery, Outcome, Overlap, Run, SingletonJob, SingletonScheduler, TickReport,
    tokio_cron_scheduler::JobScheduler,
};
use redlock_sandbox::{ServerBinary, ServerOptions, ServerSet};
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    time::{Instant, timeout},
};

/// Masters that have just started do not vote for as long as this.
const MAX_TTL: Duration = Duration::from_secs(2);
const SOON: Duration = Duration::from_secs(60);

type Reports = UnboundedReceiver<(usize, TickReport)>;

fn masters() -> ServerSet {
    let binary = ServerBinary::find().unwrap();
    ServerSet::start(&binary, 3, &ServerOptions::default()).unwrap()
}

/// Makes `count` replicas, each with a client of its own.
async fn replicas(masters: &ServerSet, count: usize) -> (Vec<SingletonScheduler>, Reports) {
    let (tell, told) = unbounded_channel();
    let mut replicas = Vec::new();
    for number in 0..count {
        replicas.push(replica(masters, number, tell.clone()).await);
    }
    (replicas, told)
}

async fn replica(
    masters: &ServerSet,
    number: usize,
    tell: UnboundedSender<(usize, TickReport)>,
) -> SingletonScheduler {
    let redlock = Redlock::builder()
        .nodes(masters.urls())
        .ttl(MAX_TTL / 2)
        .max_ttl(MAX_TTL)
        .build()
        .await
        .unwrap();
    // A client that has just met new masters waits for their quarantine.
    let until = Instant::now() + SOON;
    while redlock
        .try_acquire(format!("ready-{number}"))
        .await
        .is_err()
    {
        assert!(Instant::now() < until, "the masters do not vote");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let scheduler = JobScheduler::new().await.unwrap();
    SingletonScheduler::builder(redlock, scheduler)
        .namespace("tests")
        .replica(format!("replica-{number}"))
        .on_outcome(move |report| drop(tell.send((number, report.clone()))))
        .build()
        .unwrap()
}

async fn next(reports: &mut Reports) -> (usize, TickReport) {
    timeout(SOON, reports.recv())
        .await
        .expect("no report")
        .unwrap()
}

/// Waits until `ticks` ticks have run, and returns how often each did.
async fn ran(reports: &mut Reports, ticks: usize) -> BTreeMap<DateTime<Utc>, usize> {
    let mut ran = BTreeMap::new();
    while ran.len() < ticks {
        let (_, report) = next(reports).await;
        if report.outcome().was_started() {
            *ran.entry(report.tick()).or_default() += 1;
        }
    }
    ran
}

fn every_second(work: Duration) -> SingletonJob {
    let work = move |_: Run| async move {
        tokio::time::sleep(work).await;
        Ok::<_, BoxError>(())
    };
    SingletonJob::every("job", Duration::from_secs(1), work)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_tick_runs_once_also_while_a_master_is_down_and_none_without_a_majority() {
    let mut masters = masters();
    let (replicas, mut reports) = replicas(&masters, 3).await;
    for jobs in &replicas {
        jobs.add(every_second(Duration::from_millis(5)))
            .await
            .unwrap();
        jobs.start().await.unwrap();
    }
    let mut seen = ran(&mut reports, 3).await;
    masters.iter_mut().next().unwrap().kill().unwrap();
    seen.extend(ran(&mut reports, 4).await);
    masters.iter_mut().nth(1).unwrap().kill().unwrap();
    let mut without = 0;
    while without < 3 {
        let (_, report) = next(&mut reports).await;
        if report.outcome().was_started() {
            *seen.entry(report.tick()).or_default() += 1;
        }
        without += usize::from(report.outcome() == Outcome::NoQuorum);
    }
    for master in masters.iter_mut().take(2) {
        master.restart().unwrap();
    }
    // Both have forgotten what was claimed.
    for (tick, times) in ran(&mut reports, 3).await {
        *seen.entry(tick).or_default() += times;
    }
    for jobs in &replicas {
        assert!(jobs.shutdown(Duration::from_secs(5)).await.is_clean());
    }
    while let Ok((_, report)) = reports.try_recv() {
        if report.outcome().was_started() {
            *seen.entry(report.tick()).or_default() += 1;
        }
    }
    assert!(seen.values().all(|times| *times == 1), "{seen:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_a_shutdown_cuts_short_is_started_again_elsewhere() {
    let masters = masters();
    let (replicas, mut reports) = replicas(&masters, 2).await;
    let (tell, mut told) = unbounded_channel();
    for (number, jobs) in replicas.iter().enumerate() {
        let tell = tell.clone();
        let work = move |run: Run| {
            tell.send((number, run.tick(), run.attempt(), run.fencing_token()))
                .unwrap();
            async move {
                if run.attempt() == 1 {
                    std::future::pending::<()>().await;
                }
                Ok::<_, BoxError>(())
            }
        };
        let job = SingletonJob::every("job", Duration::from_secs(20), work)
            .delivery(Delivery::AtLeastOnce { max_attempts: 2 })
            .start_within(Duration::from_secs(19));
        jobs.add(job).await.unwrap();
        jobs.start().await.unwrap();
    }
    let (first, tick, _, token) = timeout(SOON, told.recv()).await.unwrap().unwrap();
    let report = replicas[first].shutdown(Duration::ZERO).await;
    assert_eq!(report.unfinished().len(), 1, "{report:?}");
    let (second, again, attempt, newer) = timeout(SOON, told.recv()).await.unwrap().unwrap();
    assert_ne!(first, second);
    assert_eq!((again, attempt), (tick, 2));
    assert!(newer > token);
    while next(&mut reports).await.1.outcome() != Outcome::Ok {}
    // A report comes before the nodes have recorded the end of its run.
    let expected = [(2, "ok".to_owned()), (1, "aborted".to_owned())];
    let recorded = async {
        loop {
            let status = replicas[second].status("job").await.unwrap();
            let runs = status.runs().iter();
            let runs: Vec<_> = runs
                .map(|run| (run.attempt(), run.outcome().unwrap_or("none").to_owned()))
                .collect();
            if runs[..2] == expected {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(SOON, recorded)
        .await
        .expect("the end of both is recorded");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tick_cancels_the_run_before_it_and_a_pause_holds_everywhere() {
    let masters = masters();
    let (replicas, mut reports) = replicas(&masters, 2).await;
    for jobs in &replicas {
        let work = |_: Run| std::future::pending::<Result<(), BoxError>>();
        let job =
            SingletonJob::every("job", Duration::from_secs(6), work).overlap(Overlap::CancelOther);
        jobs.add(job).await.unwrap();
        jobs.start().await.unwrap();
    }
    while next(&mut reports).await.1.outcome() != Outcome::Cancelled {}
    replicas[0].pause("job").await.unwrap();
    while next(&mut reports).await.1.outcome() != Outcome::Paused {}
    let status = replicas[1].status("job").await.unwrap();
    assert_eq!(status.is_paused(), Some(true));
    assert_eq!(status.nodes().len(), 3);
    replicas[1].resume("job").await.unwrap();
    while next(&mut reports).await.1.outcome() != Outcome::Cancelled {}
    for jobs in &replicas {
        let _ = jobs.shutdown(Duration::ZERO).await;
    }
}

/// Which replica did which version of the job for which tick, in the order of their starts.
type Starts = Arc<Mutex<Vec<(usize, u32, DateTime<Utc>)>>>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_are_replaced_and_removed_while_the_ticks_go_on() {
    let masters = masters();
    let (replicas, _reports) = replicas(&masters, 2).await;
    let starts = Starts::default();
    let job = |replica: usize, version: u32| {
        let starts = Arc::clone(&starts);
        SingletonJob::every("job", Duration::from_secs(1), move |run: Run| {
            let mut starts = starts.lock().unwrap();
            starts.push((replica, version, run.tick()));
            async { Ok::<_, BoxError>(()) }
        })
    };
    let count = || starts.lock().unwrap().len();
    let wait_for = async |more: usize| {
        let (until, enough) = (Instant::now() + SOON, count() + more);
        while count() < enough {
            assert!(Instant::now() < until, "no tick is started");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        enough
    };
    for (number, jobs) in replicas.iter().enumerate() {
        jobs.add(job(number, 1)).await.unwrap();
        jobs.start().await.unwrap();
    }
    wait_for(3).await;
    for (number, jobs) in replicas.iter().enumerate() {
        jobs.replace(job(number, 2)).await.unwrap();
    }
    let replaced = count();
    wait_for(4).await;
    let grace = Duration::from_secs(10);
    assert!(replicas[0].remove("job", grace).await.unwrap().is_clean());
    let removed = count();
    wait_for(3).await;
    assert!(replicas[1].remove("job", grace).await.unwrap().is_clean());
    let ended = count();
    tokio::time::sleep(Duration::from_secs(3)).await;

    let starts = starts.lock().unwrap();
    assert_eq!(starts.len(), ended, "a job that was removed is started");
    let mut ticks: Vec<_> = starts.iter().map(|(.., tick)| *tick).collect();
    ticks.dedup();
    assert!(
        ticks.is_sorted() && ticks.len() == starts.len(),
        "{starts:?}"
    );
    assert!(
        starts[replaced..]
            .iter()
            .all(|(_, version, _)| *version == 2)
    );
    assert!(starts[removed..].iter().all(|(replica, ..)| *replica == 1));
}
