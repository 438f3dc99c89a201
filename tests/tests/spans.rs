//! The spans of an acquire, of a lease and of calls to nodes.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{io, time::Duration};

use redlock_core::{AcquireOptions, Redlock, ResourceKey, Wait};
use redlock_cron::{SingletonJob, SingletonScheduler, tokio_cron_scheduler::JobScheduler};
use redlock_tests::{Logs, Nodes, builder, eventually, voting, within};
use tracing::Instrument;

const TTL: Duration = Duration::from_millis(1_500);
const SOON: Duration = Duration::from_secs(10);
const SECRET: &str = "s3cret-4711";

/// Waits for a line about the end of a span with all of these words.
async fn ends(logs: &Logs, words: &[&str]) -> String {
    let find = || {
        let text = logs.text();
        let mut lines = text.lines().filter(|line| line.contains(": close "));
        let line = lines.find(|line| words.iter().all(|word| line.contains(word)));
        line.map(str::to_owned).ok_or(text)
    };
    eventually(&format!("{words:?}"), SOON, find, Result::is_ok)
        .await
        .unwrap()
}

/// A job's run has a span, and what became of its tick an event.
async fn runs(redlock: &Redlock, logs: &Logs) {
    let scheduler = JobScheduler::new().await.unwrap();
    let scheduler = SingletonScheduler::builder(redlock.clone(), scheduler).namespace("books");
    let scheduler = scheduler.replica("pod-7").build().unwrap();
    let second = Duration::from_secs(1);
    let job = SingletonJob::every("close-day", second, async |_run| Ok::<_, io::Error>(()));
    scheduler.add(job).await.unwrap();
    scheduler.start().await.unwrap();
    ends(
        logs,
        &["redlock.run{", "job=\"close-day\"", "redlock::job: close"],
    )
    .await;
    let client = format!(
        "client={} namespace=\"redlock\" job=\"close-day\"",
        redlock.id()
    );
    let tick = || logs.text().lines().any(|line| line.contains(&client));
    eventually("the tick is told", SOON, tick, |told| *told).await;
    let report = scheduler.shutdown(SOON).await;
    assert!(report.is_clean(), "{report:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acquire_a_lease_and_a_call_have_a_span_each() {
    let logs = Logs::capture_with_spans();
    let nodes = Nodes::start(3);
    let client = async |label: &str| {
        let client = builder(nodes.urls(), TTL).max_ttl(TTL).label(label);
        let client = client.build().await.unwrap();
        voting(&client, 3, SOON).await;
        client
    };
    let (redlock, other) = (client("web:1").await, client("web:2").await);
    let key = || ResourceKey::new("order", SECRET).unwrap();

    let request = tracing::info_span!(target: "test", "request");
    let held = async {
        let guard = redlock.acquire(key()).await.unwrap();
        let refused = other.try_acquire(key()).await.unwrap_err();
        assert!(refused.holder().is_some());
        guard
    };
    let guard = held.instrument(request.clone()).await;
    let token = format!("token={}", guard.token());
    let won = [
        "request:redlock.acquire{",
        "namespace=\"redlock\"",
        "class=\"order\"",
        "result=\"acquired\"",
        "attempts=1",
        &token,
        "INFO",
    ];
    ends(&logs, &won).await;
    let refused = [
        "redlock.acquire{",
        "result=\"contended\"",
        "attempts=1",
        "holder=\"order@web:1\"",
    ];
    ends(&logs, &refused).await;
    let some = AcquireOptions::new().wait(Wait::UpTo(TTL));
    let busy = other.acquire_with(key(), some.class("busy")).await;
    assert!(busy.is_err());
    let line = ends(&logs, &["redlock.acquire{", "class=\"busy\""]).await;
    let (_, attempts) = line.split_once("attempts=").unwrap();
    let attempts: String = attempts.chars().take_while(char::is_ascii_digit).collect();
    assert!(attempts.parse::<u32>().unwrap() > 1, "{line}");
    let address = nodes[0].address();
    let address = format!(
        "server.address=\"{}\" server.port={}",
        address.ip(),
        address.port()
    );
    let call = [
        "redlock.node{",
        "DEBUG",
        "otel.kind=\"client\"",
        "db.system.name=\"redis\"",
        "db.operation.name=\"acquire\"",
        "db.operation.batch.size=1",
        &address,
    ];
    let call = ends(&logs, &call).await;
    assert!(
        !call.contains("request:"),
        "it is none of the caller's: {call}"
    );

    guard.release().await.unwrap();
    let hold = ends(&logs, &["request:redlock.hold{", "class=\"order\"", &token]).await;
    assert!(!hold.contains("lost="), "{hold}");

    runs(&redlock, &logs).await;

    // In whatever way the guard of a lost lease ends.
    for way in ["drop", "release", "leave"] {
        let guard = redlock.acquire(key()).await.unwrap();
        let token = format!("token={}", guard.token());
        nodes.freeze(0..3);
        within("the loss", SOON, guard.lease().lost()).await;
        match way {
            "drop" => drop(guard),
            "release" => drop(guard.release().await.unwrap_err()),
            _ => guard.leave(),
        }
        ends(
            &logs,
            &["redlock.hold{", &token, "lost=\"its deadline passed"],
        )
        .await;
        nodes.thaw(0..3);
        voting(&redlock, 3, SOON).await;
    }
    assert!(!logs.text().contains(SECRET));
}
