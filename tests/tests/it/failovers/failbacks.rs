//! The old server is named again before it is another's replica: its mark is that of its time.

use std::time::Duration;

use redlock_tests::{WatchedNodes, voting};

use super::{
    FOLLOWED, assert_held_alone, can_be_promoted, clients, lock_and_release, locked, replaced,
    until_lost,
};

/// The old master hangs, and wakes when the other one votes; then that one hangs. No operator does anything.
// Shows: E11, R7.5.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_wakes_and_is_named_again_grants_no_key_that_is_held() {
    let longest = Duration::from_secs(5);
    let nodes = WatchedNodes::start(1);
    let [one, other] = clients([nodes.urls(), nodes.urls()], longest).await;
    lock_and_release(&one).await;
    let [old, new] = [&nodes.masters[0], &nodes.replicas[0]];
    old.freeze().unwrap();
    nodes.succeeded(0, old.port()).await;
    let held = locked(&one).await;
    old.thaw().unwrap();
    can_be_promoted(&nodes, 0, || old.port()).await;
    held.extend().await.expect("its server votes");
    new.freeze().unwrap();
    assert_held_alone(&held, &[&other], FOLLOWED).await;
    until_lost(held).await;
    lock_and_release(&other).await;
    new.thaw().unwrap();
}

/// An operator has the master of the moment replaced, and once more when the other one votes.
// Shows: E11, R7.5.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_to_which_an_operator_goes_back_grants_no_key_that_is_held() {
    let longest = Duration::from_secs(2);
    let nodes = WatchedNodes::start(1);
    let [one, other] = clients([nodes.urls(), nodes.urls()], longest).await;
    lock_and_release(&one).await;
    let sentinels: Vec<_> = nodes.sentinels.iter().collect();
    let old = nodes.masters[0].port();
    nodes.promote_another(0, old).await;
    let new = replaced(&sentinels, old).await;
    // A moment later, the client has learned of it.
    voting(&one, 0, FOLLOWED).await;
    let held = locked(&one).await;
    // The client extends its lease for as long as the Sentinels do not name the old server.
    let rivals = [&other];
    tokio::join!(
        nodes.promote_another(0, new),
        assert_held_alone(&held, &rivals, 2 * FOLLOWED),
    );
    assert_eq!(replaced(&sentinels, new).await, old);
    until_lost(held).await;
    lock_and_release(&other).await;
}
