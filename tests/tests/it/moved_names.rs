//! Names that lead to another server after a failover, while old connections stand.

use std::time::Duration;

use redlock_core::{NodeAnswer, NotAVote, Redlock, Unfit};
use redlock_tests::{Nodes, Proxy, eventually, now, voting, within};

const TTL: Duration = Duration::from_millis(500);
const MAX_TTL: Duration = Duration::from_secs(1);
/// Clients ask what a node is every five seconds.
const FOLLOWED: Duration = Duration::from_secs(12);

/// A master with a replica, behind a name.
struct Copied {
    nodes: Nodes,
    name: Proxy,
}

impl Copied {
    async fn start() -> Self {
        let nodes = Nodes::start(2);
        let name = Proxy::start(nodes[0].address()).await.unwrap();
        follow(&nodes, 1, 0);
        let info = || nodes.ask(1, &["INFO", "replication"]);
        eventually("the copy", FOLLOWED, info, |info| {
            info.contains("master_link_status:up")
        })
        .await;
        Self { nodes, name }
    }

    /// Promotes the replica and makes the master its replica, without a break of any connection.
    fn promote(&self) {
        self.nodes.ask(1, &["REPLICAOF", "NO", "ONE"]);
        follow(&self.nodes, 0, 1);
    }

    async fn client(&self) -> Redlock {
        let builder = Redlock::builder().best_effort(self.name.url());
        let builder = builder.ttl(TTL).max_ttl(MAX_TTL);
        builder.build().await.unwrap()
    }
}

fn follow(nodes: &Nodes, node: usize, master: usize) {
    let port = nodes[master].port().to_string();
    nodes.ask(node, &["REPLICAOF", "127.0.0.1", &port]);
}

// Shows: E11.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_client_follows_a_name_that_leads_to_the_promoted_replica() {
    let copied = Copied::start().await;
    let redlock = copied.client().await;
    redlock.acquire("a").await.unwrap().release().await.unwrap();
    let before = copied.name.connections();
    copied.promote();
    copied.name.lead_to(copied.nodes[1].address());
    let follows = async {
        while copied.name.connections() == before
            || redlock.node_reports().await[0].answer != NodeAnswer::Reachable
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    within("a vote of the promoted server", FOLLOWED, follows).await;
    let guard = redlock.acquire("a").await.unwrap();
    assert!(copied.nodes.pttl(1, "{redlock}:lock:a").is_some());
    guard.release().await.unwrap();
}

// Shows: E11.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_still_leads_to_the_old_master_is_tried_once_a_second() {
    let copied = Copied::start().await;
    let redlock = copied.client().await;
    copied.promote();
    let replica = NodeAnswer::NotAVote {
        reason: NotAVote::Unfit(Unfit::Replica),
    };
    let stands = async || redlock.node_reports().await.swap_remove(0).answer;
    let is_told = async {
        while stands().await != replica {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    within("that it is a replica", FOLLOWED, is_told).await;
    let (before, start) = (copied.name.connections(), now());
    let tried = async {
        while copied.name.connections() < before + 3 {
            assert_eq!(stands().await, replica, "what it is stays known");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    within("three more connections", FOLLOWED, tried).await;
    // The first of them may have been due already.
    assert!(now() - start >= Duration::from_secs(2));
    copied.name.lead_to(copied.nodes[1].address());
    voting(&redlock, 1, FOLLOWED).await;
}
