//! A holder that lost its keys changes nothing of their next owner's.

use std::time::Duration;

use redlock_core::{
    AcquireErrorKind, AcquireOptions, ExtendErrorKind, LockGuard, LossReason, Redlock,
    ReleaseErrorKind, Renewal,
};
use redlock_tests::{Nodes, client, eventually, wide_client, within};

const KEY: &str = "{redlock}:lock:a";
const TTL: Duration = Duration::from_secs(20);

/// A lease that only its holder extends.
async fn hold(redlock: &Redlock) -> LockGuard {
    let manual = AcquireOptions::new().renewal(Renewal::Manual);
    redlock.acquire_with("a", manual).await.unwrap()
}

/// Ends the key on a majority of the nodes, as if it had expired or been evicted there.
async fn end_on_a_majority(nodes: &Nodes, command: &[&str]) {
    for node in 0..3 {
        // The node may have been outside the first majority.
        let look = || nodes.pttl(node, KEY);
        eventually("the key is there", TTL / 10, look, Option::is_some).await;
        nodes.ask(node, command);
        eventually("the key is gone", TTL / 10, look, Option::is_none).await;
    }
}

/// Whose the key is on each node, and up to when.
fn keys(nodes: &Nodes) -> Vec<(String, String)> {
    let owners = nodes.ask_all(&["GET", KEY]).into_iter();
    owners.zip(nodes.ask_all(&["PEXPIRETIME", KEY])).collect()
}

/// Whether the last two nodes have the key no longer for the owner that had it there before.
///
/// The next owner takes them soon after that.
fn are_let_go(before: &[(String, String)], after: &[(String, String)]) -> bool {
    let mut owners = before[3..].iter().zip(&after[3..]);
    owners.all(|((before, _), (after, _))| !before.is_empty() && before != after)
}

// Shows: T1.5.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s21_what_is_left_of_a_lost_lease_changes_nothing_of_the_next_owners() {
    let nodes = Nodes::start(5);
    let (first, second) = (
        client(nodes.urls(), TTL).await,
        client(nodes.urls(), TTL).await,
    );
    for end in [&["DEL", KEY][..], &["PEXPIRE", KEY, "1"]] {
        let lost = hold(&first).await;
        end_on_a_majority(&nodes, end).await;
        let next = hold(&second).await;
        let before = keys(&nodes);

        let error = lost.extend().await.unwrap_err();
        assert_eq!(error.kind(), ExtendErrorKind::Lost, "{error}");
        assert!(!lost.lease().is_held());
        let reason = within("the loss", TTL / 10, lost.lease().lost()).await;
        assert_eq!(reason, LossReason::Revoked);
        let again = lost.extend().await.unwrap_err();
        assert_eq!(again.kind(), ExtendErrorKind::Lost, "{again}");
        let error = lost.release().await.unwrap_err();
        assert_eq!(error.kind(), ReleaseErrorKind::Lost, "{error}");

        // The two nodes that had not lost the first one's key let it go.
        let released = |keys: &Vec<(String, String)>| are_let_go(&before, keys);
        let after = eventually("a release", TTL / 10, || keys(&nodes), released).await;
        assert_eq!(after[..3], before[..3], "the next owner's keys");
        next.extend().await.unwrap();
        next.release().await.unwrap();
        nodes.become_empty(TTL / 10).await;
    }
}

// Shows: T1.5.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s21_a_release_by_one_that_knows_nothing_of_its_loss_changes_nothing_either() {
    let nodes = Nodes::start(5);
    let (first, second) = (
        client(nodes.urls(), TTL).await,
        client(nodes.urls(), TTL).await,
    );
    for dropped in [false, true] {
        let lost = hold(&first).await;
        end_on_a_majority(&nodes, &["DEL", KEY]).await;
        let next = hold(&second).await;
        let before = keys(&nodes);
        // A node that is told to release a key reads whose it is.
        let refused = || (0..3).map(|node| nodes.calls(node, "mget")).sum::<u64>();
        let refusals = refused();
        if dropped {
            drop(lost);
        } else {
            // The key that it asks to be gone is gone, so there is nothing to complain of.
            lost.release().await.unwrap();
        }
        eventually("its lost nodes are told", TTL / 10, refused, |all| {
            *all >= refusals + 3
        })
        .await;
        let released = |keys: &Vec<(String, String)>| are_let_go(&before, keys);
        let after = eventually("the others are told", TTL / 10, || keys(&nodes), released).await;
        assert_eq!(after[..3], before[..3], "the next owner's keys");
        next.release().await.unwrap();
        nodes.become_empty(TTL / 10).await;
    }
}

