//! Scopes, in paused time: the holder of a lock acquires it again.

use redlock_core::{
    AcquireErrorKind, AcquireOptions, ExtendErrorKind, LockGuard, LossReason, Redlock,
    ReleaseErrorKind, Wait,
};
use tokio::{task::JoinSet, time::sleep};

use crate::paused_time::fixtures::{Faults, FaultyNode, MS, SECOND, client, faulty};

fn asked(nodes: &[FaultyNode]) -> usize {
    nodes.iter().map(FaultyNode::requests).sum()
}

fn keys(nodes: &[FaultyNode]) -> usize {
    nodes.iter().map(|node| node.node.keys()).sum()
}

async fn is_free(redlock: &Redlock, key: &str) -> bool {
    redlock.try_acquire(key).await.is_ok()
}

// Shows: R5.4.
#[tokio::test(start_paused = true)]
async fn what_a_scope_holds_is_acquired_again_without_asking_and_let_go_with_the_last_guard() {
    let nodes = faulty(3);
    let (redlock, other) = (client(&nodes).await, client(&nodes).await);
    let work = async {
        let first = redlock.acquire("a").await.unwrap();
        let before = asked(&nodes);
        let second = redlock.try_acquire("a").await.unwrap();
        let third = redlock.acquire_all(["a"]).await.unwrap();
        assert_eq!(asked(&nodes), before);
        assert_eq!(second.token(), first.token());
        first.release().await.unwrap();
        drop(third);
        tokio::time::sleep(SECOND).await;
        assert!(second.is_held() && !is_free(&other, "a").await);
        second.release().await.unwrap();
        assert!(is_free(&other, "a").await);
        let again = redlock.acquire("a").await.unwrap();
        assert!(asked(&nodes) > before, "it had been let go");
        again.release().await.unwrap();
    };
    redlock.scope(work).await;
}

// Shows: R5.4.
#[tokio::test(start_paused = true)]
async fn a_guard_that_outlives_its_scope_is_of_no_use() {
    let nodes = faulty(3);
    let (redlock, other) = (client(&nodes).await, client(&nodes).await);
    let kept = redlock.scope(async { redlock.acquire("a").await.unwrap() });
    let kept = kept.await;
    assert!(!kept.is_held());
    assert_eq!(kept.lost().await, LossReason::ScopeEnded);
    tokio::time::sleep(10 * MS).await;
    assert_eq!(keys(&nodes), 0);
    assert!(is_free(&other, "a").await && is_free(&redlock, "a").await);
    let extended = kept.extend().await.unwrap_err();
    assert_eq!(extended.kind(), ExtendErrorKind::Lost);
    let released = kept.release().await.unwrap_err();
    assert_eq!(released.kind(), ReleaseErrorKind::ScopeEnded);
    assert!(released.to_string().contains("drop guards before"));
}

#[tokio::test(start_paused = true)]
async fn a_scope_that_is_dropped_lets_go_of_what_it_holds() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let mut kept: Option<LockGuard> = None;
    {
        let work = redlock.scope(async {
            kept = Some(redlock.acquire("a").await.unwrap());
            std::future::pending::<()>().await;
        });
        assert!(tokio::time::timeout(SECOND, work).await.is_err());
    }
    assert!(kept.is_some_and(|guard| !guard.is_held()));
    tokio::time::sleep(10 * MS).await;
    assert_eq!(keys(&nodes), 0);
    assert!(redlock.current_scope().is_none());
}

#[tokio::test(start_paused = true)]
async fn parts_of_a_scope_that_acquire_at_the_same_time_share_a_lease() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let part = |rest| {
        let redlock = &redlock;
        async move {
            let guard = redlock.acquire("a").await.unwrap();
            tokio::time::sleep(rest).await;
            assert!(guard.is_held());
            guard.token()
        }
    };
    let parts = redlock.scope(async { tokio::join!(part(SECOND), part(2 * SECOND)) });
    let parts = tokio::time::timeout(3 * SECOND, parts).await;
    let (first, second) = parts.expect("neither waits for the other");
    assert_eq!(first, second);
}

