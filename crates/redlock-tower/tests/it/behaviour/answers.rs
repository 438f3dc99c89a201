//! Every row of the table of answers, over a real socket: by HTTP/1.1, and by HTTP/2.

use std::{ops::RangeInclusive, time::Duration};

use axum::{Router, body::Body, http::HeaderMap, middleware, response::Response, routing::get};
use http::{Request, StatusCode, Version};
use redlock_core::{AcquireOptions, Redlock, ResourceKey, Wait};
use redlock_tower::{KeyError, PathKey, RedlockLayer, Rejection, RequestLease};
use serde_json::{Value, json};

use crate::behaviour::kit::{
    Answer, HEADER, KEY, LONG, Nodes, Server, again_in, by_header, request,
};

/// A server behind one layer, which locks by header.
async fn serve(redlock: &Redlock, wait: Wait, http: Version) -> Site {
    let layer = RedlockLayer::builder(redlock.clone())
        .options(AcquireOptions::new().wait(wait))
        .build(by_header().optional())
        .unwrap();
    serve_app(
        Router::new().route("/", get(async || "done")).layer(layer),
        http,
    )
    .await
}

/// A server of `app` that also shows, in a header, the rejection in the response's extensions.
async fn serve_app(app: Router, http: Version) -> Site {
    let show = async |mut response: Response| {
        let rejection = response.extensions().get::<Rejection>();
        let kind = rejection.map(|rejection| format!("{:?}", rejection.kind()));
        response
            .headers_mut()
            .insert(KIND, kind.as_deref().unwrap_or("none").parse().unwrap());
        response
    };
    let server = Server::start(app.layer(middleware::map_response(show))).await;
    Site { server, http }
}

/// A server, and in which protocol it is asked.
struct Site {
    server: Server,
    http: Version,
}

impl Site {
    async fn answer(&self, request: Request<Body>) -> Answer {
        self.server.answer_over(self.http, request).await
    }
}

/// Makes two tests of each row.
macro_rules! rows {
    ($($row:ident),* $(,)?) => {
        mod over_http1 {
            $(#[tokio::test] async fn $row() { super::$row(super::Version::HTTP_11).await; })*
        }
        mod over_http2 {
            $(#[tokio::test] async fn $row() { super::$row(super::Version::HTTP_2).await; })*
        }
    };
}

rows!(
    a_request_that_needs_no_lock_or_gets_it_is_answered_by_the_handler,
    a_held_resource_is_409_at_once_or_after_the_wait,
    a_resource_that_another_replica_holds_is_409,
    too_many_waiting_requests_are_503,
    closing_answers_503_to_waiting_and_new_requests,
    no_quorum_is_503,
    a_missing_key_is_400,
    an_invalid_key_is_400,
    a_key_can_be_refused_with_another_status,
    a_lease_that_is_lost_before_the_head_is_503,
    nodes_that_may_have_forgotten_leases_are_503_for_as_long_as_that_takes,
    a_layer_that_is_set_up_wrongly_is_500,
    a_handler_that_needs_a_lease_without_a_layer_is_500
);

const KIND: &str = "x-rejection";

/// What a client gets in one of the rows.
struct Row {
    status: u16,
    retry_after: Option<RangeInclusive<u64>>,
    kind: &'static str,
    detail: &'static str,
}

#[track_caller]
fn assert_answer(answer: &Answer, row: &Row) {
    let header = |headers: &HeaderMap, name: &str| {
        headers
            .get(name)
            .map(|value| value.to_str().unwrap().to_owned())
    };
    assert_eq!(answer.status.as_u16(), row.status);
    let headers = &answer.headers;
    assert_eq!(
        header(headers, "content-type").as_deref(),
        Some("application/problem+json")
    );
    match &row.retry_after {
        Some(seconds) => assert!(seconds.contains(&again_in(headers))),
        None => assert_eq!(headers.get("retry-after"), None),
    }
    assert_eq!(header(headers, KIND).as_deref(), Some(row.kind));
    let problem: Value = serde_json::from_slice(&answer.body).unwrap();
    let title = answer.status.canonical_reason().unwrap();
    let expected =
        json!({"type": "about:blank", "title": title, "status": row.status, "detail": row.detail});
    assert_eq!(problem, expected);
    assert!(!row.detail.contains(KEY) && !row.detail.contains("memory"));
}

async fn client() -> Redlock {
    Nodes::new().client().build().await.unwrap()
}

fn key() -> String {
    format!("test:{KEY}")
}

async fn a_request_that_needs_no_lock_or_gets_it_is_answered_by_the_handler(http: Version) {
    let server = serve(&client().await, LONG, http).await;
    for request in [request(KEY), Request::get("/").body(Body::empty()).unwrap()] {
        let answer = server.answer(request).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.body[..]),
            (200, &b"done"[..])
        );
        assert_eq!(answer.headers[KIND], "none");
    }
}

