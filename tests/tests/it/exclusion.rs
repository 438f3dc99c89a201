//! Two client processes on five masters: a key has one holder at a time.

use std::time::Duration;

use redlock_tests::{ClientProcess, Connect, History, Load, LoadSummary, Nodes, Work};

const CLIENT: &str = env!("CARGO_BIN_EXE_redlock-test-client");
const ACQUISITIONS: i64 = 10_000;

// Shows: T1.2.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn ten_thousand_holds_of_two_processes_never_overlap() {
    let nodes = Nodes::start(5);
    let history = History::new();
    let clients = ["one", "two"].map(|name| {
        let load = Load {
            history: history.file(name),
            connect: Connect {
                // So long that no release goes unconfirmed because the machine is busy.
                node_timeout: Some(Duration::from_secs(10)),
                ..Connect::to(nodes.urls(), Duration::from_secs(60))
            },
            tasks: 64,
            keys: 4,
            slots: 0,
            shared_percent: 0,
            acquisitions: ACQUISITIONS / 2,
            at_least: Duration::ZERO,
            at_most: Duration::from_secs(60),
            wait: Duration::from_secs(20),
            hold: Duration::from_millis(2),
            rest: Duration::from_millis(150),
            cancelled_percent: 0,
        };
        ClientProcess::start(CLIENT, &Work::Load(load))
    });
    for client in clients {
        let summary: LoadSummary = client.finish(Duration::from_secs(90)).await;
        eprintln!("{summary:?}");
        assert!(
            summary.acquired >= ACQUISITIONS.unsigned_abs() / 2,
            "{summary:?}"
        );
        assert!(summary.failed.is_empty(), "{summary:?}");
        assert!(summary.unreleased.is_empty(), "{summary:?}");
        assert!(
            summary.most_over_wait < Duration::from_secs(1),
            "{summary:?}"
        );
    }
    let holds = history.assert_exclusive();
    assert!(holds.len() >= usize::try_from(ACQUISITIONS).unwrap());

    // They did contend: a key went from one process to the other many times.
    let mut passed_on = 0;
    for key in 0..4 {
        let key = format!("key-{key}");
        let of_key: Vec<_> = holds.iter().filter(|hold| hold.key == key).collect();
        let owners = of_key.windows(2);
        passed_on += owners
            .filter(|two| two[0].owner.0 != two[1].owner.0)
            .count();
    }
    eprintln!(
        "{} holds, {passed_on} times to the other process",
        holds.len()
    );
    assert!(
        passed_on > 100,
        "only {passed_on} times to the other process"
    );
    nodes.become_empty(Duration::from_secs(2)).await;
}
