//! Two replicas of a service on the same nodes.

use std::convert::Infallible;

use axum::body::Body;
use http::{Request, Response};
use redlock_core::AcquireOptions;
use redlock_tower::RedlockLayer;
use tokio::task::JoinSet;
use tower::{Layer, ServiceExt, service_fn};

use crate::behaviour::kit::{
    Gauge, HEADER, LONG, Nodes, by_header, in_time, let_others_run, request,
};

const REQUESTS: usize = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_replicas_never_overlap_on_a_key_and_lose_no_request() {
    let nodes = Nodes::new();
    let gauge = Gauge::default();
    let mut clients = JoinSet::new();
    for _ in 0..2 {
        let redlock = nodes.client().build().await.unwrap();
        let layer = RedlockLayer::builder(redlock)
            .options(AcquireOptions::new().wait(LONG))
            .build(by_header())
            .unwrap();
        let gauge = gauge.clone();
        let replica = layer.layer(service_fn(move |request: Request<Body>| {
            let gauge = gauge.clone();
            async move {
                let key = request.headers()[HEADER].to_str().unwrap();
                let _inside = gauge.enter(key);
                let_others_run().await;
                Ok::<_, Infallible>(Response::new(Body::empty()))
            }
        }));
        for i in 0..REQUESTS {
            let request = request(["a", "b"][i % 2]);
            let response = replica.clone().oneshot(request);
            clients.spawn(async move { assert_eq!(response.await.unwrap().status(), 200) });
        }
    }
    in_time(clients.join_all()).await;
    for key in ["a", "b"] {
        assert_eq!((gauge.peak(key), gauge.total(key)), (1, REQUESTS), "{key}");
    }
    nodes.have_keys(0).await;
}
