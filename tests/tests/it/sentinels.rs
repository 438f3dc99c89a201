//! Masters that Sentinels name, through failovers.

use std::time::Duration;

use redlock_core::{AcquireOptions, NodeAnswer, Redlock, Wait};
use redlock_tests::{
    ClientProcess, Connect, History, Load, LoadSummary, WatchedNodes, Work, builder, eventually,
    now, voting, within,
};
use tokio::time::sleep;

const CLIENT: &str = env!("CARGO_BIN_EXE_redlock-test-client");
const TTL: Duration = Duration::from_secs(1);
const MAX_TTL: Duration = Duration::from_secs(2);
/// For how long the word of a majority of the Sentinels counts.
const CONFIRMED: Duration = Duration::from_secs(5);
/// A failover takes a second or two, and a quarantine a little more than `MAX_TTL`.
const FOLLOWED: Duration = Duration::from_secs(15);

/// Two processes work on, while one master after the other is demoted, killed, and hung.
// Shows: E11.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failovers_under_load_leave_no_overlap_and_no_key() {
    let mut nodes = WatchedNodes::start(3);
    let history = History::new();
    let clients = ["one", "two"].map(|name| {
        let load = Load {
            history: history.file(name),
            connect: Connect {
                max_ttl: MAX_TTL,
                ..Connect::to(nodes.urls(), TTL)
            },
            tasks: 16,
            keys: 4,
            slots: 0,
            shared_percent: 0,
            acquisitions: 0,
            at_least: Duration::from_secs(24),
            at_most: Duration::from_secs(60),
            wait: Duration::from_secs(10),
            hold: Duration::from_millis(5),
            rest: Duration::from_millis(20),
            cancelled_percent: 10,
        };
        ClientProcess::start(CLIENT, &Work::Load(load))
    });
    let holds = || history.holds().len();
    eventually("leases are held", FOLLOWED, holds, |holds| *holds > 50).await;
    // Each vote comes back before the next is taken away.
    let watch = builder(nodes.urls(), TTL).max_ttl(MAX_TTL);
    let watch = watch.build().await.expect("a majority is there");
    let mut windows = Vec::new();
    for master in 0..3 {
        voting(&watch, 3, FOLLOWED).await;
        let begun = now();
        let ports = [&nodes.masters, &nodes.replicas].map(|servers| servers[master].port());
        match master {
            0 => drop(nodes.promote_another(master, ports[0]).await),
            1 => nodes.at_mut(ports[0]).kill().expect("it runs"),
            _ => nodes.at_mut(ports[0]).freeze().expect("it runs"),
        }
        assert_eq!(nodes.succeeded(master, ports[0]).await, ports[1]);
        sleep(Duration::from_millis(500)).await;
        if master == 2 {
            // It takes itself for a master until a Sentinel tells it.
            nodes.at_mut(ports[0]).thaw().expect("it runs");
        }
        windows.push(begun..now());
    }
    voting(&watch, 3, FOLLOWED).await;
    for client in clients {
        let summary: LoadSummary = client.finish(Duration::from_secs(70)).await;
        eprintln!("{summary:?}");
        assert!(
            summary.failed.is_empty(),
            "two masters of three vote at every moment"
        );
    }
    eventually(
        "no server has a key",
        FOLLOWED,
        || nodes.keys(),
        Vec::is_empty,
    )
    .await;
    let holds = history.assert_exclusive();
    for window in windows {
        let within = holds.iter().filter(|hold| window.contains(&hold.from));
        assert!(within.count() > 10, "{window:?}");
    }
    println!(
        "failovers: 3, holds: {}, overlaps: 0, keys left: 0",
        holds.len()
    );
}

/// One vote, so the time without it is the time without locks.
// Shows: E11.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_of_one_master_is_back_after_the_longest_lease() {
    let nodes = WatchedNodes::start(1);
    let client = Connect {
        max_ttl: MAX_TTL,
        ..Connect::to(nodes.urls(), TTL)
    };
    let redlock = client.client().await;
    let before = nodes.masters[0].port();
    let guard = redlock.acquire("a").await.unwrap();
    nodes.promote_another(0, before).await;
    let promoted = now();
    guard.lost().await;
    let acquired = async {
        loop {
            if let Ok(guard) = redlock.acquire("a").await {
                return guard;
            }
        }
    };
    let guard = within("a lease of the promoted server", FOLLOWED, acquired).await;
    let took = now() - promoted;
    println!(
        "recovery after a failover: {took:?}, {:.2} x max_ttl",
        took.as_secs_f64() / MAX_TTL.as_secs_f64()
    );
    assert!(took >= MAX_TTL, "it may have forgotten a lease");
    assert!(
        took < (MAX_TTL + CONFIRMED) * 11 / 10 + Duration::from_secs(1),
        "{took:?}"
    );
    guard.release().await.unwrap();
}

