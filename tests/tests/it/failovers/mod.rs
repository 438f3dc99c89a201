//! Servers that others name, and failovers back and forth between them.
//!
//! A server that was replaced still has its data, and may be named again before it is another's replica.
//! Its mark says then that it votes, although the other server has granted leases in the meantime.
//!
//! | file | role |
//! |---|---|
//! | `back_and_forth` | load in two processes, while masters are replaced again and again |
//! | `sentinel_form`, `cluster_form` | the ways to replace a master there |
//! | `failbacks` | the old server is named again before it is a replica |
//! | `lost_files` | Sentinels that start again without their files |
//! | `forgotten` | Sentinels and nodes that were replaced, and others that forget them |
//! | `moved_slots` | a slot whose move is given up |

mod back_and_forth;
mod cluster_form;
mod failbacks;
mod forgotten;
mod lost_files;
mod moved_slots;
mod sentinel_form;

use std::time::Duration;

use redlock_core::{AcquireOptions, LockGuard, Redlock, Wait};
use redlock_sandbox::{Server, Value};
use redlock_tests::{Connect, WatchedNodes, eventually, now, within};
use tokio::time::sleep;

/// A quarantine lasts for the longest lease and five seconds; a failover, and what Sentinels learn late, take longer
/// on a busy machine.
const FOLLOWED: Duration = Duration::from_secs(45);

/// Clients in this process that lock one key, for this time at most.
async fn clients<const N: usize>(urls: [Vec<String>; N], longest: Duration) -> [Redlock; N] {
    let mut clients = Vec::new();
    for nodes in urls {
        let connect = Connect {
            max_ttl: longest,
            ..Connect::to(nodes, longest)
        };
        clients.push(connect.client().await);
    }
    clients.try_into().expect("each has become a client")
}

/// Tries to lock the key once.
async fn try_lock(redlock: &Redlock) -> Option<LockGuard> {
    let options = AcquireOptions::new().wait(Wait::Never);
    let options = options.quorum_wait(Duration::ZERO);
    redlock.acquire_with("a", options).await.ok()
}

/// Locks the key as soon as that is possible.
async fn locked(redlock: &Redlock) -> LockGuard {
    let locked = async {
        loop {
            match try_lock(redlock).await {
                Some(guard) => return guard,
                None => sleep(POLL).await,
            }
        }
    };
    within("a lease", FOLLOWED, locked).await
}

/// Locks the key and releases it, so that the server of the moment has a mark that says that it votes.
async fn lock_and_release(redlock: &Redlock) {
    let guard = locked(redlock).await;
    guard.release().await.expect("its server is there");
}

/// Checks that no rival locks the key while `held` is valid; it ends with that lease, or after `limit`.
async fn assert_held_alone(held: &LockGuard, rivals: &[&Redlock], limit: Duration) {
    let begun = now();
    while held.is_held() && now() < begun + limit {
        for rival in rivals {
            let Some(second) = try_lock(rival).await else {
                continue;
            };
            // In this order: both are valid at the moment between the two questions.
            let is_held = held.is_held();
            assert!(
                !(is_held && second.is_held()),
                "two clients hold the key, {:?} after the fault: tokens {} and {}",
                now() - begun,
                held.token(),
                second.token()
            );
            return;
        }
        sleep(POLL).await;
    }
}

/// Waits until the lease is over, because nothing renews it.
async fn until_lost(held: LockGuard) {
    within("the end of a lease", FOLLOWED, held.lost()).await;
}

/// Waits until all Sentinels take a server for a replica that can be promoted.
async fn can_be_promoted(nodes: &WatchedNodes, master: usize, port: impl Fn() -> u16) {
    let flags = || -> Vec<String> {
        let (sentinels, port) = (nodes.sentinels.iter(), port());
        sentinels.map(|it| flags_of(it, master, port)).collect()
    };
    let can_be = |flags: &Vec<String>| flags.iter().all(|flags| flags == "slave");
    eventually("a replica that can be promoted", FOLLOWED, flags, can_be).await;
}

/// What a Sentinel says of a replica; nothing if it does not know it, or does not answer.
fn flags_of(sentinel: &Server, master: usize, port: u16) -> String {
    let question = ["SENTINEL", "REPLICAS", &format!("lock-{master}")];
    let answer = sentinel.command_within(SILENT, &question).ok();
    let replicas = answer.as_ref().and_then(|answer| answer.as_array());
    let port = port.to_string();
    let is_it = |replica: &&Value| field(replica, "port") == Some(&*port);
    let replica = replicas.and_then(|replicas| replicas.iter().find(is_it));
    let flags = replica.and_then(|replica| field(replica, "flags"));
    flags.unwrap_or_default().to_owned()
}

/// A field of an answer that has the name of each field before its text.
fn field<'a>(answer: &'a Value, name: &str) -> Option<&'a str> {
    let fields = answer.as_array()?;
    let mut pairs = fields.chunks_exact(2);
    let found = pairs.find(|pair| pair[0].as_text() == Some(name));
    found?[1].as_text()
}

/// The port that a Sentinel names as a master.
fn named_by(sentinel: &Server, master: usize) -> Option<u16> {
    let question = [
        "SENTINEL",
        "GET-MASTER-ADDR-BY-NAME",
        &format!("lock-{master}"),
    ];
    let answer = sentinel.command_within(SILENT, &question).ok()?;
    answer.as_array()?.get(1)?.as_text()?.parse().ok()
}

/// Waits until these Sentinels name another server as the first master than the one at `port`; returns its port.
async fn replaced(sentinels: &[&Server], port: u16) -> u16 {
    named_alike(sentinels, 0, port).await
}

/// As [`replaced`], for any master, of all Sentinels.
async fn replaced_by_all(nodes: &WatchedNodes, master: usize, port: u16) -> u16 {
    let sentinels: Vec<&Server> = nodes.sentinels.iter().collect();
    named_alike(&sentinels, master, port).await
}

/// Waits until these Sentinels name one server as this master, which is not the one at `port`.
async fn named_alike(sentinels: &[&Server], master: usize, port: u16) -> u16 {
    let named = || {
        sentinels
            .iter()
            .map(|it| named_by(it, master))
            .collect::<Vec<_>>()
    };
    let is_other = |named: &Vec<Option<u16>>| {
        named
            .iter()
            .all(|it| *it == named[0] && it.is_some_and(|it| it != port))
    };
    let named = eventually("a failover", FOLLOWED, named, is_other).await;
    named[0].expect("it is another")
}

/// Waits until all Sentinels name one server as this master under one epoch.
async fn agreed(nodes: &WatchedNodes, master: usize) {
    let pair_of = |sentinel: &Server| {
        let question = ["SENTINEL", "MASTER", &format!("lock-{master}")];
        let answer = sentinel.command_within(SILENT, &question).ok();
        let pair = ["port", "config-epoch"];
        answer.map(|it| pair.map(|name| field(&it, name).map(str::to_owned)))
    };
    let pairs = || nodes.sentinels.iter().map(pair_of).collect::<Vec<_>>();
    let is_one = |pairs: &Vec<Option<[Option<String>; 2]>>| {
        pairs.iter().all(|it| it.is_some() && *it == pairs[0])
    };
    eventually("Sentinels that agree", FOLLOWED, pairs, is_one).await;
}

const POLL: Duration = Duration::from_millis(20);
/// A server that is frozen does not answer.
const SILENT: Duration = Duration::from_millis(500);
