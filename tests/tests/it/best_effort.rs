//! One replicated server whose clients trust it to keep its data.

use std::time::Duration;

use futures_util::{FutureExt, future::join};
use redlock_core::{
    AcquireOptions, ExtendErrorKind, Guarantee, NodeAnswer, Redlock, Renewal, Wait,
};
use redlock_tests::{Nodes, WatchedNodes, eventually, now, within};
use tokio::{sync::mpsc, task::JoinSet, time::sleep};

const TTL: Duration = Duration::from_secs(1);
const FOLLOWED: Duration = Duration::from_secs(15);
/// Longer than a client takes to leave a server that its Sentinels no longer name.
const WATCHED: Duration = Duration::from_secs(6);
/// In this time the replica confirms a grant, or the grant does not count.
const CONFIRMED: Duration = Duration::from_secs(1);

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
            nodes.promote_another(0, before).await;
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

/// A master and its replica.
async fn master_and_replica() -> Nodes {
    let nodes = Nodes::start(2);
    let port = nodes[0].port().to_string();
    nodes.ask(1, &["REPLICAOF", "127.0.0.1", &port]);
    let info = || nodes.ask(0, &["INFO", "replication"]);
    eventually("it is copied", FOLLOWED, info, |info| {
        info.contains("state=online")
    })
    .await;
    nodes
}

/// A client whose grants the replica must have.
async fn client_of_both(nodes: &Nodes) -> Redlock {
    let builder = Redlock::builder().best_effort(nodes[0].url());
    let builder = builder.node_timeout(CONFIRMED);
    let redlock = builder.wait_for_replicas(1).build().await;
    redlock.expect("the server is there")
}

async fn replicated() -> (Nodes, Redlock) {
    let nodes = master_and_replica().await;
    let redlock = client_of_both(&nodes).await;
    (nodes, redlock)
}

/// The replica is stopped now and again for some milliseconds, which is longer than a grant takes without it.
// Shows: R8.3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_has_each_lease_that_was_granted() {
    let (nodes, redlock) = replicated().await;
    for number in 0..40 {
        let key = format!("key-{number}");
        nodes.freeze(1..2);
        let acquire = redlock
            .acquire(&*key)
            .map(|acquired| (acquired.unwrap(), now()));
        let thaw = async {
            sleep(Duration::from_millis(20)).await;
            let thawed = now();
            nodes.thaw(1..2);
            thawed
        };
        let ((guard, granted), thawed) = join(acquire, thaw).await;
        assert!(granted >= thawed, "{key}");
        let copied = nodes.ask(1, &["EXISTS", &format!("{{redlock}}:lock:{key}")]);
        assert_eq!(copied, "1", "{key}");
        guard.release().await.unwrap();
    }
}

// Shows: R8.3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_its_replica_a_server_grants_and_extends_nothing_and_nothing_is_left() {
    let (nodes, redlock) = replicated().await;
    let options = AcquireOptions::new().renewal(Renewal::Manual);
    let guard = redlock.acquire_with("a", options).await.unwrap();
    nodes.freeze(1..2);
    let error = guard.extend().await.unwrap_err();
    assert_eq!(error.kind(), ExtendErrorKind::Unconfirmed, "{error}");
    let why = "0 of the 1 replicas of wait_for_replicas";
    let options = AcquireOptions::new().wait(Wait::Never);
    let error = redlock.acquire_with("b", options).await.unwrap_err();
    assert!(error.to_string().contains(why), "{error}");
    // A release does not wait for replicas.
    guard.release().await.unwrap();
    nodes.thaw(1..2);
    within("a grant", FOLLOWED, async {
        while !acquires(&redlock).await {}
    })
    .await;
    redlock.close().await;
    let locks = || nodes.ask(0, &["EVAL", "return #redis.call('KEYS', '*:lock:*')", "0"]);
    eventually("nothing is left", FOLLOWED, locks, |locks| locks == "0").await;
}

/// The callers come from clients of their own, so that each lease but the first is given by the server.
// Shows: R8.3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_its_replica_a_server_gives_no_caller_in_line_a_lease_that_counts() {
    let nodes = master_and_replica().await;
    let (says, mut granted) = mpsc::unbounded_channel();
    let mut callers = JoinSet::new();
    for _ in 0..4 {
        let (redlock, says) = (client_of_both(&nodes).await, says.clone());
        callers.spawn(async move {
            loop {
                let patient = AcquireOptions::new().wait(Wait::UpTo(FOLLOWED));
                if let Ok(guard) = redlock.acquire_with("a", patient).await {
                    says.send(now()).unwrap();
                    sleep(Duration::from_millis(200)).await;
                    drop(guard.release().await);
                }
            }
        });
    }
    for _ in 0..10 {
        within("a grant", FOLLOWED, granted.recv()).await.unwrap();
    }
    let line = || nodes.ask(0, &["GET", "{redlock}:line:{redlock}:lock:a"]);
    eventually("callers wait in line", FOLLOWED, line, |line| {
        line.lines().count() > 1
    })
    .await;
    nodes.freeze(1..2);
    let frozen = now();
    sleep(4 * CONFIRMED).await;
    let thawed = now();
    nodes.thaw(1..2);
    let mut wrong = 0;
    loop {
        let at = within("a grant", FOLLOWED, granted.recv()).await.unwrap();
        if at > thawed {
            break;
        }
        // The replica may have had the grants of this moment.
        wrong += u32::from(at > frozen + CONFIRMED / 2);
    }
    assert_eq!(wrong, 0, "granted without the replica");
}

// Shows: R8.3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_that_may_not_wait_for_replicas_is_told_so() {
    let nodes = Nodes::start(1);
    let user = [
        "ACL", "SETUSER", "lock", "on", ">pw", "~*", "+@all", "-wait",
    ];
    nodes.ask(0, &user);
    let url = nodes[0].url().replace("redis://", "redis://lock:pw@");
    let builder = Redlock::builder().best_effort(url).wait_for_replicas(1);
    let error = builder.build().await.unwrap_err().to_string();
    assert!(error.contains("WAIT"), "{error}");
}
