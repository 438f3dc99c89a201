//! Replicas in processes of their own, whose clocks disagree or not: each has its share of the runs.
#![cfg(target_os = "linux")]

use std::{collections::BTreeMap, time::Duration};

use redlock_tests::{Connect, Fleet, Job, JobLog, Nodes};

const REPLICA: &str = env!("CARGO_BIN_EXE_redlock-test-client");
const SECOND: Duration = Duration::from_secs(1);

/// How many ticks each replica won of fifty that ran one after the other; the clocks are so many milliseconds ahead.
async fn shares(skews: [i64; 3]) -> BTreeMap<String, usize> {
    const TICKS: usize = 50;
    let nodes = Nodes::start(3);
    let connect = Connect {
        max_ttl: 2 * SECOND,
        ..Connect::to(nodes.urls(), SECOND * 3 / 2)
    };
    let jobs = vec![Job::new("quick", SECOND, Duration::from_millis(5))];
    let mut fleet = Fleet::new(REPLICA, connect, jobs);
    let names = ["a", "b", "c"];
    for (name, skew) in names.into_iter().zip(skews) {
        fleet.start_skewed(name, skew);
    }
    fleet.ready(&names).await;
    // While replicas come up one after the other, the first has all the runs.
    let before = fleet.log.runs("quick").len();
    let ran = |log: &JobLog| (log.runs("quick").len() >= before + TICKS).then_some(());
    fleet.until("fifty ticks run", ran).await;
    fleet.stop_all().await;
    fleet.log.assert_once();
    let mut shares: BTreeMap<_, _> = names.map(|name| (name.to_owned(), 0)).into();
    for run in fleet.log.runs("quick").into_iter().skip(before).take(TICKS) {
        *shares.entry(run.replica).or_default() += 1;
    }
    shares
}

fn assert_alike(shares: &BTreeMap<String, usize>) {
    let (least, most) = (
        shares.values().min().expect("three replicas"),
        shares.values().max().expect("three replicas"),
    );
    assert!(*most <= 2 * *least, "{shares:?}");
}

#[tokio::test]
async fn clocks_seven_tenths_of_a_second_apart_give_no_replica_more_than_twice_anothers_share() {
    let shares = shares([0, 700, 1_400]).await;
    println!("{shares:?}");
    assert_alike(&shares);
}

#[tokio::test]
async fn equal_clocks_give_no_replica_more_than_twice_anothers_share() {
    let shares = shares([0, 0, 0]).await;
    println!("{shares:?}");
    assert_alike(&shares);
}
