//! Sentinels and nodes that were replaced, and operators that have others forget them.

use std::time::Duration;

use redlock_core::{NodeAnswer, Redlock};
use redlock_sandbox::{Server, ServerOptions};
use redlock_tests::{Bus, ClusterNodes, WatchedNodes, eventually, voting};
use tokio::time::sleep;

use super::{
    FOLLOWED, POLL, assert_held_alone, clients, field, lock_and_release, locked, named_by,
    replaced, try_lock,
};

/// On each side of a cut between five Sentinels there are clients that name three of them.
///
/// The sides run in turn, so that neither hears the other one.
// Shows: R7.11.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_that_forget_the_other_side_of_a_cut_give_it_no_second_vote() {
    let longest = Duration::from_secs(6);
    let mut nodes = WatchedNodes::start_with(1, 5, &ServerOptions::default());
    let urls = nodes.urls();
    let [left_of_all, right_of_all] = clients([urls.clone(), urls], longest).await;
    let of_three = [[0, 1, 2], [2, 3, 4]].map(|places| {
        let hosts = places.map(|place| nodes.sentinels[place].address().to_string());
        let url = format!("redis+sentinel://{}/lock-0", hosts.join(","));
        let builder = Redlock::builder().node(url).ttl(longest).max_ttl(longest);
        builder.connect_lazily().build()
    });
    let [left_of_three, right_of_three] = of_three;
    let [left_of_three, right_of_three] =
        [left_of_three.await.unwrap(), right_of_three.await.unwrap()];
    lock_and_release(&left_of_all).await;
    let old = nodes.masters[0].port();
    nodes.masters[0].freeze().unwrap();
    for sentinel in [0, 1] {
        nodes.sentinels[sentinel].kill().unwrap();
    }
    let right: Vec<&Server> = (2..5).map(|place| &nodes.sentinels[place]).collect();
    replaced(&right, old).await;
    let held = locked(&right_of_all).await;
    held.extend().await.expect("its server votes");
    each(&right, Server::freeze);
    nodes.replicas[0].freeze().unwrap();
    // What the others have told it is lost before a Sentinel of this side listens.
    nodes.masters[0].thaw().unwrap();
    nodes.masters[0].command(&["PING"]).unwrap();
    for sentinel in [0, 1] {
        nodes.sentinels[sentinel].restart().unwrap();
    }
    for sentinel in [0, 1] {
        let sentinel = &nodes.sentinels[sentinel];
        sentinel.command(&["SENTINEL", "RESET", "*"]).unwrap();
        assert_eq!(named_by(sentinel, 0), Some(old));
    }
    let rivals = [&left_of_three, &left_of_all, &right_of_three];
    assert_held_alone(&held, &rivals, FOLLOWED).await;
    let right: Vec<&Server> = (2..5).map(|place| &nodes.sentinels[place]).collect();
    each(&right, Server::thaw);
    nodes.replicas[0].thaw().unwrap();
    lock_and_release(&left_of_all).await;
}

/// An owner is cut off with another's replica, and an operator on that side has both forget the other nodes.
///
/// The client of that side cannot reach the others.
// Shows: R7.11.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_forget_the_other_side_of_a_cut_give_it_no_second_vote() {
    let longest = Duration::from_secs(8);
    let nodes = ClusterNodes::start(3);
    let bus = Bus::of(&nodes).await;
    for server in nodes.servers() {
        let setting = ["CONFIG", "SET", "cluster-require-full-coverage", "no"];
        server.command(&setting).unwrap();
    }
    let owner = nodes.owner(NAMESPACE);
    let shard = nodes.masters.iter().position(|it| it.port() == owner);
    let shard = shard.expect("it is a master");
    let of_other = (shard + 1) % nodes.masters.len();
    let left = [&nodes.masters[shard], &nodes.replicas[of_other]];
    let of_left = left.map(|it| it.address().to_string()).join(",");
    let urls = [nodes.url(), format!("redis+cluster://{of_left}")];
    let [one, other] = clients(urls.map(|url| vec![url]), longest).await;
    lock_and_release(&one).await;
    lock_and_release(&other).await;
    let is_right = |server: &&Server| left.iter().all(|it| it.port() != server.port());
    let right: Vec<&Server> = nodes.servers().filter(is_right).collect();
    let ids: Vec<String> = right.iter().map(|it| id(it)).collect();
    bus.cut_off(&left.map(Server::port));
    let promoted = nodes.replicas[shard].port();
    let named = || nodes.owner_as_of(promoted, NAMESPACE).ok();
    eventually("a failover", FOLLOWED, named, |named| {
        *named == Some(promoted)
    })
    .await;
    // A moment later, the client has learned of it.
    voting(&one, 0, FOLLOWED).await;
    let held = locked(&one).await;
    held.extend().await.expect("its server votes");
    each(&right, Server::freeze);
    for server in left {
        for id in &ids {
            // A replica cannot forget its master.
            let _ = server.command(&["CLUSTER", "FORGET", id]);
        }
    }
    assert_held_alone(&held, &[&other], FOLLOWED).await;
    each(&right, Server::thaw);
}