const CONTENDED: Row = Row {
    status: 409,
    retry_after: Some(1..=2),
    kind: "Contended",
    detail: "another request holds the resource",
};

async fn a_held_resource_is_409_at_once_or_after_the_wait(http: Version) {
    let redlock = client().await;
    let _holder = redlock.acquire(key()).await.unwrap();
    for wait in [Wait::Never, Wait::UpTo(Duration::from_millis(50))] {
        assert_answer(
            &serve(&redlock, wait, http).await.answer(request(KEY)).await,
            &CONTENDED,
        );
    }
}

async fn a_resource_that_another_replica_holds_is_409(http: Version) {
    let nodes = Nodes::new();
    let [holder, redlock] = [nodes.client().build().await, nodes.client().build().await];
    let _guard = holder.unwrap().acquire(key()).await.unwrap();
    let redlock = redlock.unwrap();
    for wait in [Wait::Never, Wait::UpTo(Duration::from_millis(50))] {
        assert_answer(
            &serve(&redlock, wait, http).await.answer(request(KEY)).await,
            &CONTENDED,
        );
    }
}

async fn too_many_waiting_requests_are_503(http: Version) {
    let redlock = Nodes::new()
        .client()
        .max_waiters_per_key(0)
        .build()
        .await
        .unwrap();
    let _holder = redlock.acquire(key()).await.unwrap();
    let row = Row {
        status: 503,
        retry_after: Some(1..=2),
        kind: "Overloaded",
        detail: "too many requests wait for the resource",
    };
    assert_answer(
        &serve(&redlock, LONG, http).await.answer(request(KEY)).await,
        &row,
    );
}

async fn closing_answers_503_to_waiting_and_new_requests(http: Version) {
    let redlock = client().await;
    let _holder = redlock.acquire(key()).await.unwrap();
    let server = serve(&redlock, LONG, http).await;
    let row = Row {
        status: 503,
        retry_after: Some(1..=2),
        kind: "Closed",
        detail: "the server is shutting down",
    };
    let close = async {
        // So that the one waits already; if it should not yet, it is refused as a new one is.
        tokio::task::yield_now().await;
        redlock.close().await;
    };
    assert_answer(&tokio::join!(server.answer(request(KEY)), close).0, &row);
    assert_answer(&server.answer(request("other")).await, &row);
}

async fn no_quorum_is_503(http: Version) {
    let nodes = Nodes::new();
    let redlock = nodes.client().build().await.unwrap();
    let server = serve(&redlock, Wait::Never, http).await;
    nodes.stop();
    let row = Row {
        status: 503,
        retry_after: Some(4..=6),
        kind: "Unavailable",
        detail: "the resource cannot be locked at the moment",
    };
    assert_answer(&server.answer(request(KEY)).await, &row);
}

async fn a_missing_key_is_400(http: Version) {
    let layer = RedlockLayer::new(client().await, by_header());
    let server = serve_app(
        Router::new().route("/", get(async || "done")).layer(layer),
        http,
    )
    .await;
    let row = Row {
        status: 400,
        retry_after: None,
        kind: "Key",
        detail: "the header `x-key` is missing",
    };
    let without = Request::get("/").body(Body::empty()).unwrap();
    assert_answer(&server.answer(without).await, &row);
}

