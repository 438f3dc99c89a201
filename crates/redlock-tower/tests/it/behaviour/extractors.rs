//! `RequestLease` as an argument of a handler.

use std::sync::{Arc, Mutex};

use axum::{Router, body::Body, routing::get};
use http::Request;
use redlock_core::LossReason;
use redlock_tower::{RedlockLayer, RequestLease};
use serde_json::Value;
use tower::ServiceExt;

use crate::behaviour::kit::{KEY, Nodes, by_header, in_time, request, virtual_client};

async fn body_of(app: Router, request: Request<Body>) -> (u16, String) {
    let response = app.oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let body = axum::body::to_bytes(response.into_body(), 10_000)
        .await
        .unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_view_answers_for_itself_what_its_lease_answers() {
    let kept = Arc::new(Mutex::new(None::<RequestLease>));
    let keep = Arc::clone(&kept);
    let handler = async move |lease: RequestLease| {
        let view: &redlock_core::Lease = &lease;
        assert_eq!(lease.keys(), view.keys());
        assert_eq!((lease.class(), lease.token()), (Some("test"), view.token()));
        assert_eq!(lease.remaining(), view.remaining());
        assert!(!lease.remaining().is_zero() && !lease.is_endangered());
        assert_eq!(lease.run(async { 7 }).await, Ok(7));
        *keep.lock().unwrap() = Some(lease);
    };
    let layer = RedlockLayer::new(virtual_client(&Nodes::new()).await, by_header());
    let app = Router::new().route("/", get(handler)).layer(layer);
    assert_eq!(body_of(app, request(KEY)).await.0, 200);

    let lease = kept.lock().unwrap().take().unwrap();
    assert!(!lease.is_held() && lease.is_endangered());
    assert!(lease.remaining().is_zero());
    assert_eq!(in_time(lease.lost()).await, LossReason::Released);
    in_time(lease.endangered()).await;
    assert!(lease.run(async { 7 }).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn an_optional_lease_says_whether_there_is_one() {
    let handler = async |lease: Option<RequestLease>| lease.is_some().to_string();
    let key = by_header().optional();
    let layer = RedlockLayer::new(virtual_client(&Nodes::new()).await, key);
    let app = Router::new().route("/", get(handler)).layer(layer);
    assert_eq!(
        body_of(app.clone(), request(KEY)).await,
        (200, "true".to_owned())
    );
    let unlocked = Request::get("/").body(Body::empty()).unwrap();
    assert_eq!(body_of(app, unlocked).await, (200, "false".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_missing_lease_names_the_layer_and_the_likely_cause() {
    let layer = RedlockLayer::new(virtual_client(&Nodes::new()).await, by_header());
    // The layer is not around routes that are added after it.
    let app = Router::new()
        .route("/other", get(async || ()))
        .layer(layer)
        .route("/", get(async |_: RequestLease| ()));
    let (status, body) = body_of(app, request(KEY)).await;
    assert_eq!(status, 500);
    let problem: Value = serde_json::from_str(&body).unwrap();
    let detail = problem["detail"].as_str().unwrap();
    assert!(
        detail.contains("RedlockLayer") && detail.contains("added before"),
        "{detail}"
    );
}
