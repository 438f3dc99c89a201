//! The result of a look at a job.

use std::{sync::atomic::Ordering, time::Duration};

use redlock_core::{MemoryNode, NodeConfig, Redlock, ResourceKey};
use redlock_cron::{
    BoxError, Outcome, SingletonJob, SingletonScheduler, tokio_cron_scheduler::JobScheduler,
};
use tokio::time::{Instant, timeout};

use super::{nodes::OddNode, replica, yearly};

#[tokio::test(start_paused = true)]
async fn a_look_at_a_job_costs_one_time_limit_and_says_what_it_did_not_hear() {
    let nodes: Vec<_> = (0..3).map(|_| OddNode::default()).collect();
    let configs = nodes.iter().cloned().map(NodeConfig::other);
    let redlock = Redlock::builder().nodes(configs).virtual_time();
    let redlock = redlock.build().await.unwrap();
    let inspect = || redlock_cron::inspect(&redlock, "tests", "job");
    assert!(inspect().await.unwrap().is_known());
    for node in &nodes {
        node.is_silent.send_replace(true);
    }
    let start = Instant::now();
    let key = ResourceKey::new("job", "other").unwrap();
    assert!(redlock.job_status(key).await.unwrap().state().is_none());
    let one = start.elapsed();
    let start = Instant::now();
    assert!(!inspect().await.unwrap().is_known());
    assert!(
        start.elapsed() <= 2 * one,
        "{:?} for {one:?}",
        start.elapsed()
    );
}

/// The replicas of a service of many jobs hear of a request by one bell, which says of which job it is.
#[tokio::test]
async fn a_request_for_one_of_many_jobs_costs_no_more_than_for_one_of_few() {
    let nodes: Vec<_> = (0..3).map(|_| OddNode::default()).collect();
    let configs = nodes.iter().cloned().map(NodeConfig::other);
    let redlock = Redlock::builder().nodes(configs).build().await.unwrap();
    let scheduler = JobScheduler::new().await.unwrap();
    let builder = SingletonScheduler::builder(redlock.clone(), scheduler);
    let jobs = builder.namespace("tests").build().unwrap();
    for number in 0..300 {
        let work = |_| async { Ok::<_, BoxError>(()) };
        let job = SingletonJob::cron(format!("job-{number}"), "0 0 0 1 1 *", "UTC", work);
        jobs.add(job).await.unwrap();
    }
    jobs.start().await.unwrap();
    let request = async || {
        let moment = redlock_cron::request_run(&redlock, "tests", "job-7").await;
        let moment = moment.unwrap();
        let ran = async || {
            let job = redlock_cron::inspect(&redlock, "tests", "job-7")
                .await
                .unwrap();
            job.requested(moment).and_then(|run| run.took()).is_some()
        };
        while !ran().await {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    };
    for number in 0..300 {
        let name = format!("job-{number}");
        let is_registered = async || {
            let job = redlock_cron::inspect(&redlock, "tests", &name).await;
            job.unwrap().registration().is_some()
        };
        while !is_registered().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    // All is settled after the first.
    timeout(Duration::from_secs(30), request()).await.unwrap();
    let before = nodes[0].asked.load(Ordering::SeqCst);
    timeout(Duration::from_secs(30), request()).await.unwrap();
    let asked = nodes[0].asked.load(Ordering::SeqCst) - before;
    assert!(asked <= 50, "{asked}");
    drop(jobs.shutdown(Duration::from_secs(1)).await);
}

#[tokio::test]
async fn a_status_is_a_page_that_says_how_things_stand() {
    let nodes: Vec<_> = (0..3).map(|_| MemoryNode::new()).collect();
    let jobs = replica(&nodes, "pod-7").await;
    let (go_on, waits) = tokio::sync::watch::channel(false);
    let job = yearly(move |_| {
        let mut waits = waits.clone();
        async move {
            waits
                .wait_for(|end| *end)
                .await
                .map(drop)
                .map_err(|_| unreachable!())
        }
    });
    jobs.add(job).await.unwrap();
    assert_eq!(jobs.jobs().await, ["job"]);
    let page = async || jobs.status("job").await.unwrap().to_string();
    let idle = page().await;
    for line in [
        "idle\n",
        "next tick",
        "none is remembered",
        "this clock",
        ": reachable\n",
    ] {
        assert!(idle.contains(line), "{idle}");
    }
    let run = jobs.trigger_now("job");
    let seen = async {
        let mut seen = page().await;
        while !seen.starts_with("running on pod-7, its lease ends in ") {
            tokio::time::sleep(Duration::from_millis(10)).await;
            seen = page().await;
        }
        go_on.send_replace(true);
        seen
    };
    let limit = Duration::from_secs(20);
    let (run, running) = timeout(limit, async { tokio::join!(run, seen) })
        .await
        .unwrap();
    assert_eq!(run.unwrap().outcome(), Outcome::Ok);
    assert!(
        running.contains("on pod-7, by hand: no end is known"),
        "{running}"
    );
    jobs.pause("job").await.unwrap();
    let paused = page().await;
    assert!(paused.starts_with("paused"), "{paused}");
    assert!(paused.contains("last success  2"), "{paused}");
    nodes[..2].iter().for_each(MemoryNode::stop);
    let unknown = page().await;
    assert!(
        unknown.starts_with("unknown: too few nodes answered\n"),
        "{unknown}"
    );
    assert_eq!(unknown.matches("\n  node ").count(), 3, "{unknown}");
}
