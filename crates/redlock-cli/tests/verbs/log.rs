//! `log`: what operators did, whatever verb they used.

use std::time::Duration;

use redlock_cron::{BoxError, SingletonJob, SingletonScheduler};

use crate::kit::Nodes;

#[tokio::test(flavor = "multi_thread")]
async fn each_action_is_in_the_log_with_its_operator_and_reason() {
    let nodes = Nodes::start(3);
    let operator = ["--by", "alice", "--reason", "the ledger moves"];
    let run = |words: &[&str]| nodes.run(&[words, &operator[..]].concat());
    run(&["bless", "--yes"]).ended(0);
    let held = nodes.client().await.acquire("order:7").await.unwrap();
    run(&["release", "order:7", "--force"]).ended(0);
    drop(held);
    let client = nodes.client().await;
    let jobs = SingletonScheduler::standalone(client.clone()).namespace("billing");
    let jobs = jobs.build().unwrap();
    let work = |_| async { Ok::<_, BoxError>(()) };
    let job = SingletonJob::cron("close-day", "0 0 0 1 1 *", "UTC", work);
    jobs.add(job).await.unwrap();
    jobs.start().await.unwrap();
    jobs.trigger_now("close-day").await.unwrap();
    redlock_cron::pause(&client, "billing", "close-day")
        .await
        .unwrap();
    for verb in ["resume", "pause", "stop", "cancel", "trigger"] {
        run(&["jobs", verb, "billing/close-day"]).ended(0);
    }
    let range = [
        "--from",
        "2026-01-01T00:00:00Z",
        "--to",
        "2026-01-02T00:00:00Z",
    ];
    run(&[&["jobs", "backfill", "billing/close-day"], &range[..]].concat()).ended(0);
    drop(jobs.shutdown(Duration::from_secs(5)).await);
    run(&["jobs", "forget", "billing/close-day", "--yes"]).ended(0);

    let logged = nodes.run(&["log"]).ended(0);
    // Long lines are broken.
    let text: Vec<&str> = logged.out.split_whitespace().collect();
    let (by, job) = ("by alice: the ledger moves", "billing/close-day");
    let first = text.join(" ");
    for line in [
        format!("release order:7 {by}"),
        format!("backfill {job} 2026-01-01T00:00:00Z/2026-01-02T00:00:00Z {by}"),
    ] {
        assert!(first.contains(&format!("Z {line}")), "{line}: {first}");
    }
    let json = nodes.run(&["log", "--json"]).out;
    let json: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
    let verbs = json.iter().rev().map(|action| action["verb"].as_str());
    let expected = [
        "bless", "release", "pause", "resume", "pause", "stop", "cancel", "trigger", "backfill",
        "forget",
    ];
    assert!(verbs.eq(expected.map(Some)), "{json:?}");
    let by = json.iter().filter(|action| action["by"] == "alice");
    // The library was not told the name of one.
    assert_eq!(by.count(), expected.len() - 1);
}

#[tokio::test]
async fn an_empty_log_and_too_few_nodes_are_told_apart() {
    let mut nodes = Nodes::blessed(3).await;
    let empty = nodes.run(&["log"]);
    assert_eq!((empty.code, empty.out.trim()), (1, "nothing is in the log"));
    for node in 0..2 {
        nodes[node].kill().unwrap();
    }
    assert_eq!(nodes.run(&["log"]).code, 3);
}
