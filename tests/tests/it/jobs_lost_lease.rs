//! A run that is only told when its lease is lost: it is told in time.
#![cfg(unix)]

use std::time::Duration;

use redlock_tests::{Connect, Fleet, Job, JobLog, Nodes, Policies, now};

const REPLICA: &str = env!("CARGO_BIN_EXE_redlock-test-client");
const SECOND: Duration = Duration::from_secs(1);
/// Of which a fiftieth is left when the holder takes it for lost: enough for a busy machine to say so.
const TTL: Duration = Duration::from_secs(12);
const JOB: &str = "signalled";
const KEY: &str = "{redlock}:lock:redlock-cron-job:tests/signalled";

/// When each node lets the lock go at the earliest, if no renewal is on its way: the last one is a moment ago.
fn expiries(nodes: &Nodes) -> Option<Vec<Duration>> {
    let expiry = |node| {
        let asked = now();
        let left = nodes.pttl(node, KEY).filter(|left| *left > TTL * 9 / 10)?;
        Some(asked + left)
    };
    (0..nodes.len()).map(expiry).collect()
}

/// Freezes all nodes right after a renewal; returns when each of them lets the lock go at the earliest.
async fn freeze(nodes: &Nodes) -> Vec<Duration> {
    let limit = now() + 4 * TTL;
    loop {
        let asked = now();
        let expiries = expiries(nodes);
        if let Some(expiries) = expiries {
            nodes.freeze(0..nodes.len());
            // The next renewal comes a third of the time to live after the last.
            if now() < asked + TTL / 10 {
                return expiries;
            }
            nodes.thaw(0..nodes.len());
        }
        assert!(
            now() < limit,
            "the machine stands still, or nothing is renewed"
        );
        tokio::time::sleep(SECOND / 50).await;
    }
}

// Shows: T2.7.
#[tokio::test]
async fn a_run_is_told_before_its_lease_can_be_anothers_though_no_master_answers() {
    let nodes = Nodes::start(3);
    let job = Job {
        policies: Policies {
            signal: true,
            stops_in: Some(SECOND * 2),
            ..Policies::default()
        },
        ..Job::new(JOB, SECOND * 5, SECOND * 600)
    };
    let mut fleet = Fleet::new(REPLICA, Connect::to(nodes.urls(), TTL), vec![job]);
    for name in ["a", "b"] {
        fleet.start(name, Duration::ZERO);
    }
    fleet.ready(&["a", "b"]).await;
    let run = fleet.next_run(JOB, |_| true).await;
    let mut expiries = freeze(&nodes).await;
    let frozen = now();
    expiries.sort_unstable();
    // With two nodes of three.
    let free = expiries[1];
    let told = |log: &JobLog| match log.latest(JOB, &run).told {
        Some(told) => Some(Some(told)),
        None => (now() > free + SECOND * 5).then_some(None),
    };
    let told = fleet
        .until("the run is told or its lease is another's", told)
        .await;
    nodes.thaw(0..3);
    let told = told.unwrap_or_else(|| panic!("it was not told, and the lease is long over"));
    assert!(frozen < told, "it was told {:?} before", frozen - told);
    assert!(
        told < free,
        "it was told {:?} after another could have the lease",
        told - free
    );
    println!(
        "told {:?} after the masters froze, {:?} before another could have the lease",
        told - frozen,
        free - told
    );

    let next = |log: &JobLog| {
        log.runs(JOB)
            .into_iter()
            .find(|next| next.token > run.token)
    };
    let next = fleet.until("a later tick starts", next).await;
    let became = |log: &JobLog| log.outcome(JOB, &run);
    let became = fleet
        .until("it is said what became of the run", became)
        .await;
    println!("{}", fleet.log.table(JOB));
    assert!(told < next.began);
    assert_eq!(became, "lost");
    let run = fleet.log.latest(JOB, &run);
    assert!(run.finished.is_some(), "it was dropped: {run:?}");
    fleet.stop_all().await;
    fleet.log.assert_once();
}
