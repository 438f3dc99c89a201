use std::time::{Duration, SystemTime};

use redlock_sandbox::ServerOptions;

use crate::kit::{Examined, Nodes};

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
        &[
            "warning",
            &nodes[1].address().to_string(),
            "ms from the others'",
            "synchronise",
        ],
    );
    assert!((0.5..0.7).contains(&off(&examined)), "{examined:?}");
    assert_eq!(examined.code, 1, "{examined:?}");

    nodes[1]
        .clock()
        .unwrap()
        .advance(Duration::from_secs(5))
        .unwrap();
    let examined = nodes.doctor(&[]);
    examined.one(
        "clock",
        &[
            "failure",
            &nodes[1].address().to_string(),
            "more than a second: it is +",
            " s from them",
        ],
    );
    assert!((5.4..5.8).contains(&off(&examined)), "{examined:?}");
    assert_eq!(examined.code, 2);
}

/// By how many seconds a clock is said to be off: it is read over a network, and by a machine that may be busy.
fn off(examined: &Examined) -> f64 {
    let found = examined.found("clock");
    let (_, words) = found[0].split_once(" is +").unwrap();
    let mut words = words.split(' ');
    let number: f64 = words.next().unwrap().parse().unwrap();
    match words.next() {
        Some("ms") => number / 1_000.0,
        _ => number,
    }
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
        &[
            "failure",
            &nodes[2].address().to_string(),
            "-100",
            "maxslewrate",
        ],
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
    examined.one(
        "own-clock",
        &["warning all", "-30.0 s", "this machine's clock"],
    );
}