// Shows: T1.8.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s04_an_extension_never_creates_a_key_again() {
    let nodes = Nodes::start(5);
    let redlock = client(nodes.urls(), TTL).await;
    let other = client(nodes.urls(), TTL).await;
    let lost = hold(&redlock).await;
    end_on_a_majority(&nodes, &["DEL", KEY]).await;
    // Another was there meanwhile, and is gone again.
    hold(&other).await.release().await.unwrap();
    let gone = |keys: &Vec<(String, String)>| keys[..3].iter().all(|(owner, _)| owner.is_empty());
    eventually("the other is gone", TTL / 10, || keys(&nodes), gone).await;

    let error = lost.extend().await.unwrap_err();
    assert_eq!(error.kind(), ExtendErrorKind::Lost, "{error}");
    assert!(gone(&keys(&nodes)), "{:?}", keys(&nodes));
    drop(lost);
    nodes.become_empty(TTL / 10).await;
}

// Shows: A3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_whose_keys_are_gone_from_a_majority_is_found_lost_by_its_renewal() {
    let nodes = Nodes::start(5);
    let ttl = Duration::from_secs(3);
    let redlock = client(nodes.urls(), ttl).await;
    let guard = redlock.acquire("a").await.unwrap();
    end_on_a_majority(&nodes, &["DEL", KEY]).await;
    // By the renewal after a third, long before the deadline.
    let work = guard.run(std::future::pending::<()>());
    let lost = within("the loss", ttl * 2 / 3, work).await.unwrap_err();
    assert_eq!(lost.reason(), LossReason::Revoked);
    assert!(keys(&nodes)[..3].iter().all(|(owner, _)| owner.is_empty()));
}

/// redis-py's token was the thread's, redlock-py's guessable: leases of one handle must have different owners.
// Shows: G3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s18_every_attempt_through_one_handle_has_an_owner_of_its_own() {
    let nodes = Nodes::start(3);
    let redlock = wide_client(nodes.urls(), TTL).await;
    let names: Vec<String> = (0..50).map(|name| format!("s18-{name}")).collect();
    let mut guards = Vec::new();
    for name in &names {
        guards.push(redlock.acquire(name.as_str()).await.unwrap());
    }
    let again = redlock.try_acquire(names[0].as_str()).await.unwrap_err();
    assert_eq!(again.kind(), AcquireErrorKind::Contended, "{again}");
    let owner = |name: &String| nodes.ask(0, &["GET", &format!("{{redlock}}:lock:{name}")]);
    let mut owners: Vec<String> = names.iter().map(owner).collect();
    drop(guards);
    nodes.become_empty(TTL / 4).await;
    // The same resource has another owner the next time.
    let guard = redlock.acquire(names[0].as_str()).await.unwrap();
    owners.push(owner(&names[0]));
    guard.release().await.unwrap();

    // Their labels are the same.
    let process = format!(":{}", std::process::id());
    let secret = |owner: String| {
        let (secret, label) = owner.split_once(' ')?;
        (secret.len() == 32 && label.ends_with(&process)).then(|| secret.to_owned())
    };
    let owners: Option<Vec<String>> = owners.into_iter().map(secret).collect();
    let mut owners = owners.expect("a secret and a label");
    let count = owners.len();
    owners.sort_unstable();
    owners.dedup();
    assert_eq!(owners.len(), count, "an owner was used twice");
}

/// rslock and redsync asked one node, or believed the first answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s24_what_one_node_says_does_not_decide_whether_a_lease_is_held() {
    let nodes = Nodes::start(5);
    let redlock = client(nodes.urls(), TTL).await;
    // One that lost the key does not end it, nor does one that is down.
    let guard = hold(&redlock).await;
    nodes.ask(0, &["DEL", KEY]);
    nodes.freeze(1..2);
    guard.extend().await.unwrap();
    assert!(guard.lease().is_held());
    nodes.thaw(1..2);
    // One that has it still does not keep it.
    for node in 0..4 {
        nodes.ask(node, &["DEL", KEY]);
    }
    let error = guard.extend().await.unwrap_err();
    assert_eq!(error.kind(), ExtendErrorKind::Lost, "{error}");
    assert!(!guard.lease().is_held());
    drop(guard);
    nodes.become_empty(TTL / 4).await;
}
