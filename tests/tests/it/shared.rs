//! Shared and exclusive leases over real servers, from several processes: readers together, writers alone.

use std::time::Duration;

use redlock_core::{AcquireOptions, Mode, Wait};
use redlock_tests::{
    ClientProcess, Connect, History, Hold, Load, LoadSummary, Nodes, Work, client, now,
};
use tokio::time::{sleep, timeout};

const CLIENT: &str = env!("CARGO_BIN_EXE_redlock-test-client");

/// A node is killed, another stands still for a while, and acquires are dropped at random.
// Shows: R4.9.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s26_readers_of_three_processes_share_a_key_and_writers_have_it_alone_though_a_node_dies() {
    let mut nodes = Nodes::start(5);
    let history = History::new();
    let clients = ["one", "two", "three"].map(|name| {
        let load = Load {
            history: history.file(name),
            connect: Connect::to(nodes.urls(), Duration::from_secs(10)),
            tasks: 8,
            keys: 2,
            slots: 0,
            shared_percent: 70,
            acquisitions: 400,
            at_least: Duration::from_secs(8),
            at_most: Duration::from_secs(60),
            wait: Duration::from_secs(30),
            hold: Duration::from_millis(20),
            rest: Duration::from_millis(20),
            cancelled_percent: 10,
        };
        ClientProcess::start(CLIENT, &Work::Load(load))
    });
    sleep(Duration::from_secs(3)).await;
    nodes.kill(4..5);
    nodes.freeze(3..4);
    sleep(Duration::from_secs(2)).await;
    nodes.thaw(3..4);
    for client in clients {
        let summary: LoadSummary = client.finish(Duration::from_secs(90)).await;
        eprintln!("{summary:?}");
        assert!(summary.acquired >= 400 && summary.lost == 0, "{summary:?}");
        assert!(summary.failed.is_empty(), "{summary:?}");
        let alone = summary.acquired - summary.shared + summary.downgraded;
        assert!(alone >= 40 && summary.shared >= 100, "{summary:?}");
        assert!(summary.downgraded >= 5, "{summary:?}");
        assert!(summary.upgraded >= 1, "{summary:?}");
        // Writers are not kept out by the readers that come all the time.
        assert!(
            summary.slowest_alone < Duration::from_secs(10),
            "{summary:?}"
        );
    }
    let holds = history.assert_exclusive();
    let meets = |one: &Hold, other: &Hold| {
        let at_once = other.from < one.from && one.from < other.to;
        at_once && one.key == other.key && one.owner.0 != other.owner.0
    };
    let shared = holds.iter().filter(|hold| hold.is_shared);
    let met = shared.filter(|one| holds.iter().any(|other| meets(one, other)));
    assert!(met.count() > 100, "readers of different processes meet");
}

/// The key ends for a reader that was killed with its time to live, as for any holder, and others go on reading.
// Shows: R4.2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s26_a_reader_that_is_killed_keeps_writers_out_for_its_time_to_live_and_readers_not_at_all()
{
    const TTL: Duration = Duration::from_secs(2);
    let nodes = Nodes::start(3);
    let history = History::new();
    let reader = ClientProcess::start(
        CLIENT,
        &Work::Load(Load {
            history: history.file("reader"),
            connect: Connect::to(nodes.urls(), TTL),
            tasks: 4,
            keys: 1,
            slots: 0,
            shared_percent: 100,
            acquisitions: i64::MAX,
            at_least: Duration::from_secs(60),
            at_most: Duration::from_secs(60),
            wait: Duration::from_secs(10),
            hold: Duration::from_secs(5),
            rest: Duration::ZERO,
            cancelled_percent: 0,
        }),
    );
    let redlock = client(nodes.urls(), TTL).await;
    let limit = Duration::from_secs(20);
    let reads = async {
        while history.events().len() < 8 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(limit, reads).await.expect("it reads");
    let refused = redlock.try_acquire("key-0").await.unwrap_err();
    assert_eq!(refused.kind(), redlock_core::AcquireErrorKind::Contended);
    sleep(Duration::from_secs(1)).await;
    reader.kill();
    let options = AcquireOptions::new().wait(Wait::UpTo(limit));
    let took = |began| now().saturating_sub(began);
    let began = now();
    let shared = redlock
        .acquire_with("key-0", options.clone().shared())
        .await;
    let shared = shared.unwrap();
    assert!(took(began) < TTL / 2, "{:?}", took(began));
    assert_eq!(shared.mode(), Mode::Shared);
    shared.release().await.unwrap();
    let alone = redlock.acquire_with("key-0", options).await.unwrap();
    assert!(took(began) < 2 * TTL, "{:?}", took(began));
    alone.release().await.unwrap();
    nodes.become_empty(limit).await;
}
