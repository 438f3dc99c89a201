//! Two client processes while nodes crash and hang and callers go away.

use std::{collections::BTreeMap, ops::Range, time::Duration};

use redlock_sandbox::{Persistence, ServerOptions};
use redlock_tests::{
    ClientProcess, Connect, History, Hold, Load, LoadSummary, Nodes, Work, eventually, now,
};
use tokio::time::sleep;

const CLIENT: &str = env!("CARGO_BIN_EXE_redlock-test-client");
const TTL: Duration = Duration::from_secs(3);
const ACQUISITIONS: i64 = 10_000;

// Shows: T1.2.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn crashes_hangs_and_cancelled_callers_cost_neither_exclusion_nor_time() {
    // A kill leaves to the kernel what was written, so nothing needs to wait for the disk: a busy one
    // would stop all nodes at once.
    let options = ServerOptions::default()
        .persistence(Persistence::AppendOnly)
        .argument("--appendfsync")
        .argument("no");
    let mut nodes = Nodes::start_with(5, &options);
    let history = History::new();
    let clients = ["one", "two"].map(|name| {
        let load = Load {
            history: history.file(name),
            connect: Connect::to(nodes.urls(), TTL),
            tasks: 64,
            keys: 4,
            slots: 0,
            shared_percent: 0,
            acquisitions: ACQUISITIONS / 2,
            // Longer than the faults last.
            at_least: Duration::from_secs(12),
            at_most: Duration::from_secs(90),
            wait: Duration::from_secs(10),
            hold: Duration::from_millis(2),
            rest: Duration::from_millis(60),
            cancelled_percent: 40,
        };
        ClientProcess::start(CLIENT, &Work::Load(load))
    });
    eventually(
        "both processes hold leases",
        Duration::from_secs(10),
        || per_process(&history.holds(), Duration::ZERO..now()),
        |processes| processes.len() == 2 && processes.values().all(|holds| *holds > 20),
    )
    .await;

    // One node hangs for five seconds; while it does, another crashes twice and keeps its data.
    let hang = now();
    nodes.freeze(1..2);
    let mut faults = Vec::new();
    for _ in 0..2 {
        sleep(Duration::from_millis(700)).await;
        let crash = now();
        nodes.kill(0..1);
        sleep(Duration::from_millis(1_200)).await;
        nodes[0].restart().expect("the server starts on its data");
        faults.push(("the crash", crash..now()));
    }
    sleep((hang + Duration::from_secs(5)).saturating_sub(now())).await;
    nodes.thaw(1..2);
    faults.push(("the hang", hang..now()));

    let mut summaries = Vec::new();
    for client in clients {
        let summary: LoadSummary = client.finish(Duration::from_secs(100)).await;
        eprintln!("{summary:?}");
        summaries.push(summary);
    }
    nodes.become_empty(TTL * 2).await;

    let holds = history.assert_exclusive();
    assert!(holds.len() >= 10_000, "only {} holds", holds.len());
    for (fault, window) in faults {
        let processes = per_process(&holds, window.clone());
        eprintln!("{fault}: {processes:?}");
        assert!(
            processes.len() == 2 && processes.values().all(|holds| *holds > 20),
            "{fault} stopped the clients: {processes:?}"
        );
    }
    for summary in summaries {
        assert!(summary.cancelled > 100, "{summary:?}");
        assert!(
            summary.most_over_wait < Duration::from_secs(1),
            "{summary:?}"
        );
        assert!(summary.failed.is_empty(), "{summary:?}");
    }
}

/// How many holds of each process began in that time.
fn per_process(holds: &[Hold], window: Range<Duration>) -> BTreeMap<u32, usize> {
    let mut counts = BTreeMap::new();
    for hold in holds.iter().filter(|hold| window.contains(&hold.from)) {
        *counts.entry(hold.owner.0).or_default() += 1;
    }
    counts
}
