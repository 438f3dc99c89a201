//! Layers within scopes of the client.

use std::{convert::Infallible, time::Duration};

use axum::body::Body;
use futures_util::{StreamExt, stream};
use http::{Request, Response};
use http_body_util::BodyExt;
use redlock_core::{AcquireOptions, Wait};
use redlock_tower::RedlockLayer;
use tower::{Layer, ServiceExt, service_fn};

use crate::behaviour::kit::{Nodes, by_header, in_time, is_free, request, virtual_client};

/// As a middleware around the layer would open one, which ends with the head of the response.
#[tokio::test(start_paused = true)]
async fn a_scope_around_the_layer_takes_no_lock_from_a_body() {
    let nodes = Nodes::new();
    let redlock = virtual_client(&nodes).await;
    let streaming = service_fn(async |_: Request<Body>| {
        let frames = stream::iter(["a", "b"]).then(async |frame| {
            tokio::time::sleep(Duration::from_secs(2)).await;
            Ok::<_, Infallible>(frame)
        });
        Ok::<_, Infallible>(Response::new(Body::from_stream(frames)))
    });
    let service = RedlockLayer::new(redlock.clone(), by_header()).layer(streaming);
    let answer = redlock.scope(service.oneshot(request("a"))).await.unwrap();
    assert!(!is_free(&redlock, "a").await, "the body goes on");
    let body = in_time(answer.into_body().collect()).await.unwrap();
    assert_eq!(body.to_bytes(), "ab");
    nodes.have_keys(0).await;
}

#[tokio::test(start_paused = true)]
async fn requests_of_one_scope_do_not_share_their_lock() {
    let redlock = virtual_client(&Nodes::new()).await;
    let slow = service_fn(async |_: Request<Body>| {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok::<_, Infallible>(Response::new(Body::empty()))
    });
    let layer =
        RedlockLayer::builder(redlock.clone()).options(AcquireOptions::new().wait(Wait::Never));
    let service = layer.build(by_header()).unwrap().layer(slow);
    let two = [0; 2].map(|_| service.clone().oneshot(request("a")));
    let answers = redlock.scope(futures_util::future::join_all(two));
    let statuses = in_time(answers).await.into_iter();
    let mut statuses: Vec<u16> = statuses
        .map(|answer| answer.unwrap().status().as_u16())
        .collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
}
