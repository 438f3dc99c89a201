//! Requests that lock several keys, and those that lock one after the other in different orders.

use std::{convert::Infallible, time::Duration};

use axum::{Json, Router, body::Body, routing::post};
use http::{Request, Response};
use redlock_core::{
    AcquireError, AcquireErrorKind, AcquireOptions, Redlock, ResourceKey, ResourceKeys, Wait,
};
use redlock_tower::{
    InHandler, KeyError, LockKey, Locked, RedlockLayer, Rejection, RejectionKind, RequestLease,
};
use tokio::{task::JoinSet, time::Instant};
use tower::{Layer, ServiceExt, service_fn};

use crate::behaviour::kit::{Gauge, Nodes, in_time, is_free, virtual_client};

/// The two keys that a request's path has, in the order of the path.
fn both(path: &str) -> Result<Option<ResourceKeys>, KeyError> {
    let keys = path.split('/').filter(|key| !key.is_empty());
    let keys = keys.map(|key| ResourceKey::new("test", key));
    let keys: Vec<ResourceKey> = keys.collect::<Result<_, _>>()?;
    Ok(Some(ResourceKeys::new(keys)?))
}

fn by_path(request: &Request<Body>) -> Result<Option<ResourceKeys>, KeyError> {
    both(request.uri().path())
}

fn get(path: &str) -> Request<Body> {
    Request::get(path).body(Body::empty()).unwrap()
}

/// A transfer each way between each two of four accounts, all at once, from two replicas.
#[tokio::test(start_paused = true)]
async fn transfers_between_the_same_accounts_never_overlap_and_never_wait_for_each_other() {
    let nodes = Nodes::new();
    let replicas = [virtual_client(&nodes).await, virtual_client(&nodes).await];
    let gauge = Gauge::default();
    let inside = gauge.clone();
    let transfer = service_fn(move |request: Request<Body>| {
        let inside: Vec<_> = request.uri().path()[1..]
            .split('/')
            .map(|key| inside.enter(key))
            .collect();
        async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            drop(inside);
            Ok::<_, Infallible>(Response::new(Body::empty()))
        }
    });
    let mut transfers = JoinSet::new();
    for from in 0..4 {
        for to in (0..4).filter(|to| *to != from) {
            let redlock = replicas[(from + to) % 2].clone();
            let layer = RedlockLayer::builder(redlock)
                .options(AcquireOptions::new().wait(Wait::UpTo(Duration::from_secs(60))));
            let service = layer.build(by_path).unwrap().layer(transfer.clone());
            transfers.spawn(service.oneshot(get(&format!("/{from}/{to}"))));
        }
    }
    while let Some(answer) = in_time(transfers.join_next()).await {
        assert_eq!(answer.unwrap().unwrap().status(), 200);
    }
    for key in ["0", "1", "2", "3"] {
        assert_eq!((gauge.peak(key), gauge.total(key)), (1, 6));
    }
    nodes.have_keys(0).await;
}

#[derive(serde::Deserialize)]
struct Order {
    to: String,
}

impl LockKey for Order {
    fn lock_key(&self) -> Result<ResourceKeys, KeyError> {
        Ok(ResourceKeys::new([
            format!("test:{}", self.to),
            "test:a".to_owned(),
        ])?)
    }
}