/// Two of three are replaced twice, each time at another address; the third remembers the four that are gone.
// Shows: R7.13.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_that_are_gone_do_not_keep_a_vote_from_those_that_took_their_place() {
    let longest = Duration::from_secs(2);
    let mut nodes = WatchedNodes::start(1);
    for sentinel in [0, 1, 0, 1] {
        replace(&mut nodes, sentinel).await;
    }
    // The master has no mark yet: the client counts the Sentinels that run.
    let [redlock] = clients([nodes.urls()], longest).await;
    lock_and_release(&redlock).await;
    for sentinel in [0, 1] {
        replace(&mut nodes, sentinel).await;
    }
    // It has a mark that lists one of these three only.
    let connect = Redlock::builder().nodes(nodes.urls()).ttl(longest);
    let connect = connect.max_ttl(longest).connect_lazily();
    let redlock = connect.build().await.unwrap();
    is_said(&redlock, "SENTINEL RESET").await;
    for sentinel in &nodes.sentinels {
        sentinel.command(&["SENTINEL", "RESET", "lock-0"]).unwrap();
    }
    lock_and_release(&redlock).await;
}

/// Each replica is replaced twice, and no node forgets those that are gone.
// Shows: R7.13.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_remembers_replaced_replicas_has_its_votes_back_once_it_forgets_them() {
    let longest = Duration::from_secs(2);
    let mut nodes = ClusterNodes::start(3);
    let [redlock] = clients([vec![format!("{}?votes=3", nodes.url())]], longest).await;
    lock_and_release(&redlock).await;
    let mut gone = Vec::new();
    for shard in [0, 1, 2, 0, 1, 2] {
        gone.push(id(&nodes.replicas[shard]));
        nodes.replace_replica(shard).unwrap();
    }
    is_said(&redlock, "CLUSTER FORGET").await;
    assert!(try_lock(&redlock).await.is_none(), "it has no majority");
    for id in &gone {
        for server in nodes.servers() {
            server.command(&["CLUSTER", "FORGET", id]).unwrap();
        }
    }
    voting(&redlock, 3, FOLLOWED).await;
    lock_and_release(&redlock).await;
}

/// Replaces a Sentinel, and waits until it and the third know each other.
async fn replace(nodes: &mut WatchedNodes, sentinel: usize) {
    nodes.replace(sentinel).unwrap();
    let [new, third] = [&nodes.sentinels[sentinel], &nodes.sentinels[2]];
    let knows = |one: &Server, other: &Server| {
        let known = one.command(&["SENTINEL", "SENTINELS", "lock-0"]).ok();
        let port = other.port().to_string();
        let known = known.as_ref().and_then(|known| known.as_array());
        known.is_some_and(|it| it.iter().any(|it| field(it, "port") == Some(&*port)))
    };
    let are_met = || knows(new, third) && knows(third, new);
    eventually("a new Sentinel", FOLLOWED, are_met, |are_met| *are_met).await;
}

/// Waits until the client says of its first node why it asks nothing of it, with these words.
async fn is_said(redlock: &Redlock, words: &str) {
    let mut last = String::new();
    let said = async {
        while !last.contains(words) {
            let report = redlock.node_reports().await.swap_remove(0);
            if let NodeAnswer::NotExecuted { .. } = report.answer {
                last = report.to_string();
            }
            sleep(POLL).await;
        }
    };
    if tokio::time::timeout(ADVISED, said).await.is_err() {
        panic!("{words} is not in: {last}");
    }
}

fn each<T: std::fmt::Debug, E: std::fmt::Debug>(
    servers: &[&Server],
    change: impl Fn(&Server) -> Result<T, E>,
) {
    for server in servers {
        change(server).unwrap();
    }
}

/// The name that a node of a Cluster has given itself.
fn id(server: &Server) -> String {
    let id = server.command(&["CLUSTER", "MYID"]).unwrap();
    id.as_text().unwrap().to_owned()
}

/// The hash tag of the default namespace.
const NAMESPACE: &str = "{redlock}";
/// A client looks once a second.
const ADVISED: Duration = Duration::from_secs(15);
