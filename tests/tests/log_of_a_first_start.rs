//! A client whose nodes are new has one thing to warn of.

use std::time::Duration;

use redlock_core::{AcquireOptions, Wait};
use redlock_tests::{Logs, Nodes, builder, voting};

const MAX_TTL: Duration = Duration::from_millis(1_500);
const SOON: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_start_warns_once_and_names_the_remedy() {
    let nodes = Nodes::start(5);
    let logs = Logs::capture();
    let redlock = builder(nodes.urls(), MAX_TTL).max_ttl(MAX_TTL);
    let redlock = redlock.build().await.unwrap();
    // It waits for the end of the quarantine.
    let wait = AcquireOptions::new().wait(Wait::UpTo(SOON));
    let guard = redlock.acquire_with("a", wait).await.unwrap();
    guard.release().await.unwrap();
    voting(&redlock, 5, SOON).await;
    redlock.close().await;
    let text = logs.text();
    let warnings: Vec<&str> = text.lines().filter(|l| l.contains("WARN")).collect();
    let [warning] = *warnings else {
        panic!("{warnings:#?}");
    };
    for words in [
        "first start of namespace redlock",
        "locks in 2 s",
        "`redlock bless`",
    ] {
        assert!(warning.contains(words), "{words}: {warning}");
    }
    assert!(text.contains("majority regained"), "{text}");
}
