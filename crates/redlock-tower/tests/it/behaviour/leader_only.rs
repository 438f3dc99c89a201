//! Requests that only the leader serves.

use std::{convert::Infallible, pin::pin, task::Poll, time::Duration};

use axum::{Extension, Router, body::Body, routing::any};
use bytes::Bytes;
use futures_util::poll;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use redlock_core::{Election, Lease, Redlock, Term, Wait};
use redlock_tower::{LeaderOnlyLayer, Rejection, RejectionKind};
use tower::{Layer, Service, ServiceExt};
use tower_test::mock;

use crate::behaviour::kit::{Nodes, again_in, in_time, request, virtual_client};

const TTL: Duration = Duration::from_secs(9);

fn candidate(redlock: &Redlock, name: &str) -> Election {
    let election = redlock.election("importer").candidate(name).ttl(TTL);
    election.build().unwrap()
}

/// A replica whose handler answers with the token of the term.
fn replica(layer: LeaderOnlyLayer) -> Router {
    let handler = async |Extension(term): Extension<Lease>| term.token().to_string();
    let inner = Router::new().route("/run", any(handler));
    Router::new().nest("/import", inner.layer(layer))
}

async fn ask(app: &Router, request: Request<Body>) -> Response<axum::body::Body> {
    let answer: Result<_, Infallible> = app.clone().oneshot(request).await;
    answer.unwrap()
}

fn import() -> Request<Body> {
    Request::post("/import/run?all=1")
        .body(Body::empty())
        .unwrap()
}

async fn lead(election: &Election) -> Term {
    election.lead_with(Wait::Never).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_leader_serves_and_a_follower_names_it() {
    let nodes = Nodes::new();
    let one = candidate(&virtual_client(&nodes).await, "one");
    let two = candidate(&virtual_client(&nodes).await, "two");
    let [first, second] = [&one, &two].map(|of| replica(LeaderOnlyLayer::new(of.clone())));
    let refused = ask(&first, import()).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(
        !refused.headers().contains_key("redlock-leader"),
        "none leads"
    );

    tokio::time::sleep(TTL / 3).await;
    let term = lead(&one).await;
    let served = ask(&first, import()).await;
    assert_eq!(served.status(), StatusCode::OK);
    let token = served.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(token, term.token().to_string());
    let refused = ask(&second, import()).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.headers()["redlock-leader"], "one");
    assert_eq!(
        refused.headers()["content-type"],
        "application/problem+json"
    );
    assert!((1..=2).contains(&again_in(refused.headers())));
    let rejection = refused.extensions().get::<Rejection>().unwrap();
    assert_eq!(rejection.kind(), RejectionKind::Follower);
    assert_eq!(rejection.leader(), Some(&one.candidate()));

    // The leader is one no longer at once, also while the followers still name it.
    term.resign().await.unwrap();
    let term = lead(&two).await;
    assert_eq!(ask(&second, import()).await.status(), StatusCode::OK);
    let refused = ask(&first, import()).await;
    assert_eq!(refused.headers()["redlock-leader"], "two");
    term.resign().await.unwrap();
    let refused = ask(&second, import()).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test(start_paused = true)]
