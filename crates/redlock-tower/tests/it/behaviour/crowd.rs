//! Many more requests for one resource than may wait.

use std::{convert::Infallible, task::Context};

use axum::body::Body;
use futures_util::task::noop_waker_ref;
use http::{Request, Response};
use redlock_core::AcquireOptions;
use redlock_tower::RedlockLayer;
use tower::{Layer, ServiceExt, service_fn};

use crate::behaviour::kit::{KEY, LONG, Nodes, by_header, in_time, request, virtual_client};

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
