//! A scheduler's jobs, as a person sees and handles them.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{convert::Infallible, time::Duration};

use redlock_core::{MemoryNode, Redlock};
use redlock_cron::{
    ControlErrorKind, Outcome, Run, SingletonJob, SingletonScheduler,
    tokio_cron_scheduler::JobScheduler,
};
use tokio::sync::mpsc::unbounded_channel;

async fn replica(nodes: &[MemoryNode], name: &str) -> SingletonScheduler {
    let redlock = Redlock::builder().nodes(nodes.iter().cloned());
    let redlock = redlock.build().await.unwrap();
    let wakes = JobScheduler::new_with_channel_size(64).await.unwrap();
    SingletonScheduler::builder(redlock, wakes)
        .namespace("tests")
        .replica(name)
        .build()
        .unwrap()
}

fn yearly<F>(work: impl Fn(Run) -> F + Send + Sync + 'static) -> SingletonJob
where
    F: Future<Output = Result<(), Infallible>> + Send + 'static,
{
    SingletonJob::cron("job", "0 0 0 1 1 *", chrono_tz::UTC, work)
}

#[tokio::test]
async fn a_job_is_paused_resumed_triggered_and_looked_at_by_its_name() {
    let nodes: Vec<_> = (0..3).map(|_| MemoryNode::new()).collect();
    let (first, second) = (replica(&nodes, "a").await, replica(&nodes, "b").await);
    for jobs in [&first, &second] {
        jobs.add(yearly(|_| async { Ok(()) })).await.unwrap();
    }
    first.pause("job").await.unwrap();
    let status = second.status("job").await.unwrap();
    assert_eq!(status.is_paused(), Some(true));
    let report = second.trigger_now("job").await.unwrap();
    assert_eq!(report.outcome(), Outcome::Ok, "{report:?}");
    second.resume("job").await.unwrap();
    let status = first.status("job").await.unwrap();
    assert_eq!(status.is_paused(), Some(false));
    let last = status.last_run().unwrap();
    assert_eq!((last.replica(), last.outcome()), ("b", Some("ok")));
    for error in [
        first.pause("other").await.err(),
        first.resume("other").await.err(),
        first.trigger_now("other").await.err(),
        first.status("other").await.err(),
    ] {
        let error = error.unwrap();
        assert_eq!(error.kind(), ControlErrorKind::UnknownJob);
        assert_eq!(error.job(), "other");
    }
}

#[tokio::test]
async fn a_run_that_was_asked_for_goes_on_if_nobody_waits_for_it() {
    let nodes: Vec<_> = (0..3).map(|_| MemoryNode::new()).collect();
    let jobs = replica(&nodes, "a").await;
    let (tell, mut told) = unbounded_channel();
    let job = yearly(move |_| {
        let tell = tell.clone();
        async move {
            tell.send("started").unwrap();
            tokio::time::sleep(Duration::from_millis(200)).await;
            tell.send("ended").unwrap();
            Ok(())
        }
    });
    jobs.add(job).await.unwrap();
    tokio::select! {
        _ = jobs.trigger_now("job") => panic!("it takes longer than that"),
        word = told.recv() => assert_eq!(word, Some("started")),
    }
    assert_eq!(told.recv().await, Some("ended"));
    assert!(jobs.shutdown(Duration::from_secs(10)).await.is_clean());
}