async fn an_invalid_key_is_400(http: Version) {
    let server = serve(&client().await, LONG, http).await;
    let row = Row {
        status: 400,
        retry_after: None,
        kind: "Key",
        detail: "resource key has 605 bytes; it must have 1 to 512 bytes",
    };
    assert_answer(&server.answer(request(&"s".repeat(600))).await, &row);
}

async fn a_key_can_be_refused_with_another_status(http: Version) {
    let by_user = |request: &Request<_>| match request.headers().get(HEADER) {
        Some(user) if user == "root" => Ok(Some(ResourceKey::new("user", "root")?)),
        _ => Err(KeyError::new(
            StatusCode::FORBIDDEN,
            "you may not \"lock\" this",
        )),
    };
    let layer = RedlockLayer::new(client().await, by_user);
    let server = serve_app(
        Router::new().route("/", get(async || "done")).layer(layer),
        http,
    )
    .await;
    let row = Row {
        status: 403,
        retry_after: None,
        kind: "Key",
        detail: "you may not \"lock\" this",
    };
    assert_answer(&server.answer(request(KEY)).await, &row);
    assert_eq!(server.answer(request("root")).await.status, 200);
}

async fn a_lease_that_is_lost_before_the_head_is_503(http: Version) {
    let nodes = Nodes::new();
    let redlock = nodes
        .client()
        .ttl(Duration::from_millis(300))
        .build()
        .await
        .unwrap();
    let layer = RedlockLayer::new(redlock, by_header());
    let stuck = async || std::future::pending::<()>().await;
    let server = serve_app(Router::new().route("/", get(stuck)).layer(layer), http).await;
    let row = Row {
        status: 503,
        retry_after: Some(1..=2),
        kind: "Lost",
        detail: "the lock on the resource was lost; the request may be half done",
    };
    let trouble = async {
        nodes.have_keys(1).await;
        nodes.drop_locks();
    };
    assert_answer(&tokio::join!(server.answer(request(KEY)), trouble).0, &row);
}

async fn nodes_that_may_have_forgotten_leases_are_503_for_as_long_as_that_takes(http: Version) {
    let nodes = Nodes::new();
    let max_ttl = Duration::from_secs(20);
    let redlock = nodes.client().max_ttl(max_ttl).wait(Wait::Never).build();
    let layer = RedlockLayer::builder(redlock.await.unwrap())
        .options(AcquireOptions::new().wait(Wait::Never))
        .build(by_header())
        .unwrap();
    let server = serve_app(
        Router::new().route("/", get(async || "done")).layer(layer),
        http,
    )
    .await;
    nodes.forget();
    let answer = server.answer(request(KEY)).await;
    assert_eq!(answer.status, 503);
    let seconds = again_in(&answer.headers);
    // The longest lease, 2 % of it, and two steps of a thirty-second of it; and up to ten seconds that are random.
    assert!((21..=32).contains(&seconds), "{seconds}");
}

async fn a_layer_that_is_set_up_wrongly_is_500(http: Version) {
    let redlock = client().await;
    let layer = RedlockLayer::new(redlock, PathKey::new("order", "order_id"));
    let app = Router::new().route("/", get(async || "done").layer(layer));
    let row = Row {
        status: 500,
        retry_after: None,
        kind: "Misuse",
        detail: "the route has no path parameter `order_id` to lock",
    };
    assert_answer(&serve_app(app, http).await.answer(request(KEY)).await, &row);
}

async fn a_handler_that_needs_a_lease_without_a_layer_is_500(http: Version) {
    let app = Router::new().route("/", get(async |_: RequestLease| "done"));
    let answer = serve_app(app, http).await.answer(request(KEY)).await;
    assert_eq!(answer.status, 500);
    assert_eq!(answer.headers["content-type"], "application/problem+json");
    assert_eq!(answer.headers.get("retry-after"), None);
}
