//! Many more requests for one resource than may wait.

use std::{convert::Infallible, task::Context};

use axum::{Router, body::Body, routing::get};
use futures_util::{StreamExt, stream::FuturesUnordered, task::noop_waker_ref};
use http::{Request, Response};
use redlock_core::AcquireOptions;
use redlock_tower::RedlockLayer;
use tower::{Layer, ServiceExt, service_fn};

use crate::behaviour::kit::{
    KEY, LONG, Nodes, Server, again_in, by_header, in_time, request, virtual_client,
};

const CROWD: usize = 10_000;
/// As many as may wait for one key by default.
const WAIT: usize = 1_024;

#[tokio::test(start_paused = true)]
async fn those_who_may_not_wait_cost_no_memory_and_those_who_do_are_served() {
    let redlock = virtual_client(&Nodes::new()).await;
    let handler = async |_: Request<Body>| Ok::<_, Infallible>(Response::new(Body::empty()));
    let layer = RedlockLayer::builder(redlock.clone()).options(AcquireOptions::new().wait(LONG));
    let service = layer.build(by_header()).unwrap().layer(service_fn(handler));
    let holder = redlock.acquire(format!("test:{KEY}")).await.unwrap();

    let mut refused = 0;
    let mut waiting = Vec::with_capacity(CROWD);
    let memory = allocation_counter::measure(|| {
        for _ in 0..CROWD {
            let mut response = Box::pin(service.clone().oneshot(request(KEY)));
            let mut cx = Context::from_waker(noop_waker_ref());
            match response.as_mut().poll(&mut cx).map(Result::unwrap) {
                std::task::Poll::Ready(response) => {
                    assert_eq!(response.status(), 503);
                    refused += 1;
                }
                std::task::Poll::Pending => waiting.push(response),
            }
        }
    });
    assert_eq!((waiting.len(), refused), (WAIT, CROWD - WAIT));
    let each = memory.bytes_current / i64::try_from(WAIT).unwrap();
    assert!(each < 8 * 1024, "{each} bytes for each who waits");
    assert!(
        memory.bytes_max < 8 * 1024 * (WAIT as u64 + 1),
        "{memory:?}"
    );

    drop(holder);
    for response in waiting {
        assert_eq!(in_time(response).await.unwrap().status(), 200);
    }
}

/// Over as many streams as a server takes on one connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_of_a_crowd_is_answered() {
    const CONNECTIONS: usize = 50;
    let nodes = Nodes::new();
    let redlock = nodes.client().build().await.unwrap();
    let layer = RedlockLayer::builder(redlock.clone()).options(AcquireOptions::new().wait(LONG));
    let layer = layer.build(by_header()).unwrap();
    let server = Server::start(Router::new().route("/", get(async || "done")).layer(layer)).await;
    let holder = redlock.acquire(format!("test:{KEY}")).await.unwrap();

    let mut connections = Vec::new();
    let mut answers = FuturesUnordered::new();
    for _ in 0..CONNECTIONS {
        let connection = server.connect_http2().await;
        answers.extend((0..CROWD / CONNECTIONS).map(|_| connection.send(request(KEY))));
        connections.push(connection);
    }
    for _ in 0..CROWD - WAIT {
        let refused = in_time(answers.next()).await.unwrap().unwrap();
        assert_eq!(refused.status(), 503);
        // As long as a queue of this length may take, or 60 s, and up to ten that are random.
        assert!((1..=70).contains(&again_in(refused.headers())));
    }
    drop(holder);
    for _ in 0..WAIT {
        let served = in_time(answers.next()).await.unwrap().unwrap();
        assert_eq!(served.status(), 200);
    }
    assert!(answers.next().await.is_none());
    nodes.have_keys(0).await;
}
