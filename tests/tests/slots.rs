//! Slots over real servers, from several processes: no slot has two holders, and all slots are used.

use std::{collections::BTreeSet, time::Duration};

use redlock_tests::{ClientProcess, Connect, History, Load, LoadSummary, Nodes, Work};
use tokio::time::sleep;

const CLIENT: &str = env!("CARGO_BIN_EXE_redlock-test-client");
const SLOTS: usize = 4;

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
