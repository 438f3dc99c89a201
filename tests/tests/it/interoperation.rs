//! Another implementation of Redlock, rslock, and ours on the same key.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use redlock_core::{AcquireErrorKind, AcquireOptions, Redlock, Wait};
use redlock_tests::{Nodes, Random, builder};
use rslock::LockManager;
use tokio::{task::JoinSet, time::sleep};

const TTL: Duration = Duration::from_secs(10);

async fn both(nodes: &Nodes) -> (Redlock, LockManager) {
    let ours = builder(nodes.urls(), TTL)
        .expert(|expert| expert.verbatim_keys = true)
        .build()
        .await;
    let ours = ours.unwrap();
    ours.dangerous_bless().await; // the nodes are new
    let mut theirs = LockManager::new(nodes.urls());
    theirs.set_retry(1, Duration::from_millis(10));
    (ours, theirs)
}

// Shows: N1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rslock_keeps_us_out_and_we_keep_rslock_out() {
    let nodes = Nodes::start(5);
    let (ours, theirs) = both(&nodes).await;
    for _ in 0..20 {
        let lock = theirs.lock("order:42", TTL).await.unwrap();
        let refused = ours.try_acquire("order:42").await.unwrap_err();
        assert_eq!(refused.kind(), AcquireErrorKind::Contended, "{refused}");
        assert!(
            refused
                .remaining()
                .is_some_and(|left| left <= TTL && left > TTL / 2)
        );
        theirs.unlock(&lock).await;

        let guard = ours.try_acquire("order:42").await.unwrap();
        let value = nodes.ask(0, &["GET", "order:42"]);
        theirs.lock("order:42", TTL).await.unwrap_err();
        // Its attempt has cleaned up after itself, and not after us.
        assert!(guard.lease().is_held());
        assert_eq!(nodes.ask(0, &["GET", "order:42"]), value);
        guard.extend().await.unwrap();
        guard.release().await.unwrap();
    }
}

// Shows: N1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn neither_is_let_in_while_the_other_holds_the_key() {
    let nodes = Nodes::start(5);
    let (ours, theirs) = both(&nodes).await;
    let inside = Arc::new(AtomicU32::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..2 {
        let (ours, ours_inside) = (ours.clone(), Arc::clone(&inside));
        tasks.spawn(async move {
            let wait = AcquireOptions::new().wait(Wait::UpTo(Duration::from_secs(30)));
            for _ in 0..100 {
                let guard = ours.acquire_with("contended", wait.clone()).await.unwrap();
                alone(&ours_inside).await;
                guard.release().await.unwrap();
                pause().await;
            }
        });
        let (theirs, theirs_inside) = (theirs.clone(), Arc::clone(&inside));
        tasks.spawn(async move {
            for _ in 0..100 {
                let guard = theirs.acquire("contended", TTL).await.unwrap();
                alone(&theirs_inside).await;
                guard.release().await;
                pause().await;
            }
        });
    }
    while let Some(task) = tasks.join_next().await {
        task.unwrap();
    }
}

/// Stays in the guarded place for a moment, and checks that no other task is there.
async fn alone(inside: &AtomicU32) {
    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two are inside");
    sleep(Random::new().below_duration(Duration::from_millis(2))).await;
    assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1, "two are inside");
}

async fn pause() {
    sleep(Random::new().below_duration(Duration::from_millis(10))).await;
}

/// Returns how often callers of three clients of ours got a key in three seconds, and how often rslock did, which tried all
/// the while.
async fn shares(ours: AcquireOptions) -> (u32, u32) {
    const FOR: Duration = Duration::from_secs(3);
    let nodes = Nodes::start(5);
    let (first, theirs) = both(&nodes).await;
    let mut clients = vec![first];
    for _ in 0..2 {
        clients.push(both(&nodes).await.0);
    }
    let (our_share, their_share) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let mut tasks = JoinSet::new();
    for client in clients {
        let (ours, count) = (ours.clone(), Arc::clone(&our_share));
        tasks.spawn(async move {
            loop {
                match client.acquire_with("busy", ours.clone()).await {
                    Ok(guard) => {
                        sleep(Duration::from_millis(5)).await;
                        guard.release().await.unwrap();
                        count.fetch_add(1, Ordering::SeqCst);
                    }
                    // As the guide has it for single attempts.
                    Err(_) => pause_of_a_retry().await,
                }
            }
        });
    }
    // The line is there when rslock comes.
    sleep(Duration::from_secs(2)).await;
    our_share.store(0, Ordering::SeqCst);
    let count = Arc::clone(&their_share);
    tasks.spawn(async move {
        loop {
            match theirs.lock("busy", TTL).await {
                Ok(lock) => {
                    sleep(Duration::from_millis(5)).await;
                    theirs.unlock(&lock).await;
                    count.fetch_add(1, Ordering::SeqCst);
                }
                Err(_) => pause_of_a_retry().await,
            }
        }
    });
    sleep(FOR).await;
    tasks.shutdown().await;
    let shares = [our_share, their_share].map(|share| share.load(Ordering::SeqCst));
    (shares[0], shares[1])
}

async fn pause_of_a_retry() {
    sleep(Random::new().below_duration(Duration::from_millis(20))).await;
}

/// A node that frees a key gives it to the next caller in line, so it is never free for others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn beside_a_line_of_ours_rslock_gets_the_key_hardly_ever_and_beside_single_attempts_it_does()
{
    let in_line = AcquireOptions::new().wait(Wait::UpTo(Duration::from_secs(30)));
    let (ours, theirs) = shares(in_line).await;
    println!("in line: {ours} and {theirs} of rslock");
    assert!(ours > 50 && theirs * 20 < ours, "{ours} and {theirs}");
    let (ours, theirs) = shares(AcquireOptions::new().wait(Wait::Never)).await;
    println!("by single attempts: {ours} and {theirs} of rslock");
    assert!(theirs * 20 > ours, "{ours} and {theirs}");
}
