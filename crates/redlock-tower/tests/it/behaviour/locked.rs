//! `Locked` as an argument of a handler.

use std::{
    convert::Infallible,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::Poll,
    time::Duration,
};

use axum::{
    Json, Router,
    body::Body,
    extract::{FromRef, Path, State},
    routing::{get, post},
};
use futures_util::{StreamExt, stream};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use redlock_core::{AcquireOptions, Redlock, ResourceKey, ResourceKeys, Wait};
use redlock_tower::{
    Hold, InHandler, KeyError, LockKey, Locked, LossPolicy, RedlockLayer, RedlockLayerBuilder,
    Rejection,
};
use serde::Deserialize;
use tokio::time::Instant;
use tower::ServiceExt;

use crate::behaviour::kit::{
    KEY, Nodes, again_in, in_time, is_free, locked_as_423, virtual_client,
};

#[derive(Deserialize)]
pub(crate) struct Order {
    pub(crate) id: String,
    #[serde(default)]
    patient: bool,
}

impl LockKey for Order {
    fn lock_key(&self) -> Result<ResourceKeys, KeyError> {
        Ok(ResourceKey::new("test", &self.id)?.into())
    }

    fn options(&self) -> AcquireOptions {
        if self.patient {
            AcquireOptions::new()
        } else {
            AcquireOptions::new().wait(Wait::Never)
        }
    }
}

/// A state in which the client is one thing among others.
#[derive(Clone)]
struct AppState {
    redlock: Redlock,
    entered: Arc<AtomicUsize>,
}

impl FromRef<AppState> for Redlock {
    fn from_ref(state: &AppState) -> Self {
        state.redlock.clone()
    }
}

fn app(redlock: &Redlock) -> (Router, Arc<AtomicUsize>) {
    app_with(redlock, RedlockLayer::builder(redlock.clone()))
}

fn app_with(redlock: &Redlock, layer: RedlockLayerBuilder) -> (Router, Arc<AtomicUsize>) {
    let layer = layer.build(InHandler).unwrap();
    let by_path = async |State(state): State<AppState>, order: Locked<Path<Order>>| {
        state.entered.fetch_add(1, SeqCst);
        tokio::task::yield_now().await;
        assert!(!is_free(&state.redlock, &order.id).await);
        order.lease().key().as_str().to_owned()
    };
    let by_body = async |order: Locked<Json<Order>>| {
        let Json(order) = order.into_inner();
        order.id
    };
    let to_the_end = async |State(state): State<AppState>, order: Locked<Path<Order>>| {
        state.entered.fetch_add(1, SeqCst);
        order.lease().run(std::future::pending::<()>()).await?;
        Ok::<_, Rejection>(())
    };
    let stuck = async |State(state): State<AppState>, _order: Locked<Path<Order>>| {
        state.entered.fetch_add(1, SeqCst);
        std::future::pending::<()>().await;
    };
    let streaming = async |order: Locked<Path<Order>>| {
        drop(order);
        let frames = stream::iter(["a", "b"]).then(async |frame| {
            tokio::time::sleep(Duration::from_secs(2)).await;
            Ok::<_, Infallible>(frame)
        });
        Body::from_stream(frames)
    };
    let entered = Arc::new(AtomicUsize::new(0));
    let state = AppState {
        redlock: redlock.clone(),
        entered: Arc::clone(&entered),
    };
    let app = Router::new()
        .route("/orders/{id}", get(by_path))
        .route("/orders/{id}/{patient}", get(by_path))
        .route("/stuck/{id}", get(to_the_end))
        .route("/pending/{id}", get(stuck))
        .route("/streams/{id}", get(streaming))
        .route("/", post(by_body))
        .route_layer(layer)
        .with_state(state);
    (app, entered)
}

pub(crate) fn to(path: &str) -> Request<Body> {
    Request::get(path).body(Body::empty()).unwrap()
}

fn with_json(text: &str) -> Request<Body> {
    let request = Request::post("/").header("content-type", "application/json");
    request.body(Body::from(text.to_owned())).unwrap()
}

pub(crate) async fn ask(app: &Router, request: Request<Body>) -> Response<Body> {
    in_time(app.clone().oneshot(request)).await.unwrap()
}

