//! Layers that let several requests with the same key run at once.

use std::{convert::Infallible, time::Duration};

use axum::body::Body;
use http::{Request, Response};
use redlock_core::{AcquireOptions, ResourceKeys, Slots, Wait};
use redlock_tower::{
    ConfigErrorKind, KeyError, RedlockLayer, Rejection, RejectionKind, RequestLease,
};
use tokio::task::JoinSet;
use tower::{Layer, ServiceExt, service_fn};

use crate::behaviour::kit::{Gauge, HEADER, Nodes, by_header, in_time, request, virtual_client};

const SLOTS: usize = 3;

// Shows: R5.1.
#[tokio::test(start_paused = true)]
async fn as_many_requests_run_at_once_as_a_key_has_slots_on_all_replicas() {
    let nodes = Nodes::new();
    let gauge = Gauge::default();
    let mut clients = JoinSet::new();
    for _ in 0..2 {
        let layer = RedlockLayer::builder(virtual_client(&nodes).await)
            .slots(SLOTS)
            .options(AcquireOptions::new().wait(Wait::UpTo(Duration::from_secs(60))))
            .build(by_header())
            .unwrap();
        let inside = gauge.clone();
        let replica = layer.layer(service_fn(move |request: Request<Body>| {
            let inside = inside.clone();
            async move {
                let key = request.headers()[HEADER].to_str().unwrap();
                let _inside = inside.enter(key);
                tokio::time::sleep(Duration::from_millis(20)).await;
                Ok::<_, Infallible>(Response::new(Body::empty()))
            }
        }));
        for number in 0..20 {
            let answer = replica.clone().oneshot(request(["a", "b"][number % 2]));
            clients.spawn(async move { assert_eq!(answer.await.unwrap().status(), 200) });
        }
    }
    in_time(clients.join_all()).await;
    for key in ["a", "b"] {
        assert_eq!((gauge.peak(key), gauge.total(key)), (SLOTS, 20), "{key}");
    }
    nodes.have_keys(0).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_finds_no_slot_is_contended_and_one_with_several_keys_is_the_programs_fault()
{
    let redlock = virtual_client(&Nodes::new()).await;
    let served =
        service_fn(async |_: Request<Body>| Ok::<_, Infallible>(Response::new(Body::empty())));
    let layer = RedlockLayer::builder(redlock.clone())
        .slots(1)
        .options(AcquireOptions::new().wait(Wait::Never));
    let one = layer.clone().build(by_header()).unwrap().layer(served);
    let held = redlock.slots("test:a", 1).unwrap().acquire().await.unwrap();
    let answer = one.clone().oneshot(request("a")).await.unwrap();
    assert_eq!(answer.status(), 409);
    held.release().await.unwrap();
    assert_eq!(one.oneshot(request("a")).await.unwrap().status(), 200);

    let two = |_: &Request<Body>| Ok::<_, KeyError>(Some(ResourceKeys::new(["a", "b"])?));
    let several = layer.build(two).unwrap().layer(served);
    let answer = several.oneshot(request("a")).await.unwrap();
    assert_eq!(answer.status(), 500);
    let rejection = answer.extensions().get::<Rejection>().unwrap();
    assert_eq!(rejection.kind(), RejectionKind::Misuse);
}

#[tokio::test(start_paused = true)]
async fn a_layer_without_slots_and_one_with_too_many_are_refused() {
    let redlock = virtual_client(&Nodes::new()).await;
    for slots in [0, Slots::MAX_COUNT + 1] {
        let layer = RedlockLayer::builder(redlock.clone()).slots(slots);
        let refused = layer.build(by_header()).unwrap_err();
        assert_eq!(
            (refused.kind(), refused.field()),
            (ConfigErrorKind::Misuse, "slots")
        );
        assert!(refused.to_string().contains("1 to 64"), "{refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn two_layers_with_the_same_slots_are_one_slot() {
    for slots in [1, 2] {
        let nodes = Nodes::new();
        let redlock = virtual_client(&nodes).await;
        let layer = || {
            RedlockLayer::builder(redlock.clone())
                .slots(slots)
                .options(AcquireOptions::new().wait(Wait::Never))
        };
        let [outer, inner] = [0; 2].map(|_| layer().build(by_header()).unwrap());
        let handler = service_fn(async |request: Request<Body>| {
            let lease = request.extensions().get::<RequestLease>().unwrap();
            let outer = lease.outer().expect("there are two layers");
            assert_eq!(outer.key(), lease.key());
            Ok::<_, Infallible>(Response::new(Body::empty()))
        });
        let answer = outer.layer(inner.layer(handler)).oneshot(request("a"));
        assert_eq!(in_time(answer).await.unwrap().status(), 200);
        nodes.have_keys(0).await;
    }
}
