//! Acquiring, waiting and releasing, in paused time.

use std::{pin::pin, time::Duration};

use crate::paused_time::fixtures::{
    MS, SECOND, client, client_of, faulty, keys, settle, wide_client,
};
use futures_util::poll;
use redlock_core::{
    AcquireErrorKind, AcquireOptions, HolderLabel, NodeAnswer, Redlock, ReleaseErrorKind, Renewal,
    ResourceKey, ResourceKeys, VirtualProcess, Wait,
};
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn one_holder_at_a_time() {
    let nodes = faulty(5);
    let (one, other) = (wide_client(&nodes).await, wide_client(&nodes).await);
    let guard = one.acquire("key").await.unwrap();
    assert_eq!(keys(&nodes), [1; 5]);

    let refused = other.try_acquire("key").await.unwrap_err();
    assert_eq!(refused.kind(), AcquireErrorKind::Contended);
    assert_eq!(refused.remaining(), Some(10 * SECOND));
    assert!(other.try_acquire("another key").await.is_ok());

    guard.release().await.unwrap();
    assert_eq!(keys(&nodes), [0; 5]);
    drop(other.try_acquire("key").await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn namespaces_do_not_meet() {
    let nodes = faulty(3);
    let one = client_of(&nodes).namespace("one").build().await.unwrap();
    let other = client_of(&nodes).namespace("other").build().await.unwrap();
    let verbatim = client_of(&nodes)
        .expert(|expert| expert.verbatim_keys = true)
        .build()
        .await
        .unwrap();
    let _one = one.try_acquire("key").await.unwrap();
    let _other = other.try_acquire("key").await.unwrap();
    let _verbatim = verbatim.try_acquire("key").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn dropping_the_guard_releases_the_lease() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    drop(redlock.acquire("key").await.unwrap());
    settle().await;
    assert_eq!(keys(&nodes), [0; 3]);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_gets_the_lease_when_it_is_released() {
    let nodes = faulty(3);
    let (one, other) = (client(&nodes).await, client(&nodes).await);
    let guard = one.acquire("key").await.unwrap();
    let start = Instant::now();
    let (waited, ()) = tokio::join!(other.acquire("key"), async {
        tokio::time::sleep(SECOND).await;
        guard.release().await.unwrap();
    });
    drop(waited.unwrap());
    // The longest delay between two attempts is 250 ms.
    assert!(start.elapsed() >= SECOND && start.elapsed() <= SECOND + 251 * MS);
}

// Shows: T6.9.
#[tokio::test(start_paused = true)]
async fn a_wait_ends_by_its_deadline() {
    let nodes = faulty(3);
    let (one, other) = (client(&nodes).await, client(&nodes).await);
    let _held = one.acquire("key").await.unwrap();
    for wait in [Wait::Never, Wait::UpTo(MS), Wait::UpTo(700 * MS)] {
        let start = Instant::now();
        let error = other
            .acquire_with("key", AcquireOptions::new().wait(wait))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), AcquireErrorKind::Contended);
        let longest = match wait {
            Wait::UpTo(longest) => longest,
            _ => Duration::ZERO,
        };
        assert!(
            start.elapsed() >= longest && start.elapsed() <= longest + MS,
            "{wait:?}"
        );
    }
}

// Shows: T6.9.
#[tokio::test(start_paused = true)]
async fn a_process_that_stood_still_begins_no_attempt_after_the_wait() {
    // The first waits in line and is given the key meanwhile; the second asks again after pauses.
    for (keys, kind) in [
        (&["key"][..], AcquireErrorKind::Expired),
        (&["key", "other"], AcquireErrorKind::Contended),
    ] {
        let nodes = faulty(3);
        let process = VirtualProcess::new();
        let frozen = client_of(&nodes).virtual_process(&process).build().await;
        let (frozen, other) = (frozen.unwrap(), client(&nodes).await);
        let held = other.acquire("key").await.unwrap();
        let keys = ResourceKeys::new(keys.iter().copied()).unwrap();
        let options = AcquireOptions::new().wait(Wait::UpTo(SECOND));
        let waiting = process.run(frozen.acquire_all_with(keys, options));
        let meanwhile = async {
            tokio::time::sleep(500 * MS).await;
            process.freeze();
            held.release().await.unwrap();
            tokio::time::sleep(2 * SECOND).await;
            process.thaw();
        };
        let (waited, ()) = tokio::join!(waiting, meanwhile);
        assert_eq!(waited.unwrap_err().kind(), kind);
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_in_one_process_is_bounded() {
    let nodes = faulty(3);
    let redlock = client_of(&nodes)
        .max_waiters_per_key(1)
        .build()
        .await
        .unwrap();
    let _held = redlock.acquire("key").await.unwrap();
    let mut waiting = pin!(redlock.acquire("key"));
    assert!(poll!(waiting.as_mut()).is_pending());
    let error = redlock.acquire("key").await.unwrap_err();
    assert_eq!(error.kind(), AcquireErrorKind::Overloaded);
    let local = redlock.try_acquire("other").await;
    assert!(local.is_ok());
}

#[tokio::test(start_paused = true)]
async fn every_number_of_nodes_from_one_works() {
    for count in 1..=7 {
        let nodes = faulty(count);
        let (one, other) = (client(&nodes).await, client(&nodes).await);
        assert_eq!(one.majority(), count / 2 + 1);
        let guard = one.acquire("key").await.unwrap();
        assert!(other.try_acquire("key").await.is_err(), "{count} nodes");
        guard.release().await.unwrap();
        drop(other.try_acquire("key").await.unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_says_by_whom_the_key_is_held_and_how_long_it_stays() {
    let nodes = faulty(1);
    let redlock = client_of(&nodes).label("web:1").build().await.unwrap();
    let key = ResourceKey::new("order", 42).unwrap();
    let _held = redlock.acquire(&key).await.unwrap();
    let other = client(&nodes).await;
    let error = other.try_acquire(&key).await.unwrap_err();
    let holder: HolderLabel = "order@web:1".parse().unwrap();
    assert_eq!(error.holder(), Some(holder));
    let [report] = error.reports() else {
        panic!("{error}")
    };
    assert_eq!(
        report.answer,
        NodeAnswer::Held {
            remaining: Some(10 * SECOND),
            holder: Some(holder),
        }
    );
    let text = error.to_string();
    assert!(
        text.starts_with("another holds the resource (order@web:1): 0 of 1"),
        "{error}"
    );
    assert!(
        text.contains("held by order@web:1 for 10 s at most"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_holder_is_told_by_its_class_and_its_process() {
    let nodes = faulty(3);
    let process = format!(":{}", std::process::id());
    let redlock = client(&nodes).await;
    let holder = async |options: AcquireOptions| {
        let held = redlock.acquire_with("key", options).await.unwrap();
        let other = client(&nodes).await;
        let error = other.try_acquire("key").await.unwrap_err();
        held.release().await.unwrap();
        error.holder().unwrap().to_string()
    };
    let told = holder(AcquireOptions::new()).await;
    assert!(told.ends_with(&process) && !told.contains('@'), "{told}");
    let told = holder(AcquireOptions::new().class("invoice")).await;
    assert!(
        told.ends_with(&process) && told.starts_with("invoice@"),
        "{told}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_label_that_is_none_is_refused() {
    for label in ["", "a\nb", "é", &"x".repeat(65)] {
        let refused = client_of(&faulty(1))
            .label(label)
            .build()
            .await
            .unwrap_err();
        assert!(refused.to_string().starts_with("label"), "{refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn l05_a_release_that_is_not_confirmed_says_so_and_hides_nothing() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let guard = redlock.acquire("key").await.unwrap();
    let output = guard.run(async { 42 }).await.unwrap();
    nodes.iter().for_each(|node| node.node.stop());
    let error = guard.release().await.unwrap_err();
    assert_eq!(output, 42);
    assert_eq!(error.kind(), ReleaseErrorKind::Unconfirmed);
    assert!(error.ends_within() <= 10 * SECOND);
    assert_eq!(error.reports().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_comes_back_at_once_does_not_starve_others() {
    let nodes = faulty(3);
    let (busy, other) = (client(&nodes).await, client(&nodes).await);
    let greedy = async {
        loop {
            let guard = busy.acquire("key").await.unwrap();
            tokio::time::sleep(20 * MS).await;
            drop(guard);
        }
    };
    let patient = async {
        for _ in 0..20 {
            drop(other.acquire("key").await.unwrap());
        }
    };
    tokio::select! {
        () = patient => {}
        () = greedy => unreachable!("it never ends"),
    }
}

// Shows: T2.5.
#[tokio::test(start_paused = true)]
async fn s01_a_lease_that_is_over_when_its_caller_is_polled_is_not_handed_out() {
    let nodes = faulty(3);
    let (redlock, other) = (wide_client(&nodes).await, wide_client(&nodes).await);
    let manual = AcquireOptions::new().renewal(Renewal::Manual);
    let mut acquire = pin!(redlock.acquire_with("key", manual));
    assert!(poll!(acquire.as_mut()).is_pending());
    // The caller's thread is blocked for longer than the lease.
    tokio::time::sleep(11 * SECOND).await;
    let others = other.try_acquire("key").await.unwrap();
    let error = acquire.await.unwrap_err();
    assert_eq!(error.kind(), AcquireErrorKind::Expired);
    settle().await;
    assert!(others.lease().is_held());
    assert_eq!(keys(&nodes), [1; 3], "the other's keys are untouched");
}

#[tokio::test(start_paused = true)]
async fn an_error_says_how_many_callers_of_the_process_are_ahead() {
    let nodes = faulty(3);
    let (redlock, other) = (client(&nodes).await, client(&nodes).await);
    let up_to = |seconds| AcquireOptions::new().wait(Wait::UpTo(seconds * SECOND));
    let ahead = async |client: &Redlock, keys: &[&str], options| {
        let keys = ResourceKeys::new(keys.iter().copied()).unwrap();
        let acquired = client.acquire_all_with(keys, options).await;
        acquired.unwrap_err().ahead()
    };
    let holder = redlock.acquire("a").await.unwrap();
    let mut waiting = [1, 2].map(|_| Box::pin(redlock.acquire_with("a", up_to(60))));
    for waits in &mut waiting {
        assert!(poll!(waits.as_mut()).is_pending());
    }
    // The holder and both waiting callers, whether this one waits too or not, also among other keys.
    for options in [AcquireOptions::new().wait(Wait::Never), up_to(1)] {
        assert_eq!(ahead(&redlock, &["a"], options.clone()).await, 3);
        assert_eq!(ahead(&redlock, &["Z", "a", "b"], options).await, 3);
    }
    let full = AcquireOptions::new().max_waiters_per_key(2);
    assert_eq!(ahead(&redlock, &["a"], full).await, 3);

    // A client does not know the callers of another process, but counts its own callers that wait for the nodes.
    assert_eq!(ahead(&other, &["a"], up_to(1)).await, 0);
    let mut first = Box::pin(other.acquire_with("a", up_to(2)));
    assert!(poll!(first.as_mut()).is_pending());
    let mut second = Box::pin(other.acquire_with("a", up_to(60)));
    assert!(poll!(second.as_mut()).is_pending());
    assert_eq!(first.await.unwrap_err().ahead(), 1);
    drop(holder);
}