async fn a_follower_looks_once_in_a_third_of_the_ttl() {
    let nodes = Nodes::new();
    let redlock = virtual_client(&nodes).await;
    let [one, two, watcher] = ["one", "two", "watcher"].map(|name| candidate(&redlock, name));
    let app = replica(LeaderOnlyLayer::new(watcher));
    let leader = async || {
        let refused = ask(&app, import()).await;
        let named = refused.headers().get("redlock-leader").cloned();
        named.map(|named| named.to_str().unwrap().to_owned())
    };
    let term = lead(&one).await;
    assert_eq!(leader().await.as_deref(), Some("one"));
    term.resign().await.unwrap();
    let term = lead(&two).await;
    tokio::time::sleep(TTL / 3 - Duration::from_millis(1)).await;
    assert_eq!(leader().await.as_deref(), Some("one"));
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(leader().await.as_deref(), Some("two"));
    drop(term);
    // Nor does it name one that it does not know.
    nodes.stop();
    tokio::time::sleep(TTL / 3).await;
    assert_eq!(leader().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_follower_redirects_to_a_leader_whose_candidate_is_a_base_url() {
    let nodes = Nodes::new();
    let redlock = virtual_client(&nodes).await;
    for (name, location) in [
        (
            "http://10.0.0.7:8080",
            Some("http://10.0.0.7:8080/import/run?all=1"),
        ),
        ("https://a/b/", Some("https://a/b/import/run?all=1")),
        ("http://", None),
        ("http:///b", None),
        ("http://a?b", None),
        ("http://a b", None),
        ("web-7", None),
        ("javascript://a", None),
    ] {
        let term = lead(&candidate(&redlock, name)).await;
        let follower = || LeaderOnlyLayer::new(candidate(&redlock, "http://10.0.0.8"));
        let answer = ask(&replica(follower().redirect()), import()).await;
        assert_eq!(answer.headers()["redlock-leader"], name);
        let told = answer.headers().get("location");
        assert_eq!(told.map(|told| told.to_str().unwrap()), location, "{name}");
        let status = match location {
            Some(_) => StatusCode::TEMPORARY_REDIRECT,
            None => StatusCode::SERVICE_UNAVAILABLE,
        };
        assert_eq!(answer.status(), status, "{name}");

        let unasked = ask(&replica(follower()), import()).await;
        assert_eq!(unasked.status(), StatusCode::SERVICE_UNAVAILABLE);
        // Not to the replica itself, which would come back to it.
        let own = LeaderOnlyLayer::new(candidate(&redlock, name)).redirect();
        let answer = ask(&replica(own), import()).await;
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE, "{name}");
        // gRPC knows no redirects.
        let mut call = import();
        let content_type = "application/grpc".parse().unwrap();
        call.headers_mut().insert("content-type", content_type);
        let answer = ask(&replica(follower().redirect()), call).await;
        assert_eq!(answer.status(), StatusCode::OK);
        assert_eq!(answer.headers()["grpc-status"], "14", "unavailable");
        assert_eq!(answer.headers()["redlock-leader"], name);
        term.resign().await.unwrap();
    }
}

/// The mock panics when it is called without having been made ready.
#[tokio::test(start_paused = true)]
async fn only_the_leader_makes_the_inner_service_ready() {
    let election = candidate(&virtual_client(&Nodes::new()).await, "one");
    let (inner, mut handle) = mock::pair::<Request<Body>, Response<Full<Bytes>>>();
    let mut service = LeaderOnlyLayer::new(election.clone()).layer(inner);
    handle.allow(0);
    let refused = in_time(service.ready()).await.unwrap().call(request("a"));
    assert_eq!(in_time(refused).await.unwrap().status(), 503);

    let _term = lead(&election).await;
    let mut served = pin!(service.call(request("a")));
    assert!(poll!(served.as_mut()).is_pending());
    handle.allow(1);
    let serve = async {
        let (_, answer) = handle.next_request().await.unwrap();
        answer.send_response(Response::new(Full::default()));
    };
    let (served, ()) = in_time(async { tokio::join!(served, serve) }).await;
    assert_eq!(served.unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn requests_wait_for_no_look_of_another_one_if_a_leader_was_seen_before() {
    let redlock = virtual_client(&Nodes::new()).await;
    let [one, watcher] = ["one", "watcher"].map(|name| candidate(&redlock, name));
    let app = replica(LeaderOnlyLayer::new(watcher));
    let term = lead(&one).await;
    assert_eq!(ask(&app, import()).await.headers()["redlock-leader"], "one");
    term.resign().await.unwrap();
    tokio::time::sleep(TTL / 3).await;
    let mut looks = pin!(ask(&app, import()));
    assert!(poll!(looks.as_mut()).is_pending());
    let Poll::Ready(refused) = poll!(pin!(ask(&app, import()))) else {
        panic!("it waits for the look")
    };
    assert_eq!(refused.headers()["redlock-leader"], "one");
    assert!(!looks.await.headers().contains_key("redlock-leader"));
    // The next request looks for itself if the one that looked is gone.
    tokio::time::sleep(TTL / 3).await;
    let _term = lead(&one).await;
    assert!(poll!(pin!(ask(&app, import()))).is_pending());
    assert_eq!(ask(&app, import()).await.headers()["redlock-leader"], "one");
}