#[tokio::test(start_paused = true)]
async fn a_task_is_in_a_scope_only_if_it_was_taken_in_and_as_long_as_that_goes_on() {
    let redlock = client(&faulty(3)).await;
    let mut tasks = JoinSet::new();
    let scope = redlock.scope(async {
        let _guard = redlock.acquire("a").await.unwrap();
        let other = redlock.clone();
        tasks.spawn(async move { other.try_acquire("a").await.is_ok() });
        assert!(!tasks.join_next().await.unwrap().unwrap(), "it is another");
        let (scope, other) = (redlock.current_scope().unwrap(), redlock.clone());
        let entered = scope.clone();
        tasks.spawn(async move { entered.enter(is_free(&other, "a")).await });
        assert!(tasks.join_next().await.unwrap().unwrap());
        scope
    });
    let scope = scope.await;
    assert!(
        scope
            .enter(async { redlock.current_scope() })
            .await
            .is_none()
    );
    let after = scope.enter(async { redlock.acquire("a").await.unwrap() });
    assert!(after.await.is_held(), "it is in no scope that could end");
}

#[tokio::test(start_paused = true)]
async fn a_lease_on_several_keys_is_had_again_for_each_and_none_for_more() {
    let redlock = client(&faulty(3)).await;
    let work = async {
        let set = redlock.acquire_all(["a", "b"]).await.unwrap();
        for keys in [&["a"][..], &["b"], &["b", "a"]] {
            let again = redlock.acquire_all(keys.iter().copied()).await.unwrap();
            assert_eq!(again.token(), set.token());
        }
        let more = redlock.acquire_all(["b", "c"]).await.unwrap_err();
        assert_eq!(more.kind(), AcquireErrorKind::AlreadyHeld);
        let elsewhere = redlock.acquire("c").await.unwrap();
        assert!(elsewhere.token() != set.token() || elsewhere.key() != set.key());
    };
    redlock.scope(work).await;
}

// Shows: R5.4.
#[tokio::test(start_paused = true)]
async fn a_lost_lease_is_not_had_again() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let work = async {
        let first = redlock.acquire("a").await.unwrap();
        nodes.iter().for_each(|node| node.node.drop_locks());
        assert_eq!(first.lost().await, LossReason::Revoked);
        let second = redlock.acquire("a").await.unwrap();
        assert!(second.token() > first.token() && second.is_held());
        assert!(first.release().await.is_err());
        assert!(second.is_held(), "the lost one is another");
    };
    redlock.scope(work).await;
}