// Shows: E11.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_sentinels_of_three_are_enough_to_connect() {
    let nodes = WatchedNodes::start(1);
    // The first client of all lists the Sentinels, and needs all of them.
    drop(Connect::to(nodes.urls(), TTL).client().await);
    nodes.sentinels[0].freeze().unwrap();
    let redlock = Connect::to(nodes.urls(), TTL).client().await;
    redlock.acquire("a").await.unwrap().release().await.unwrap();
    nodes.sentinels[0].thaw().unwrap();
}

// Shows: R7.1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_sentinels_do_not_know_is_said() {
    let mut nodes = WatchedNodes::start(1);
    let line = async |url: &str| {
        let redlock = Redlock::builder().node(url).connect_lazily().build();
        what_is_said(&redlock.await.unwrap()).await
    };
    let url = nodes.urls().swap_remove(0);
    let unknown = line(&url.replace("lock-0", "lock-7")).await;
    assert!(unknown.contains("as lock-7"), "{unknown}");
    assert!(unknown.contains("knows no such master"), "{unknown}");
    let master = nodes.masters[0].address();
    let no_sentinel = line(&format!("redis+sentinel://{master}/lock-0")).await;
    assert!(no_sentinel.contains("is no Sentinel"), "{no_sentinel}");
    let first = nodes.sentinels[0].address();
    let too_few = line(&format!("redis+sentinel://{first}/lock-0")).await;
    assert!(too_few.contains("must name all of them"), "{too_few}");
    let (again, port) = ("localhost", nodes.sentinels[0].port());
    let twice = line(&format!("redis+sentinel://{first},{again}:{port}/lock-0")).await;
    assert!(twice.contains("must name all of them"), "{twice}");
    for sentinel in &mut nodes.sentinels {
        sentinel.kill().unwrap();
    }
    let silent = line(&url).await;
    assert!(silent.contains("refused"), "{silent}");
}

/// One that was cut off from the others with the old master would name it for ever.
// Shows: R7.2, R7.3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_no_majority_of_sentinels_confirms_is_asked_nothing() {
    let nodes = WatchedNodes::start(1);
    let redlock = Connect::to(nodes.urls(), TTL).client().await;
    assert!(try_acquire(&redlock).await);
    nodes.sentinels[0].freeze().unwrap();
    nodes.sentinels[1].freeze().unwrap();
    let reason = asked_nothing(&redlock).await;
    let would_answer = nodes.masters[0].command(&["INFO", "stats"]);
    assert!(would_answer.is_ok());
    assert!(reason.contains("fewer than 2 of 3 Sentinels"), "{reason}");
    nodes.sentinels[0].thaw().unwrap();
    nodes.sentinels[1].thaw().unwrap();
    voting(&redlock, 1, FOLLOWED).await;
    assert!(try_acquire(&redlock).await, "it has not changed");
}

/// Tries to lock through one node, once.
pub(crate) async fn try_acquire(redlock: &Redlock) -> bool {
    let options = AcquireOptions::new()
        .wait(Wait::Never)
        .quorum_wait(Duration::ZERO);
    match redlock.acquire_with("a", options).await {
        Ok(guard) => guard.release().await.is_ok(),
        Err(_) => false,
    }
}

/// Waits until the client says why it asks its one node nothing.
pub(crate) async fn what_is_said(redlock: &Redlock) -> String {
    let said = async {
        loop {
            match redlock.node_reports().await.swap_remove(0).answer {
                NodeAnswer::NotExecuted { reason } => return reason.to_string(),
                _ => sleep(Duration::from_millis(20)).await,
            }
        }
    };
    within("a reason", FOLLOWED, said).await
}

/// Checks that a client of one node, from which a majority has just been taken, counts on its server for five seconds
/// more, and then sends it nothing; returns what it says of it.
pub(crate) async fn asked_nothing(redlock: &Redlock) -> String {
    let (begun, mut last) = (now(), Duration::ZERO);
    while now() < begun + CONFIRMED + Duration::from_secs(3) {
        if try_acquire(redlock).await {
            last = now() - begun;
        }
        sleep(Duration::from_millis(20)).await;
    }
    assert!(
        last > Duration::from_secs(3),
        "a short outage of those that name it costs nothing: {last:?}"
    );
    assert!(last < CONFIRMED + Duration::from_millis(200), "{last:?}");
    what_is_said(redlock).await
}
