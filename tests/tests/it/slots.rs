//! Slots over real servers, from several processes: no slot has two holders, and all slots are used.

use std::{collections::BTreeSet, time::Duration};

use redlock_core::AcquireErrorKind;
use redlock_tests::{ClientProcess, Connect, History, Load, LoadSummary, Nodes, Work, client};
use tokio::time::sleep;

const CLIENT: &str = env!("CARGO_BIN_EXE_redlock-test-client");
const SLOTS: usize = 4;

// Shows: R5.1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s25_slots_of_three_processes_never_have_two_holders_though_a_node_dies() {
    let mut nodes = Nodes::start(3);
    let history = History::new();
    let clients = ["one", "two", "three"].map(|name| {
        let load = Load {
            history: history.file(name),
            connect: Connect::to(nodes.urls(), Duration::from_secs(10)),
            tasks: 2 * SLOTS,
            keys: 1,
            slots: SLOTS,
            shared_percent: 0,
            acquisitions: 100,
            at_least: Duration::from_secs(6),
            at_most: Duration::from_secs(60),
            wait: Duration::from_secs(30),
            hold: Duration::from_millis(40),
            rest: Duration::from_millis(20),
            cancelled_percent: 10,
        };
        ClientProcess::start(CLIENT, &Work::Load(load))
    });
    sleep(Duration::from_secs(3)).await;
    nodes.kill(2..3);
    for client in clients {
        let summary: LoadSummary = client.finish(Duration::from_secs(90)).await;
        eprintln!("{summary:?}");
        assert!(summary.acquired >= 100 && summary.lost == 0, "{summary:?}");
        assert!(summary.failed.is_empty(), "{summary:?}");
    }
    let holds = history.assert_exclusive();
    let slots: BTreeSet<&str> = holds.iter().map(|hold| &*hold.key).collect();
    assert_eq!(slots.len(), SLOTS, "{slots:?}");
    let most = holds.iter().map(|hold| {
        let at_once =
            |other: &&redlock_tests::Hold| other.from <= hold.from && hold.from <= other.to;
        holds.iter().filter(at_once).count()
    });
    let most = most.max().unwrap();
    assert_eq!(most, SLOTS, "as many hold one as there are");
}

/// The number is not forgotten with the slots that are released.
// Shows: R5.2.
#[tokio::test]
async fn s25_nodes_refuse_a_client_that_gives_another_number_of_slots() {
    const TTL: Duration = Duration::from_secs(2);
    let nodes = Nodes::start(3);
    let old = client(nodes.urls(), TTL).await;
    let held = old.slots("reports", 2).unwrap().acquire().await.unwrap();
    // The first renewal tells the number to the node that was not asked.
    sleep(TTL).await;
    let new = client(nodes.urls(), TTL).await;
    for count in [1, 3, 64] {
        let slots = new.slots("reports", count).unwrap();
        let refused = slots.try_acquire().await.unwrap_err();
        assert_eq!(refused.kind(), AcquireErrorKind::OtherSlots, "{refused}");
        assert!(refused.to_string().contains("2 slots"), "{refused}");
    }
    let same = new.slots("reports", 2).unwrap();
    same.try_acquire().await.unwrap().release().await.unwrap();
    // Longer than the time to live, while the lease is renewed.
    sleep(2 * TTL).await;
    let other = client(nodes.urls(), TTL).await.slots("reports", 3).unwrap();
    let refused = other.try_acquire().await.unwrap_err();
    assert_eq!(refused.kind(), AcquireErrorKind::OtherSlots);
    held.release().await.unwrap();
    let taken = other.acquire().await.unwrap();
    taken.release().await.unwrap();
}

/// What shares a call with it is done as well.
// Shows: R5.2.
#[tokio::test]
async fn a_slot_that_its_holder_shares_spoils_no_call_to_a_node() {
    const TTL: Duration = Duration::from_secs(2);
    let nodes = Nodes::start(3);
    let redlock = client(nodes.urls(), TTL).await;
    let slots = redlock.slots("reports", 2).unwrap();
    let mut held = slots.acquire().await.unwrap().into_guard();
    for _ in 0..3 {
        let (downgraded, other) = tokio::join!(held.downgrade(), redlock.try_acquire("another"));
        downgraded.unwrap();
        other.unwrap().release().await.unwrap();
        sleep(TTL).await;
        assert!(held.is_held());
        let (upgraded, other) = tokio::join!(held.try_upgrade(), redlock.try_acquire("another"));
        upgraded.unwrap();
        other.unwrap().release().await.unwrap();
        sleep(TTL).await;
        assert!(held.is_held());
    }
    held.release().await.unwrap();
}
