//! Sentinels that start again without their files: they name the master of the start, under the first epoch.

use std::time::Duration;

use redlock_tests::{WatchedNodes, for_as_long_as};

use super::{
    FOLLOWED, agreed, assert_held_alone, clients, lock_and_release, locked, named_by, replaced,
    until_lost,
};

/// Two of three lose their files, and the third does not answer; the old master wakes.
// Shows: R7.11, R7.13.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_sentinels_without_their_files_give_the_vote_to_no_replaced_server() {
    let longest = Duration::from_secs(4);
    let mut nodes = WatchedNodes::start(1);
    let [one, other] = clients([nodes.urls(), nodes.urls()], longest).await;
    lock_and_release(&one).await;
    let old = nodes.masters[0].port();
    nodes.masters[0].freeze().unwrap();
    let sentinels: Vec<_> = nodes.sentinels.iter().collect();
    let new = replaced(&sentinels, old).await;
    let held = locked(&one).await;
    nodes.sentinels[2].freeze().unwrap();
    for sentinel in 0..2 {
        nodes.reinstall(sentinel).unwrap();
        assert_eq!(named_by(&nodes.sentinels[sentinel], 0), Some(old));
    }
    nodes.masters[0].thaw().unwrap();
    assert_held_alone(&held, &[&other], FOLLOWED).await;
    until_lost(held).await;
    // The third tells the others, and the vote comes back by itself.
    nodes.sentinels[2].thaw().unwrap();
    let sentinels: Vec<_> = nodes.sentinels.iter().collect();
    assert_eq!(replaced(&sentinels, old).await, new);
    lock_and_release(&other).await;
}

/// One loses its file, another was down during the failover, and the third does not answer.
// Shows: R7.11.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_sentinel_without_its_file_makes_no_majority_with_one_that_has_not_heard() {
    let longest = Duration::from_secs(4);
    let mut nodes = WatchedNodes::start(1);
    let [one, other] = clients([nodes.urls(), nodes.urls()], longest).await;
    lock_and_release(&one).await;
    let old = nodes.masters[0].port();
    nodes.sentinels[1].kill().unwrap();
    nodes.masters[0].freeze().unwrap();
    let new = replaced(&[&nodes.sentinels[0], &nodes.sentinels[2]], old).await;
    let held = locked(&one).await;
    nodes.sentinels[2].freeze().unwrap();
    nodes.reinstall(0).unwrap();
    nodes.sentinels[1].restart().unwrap();
    for sentinel in 0..2 {
        assert_eq!(named_by(&nodes.sentinels[sentinel], 0), Some(old));
    }
    nodes.masters[0].thaw().unwrap();
    assert_held_alone(&held, &[&other], FOLLOWED).await;
    until_lost(held).await;
    nodes.sentinels[2].thaw().unwrap();
    let sentinels: Vec<_> = nodes.sentinels.iter().collect();
    assert_eq!(replaced(&sentinels, old).await, new);
    lock_and_release(&other).await;
}

/// In the end, none of those is left that the mark of the server has listed at first.
// Shows: R7.12.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_that_lose_their_files_one_after_the_other_take_no_lease_away() {
    let longest = Duration::from_secs(2);
    let mut nodes = WatchedNodes::start(1);
    let [redlock] = clients([nodes.urls()], longest).await;
    let held = locked(&redlock).await;
    for sentinel in 0..3 {
        nodes.reinstall(sentinel).unwrap();
        agreed(&nodes, 0).await;
        // Without a majority of those on the list, the client sends nothing after five seconds, and the lease ends.
        for_as_long_as(longest + Duration::from_secs(6), || {
            assert!(held.is_held(), "lost with Sentinel {sentinel}");
        })
        .await;
    }
    held.release().await.unwrap();
}
