//! `jobs` tells what is remembered of a job that another process runs.

use std::time::Duration;

use redlock_cron::{
    BoxError, Run, SingletonJob, SingletonScheduler, tokio_cron_scheduler::JobScheduler,
};
use serde_json::Value;

use crate::kit::Nodes;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_and_pauses_are_told_without_running_the_job() {
    let nodes = Nodes::blessed(3).await;
    let job = |arguments: &[&str]| {
        let done = nodes.run(&[&["jobs", "billing/close-day"], arguments].concat());
        (done.code, done.out)
    };
    assert_eq!(job(&[]).0, 1, "nothing is remembered yet");
    let scheduler = JobScheduler::new().await.unwrap();
    let builder = SingletonScheduler::builder(nodes.client().await, scheduler);
    let jobs = builder.namespace("billing").build().unwrap();
    let second = Duration::from_secs(1);
    jobs.add(SingletonJob::every("close-day", second, |_: Run| async {
        Ok::<(), BoxError>(())
    }))
    .await
    .unwrap();
    jobs.start().await.unwrap();
    let runs = loop {
        let (_, out) = job(&["--json"]);
        let json: Value = serde_json::from_str(&out).unwrap();
        let runs = json["runs"].as_array().unwrap().clone();
        if runs.iter().any(|run| run["outcome"] == "ok") {
            assert_eq!(json["paused"], false);
            break runs;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    assert!(
        runs.iter()
            .all(|run| run["attempt"] == 1 && run["by_hand"] == false)
    );
    jobs.pause("close-day").await.unwrap();
    let (code, out) = job(&[]);
    assert_eq!(code, 0);
    assert!(
        out.starts_with("paused; ") && out.contains(": ok after"),
        "{out}"
    );
    jobs.resume("close-day").await.unwrap();
    assert!(job(&[]).1.starts_with("not paused; "));
    drop(jobs.shutdown(Duration::from_secs(5)).await);
    assert_eq!(nodes.run(&["jobs", "close-day"]).code, 2);
    assert_eq!(nodes.run(&["jobs", "/close-day"]).code, 2);
}

#[tokio::test]
async fn without_a_majority_nothing_is_said_of_a_job() {
    let mut nodes = Nodes::blessed(3).await;
    nodes[0].kill().unwrap();
    nodes[1].kill().unwrap();
    let done = nodes.run(&["jobs", "billing/close-day"]);
    assert_eq!(done.code, 3, "{done:?}");
    assert!(done.err.contains("refused"), "{done:?}");
}
