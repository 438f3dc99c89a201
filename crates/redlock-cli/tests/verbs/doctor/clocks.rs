use std::time::{Duration, SystemTime};

use redlock_sandbox::ServerOptions;

use crate::kit::Nodes;

async fn nodes() -> Nodes {
    let nodes = Nodes::start_with(3, &ServerOptions::default().own_clock());
    nodes.bless().await;
    nodes
}

#[tokio::test]
async fn a_clock_that_is_off_is_told_of_before_it_costs_the_vote_and_when_it_does() {
    let nodes = nodes().await;
    nodes[1]
        .clock()
        .unwrap()
        .advance(Duration::from_millis(600))
        .unwrap();
    let examined = nodes.doctor(&["--strict"]);
    examined.one(
        "clock",
        &format!(
            "warning … {} … ms from the others' … synchronise",
            nodes[1].address()
        ),
    );
    // It is read over a network, as exactly as the seconds below are told.
    let found = examined.found("clock");
    let (_, off) = found[0].split_once(" is +").unwrap();
    let off: u32 = off.split(' ').next().unwrap().parse().unwrap();
    assert!((550..650).contains(&off), "{examined:?}");
    assert_eq!(examined.code, 1, "{examined:?}");

    nodes[1]
        .clock()
        .unwrap()
        .advance(Duration::from_secs(5))
        .unwrap();
    let examined = nodes.doctor(&[]);
    examined.one(
        "clock",
        &format!(
            "failure … {} … more than a second: it is + … +5.6 s",
            nodes[1].address()
        ),
    );
    assert_eq!(examined.code, 2);
}

#[tokio::test]
#[expect(
    clippy::disallowed_methods,
    reason = "the clock of a server is stopped at what this machine's shows"
)]
async fn a_clock_that_does_not_run_as_fast_as_it_should_is_a_failure() {
    let nodes = nodes().await;
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap();
    nodes[2].clock().unwrap().set(now).unwrap();
    let examined = nodes.doctor(&[]);
    examined.one(
        "clock-rate",
        &format!("failure … {} … -100 … maxslewrate", nodes[2].address()),
    );
    assert_eq!(examined.code, 2);
}

#[tokio::test]
async fn nodes_that_agree_with_each_other_show_that_this_machine_is_off() {
    let nodes = nodes().await;
    for node in 0..3 {
        nodes[node]
            .clock()
            .unwrap()
            .advance(Duration::from_secs(30))
            .unwrap();
    }
    let examined = nodes.doctor(&["--strict"]);
    examined.one("own-clock", "warning all … -30.0 s … this machine's clock");
}
