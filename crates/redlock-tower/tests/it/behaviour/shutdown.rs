//! A service ends in order.

use std::{
    future::pending,
    io,
    pin::pin,
    sync::{Arc, Mutex},
    task::Poll,
    time::Duration,
};

use futures_util::poll;
use redlock_core::{AcquireErrorKind, Redlock, Wait};
use redlock_tower::Shutdown;
use tokio::{sync::Notify, time::Instant};

use crate::behaviour::kit::{Nodes, in_time, virtual_client};

/// Whether the client is closed at this moment: then an acquire asks no node.
async fn is_closed(redlock: &Redlock) -> bool {
    match poll!(pin!(redlock.try_acquire("another"))) {
        Poll::Ready(Err(error)) => error.kind() == AcquireErrorKind::Closed,
        _ => false,
    }
}

#[tokio::test(start_paused = true)]
async fn jobs_begin_to_end_before_the_client_is_closed_and_the_server_after_it() {
    let nodes = Nodes::new();
    let redlock = virtual_client(&nodes).await;
    let (ends, told) = (Arc::new(Notify::new()), Arc::new(Mutex::new(Vec::new())));
    let tell = |what: &'static str, redlock: &Redlock| {
        let (told, redlock) = (Arc::clone(&told), redlock.clone());
        async move {
            let is_closed = is_closed(&redlock).await;
            told.lock().unwrap().push((what, is_closed));
        }
    };
    let jobs = tell("jobs", &redlock);
    let server = tell("server", &redlock);
    let guard = redlock.acquire("held").await.unwrap();
    let asked_to_end = Arc::clone(&ends);
    let shutdown = Shutdown::when(
        redlock.clone(),
        async move { asked_to_end.notified().await },
    );
    let shutdown = shutdown.and(jobs).serve(async |asked| {
        asked.await;
        server.await;
        // A request that holds a lock goes on.
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert!(guard.lease().is_held());
        drop(guard);
        Ok::<_, io::Error>(())
    });
    let asks = async {
        let waits = redlock.acquire("held").await.unwrap_err();
        assert_eq!(waits.kind(), AcquireErrorKind::Contended);
        ends.notify_one();
    };
    let (ended, ()) = in_time(async { tokio::join!(shutdown, asks) }).await;
    ended.unwrap();
    assert_eq!(*told.lock().unwrap(), [("jobs", false), ("server", true)]);
    nodes.have_keys(0).await;
}

#[tokio::test(start_paused = true)]
async fn callers_that_wait_are_refused_when_the_service_begins_to_end() {
    let nodes = Nodes::new();
    let redlock = virtual_client(&nodes).await;
    let other = virtual_client(&nodes).await;
    let _held = other.acquire("held").await.unwrap();
    let ends = Duration::from_secs(1);
    let shutdown = Shutdown::when(redlock.clone(), tokio::time::sleep(ends));
    let began = Instant::now();
    let waiter = redlock.acquire_with(
        "held",
        redlock_core::AcquireOptions::new().wait(Wait::UpTo(Duration::from_secs(60))),
    );
    let server = shutdown.serve(async |asked| {
        asked.await;
        Ok::<_, io::Error>(())
    });
    let (refused, ended) = tokio::join!(waiter, server);
    assert_eq!(refused.unwrap_err().kind(), AcquireErrorKind::Closed);
    ended.unwrap();
    assert!(began.elapsed() < 2 * ends, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_does_not_end_in_time_does_not_keep_the_process() {
    let redlock = virtual_client(&Nodes::new()).await;
    let limit = Duration::from_secs(3);
    let began = Instant::now();
    let shutdown = Shutdown::when(redlock.clone(), async {})
        .and(pending::<()>())
        .limit(limit);
    let stuck = shutdown.serve(|_| pending::<Result<(), io::Error>>());
    stuck.await.unwrap();
    let took = began.elapsed();
    assert!((limit..2 * limit).contains(&took), "{took:?}");
    assert!(is_closed(&redlock).await);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_fails_by_itself_ends_the_rest_too_and_its_error_is_told() {
    let redlock = virtual_client(&Nodes::new()).await;
    let ended = Arc::new(Mutex::new(false));
    let jobs = Arc::clone(&ended);
    let shutdown = Shutdown::when(redlock.clone(), pending());
    let shutdown = shutdown.and(async move { *jobs.lock().unwrap() = true });
    let failed = shutdown.serve(async |_| Err(io::Error::other("no port")));
    assert_eq!(failed.await.unwrap_err().to_string(), "no port");
    assert!(*ended.lock().unwrap() && is_closed(&redlock).await);
}
