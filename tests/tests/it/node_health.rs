//! A node that votes and grants nothing is reported with the error that it gives, until it is over.

use std::{fs, io::Write, net::TcpStream, path::Path, time::Duration};

use redlock_core::{NodeAnswer, NotAVote, Redlock, Unfit};
use redlock_sandbox::ServerOptions;
use redlock_tests::{Nodes, client, eventually, within};

const TTL: Duration = Duration::from_secs(10);
const SOON: Duration = Duration::from_secs(3);
/// Nodes in trouble are looked at every five seconds.
const OVER: Duration = Duration::from_secs(9);

/// Waits until the last node stands as it is wanted; returns how.
async fn stands(
    redlock: &Redlock,
    limit: Duration,
    wanted: impl Fn(&NodeAnswer) -> bool,
) -> String {
    let look = async {
        loop {
            let answer = redlock.node_reports().await.swap_remove(2).answer;
            if wanted(&answer) {
                return answer.to_string();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    within("the node's standing", limit, look).await
}

fn votes(answer: &NodeAnswer) -> bool {
    *answer == NodeAnswer::Reachable
}

fn fails(answer: &NodeAnswer) -> bool {
    matches!(answer, NodeAnswer::Failing { .. })
}

/// Acquires and releases a lease, which the other nodes grant.
async fn acquire(redlock: &Redlock) {
    let guard = redlock.try_acquire("a").await.unwrap();
    guard.release().await.unwrap();
}

/// Checks that trouble of the last of three nodes is reported with `words`.
///
/// Its end must be noticed too, though no caller asks for a lease any more.
async fn reported(nodes: &Nodes, trouble: impl FnOnce(&Nodes), words: [&str; 2], end: &[&str]) {
    let redlock = client(nodes.urls(), TTL).await;
    acquire(&redlock).await;
    stands(&redlock, SOON, votes).await;
    trouble(nodes);
    acquire(&redlock).await;
    let line = stands(&redlock, SOON, fails).await;
    for word in words {
        assert!(line.contains(word), "{line}");
    }
    if words[0] != "BUSY" {
        // It goes on to say where it stands, which proves nothing.
        let calls = || nodes.calls(2, "evalsha");
        let before = calls();
        eventually("it is looked at", OVER, calls, |now| *now > before + 2).await;
        let answer = redlock.node_reports().await.swap_remove(2).answer;
        assert!(fails(&answer), "{answer}");
    }
    nodes.ask(2, end);
    stands(&redlock, OVER, votes).await;
    redlock.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_memory() {
    let nodes = Nodes::start(3);
    let fill = |nodes: &Nodes| {
        nodes.ask(2, &["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
        nodes.ask(2, &["CONFIG", "SET", "maxmemory", "1"]);
    };
    let end = ["CONFIG", "SET", "maxmemory", "0"];
    reported(&nodes, fill, ["OOM", "give it more"], &end).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_wants_replicas() {
    let nodes = Nodes::start(3);
    let want = |nodes: &Nodes| {
        nodes.ask(2, &["CONFIG", "SET", "min-replicas-to-write", "1"]);
    };
    let end = ["CONFIG", "SET", "min-replicas-to-write", "0"];
    let words = ["NOREPLICAS", "set min-replicas-to-write to 0"];
    reported(&nodes, want, words, &end).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_cannot_save() {
    let name = ServerOptions::default().argument("--dbfilename");
    let nodes = Nodes::start_with(3, &name.argument("blocked"));
    let block = |nodes: &Nodes| {
        let folder = nodes[2].command(&["CONFIG", "GET", "dir"]).unwrap();
        let folder = folder.as_array().unwrap()[1].as_text().unwrap().to_owned();
        // No file can take the place of a folder.
        fs::create_dir(Path::new(&folder).join("blocked")).unwrap();
        nodes.ask(2, &["CONFIG", "SET", "save", "3600 1"]);
        nodes.ask(2, &["BGSAVE"]);
        while !nodes
            .ask(2, &["INFO", "persistence"])
            .contains("rdb_last_bgsave_status:err")
        {
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let end = ["CONFIG", "SET", "stop-writes-on-bgsave-error", "no"];
    reported(&nodes, block, ["MISCONF", "see its log"], &end).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_busy_with_a_script() {
    let nodes = Nodes::start(3);
    let mut others = TcpStream::connect(nodes[2].address()).unwrap();
    let run = |nodes: &Nodes| {
        nodes.ask(2, &["CONFIG", "SET", "busy-reply-threshold", "50"]);
        let script = b"EVAL 'while true do end' 0\r\n";
        others.write_all(script).unwrap();
        let busy = || nodes[2].command(&["GET", "a"]).unwrap_err().to_string();
        assert!(busy().contains("BUSY"));
    };
    let end = ["SCRIPT", "KILL"];
    reported(&nodes, run, ["BUSY", "SCRIPT KILL"], &end).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_just_made_a_replica() {
    let nodes = Nodes::start(3);
    let redlock = client(nodes.urls(), TTL).await;
    acquire(&redlock).await;
    stands(&redlock, SOON, votes).await;
    // A master that is down: it has no data to take over.
    nodes.ask(2, &["REPLICAOF", "127.0.0.1", "1"]);
    acquire(&redlock).await;
    // Before it is asked again what it is.
    let line = stands(&redlock, SOON, |answer| !votes(answer)).await;
    assert!(line.contains("it is a replica"), "{line}");
    let replica = NodeAnswer::NotAVote {
        reason: NotAVote::Unfit(Unfit::Replica),
    };
    stands(&redlock, OVER, |answer| *answer == replica).await;
}

#[tokio::test]
async fn an_idle_client_sends_as_little_as_its_heartbeat_says() {
    let nodes = Nodes::start(2);
    let client = |node: usize| Redlock::builder().node(nodes[node].url());
    let usual = client(0).build().await.unwrap();
    let seldom = client(1).heartbeat(Duration::from_secs(60));
    let seldom = seldom.build().await.unwrap();
    for redlock in [&usual, &seldom] {
        redlock.dangerous_bless().await;
    }
    let calls = |node| nodes.calls(node, "evalsha");
    let before = [calls(0), calls(1)];
    tokio::time::sleep(Duration::from_secs(7)).await;
    let sent = [calls(0) - before[0], calls(1) - before[1]];
    assert!((6..=9).contains(&sent[0]), "{sent:?}");
    assert!(sent[1] <= 1, "{sent:?}");
    seldom.acquire("a").await.unwrap().release().await.unwrap();
}
