//! What the log says while nodes go and come back: each change once, with its cause, under a target that stays.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::time::Duration;

use redlock_core::{LossReason, Redlock, ResourceKey};
use redlock_tests::{Logs, Nodes, builder, eventually, voting, within};

const TTL: Duration = Duration::from_millis(1_500);
const SOON: Duration = Duration::from_secs(10);
const SECRET: &str = "s3cret-4711";

/// Waits for a line with all of these words in it, after the first `seen` lines; returns how many were seen then.
async fn line(logs: &Logs, seen: usize, words: &[&str]) -> usize {
    let find = || {
        let text = logs.text();
        let mut lines = text.lines().enumerate().skip(seen);
        let found = lines.find(|(_, line)| words.iter().all(|word| line.contains(word)));
        found.map(|(at, _)| at + 1).ok_or(text)
    };
    let found = eventually(&format!("{words:?}"), SOON, find, Result::is_ok).await;
    found.unwrap()
}

fn count(logs: &Logs, words: &str) -> usize {
    logs.text()
        .lines()
        .filter(|line| line.contains(words))
        .count()
}

async fn two_lines(redlock: &Redlock, nodes: &mut Nodes, logs: &Logs) {
    let addresses: Vec<String> = nodes
        .iter()
        .map(|node| node.address().to_string())
        .collect();
    let seen = logs.text().lines().count();

    nodes.kill(0..1);
    let down = line(
        logs,
        seen,
        &["WARN redlock::node", "node is down", &addresses[0]],
    )
    .await;
    let risk = line(
        logs,
        down,
        &["WARN redlock::quorum", "at risk", "votes=2", "needed=2"],
    )
    .await;
    nodes.freeze(1..2);
    let lost = line(logs, risk, &["WARN redlock::quorum", "majority lost"]).await;
    nodes.thaw(1..2);
    let words = ["INFO redlock::quorum", "majority regained", "votes=2"];
    let regained = line(logs, lost, &words).await;
    nodes[0].restart().unwrap();
    let forgot = [
        "WARN redlock::node",
        "restarted",
        "wait, it votes in",
        &addresses[0],
    ];
    let forgot = line(logs, regained, &forgot).await;
    let words = ["INFO redlock::quorum", "majority safe", "votes=3"];
    let safe = line(logs, forgot, &words).await;
    voting(redlock, 3, SOON).await;

    nodes.ask(2, &["CONFIG", "SET", "maxmemory", "1"]);
    drop(redlock.acquire("a").await.unwrap());
    let full = [
        "WARN redlock::node",
        "refuses to write",
        "OOM",
        &addresses[2],
    ];
    let full = line(logs, safe, &full).await;
    let risk = line(logs, full, &["WARN redlock::quorum", "at risk"]).await;
    nodes.ask(2, &["CONFIG", "SET", "maxmemory", "0"]);
    let words = ["INFO redlock::node", "writes again", &addresses[2]];
    let safe = line(logs, risk, &words).await;
    nodes.ask(2, &["FLUSHALL"]);
    let emptied = ["WARN redlock::node", "keys were deleted", &addresses[2]];
    let emptied = line(logs, safe, &emptied).await;
    line(
        logs,
        emptied,
        &["INFO redlock::node", "node votes", &addresses[2]],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_change_has_a_line_with_its_cause() {
    let logs = Logs::capture();
    let mut nodes = Nodes::start(3);
    let redlock = builder(nodes.urls(), TTL)
        .max_ttl(TTL)
        .build()
        .await
        .unwrap();
    // No operator vouches for the nodes.
    let first = [
        "WARN redlock::quorum",
        "first start of namespace redlock",
        "nodes=3",
    ];
    line(&logs, 0, &first).await;
    voting(&redlock, 3, SOON).await;
    line(&logs, 0, &["INFO redlock::quorum", "majority regained"]).await;
    two_lines(&redlock, &mut nodes, &logs).await;
    voting(&redlock, 3, SOON).await;

    let key = ResourceKey::new("order", SECRET).unwrap();
    let guard = redlock.acquire(key).await.unwrap();
    let lease = guard.lease().clone();
    let renewed = lease.deadline() + TTL / 3;
    let longer = || lease.deadline();
    eventually("it is renewed", SOON, longer, |deadline| {
        *deadline > renewed
    })
    .await;
    assert_eq!(count(&logs, "in danger"), 0, "{}", logs.text());
    assert!(!lease.is_endangered());

    nodes.freeze(0..3);
    within("the danger", SOON, lease.endangered()).await;
    assert!(lease.is_held(), "it is told before the loss");
    assert!(lease.remaining() > TTL / 4, "{:?}", lease.remaining());
    let seen = logs.text().lines().count() - 1;
    let token = format!("token={}", guard.token());
    let danger = [
        "WARN redlock::lease",
        "in danger",
        "class=\"order\"",
        &token,
    ];
    line(&logs, seen.saturating_sub(2), &danger).await;
    assert_eq!(
        within("the loss", SOON, lease.lost()).await,
        LossReason::Expired
    );
    let lost = [
        "WARN redlock::lease",
        "was lost",
        "class=\"order\"",
        &token,
        "deadline passed",
    ];
    line(&logs, seen, &lost).await;
    let unconfirmed = [
        "DEBUG redlock::lease",
        "no majority confirmed an extension",
        "class=\"order\"",
        &token,
    ];
    line(&logs, 0, &unconfirmed).await;
    assert_eq!(count(&logs, "in danger"), 1, "{}", logs.text());
    assert_eq!(count(&logs, SECRET), 0, "{}", logs.text());
    let origin = format!("client={} namespace=\"redlock\"", redlock.id());
    let text = logs.text();
    let told = text.lines().filter(|line| line.contains("redlock::"));
    for line in told.filter(|line| !line.contains(" DEBUG ")) {
        assert!(line.contains(&origin), "{line}");
        let (_, fields) = line.split_once(" client=").unwrap();
        // What is not quoted has no space.
        let outside: String = fields.split('"').step_by(2).collect();
        let mut others = outside.split_whitespace().skip(1);
        assert!(others.all(|field| field.contains('=')), "{line}");
    }
    nodes.thaw(0..3);
}
