//! A quarantine ages while a client of the namespace is connected, and only then.

use std::{path::Path, process::Command, time::Duration};

use redlock_core::{NodeAnswer, NotAVote, Redlock};
use redlock_tests::{Nodes, builder, client, eventually, now, voting, within};

const TTL: Duration = Duration::from_millis(500);
const MAX_TTL: Duration = Duration::from_secs(4);
const SOON: Duration = Duration::from_secs(10);

async fn connect(nodes: &Nodes) -> Redlock {
    builder(nodes.urls(), TTL)
        .max_ttl(MAX_TTL)
        .build()
        .await
        .unwrap()
}

/// What `docker/votes.sh` says of a node, and whether that is yes.
fn votes(nodes: &Nodes, node: usize) -> (bool, String) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docker/votes.sh");
    let port = nodes[node].port().to_string();
    let mut command = Command::new("sh");
    command.arg(script).args(["redlock", "-p", &port]);
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    (output.status.success(), said)
}

/// How much of its quarantine the first node has before it.
async fn left(redlock: &Redlock) -> Duration {
    let look = async {
        loop {
            let reports = redlock.node_reports().await;
            if let NodeAnswer::NotAVote {
                reason: NotAVote::Quarantined { ready_in },
            } = &reports[0].answer
            {
                return *ready_in;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within("a node in quarantine", SOON, look).await
}

// Shows: L1.4.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_client_lets_a_quarantine_age() {
    let nodes = Nodes::start(3);
    let (yes, said) = votes(&nodes, 0);
    assert!(
        !yes && said.contains("no client of the namespace has looked"),
        "{said}"
    );
    let started = now();
    // Nothing is asked of it from now on.
    let idle = connect(&nodes).await;
    let (yes, said) = votes(&nodes, 0);
    assert!(!yes && said.contains("in quarantine"), "{said}");
    let all = || (0..3).all(|node| votes(&nodes, node).0);
    eventually("all nodes vote", SOON, all, |all| *all).await;
    let took = now() - started;
    assert!(took > MAX_TTL && took < MAX_TTL * 2, "{took:?}");
    idle.close().await;
}

// Shows: L1.4.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_client_a_quarantine_stands_still_and_the_next_client_goes_on_with_it() {
    let nodes = Nodes::start(3);
    let first = connect(&nodes).await;
    let whole = left(&first).await;
    let half = async {
        while left(&first).await > MAX_TTL / 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    within("half of the quarantine", SOON, half).await;
    first.close().await;
    drop(first);
    // A quarantine does not age without a client, so this wait must not count.
    tokio::time::sleep(MAX_TTL / 2).await;
    let next = connect(&nodes).await;
    let rest = left(&next).await;
    assert!(
        rest < whole - MAX_TTL / 4,
        "it began anew: {rest:?} of {whole:?}"
    );
    assert!(
        rest > MAX_TTL / 4,
        "it aged without a client: {rest:?} of {whole:?}"
    );
    voting(&next, 3, SOON).await;
    next.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_reconnects_goes_on_with_a_quarantine() {
    let nodes = Nodes::start(3);
    let redlock = connect(&nodes).await;
    let started = now();
    while left(&redlock).await > MAX_TTL / 2 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    nodes.ask_all(&["CLIENT", "KILL", "TYPE", "normal"]);
    voting(&redlock, 3, SOON).await;
    let took = now() - started;
    assert!(took < MAX_TTL + MAX_TTL / 2, "{took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_that_waits_until_each_node_votes_fails_no_acquire() {
    let mut nodes = Nodes::start(3);
    let max_ttl = TTL * 2;
    let redlock = builder(nodes.urls(), TTL).max_ttl(max_ttl);
    let redlock = redlock.build().await.unwrap();
    voting(&redlock, 3, SOON).await;
    let acquires = async {
        loop {
            // The guard lets go at once, in the background.
            if let Err(error) = redlock.acquire("a").await {
                return error;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let roll = async {
        for node in 0..3 {
            nodes[node].restart().unwrap();
            let (yes, said) = votes(&nodes, node);
            assert!(!yes, "it answers a PING, and: {said}");
            eventually("it votes", SOON, || votes(&nodes, node), |(yes, _)| *yes).await;
            // The client has heard of it too.
            voting(&redlock, 3, SOON).await;
        }
    };
    tokio::select! {
        error = acquires => panic!("{error}"),
        () = roll => {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_asked_whether_it_votes_and_says_why_not() {
    let mut nodes = Nodes::start(3);
    let redlock = client(nodes.urls(), TTL).await;
    assert_eq!(votes(&nodes, 0), (true, "votes: yes\n".to_owned()));
    nodes.ask(0, &["FLUSHALL"]);
    let (yes, said) = votes(&nodes, 0);
    assert!(!yes, "{said}");
    redlock.close().await;
    drop(redlock);
    // A mark of another run, as a snapshot has it.
    nodes.ask(0, &["SET", "{redlock}:mark", "voting 0123abcd 60000"]);
    let (yes, said) = votes(&nodes, 0);
    assert!(!yes && said.contains("it has restarted"), "{said}");
    nodes.ask(0, &["SET", "{redlock}:mark", "nonsense"]);
    let (yes, said) = votes(&nodes, 0);
    assert!(!yes && said.contains("cannot be read"), "{said}");
    nodes.kill(0..1);
    let (yes, said) = votes(&nodes, 0);
    assert!(!yes && said.contains("cannot be asked"), "{said}");
}
