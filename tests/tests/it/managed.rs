//! Stand-ins for managed services: local servers that forbid the same commands, drop keys or have replicas.
//!
//! They show how the client treats such a server, and not that a service is like it in everything else.

use std::{
    future::pending,
    sync::{Arc, Mutex},
    time::Duration,
};

use redlock_core::{Credentials, Guarantee, NodeAnswer, NodeConfig, NotAVote, Redlock, Unfit};
use redlock_sandbox::ServerOptions;
use redlock_tests::{ClusterNodes, Nodes, client, eventually, voting, within};
use tokio::time::{sleep, timeout};

const TTL: Duration = Duration::from_secs(10);
/// Nodes are asked what they are when a connection is made, and every five seconds.
const INSPECTED: Duration = Duration::from_secs(8);

/// The commands that each service forbids, by the sources in `docs/managed.md`, if Redis 7.0 has them.
const FORBIDDEN: [(&str, &str); 4] = [
    (
        "ElastiCache and MemoryDB",
        "acl bgrewriteaof bgsave config debug migrate module psync replicaof save shutdown slaveof sync",
    ),
    (
        "ElastiCache Serverless",
        "acl bgrewriteaof bgsave client config debug fcall fcall_ro function keys lastsave latency memory migrate \
         monitor move object psubscribe psync punsubscribe replicaof save shutdown slaveof slowlog swapdb sync wait",
    ),
    (
        "OCI Cache",
        "acl bgrewriteaof bgsave cluster config debug migrate module psync replicaof save shutdown sync",
    ),
    (
        "Aiven",
        "acl bgrewriteaof bgsave cluster command config debug failover lastsave migrate monitor replicaof save \
         shutdown slaveof",
    ),
];

async fn best_effort(url: &str) -> Redlock {
    let builder = Redlock::builder().best_effort(url).ttl(TTL);
    builder
        .namespace("effort")
        .build()
        .await
        .expect("the server is there")
}

/// Acquires, extends and releases a lease.
async fn locks(redlock: &Redlock) {
    let guard = redlock.acquire("a").await.unwrap();
    guard.extend().await.unwrap();
    guard.release().await.unwrap();
}