#[tokio::test(start_paused = true)]
async fn a_value_of_the_handler_can_name_several_keys() {
    let nodes = Nodes::new();
    let redlock = virtual_client(&nodes).await;
    let other = virtual_client(&nodes).await;
    let handler = async move |transfer: Locked<Json<Order>>| {
        let keys = transfer.lease().keys();
        assert_eq!(keys[0].as_str(), "test:a");
        for key in ["a", &transfer.to] {
            assert!(!is_free(&other, key).await, "{key}");
        }
        assert!(is_free(&other, "c").await);
    };
    let layer = RedlockLayer::new(redlock.clone(), InHandler);
    let app = Router::new().route("/", post(handler).route_layer(layer));
    let request = Request::post("/")
        .header("content-type", "application/json")
        .body(Body::from(r#"{"to":"b"}"#))
        .unwrap();
    let answer = in_time(app.oneshot(request)).await.unwrap();
    assert_eq!(answer.status(), 200);
    nodes.have_keys(0).await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_on_more_is_used_and_one_on_less_is_the_programs_fault() {
    let nodes = Nodes::new();
    let redlock = virtual_client(&nodes).await;
    for (outer, inner, status) in [
        ("/a/b", "/b", 200),
        ("/a/b", "/b/a", 200),
        ("/b", "/a/b", 500),
    ] {
        let layer = |path: &'static str| {
            RedlockLayer::new(redlock.clone(), move |_: &Request<Body>| both(path))
        };
        let handler = service_fn(async |request: Request<Body>| {
            let lease = request.extensions().get::<RequestLease>().unwrap();
            let outer = lease.outer().expect("there are two layers");
            assert_eq!(outer.token(), lease.token());
            Ok::<_, Infallible>(Response::new(Body::empty()))
        });
        let service = layer(outer).layer(layer(inner).layer(handler));
        let began = Instant::now();
        let answer = in_time(service.oneshot(get("/"))).await.unwrap();
        assert_eq!(answer.status(), status, "{outer} {inner}");
        drop(answer);
        assert!(
            began.elapsed() < Duration::from_secs(1),
            "it waited for itself"
        );
        nodes.have_keys(0).await;
    }
}

#[tokio::test(start_paused = true)]
async fn more_keys_than_a_lease_can_have_are_refused() {
    let redlock = virtual_client(&Nodes::new()).await;
    let path: String = (0..17).map(|key| format!("/{key}")).collect();
    for (path, count) in [(&*path, "17"), ("/", "0")] {
        let handler =
            service_fn(async |_: Request<Body>| Ok::<_, Infallible>(Response::new(Body::empty())));
        let service = RedlockLayer::new(redlock.clone(), by_path).layer(handler);
        let answer = in_time(service.oneshot(get(path))).await.unwrap();
        assert_eq!(answer.status(), 400);
        let rejection = answer.extensions().get::<Rejection>().unwrap();
        assert_eq!(rejection.kind(), RejectionKind::Key);
        assert!(
            std::error::Error::source(rejection).is_some_and(|why| why.to_string().contains(count)),
            "{rejection}"
        );
    }
}

/// Two layers on one handler, and something between them that takes a moment.
async fn one_after_the_other(redlock: Redlock, paths: [&'static str; 2]) -> Response<()> {
    let [outer, inner] =
        paths.map(|path| RedlockLayer::new(redlock.clone(), move |_: &Request<Body>| both(path)));
    let handler = service_fn(async |_: Request<Body>| {
        tokio::time::sleep(Duration::from_millis(10)).await;
        Ok::<_, Infallible>(Response::new(Body::empty()))
    });
    let inner = inner.layer(handler);
    let slowly = service_fn(move |request: Request<Body>| {
        let inner = inner.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            inner
                .oneshot(request)
                .await
                .map(|answer| answer.map(Body::new))
        }
    });
    let answer = outer.layer(slowly).oneshot(get("/")).await.unwrap();
    // The lock is held until the body is gone.
    answer.map(drop)
}

// Shows: R3.5.
#[tokio::test(start_paused = true)]
async fn requests_that_would_wait_for_each_other_are_told_so_at_once() {
    let nodes = Nodes::new();
    let redlock = virtual_client(&nodes).await;
    let began = Instant::now();
    let circle = [["/a", "/b"], ["/b", "/c"], ["/c", "/a"]];
    let answers = circle.map(|paths| one_after_the_other(redlock.clone(), paths));
    let answers = in_time(futures_util::future::join_all(answers)).await;
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
    let mut statuses: Vec<u16> = answers
        .iter()
        .map(|answer| answer.status().as_u16())
        .collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 409]);
    let refused = answers
        .iter()
        .find(|answer| answer.status() == 409)
        .unwrap();
    let rejection = refused.extensions().get::<Rejection>().unwrap();
    assert_eq!(rejection.kind(), RejectionKind::Contended);
    let why = std::error::Error::source(rejection).unwrap();
    let why = why.downcast_ref::<AcquireError>().unwrap();
    assert_eq!(why.kind(), AcquireErrorKind::Deadlock);
    nodes.have_keys(0).await;
}