#[tokio::test(start_paused = true)]
async fn scopes_that_wait_for_each_other_are_told() {
    let redlock = client(&faulty(3)).await;
    let scope = |first: &'static str, second: &'static str| {
        let redlock = &redlock;
        redlock.scope(async move {
            let _first = redlock.acquire(first).await.unwrap();
            tokio::time::sleep(10 * MS).await;
            redlock
                .acquire(second)
                .await
                .map(|_| ())
                .map_err(|error| error.kind())
        })
    };
    let both = async { tokio::join!(scope("a", "b"), scope("b", "a")) };
    let both = tokio::time::timeout(SECOND, both).await;
    let (one, other) = both.expect("neither waits for its time");
    let told = [one, other]
        .into_iter()
        .filter(|told| *told == Err(AcquireErrorKind::Deadlock));
    assert_eq!(told.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_scope_within_a_scope_has_what_the_outer_one_holds_and_ends_by_itself() {
    let nodes = faulty(3);
    let (redlock, other) = (client(&nodes).await, client(&nodes).await);
    let work = async {
        let outer = redlock.acquire("a").await.unwrap();
        let kept = redlock.scope(async {
            let again = redlock.acquire("a").await.unwrap();
            assert_eq!(again.token(), outer.token());
            // A scope of another client has nothing of this one's.
            let wait = AcquireOptions::new().wait(Wait::Never);
            let others = other.scope(other.acquire_with("a", wait)).await;
            assert_eq!(others.unwrap_err().kind(), AcquireErrorKind::Contended);
            (again, redlock.acquire("b").await.unwrap())
        });
        let (again, inner) = kept.await;
        assert!(again.is_held(), "it is the outer one's");
        assert!(!inner.is_held());
    };
    redlock.scope(work).await;
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_to_stay_stays_once_all_guards_are_gone() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let work = async {
        let first = redlock.acquire("a").await.unwrap();
        redlock.acquire("a").await.unwrap().leave();
        assert!(first.is_held());
        drop(first);
    };
    redlock.scope(work).await;
    tokio::time::sleep(10 * MS).await;
    assert_eq!(keys(&nodes), 2, "on the majority that granted it");
}

#[tokio::test(start_paused = true)]
async fn what_is_acquired_outside_of_scopes_outlives_them_and_is_had_once() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let work = async {
        let guard = redlock.clone().outside_scopes().acquire("a").await.unwrap();
        let again = redlock.try_acquire("a").await;
        assert_eq!(again.unwrap_err().kind(), AcquireErrorKind::Contended);
        guard
    };
    let guard = redlock.scope(work).await;
    assert!(guard.is_held());
    guard.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_lost_before_the_end_of_its_scope_is_told_as_lost() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let work = async {
        let guard = redlock.acquire("a").await.unwrap();
        nodes.iter().for_each(|node| node.node.drop_locks());
        assert_eq!(guard.lost().await, LossReason::Revoked);
        guard
    };
    let kept = redlock.scope(work).await;
    assert_eq!(kept.lost().await, LossReason::Revoked);
    let released = kept.release().await.unwrap_err();
    assert_eq!(released.kind(), ReleaseErrorKind::Lost);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_to_stay_outlives_its_scope() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let kept = redlock.scope(async {
        let kept = redlock.acquire("a").await.unwrap();
        redlock.acquire("a").await.unwrap().leave();
        kept
    });
    let kept = kept.await;
    tokio::time::sleep(10 * MS).await;
    assert!(!kept.is_held());
    assert_eq!(keys(&nodes), 2, "on the majority that granted it");
}

#[tokio::test(start_paused = true)]
async fn parts_of_a_scope_of_which_one_wants_more_do_not_wait_for_each_other() {
    let redlock = client(&faulty(3)).await;
    let work = async {
        let one = async {
            let guard = redlock.acquire("a").await.unwrap();
            tokio::time::sleep(SECOND).await;
            drop(guard);
        };
        let more = async { redlock.acquire_all(["a", "b"]).await.unwrap_err().kind() };
        tokio::join!(one, more).1
    };
    let told = tokio::time::timeout(2 * SECOND, redlock.scope(work)).await;
    assert_eq!(told, Ok(AcquireErrorKind::AlreadyHeld));
}

#[tokio::test(start_paused = true)]
async fn a_reader_in_a_scope_whose_other_part_becomes_a_writer_meets_that_and_no_mistake_of_its_own()
 {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let work = async {
        let mut guard = redlock.acquire_shared("key").await.unwrap();
        for node in &nodes {
            node.set(Faults::late_replies(5 * MS));
        }
        let reader = async {
            sleep(2 * MS).await;
            redlock.acquire_shared("key").await.unwrap_err()
        };
        let (upgraded, refused) = tokio::join!(guard.try_upgrade(), reader);
        upgraded.unwrap();
        assert_eq!(refused.kind(), AcquireErrorKind::Contended);
        // It has what the other part writes from then on.
        assert!(redlock.acquire_shared("key").await.unwrap().is_held());
    };
    redlock.scope(work).await;
}