/// Uses the server as a node that votes, and by best effort.
async fn serves(url: &str) {
    let redlock = client([url], TTL).await;
    locks(&redlock).await;
    redlock.close().await;
    let redlock = best_effort(url).await;
    locks(&redlock).await;
    redlock.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_do_not_know_what_a_service_forbids_grant_leases() {
    for (service, forbidden) in FORBIDDEN {
        println!("{service}");
        let commands = forbidden.split(' ');
        let options = commands.fold(ServerOptions::default(), |options, command| {
            options
                .argument("--rename-command")
                .argument(command)
                .argument("")
        });
        let nodes = Nodes::start_with(1, &options);
        let refusal = nodes[0].command(&["CONFIG", "GET", "save"]);
        assert!(refusal.is_err(), "it knows CONFIG: {refusal:?}");
        serves(&nodes[0].url()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_without_the_rights_that_a_service_withholds_get_leases() {
    for (service, forbidden) in FORBIDDEN {
        println!("{service}");
        let nodes = Nodes::start(1);
        let forbidden = forbidden.replace(' ', " -");
        let user = format!("ACL SETUSER lock on >sesame ~* +@all -{forbidden}");
        nodes.ask(0, &user.split(' ').collect::<Vec<_>>());
        serves(&nodes[0].url().replace("redis://", "redis://lock:sesame@")).await;
    }
}

/// Its default is `volatile-lru` in five of the services, and each lock is a key with a time to live.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_drops_keys_grants_nothing_by_best_effort_either() {
    let nodes = Nodes::start(1);
    nodes.ask(0, &["CONFIG", "SET", "maxmemory-policy", "volatile-lru"]);
    nodes.ask(0, &["CONFIG", "SET", "maxmemory", "100mb"]);
    let redlock = Redlock::builder().best_effort(nodes[0].url()).ttl(TTL);
    let redlock = redlock.connect_lazily().build().await.unwrap();
    let evicts = NodeAnswer::NotAVote {
        reason: NotAVote::Unfit(Unfit::Evicts {
            policy: "volatile-lru".into(),
        }),
    };
    let stands = async |wanted: NodeAnswer| {
        while redlock.node_reports().await[0].answer != wanted {
            sleep(Duration::from_millis(20)).await;
        }
    };
    within("the reason", INSPECTED, stands(evicts)).await;
    let error = redlock.try_acquire("a").await.unwrap_err().to_string();
    assert!(error.contains("maxmemory-policy volatile-lru"), "{error}");
    assert!(error.contains("set it to noeviction"), "{error}");
    nodes.ask(0, &["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    within("the vote", INSPECTED, stands(NodeAnswer::Reachable)).await;
    locks(&redlock).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_a_replica_grants_leases_at_once_by_best_effort() {
    let nodes = Nodes::start(2);
    let port = nodes[0].port().to_string();
    nodes.ask(1, &["REPLICAOF", "127.0.0.1", &port]);
    let info = || nodes.ask(0, &["INFO", "replication"]);
    eventually("it is copied", INSPECTED, info, |info| {
        info.contains("connected_slaves:1")
    })
    .await;
    let redlock = best_effort(&nodes[0].url()).await;
    let guard = redlock.acquire("a").await.unwrap();
    assert_eq!(guard.lease().guarantee(), Guarantee::BestEffort);
    guard.release().await.unwrap();
}

/// What a provider of credentials says at the moment.
#[derive(Clone)]
enum Says {
    Password(&'static str),
    Error(&'static str),
    Nothing,
}

/// Makes a node whose password is what `says` has when it is connected to.
fn asking(url: String, says: &Arc<Mutex<Says>>) -> NodeConfig {
    let says = Arc::clone(says);
    NodeConfig::with_credentials(url, move || {
        let now = says.lock().unwrap().clone();
        async move {
            match now {
                Says::Password(password) => Ok(Credentials::new("lock", password)),
                Says::Error(why) => Err(why),
                Says::Nothing => pending().await,
            }
        }
    })
}

/// Waits until the report of the client's only node has these words.
async fn said(redlock: &Redlock, words: &str) {
    let mut line = String::new();
    let says = async {
        while !line.contains(words) {
            sleep(Duration::from_millis(20)).await;
            line = redlock.node_reports().await[0].to_string();
        }
    };
    let is_said = timeout(INSPECTED, says).await.is_ok();
    assert!(is_said, "{line}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_that_expires_is_asked_for_at_each_connection() {
    let nodes = Nodes::start(1);
    nodes.ask(
        0,
        &["ACL", "SETUSER", "lock", "on", ">first", "~*", "+@all"],
    );
    let says = Arc::new(Mutex::new(Says::Password("first")));
    let node = asking(nodes[0].url(), &says);
    let redlock = Redlock::builder().best_effort(node).ttl(TTL);
    let redlock = redlock.build().await.unwrap();
    let guard = redlock.acquire("a").await.unwrap();
    // The connection stands, whatever becomes of the password.
    nodes.ask(0, &["ACL", "SETUSER", "lock", "<first", ">second"]);
    guard.extend().await.unwrap();
    let ends_it = || nodes.ask(0, &["CLIENT", "KILL", "USER", "lock"]);
    ends_it();
    said(&redlock, "authentication failed").await;
    *says.lock().unwrap() = Says::Error("the vault is sealed");
    said(
        &redlock,
        "its provider of credentials failed: the vault is sealed",
    )
    .await;
    *says.lock().unwrap() = Says::Nothing;
    said(&redlock, "no connection within").await;
    *says.lock().unwrap() = Says::Password("second");
    said(&redlock, "reachable").await;
    assert!(guard.is_held());
    guard.extend().await.unwrap();
    guard.release().await.unwrap();
    redlock.close().await;
}

/// The nodes of a Cluster are asked with them, and the owner of the slot.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_asked_with_the_credentials_of_a_provider() {
    let nodes = ClusterNodes::start(3);
    for server in nodes.servers() {
        let user = ["ACL", "SETUSER", "lock", "on", ">first", "~*", "+@all"];
        server.command(&user).unwrap();
        // A client that gives no password is this user.
        let user = ["ACL", "SETUSER", "default", "-cluster"];
        server.command(&user).unwrap();
    }
    let says = Arc::new(Mutex::new(Says::Password("first")));
    for (query, votes) in [("", 1), ("?votes=3", 3)] {
        let node = asking(nodes.url() + query, &says);
        let redlock = Redlock::builder().node(node).ttl(TTL);
        let redlock = redlock.build().await.unwrap();
        redlock.dangerous_bless().await; // the servers are new
        voting(&redlock, votes, INSPECTED).await;
        locks(&redlock).await;
        redlock.close().await;
    }
}
