//! Where the layer is put in axum: what it locks there, and what it does not.

use std::time::Duration;

use axum::{
    Router,
    body::Body,
    routing::{any, get, post},
};
use http::{Method, Request, Response, StatusCode};
use redlock_core::{LockGuard, Redlock};
use redlock_tower::{PathKey, RedlockLayer};
use tokio::time::Instant;
use tower::{Layer, ServiceExt};
use tracing::Level;

use crate::behaviour::{
    kit::{Nodes, in_time, virtual_client},
    secrets::Log,
};

fn by_id(redlock: &Redlock) -> RedlockLayer<PathKey> {
    RedlockLayer::new(redlock.clone(), PathKey::new("order", "id"))
}

/// A client, and a holder of order 1.
async fn held() -> (Redlock, LockGuard) {
    let redlock = virtual_client(&Nodes::new()).await;
    let guard = redlock.acquire("order:1").await.unwrap();
    (redlock, guard)
}

async fn ask(app: &Router, method: Method, path: &str) -> Response<Body> {
    let request = Request::builder().method(method).uri(path);
    let request = request.body(Body::empty()).unwrap();
    in_time(app.clone().oneshot(request)).await.unwrap()
}

/// The status of the answer, and for how long it was waited for.
async fn timed(app: &Router, method: Method, path: &str) -> (StatusCode, Duration) {
    let began = Instant::now();
    let response = ask(app, method, path).await;
    (response.status(), began.elapsed())
}

#[tokio::test(start_paused = true)]
async fn around_handlers_only_a_wrong_method_is_answered_at_once() {
    let (redlock, _holder) = held().await;
    let lock = by_id(&redlock);
    let app = Router::new().route("/orders/{id}", post(async || "paid").route_layer(lock));
    for method in [
        Method::GET,
        Method::OPTIONS,
        Method::HEAD,
        Method::DELETE,
        Method::PUT,
    ] {
        let answer = timed(&app, method, "/orders/1").await;
        assert_eq!(answer, (StatusCode::METHOD_NOT_ALLOWED, Duration::ZERO));
    }
    let (status, took) = timed(&app, Method::POST, "/orders/1").await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert!(took >= Duration::from_secs(5), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_layer_that_is_told_its_methods_locks_no_other_wherever_it_is() {
    let (redlock, _holder) = held().await;
    let lock = || {
        let layer = RedlockLayer::builder(redlock.clone()).only([Method::POST]);
        layer.build(PathKey::new("order", "id")).unwrap()
    };
    let paid = || post(async || "paid");
    let places: [Router; 3] = [
        Router::new().route("/orders/{id}", paid().layer(lock())),
        Router::new()
            .route("/orders/{id}", paid())
            .route_layer(lock()),
        Router::new().route("/orders/{id}", paid()).layer(lock()),
    ];
    for app in &places {
        for method in [Method::GET, Method::OPTIONS, Method::HEAD] {
            let answer = timed(app, method, "/orders/1").await;
            assert_eq!(answer, (StatusCode::METHOD_NOT_ALLOWED, Duration::ZERO));
        }
        let (status, took) = timed(app, Method::POST, "/orders/1").await;
        assert_eq!(status, StatusCode::CONFLICT);
        assert!(took >= Duration::from_secs(5), "{took:?}");
    }
}

/// axum answers it by the handler of GET.
#[tokio::test(start_paused = true)]
async fn a_layer_that_locks_get_locks_head() {
    let (redlock, _holder) = held().await;
    let layer = RedlockLayer::builder(redlock).only([Method::GET]);
    let layer = layer.build(PathKey::new("order", "id")).unwrap();
    let order = get(async || "an order").layer(layer);
    let app = Router::new().route("/orders/{id}", order);
    for method in [Method::GET, Method::HEAD] {
        let (status, _) = timed(&app, method, "/orders/1").await;
        assert_eq!(status, StatusCode::CONFLICT);
    }
}

#[tokio::test]
async fn a_layer_that_would_lock_no_method_is_not_built() {
    let redlock = virtual_client(&Nodes::new()).await;
    let error = RedlockLayer::builder(redlock)
        .only([])
        .build(PathKey::new("order", "id"))
        .unwrap_err();
    assert_eq!(error.field(), "only");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_held_a_lock_for_its_405_is_told_once() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(Level::WARN)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let _capture = tracing::subscriber::set_default(subscriber);
    let redlock = virtual_client(&Nodes::new()).await;

    let right = post(async || "paid").route_layer(by_id(&redlock));
    let right = Router::new().route("/orders/{id}", right);
    ask(&right, Method::GET, "/orders/1").await;
    let told = || {
        let text = log.text();
        let lines = text.lines().filter(|line| line.contains("redlock::http"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(told(), [""; 0]);

    let wrong = post(async || "paid").layer(by_id(&redlock));
    let wrong = Router::new().route("/orders/{id}", wrong);
    for order in 0..3 {
        let answer = ask(&wrong, Method::GET, &format!("/orders/{order}")).await;
        assert_eq!(answer.status(), 405);
    }
    let [line] = &told()[..] else {
        panic!("{:?}", told())
    };
    assert!(
        line.contains("WARN") && line.contains("MethodRouter::route_layer"),
        "{line}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_path_that_no_route_has_is_not_found_where_the_layer_is_around_the_fallback() {
    let redlock = virtual_client(&Nodes::new()).await;
    let app = Router::new()
        .route("/orders/{id}", post(async || "paid"))
        .route("/health", get(async || "up"))
        .layer(by_id(&redlock));
    assert_eq!(ask(&app, Method::POST, "/orders/1").await.status(), 200);
    for path in ["/nope", "/orders", "/orders/1/nope"] {
        assert_eq!(ask(&app, Method::POST, path).await.status(), 404, "{path}");
    }
    // This one is a mistake of the program.
    assert_eq!(ask(&app, Method::GET, "/health").await.status(), 500);

    let nested: Router = Router::new().nest("/api", app.clone());
    let answer = ask(&nested, Method::POST, "/api/orders/1").await;
    assert_eq!(answer.status(), 200);
    assert_eq!(ask(&nested, Method::GET, "/nope").await.status(), 404);
    // A fallback that is added later is not inside of the layer.
    let app = app.fallback(async || "mine");
    assert_eq!(ask(&app, Method::GET, "/nope").await.status(), 200);
}

/// Behind a fallback there may be another router; what it routes must not run unlocked.
#[tokio::test(start_paused = true)]
async fn a_router_inside_of_the_layer_runs_nothing_unlocked() {
    async fn unlocked() {
        panic!("it holds no lock");
    }
    let redlock = virtual_client(&Nodes::new()).await;
    let inside = || by_id(&redlock).layer(Router::new().route("/orders/{id}", any(unlocked)));
    let alone: Router = Router::new().fallback_service(inside());
    assert_eq!(ask(&alone, Method::POST, "/orders/1").await.status(), 404);
    let nested: Router = Router::new().nest_service("/api", inside());
    let answer = ask(&nested, Method::POST, "/api/orders/1").await;
    assert_eq!(answer.status(), 404);
    let request = Request::post("/orders/1").body(Body::empty()).unwrap();
    let outside = in_time(inside().oneshot(request)).await.unwrap();
    assert_eq!(outside.status(), 500);
}
