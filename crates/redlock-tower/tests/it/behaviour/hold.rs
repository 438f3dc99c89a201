//! How long a request holds its lock.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use axum::{Router, body::Body, routing::get};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use redlock_core::Redlock;
use redlock_tower::{Hold, RedlockLayer, RequestLease, ResponseBody};
use tokio::sync::mpsc;
use tower::{Layer, ServiceBuilder, ServiceExt, service_fn};
use tower_http::catch_panic::CatchPanicLayer;

use crate::behaviour::kit::{
    KEY, Nodes, Server, by_header, in_time, is_free, request, virtual_client,
};

type Frames = Pin<Box<dyn Stream<Item = Result<Frame<Bytes>, &'static str>> + Send>>;

fn data(text: &'static str) -> Result<Frame<Bytes>, &'static str> {
    Ok(Frame::data(Bytes::from_static(text.as_bytes())))
}

/// A response with the body `body`, behind a layer.
async fn respond<B>(redlock: &Redlock, hold: Hold, body: B) -> Response<ResponseBody<B>>
where
    B: http_body::Body<Data = Bytes>,
{
    let body = Arc::new(Mutex::new(Some(body)));
    let handler = service_fn(move |_: Request<Body>| {
        let body = body.lock().unwrap().take().unwrap();
        async { Ok::<_, Infallible>(Response::new(body)) }
    });
    let layer = RedlockLayer::builder(redlock.clone())
        .hold(hold)
        .build(by_header())
        .unwrap();
    layer.layer(handler).oneshot(request(KEY)).await.unwrap()
}

fn stream_of<S>(frames: S) -> StreamBody<Frames>
where
    S: Stream<Item = Result<Frame<Bytes>, &'static str>> + Send + 'static,
{
    StreamBody::new(frames.boxed())
}

#[tokio::test(start_paused = true)]
async fn a_streaming_body_holds_the_lock_until_its_end() {
    let redlock = virtual_client(&Nodes::new()).await;
    let frames = stream_of(stream::iter([data("a"), data("b")]));
    let mut body = respond(&redlock, Hold::Body, frames).await.into_body();
    assert!(
        !is_free(&redlock, KEY).await,
        "the head alone does not release"
    );
    for _ in 0..2 {
        assert!(body.frame().await.unwrap().unwrap().is_data());
        assert!(!is_free(&redlock, KEY).await, "a stream may always go on");
    }
    assert!(body.frame().await.is_none());
    assert!(is_free(&redlock, KEY).await);
    assert!(body.frame().await.is_none(), "the end stays the end");
}

#[tokio::test(start_paused = true)]
async fn trailers_belong_to_the_body() {
    let redlock = virtual_client(&Nodes::new()).await;
    let trailers = std::future::ready(Some(Ok(HeaderMap::new())));
    let whole = Full::new(Bytes::from_static(b"a")).with_trailers(trailers);
    let mut body = respond(&redlock, Hold::Body, whole).await.into_body();
    assert!(body.frame().await.unwrap().unwrap().is_data());
    assert!(!is_free(&redlock, KEY).await);
    assert!(body.frame().await.unwrap().unwrap().is_trailers());
    assert!(body.frame().await.is_none());
    assert!(is_free(&redlock, KEY).await);
}

/// A server that knows the length does not poll for the end behind the last frame.
#[tokio::test(start_paused = true)]
async fn the_last_frame_of_a_body_of_known_length_releases() {
    let redlock = virtual_client(&Nodes::new()).await;
    let whole = Full::new(Bytes::from_static(b"whole"));
    let mut body = respond(&redlock, Hold::Body, whole).await.into_body();
    assert_eq!(http_body::Body::size_hint(&body).exact(), Some(5));
    assert!(!is_free(&redlock, KEY).await);
    assert!(body.frame().await.unwrap().is_ok());
    assert!(http_body::Body::is_end_stream(&body));
    assert!(is_free(&redlock, KEY).await);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_fails_releases() {
    let redlock = virtual_client(&Nodes::new()).await;
    let frames = stream_of(stream::iter([data("a"), Err("broken"), data("b")]));
    let mut body = respond(&redlock, Hold::Body, frames).await.into_body();
    assert!(body.frame().await.unwrap().is_ok());
    assert_eq!(
        body.frame().await.unwrap().unwrap_err().to_string(),
        "broken"
    );
    assert!(is_free(&redlock, KEY).await);
    assert!(body.frame().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_dropped_releases() {
    let redlock = virtual_client(&Nodes::new()).await;
    for polled in [false, true] {
        let frames = stream_of(stream::iter([data("a")]).chain(stream::pending()));
        let mut body = respond(&redlock, Hold::Body, frames).await.into_body();
        if polled {
            assert!(body.frame().await.unwrap().is_ok());
        }
        assert!(!is_free(&redlock, KEY).await);
        drop(body);
        assert!(is_free(&redlock, KEY).await);
    }
}

#[tokio::test(start_paused = true)]
async fn an_empty_body_releases_with_the_head() {
    let redlock = virtual_client(&Nodes::new()).await;
    let response = respond(&redlock, Hold::Body, Full::default()).await;
    assert!(is_free(&redlock, KEY).await);
    drop(response);
}

#[tokio::test(start_paused = true)]
async fn on_request_the_head_releases() {
    let redlock = virtual_client(&Nodes::new()).await;
    let response = respond(&redlock, Hold::Response, stream_of(stream::pending())).await;
    assert!(is_free(&redlock, KEY).await);
    drop(response);
}

#[tokio::test(start_paused = true)]
async fn head_and_no_content_release_with_the_head() {
    let redlock = virtual_client(&Nodes::new()).await;
    let app: Router = Router::new()
        .route("/", get(|| async { "a body, unless it is not asked for" }))
        .route("/204", get(|| async { StatusCode::NO_CONTENT }))
        .layer(RedlockLayer::new(redlock.clone(), by_header()));
    for (method, path) in [("HEAD", "/"), ("GET", "/204")] {
        let mut request = request(KEY);
        *request.method_mut() = method.parse().unwrap();
        *request.uri_mut() = path.parse().unwrap();
        let response = app.clone().oneshot(request).await.unwrap();
        assert!(response.status().is_success());
        assert!(is_free(&redlock, KEY).await, "{method} {path}");
    }
}

/// Here the layer sees a body that the client will not: only hyper leaves it out.
#[tokio::test]
async fn a_head_request_releases_although_the_connection_stays_open() {
    let nodes = Nodes::new();
    let redlock = nodes.client().build().await.unwrap();
    let endless = service_fn(|_: Request<Body>| async {
        let frames = stream_of(stream::iter([data("a")]).chain(stream::pending()));
        Ok::<_, Infallible>(Response::new(frames))
    });
    let layer = RedlockLayer::new(redlock.clone(), by_header());
    let app = Router::new().route_service("/", layer.layer(endless));
    let server = Server::start(app).await;
    let mut connection = server.connect().await;
    let mut head = request(KEY);
    *head.method_mut() = http::Method::HEAD;
    assert_eq!(connection.send(head).await.status(), 200);
    nodes.have_keys(0).await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_handler_releases() {
    let redlock = virtual_client(&Nodes::new()).await;
    let app: Router = Router::new()
        .route(
            "/",
            get(|| async {
                if true {
                    panic!("a bug in the handler")
                }
            }),
        )
        .layer(
            ServiceBuilder::new()
                .layer(CatchPanicLayer::new())
                .layer(RedlockLayer::new(redlock.clone(), by_header())),
        );
    let response = app.oneshot(request(KEY)).await.unwrap();
    assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
    assert!(is_free(&redlock, KEY).await);
}

/// A body that says, when it is dropped, whether the lease was still held.
struct LastLook {
    lease: RequestLease,
    was_held: mpsc::UnboundedSender<bool>,
}

impl http_body::Body for LastLook {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(None)
    }
}

impl Drop for LastLook {
    fn drop(&mut self) {
        self.was_held.send(self.lease.is_held()).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn the_inner_body_is_gone_before_its_lock_is() {
    let redlock = virtual_client(&Nodes::new()).await;
    let (was_held, mut looks) = mpsc::unbounded_channel();
    let handler = service_fn(move |request: Request<Body>| {
        let lease = request.extensions().get::<RequestLease>().unwrap().clone();
        let body = LastLook {
            lease,
            was_held: was_held.clone(),
        };
        async { Ok::<_, Infallible>(Response::new(body)) }
    });
    let service = RedlockLayer::new(redlock, by_header()).layer(handler);
    let mut ended = service
        .clone()
        .oneshot(request(KEY))
        .await
        .unwrap()
        .into_body();
    assert!(ended.frame().await.is_none());
    assert_eq!(in_time(looks.recv()).await, Some(true), "at the end");
    drop(service.oneshot(request(KEY)).await.unwrap());
    assert_eq!(
        in_time(looks.recv()).await,
        Some(true),
        "when it is dropped"
    );
}
