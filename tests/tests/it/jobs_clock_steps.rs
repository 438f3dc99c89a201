//! A replica whose clock is wrong takes part, and so it does when the clock is set right.
#![cfg(target_os = "linux")]
#![expect(clippy::print_stdout, reason = "helpers of tests")]

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use redlock_tests::{Connect, Fleet, Job, JobLog, Nodes, within};

const REPLICA: &str = env!("CARGO_BIN_EXE_redlock-test-client");
const MINUTE: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(30);

// Shows: T4.2.
#[tokio::test]
async fn a_replica_whose_clock_was_ahead_takes_part_again_once_it_is_set_right() {
    let nodes = Nodes::start(3);
    let connect = Connect::to(nodes.urls(), Duration::from_secs(5));
    let job = Job::new("job", Duration::from_secs(2), Duration::from_millis(5));
    let mut fleet = Fleet::new(REPLICA, connect, vec![job]);
    let replicas = [
        ("half-an-hour", 30 * MINUTE),
        ("days", 3 * 24 * 60 * MINUTE),
        ("years", 4_000 * 24 * 60 * MINUTE),
    ];
    for (name, _) in replicas {
        fleet.start_skewed(name, 0);
    }
    fleet.ready(&replicas.map(|(name, _)| name)).await;
    all_say(&fleet, 0, &["ok", "not_winner"]).await;

    for (clock, (_, ahead)) in fleet.clocks().iter().zip(replicas) {
        clock.advance(ahead).unwrap();
    }
    // The nodes' clocks say when a tick is due.
    all_say(&fleet, this_second(), &["ok", "not_winner"]).await;
    for (clock, (_, ahead)) in fleet.clocks().iter().zip(replicas) {
        clock.set_back(ahead).unwrap();
    }
    all_say(&fleet, this_second(), &["ok", "not_winner"]).await;
    fleet.stop_all().await;
    println!("{} runs", fleet.log.assert_once());
}

/// Waits until each of the three replicas has reported one of these outcomes of a tick after that second.
async fn all_say(fleet: &Fleet, after: i64, wanted: &[&str]) {
    let all_say = |log: &JobLog| {
        let said = log.outcomes("job").into_iter();
        let said = said.filter(|(tick, _, outcome)| *tick > after && wanted.contains(&&**outcome));
        let said = said.map(|(tick, replica, outcome)| (replica, (tick, outcome)));
        let said: BTreeMap<_, _> = said.collect();
        (said.len() == 3).then_some(said)
    };
    let said = fleet.until("all replicas come to a tick", all_say);
    let said = within("all replicas come to a tick", PATIENCE, said).await;
    println!("{said:?}");
}

fn this_second() -> i64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "ticks are instants of the wall clock"
    )]
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_secs()).unwrap_or(i64::MAX)
}
