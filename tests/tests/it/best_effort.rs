//! One replicated server whose clients trust it to keep its data.

use std::time::Duration;

use redlock_core::{AcquireOptions, Guarantee, NodeAnswer, Redlock, Wait};
use redlock_tests::{Nodes, WatchedNodes, eventually, now, within};
use tokio::time::sleep;

const TTL: Duration = Duration::from_secs(1);
const FOLLOWED: Duration = Duration::from_secs(15);
/// Longer than a client takes to leave a server that its Sentinels no longer name.
const WATCHED: Duration = Duration::from_secs(6);

async fn client(url: &str) -> Redlock {
    let builder = Redlock::builder().best_effort(url).ttl(TTL);
    builder.build().await.expect("the server is there")
}

async fn acquires(redlock: &Redlock) -> bool {
    let options = AcquireOptions::new()
        .wait(Wait::Never)
        .quorum_wait(Duration::ZERO);
    let Ok(guard) = redlock.acquire_with("a", options).await else {
        return false;
    };
    assert_eq!(guard.lease().guarantee(), Guarantee::BestEffort);
    // The server that has it may be gone.
    drop(guard.release().await);
    true
}

/// Returns after how long no acquire fails any more.
async fn recovery(redlock: &Redlock) -> Duration {
    let (begun, mut last) = (now(), Duration::ZERO);
    let mut attempts = 0;
    while now() < begun + WATCHED {
        if !acquires(redlock).await {
            last = now() - begun;
        }
        attempts += 1;
        sleep(Duration::from_millis(5)).await;
    }
    assert!(attempts > 100 && acquires(redlock).await, "{attempts}");
    last
}

/// The longest lease takes 30 s, and no client waits for it.
// Shows: R8.2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_costs_two_seconds_at_most() {
    let mut nodes = WatchedNodes::start(1);
    let url = nodes.urls().swap_remove(0);
    let redlock = client(&url).await;
    assert!(
        recovery(&redlock).await < Duration::from_secs(2),
        "no wait at first"
    );
    let token = redlock.acquire("b").await.unwrap().token();
    for is_killed in [false, true] {
        let ports = [&nodes.masters, &nodes.replicas].map(|servers| servers[0].port());
        let before = if is_killed { ports[1] } else { ports[0] };
        if is_killed {
            nodes.replicas[0].kill().unwrap();
        } else {
            nodes.fail_over(0).unwrap();
        }
        nodes.succeeded(0, before).await;
        let took = recovery(&redlock).await;
        println!("recovery after a failover (killed: {is_killed}): {took:?}");
        assert!(took <= Duration::from_secs(2), "{took:?}");
        if !is_killed {
            // The new replica must have the data before it is promoted in its turn.
            let is_in_sync = || {
                let info = nodes.masters[0].command(&["INFO", "replication"]);
                let info = info.as_ref().ok().and_then(|info| info.as_text());
                info.is_some_and(|info| info.contains("master_link_status:up"))
            };
            eventually("the old master follows", FOLLOWED, is_in_sync, |is| *is).await;
            // A Sentinel begins no second failover of a master within twice its failover-timeout.
            sleep(Duration::from_secs(6)).await;
        }
    }
    let guard = redlock.acquire("b").await.unwrap();
    assert!(guard.token() > token, "tokens grow from the clock");
}

// Shows: R8.1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_want_a_majority_use_no_server_of_best_effort() {
    let nodes = Nodes::start(1);
    let url = nodes.urls().swap_remove(0);
    let redlock = client(&url).await;
    assert!(
        recovery(&redlock).await < Duration::from_secs(2),
        "no wait at first"
    );
    let other = Redlock::builder().node(&url).ttl(TTL).connect_lazily();
    let other = other.build().await.unwrap();
    let said = async {
        loop {
            let report = other.node_reports().await.swap_remove(0);
            if let NodeAnswer::NotAVote { .. } = report.answer {
                return report.to_string();
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    let said = within("a reason", FOLLOWED, said).await;
    assert!(said.contains("best_effort"), "{said}");
}