async fn text(response: Response<Body>) -> String {
    let body = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_another_extractor_finds_is_locked_while_the_handler_runs() {
    let nodes = Nodes::new();
    let redlock = virtual_client(&nodes).await;
    let (app, _) = app(&redlock);
    assert_eq!(text(ask(&app, to("/orders/7")).await).await, "test:7");
    assert_eq!(text(ask(&app, with_json(r#"{"id":"8"}"#)).await).await, "8");
    for key in ["7", "8"] {
        assert!(is_free(&redlock, key).await);
    }
    nodes.have_keys(0).await;
}

#[tokio::test(start_paused = true)]
async fn a_value_that_is_none_is_answered_by_its_own_extractor() {
    let redlock = virtual_client(&Nodes::new()).await;
    let (app, _) = app(&redlock);
    let _holder = redlock.acquire("test:8").await.unwrap();
    for (body, status) in [("{", 400), ("{}", 422)] {
        let response = ask(&app, with_json(body)).await;
        assert_eq!(response.status(), status);
        assert!(response.extensions().get::<Rejection>().is_none());
    }
    let plain = Request::post("/")
        .body(Body::from(r#"{"id":"8"}"#))
        .unwrap();
    assert_eq!(ask(&app, plain).await.status(), 415);
}

#[tokio::test(start_paused = true)]
async fn a_value_that_cannot_be_locked_is_answered_as_the_layer_does() {
    let nodes = Nodes::new();
    let redlock = virtual_client(&nodes).await;
    let (app, entered) = app(&redlock);
    let holder = redlock.acquire(format!("test:{KEY}")).await.unwrap();
    let held = format!(r#"{{"id":"{KEY}"}}"#);
    let long = format!(r#"{{"id":"{KEY}{}"}}"#, "x".repeat(512));
    let cases = [(&held, 409, Some(1..=2)), (&long, 400, None)];
    for (body, status, retry_after) in cases {
        let response = ask(&app, with_json(body)).await;
        assert_eq!(response.status(), status);
        match retry_after {
            Some(seconds) => assert!(seconds.contains(&again_in(response.headers()))),
            None => assert_eq!(response.headers().get("retry-after"), None),
        }
        assert_eq!(
            response.headers()["content-type"],
            "application/problem+json"
        );
        let rejection = response.extensions().get::<Rejection>().unwrap();
        assert_eq!(rejection.status(), status);
        assert!(!text(response).await.contains(KEY));
    }
    drop(holder);
    nodes.stop();
    assert_eq!(ask(&app, with_json(&held)).await.status(), 503);
    redlock.close().await;
    assert_eq!(ask(&app, with_json(&held)).await.status(), 503);
    assert_eq!(entered.load(SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn a_value_says_how_long_to_wait() {
    let redlock = virtual_client(&Nodes::new()).await;
    let (app, _) = app(&redlock);
    let _holder = redlock.acquire("test:7").await.unwrap();
    for (path, wait) in [("/orders/7", 0), ("/orders/7/true", 5)] {
        let start = Instant::now();
        assert_eq!(ask(&app, to(path)).await.status(), 409);
        assert_eq!(start.elapsed().as_secs(), wait, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_drop_at_any_await_point_of_the_handler_frees_the_lock() {
    let nodes = Nodes::new();
    let redlock = virtual_client(&nodes).await;
    let (app, entered) = app(&redlock);
    for polls in 0.. {
        let done = {
            let mut response = pin!(app.clone().oneshot(to("/orders/7/true")));
            let mut left = polls;
            std::future::poll_fn(|cx| match left {
                0 => Poll::Ready(false),
                _ => {
                    left -= 1;
                    response.as_mut().poll(cx).map(|_| true)
                }
            })
            .await
        };
        assert!(is_free(&redlock, "7").await, "after a drop at poll {polls}");
        nodes.have_keys(0).await;
        if done {
            assert!(entered.load(SeqCst) > 1, "also in the handler");
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn work_that_must_be_exclusive_ends_with_the_lease() {
    let nodes = Nodes::new();
    let redlock = virtual_client(&nodes).await;
    let (app, entered) = app(&redlock);
    let trouble = async {
        nodes.have_keys(1).await;
        // So that it has the lease, and works.
        while entered.load(SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        nodes.drop_locks();
    };
    let (response, ()) = tokio::join!(ask(&app, to("/stuck/7")), trouble);
    assert_eq!(response.status(), 503);
    assert!((1..=2).contains(&again_in(response.headers())));
    assert!(text(response).await.contains("half done"));
    assert!(is_free(&redlock, "7").await);
}

/// What a layer would do for a key of its own.
#[tokio::test(start_paused = true)]
async fn a_handler_whose_lease_is_lost_is_dropped() {
    let nodes = Nodes::new();
    let redlock = virtual_client(&nodes).await;
    let (app, entered) = app(&redlock);
    let trouble = async {
        while entered.load(SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        nodes.have_keys(1).await;
        nodes.drop_locks();
    };
    let (response, ()) = tokio::join!(ask(&app, to("/pending/7")), trouble);
    assert_eq!(response.status(), 503);
    assert!(text(response).await.contains("half done"));
    assert!(is_free(&redlock, "7").await);
}

#[tokio::test(start_paused = true)]
async fn the_longest_hold_of_the_layer_ends_a_handler_too() {
    let redlock = virtual_client(&Nodes::new()).await;
    let hold = Duration::from_secs(3);
    let layer =
        RedlockLayer::builder(redlock.clone()).options(AcquireOptions::new().max_hold(hold));
    let (app, _) = app_with(&redlock, layer);
    let start = Instant::now();
    assert_eq!(ask(&app, to("/pending/7")).await.status(), 503);
    let took = start.elapsed();
    assert!(took > hold / 2 && took <= hold, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn the_lock_is_held_until_the_body_has_ended() {
    let nodes = Nodes::new();
    let redlock = virtual_client(&nodes).await;
    let (app, _) = app(&redlock);
    let response = ask(&app, to("/streams/7")).await;
    assert!(!is_free(&redlock, "7").await, "the body is still its work");
    assert_eq!(text(response).await, "ab");
    assert!(is_free(&redlock, "7").await);

    let response = ask(&app, to("/streams/7")).await;
    nodes.have_keys(1).await;
    nodes.drop_locks();
    let cut = response.into_body().collect().await;
    assert!(cut.is_err(), "a lost lease cuts the body off");

    let layer = RedlockLayer::builder(redlock.clone()).hold(Hold::Response);
    let (app, _) = app_with(&redlock, layer);
    let response = ask(&app, to("/streams/7")).await;
    assert!(is_free(&redlock, "7").await, "as the layer says");
    assert_eq!(text(response).await, "ab");
}

#[tokio::test(start_paused = true)]
async fn the_settings_of_the_layer_are_those_of_the_handlers_locks() {
    let redlock = virtual_client(&Nodes::new()).await;
    let layer = RedlockLayer::builder(redlock.clone())
        .options(AcquireOptions::new().wait(Wait::UpTo(Duration::from_secs(2))))
        .reject_with(locked_as_423);
    let (app, _) = app_with(&redlock, layer);
    let _holder = redlock.acquire("test:7").await.unwrap();
    // The value of the first says not to wait, and that of the second nothing.
    for (path, wait) in [("/orders/7", 0), ("/orders/7/true", 2)] {
        let start = Instant::now();
        assert_eq!(ask(&app, to(path)).await.status(), 423);
        assert_eq!(start.elapsed().as_secs(), wait, "{path}");
    }
    let layer = RedlockLayer::builder(redlock.clone()).reject_with(|rejection| {
        let mut response = rejection.problem();
        *response.status_mut() = StatusCode::IM_A_TEAPOT;
        response
    });
    let (app, _) = app_with(&redlock, layer);
    let refused = ask(&app, to("/orders/7")).await;
    assert_eq!(refused.status(), 418);
    assert!(refused.extensions().get::<Rejection>().is_some());
    let invalid = format!(r#"{{"id":"{}"}}"#, "x".repeat(600));
    assert_eq!(ask(&app, with_json(&invalid)).await.status(), 418);
}

#[tokio::test(start_paused = true)]
async fn a_loss_that_is_only_signalled_leaves_the_handler_to_decide() {
    let nodes = Nodes::new();
    let redlock = virtual_client(&nodes).await;
    let layer = RedlockLayer::builder(redlock.clone()).on_lost(LossPolicy::Signal);
    let (app, entered) = app_with(&redlock, layer);
    let trouble = async {
        while entered.load(SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        nodes.drop_locks();
    };
    // This one asks for it, by `Lease::run`.
    let (response, ()) = tokio::join!(ask(&app, to("/stuck/7")), trouble);
    assert_eq!(response.status(), 503);
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_no_layer_watches_over_is_not_taken() {
    let nodes = Nodes::new();
    let _redlock = virtual_client(&nodes).await;
    let handler = async |_: Locked<Path<Order>>| {};
    let app: Router = Router::new().route("/orders/{id}", get(handler));
    let response = ask(&app, to("/orders/7")).await;
    assert_eq!(response.status(), 500);
    assert!(text(response).await.contains("InHandler"));
    nodes.have_keys(0).await;
}
