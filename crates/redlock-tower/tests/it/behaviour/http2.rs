//! Streams of one HTTP/2 connection: each can be reset while the others go on.

use std::{convert::Infallible, pin::pin, task::Poll, time::Duration};

use axum::{Router, body::Body, routing::any};
use bytes::Bytes;
use futures_util::{StreamExt, poll, stream};
use http::Request;
use http_body::Body as _;
use http_body_util::BodyExt;
use redlock_core::{AcquireOptions, Redlock, RedlockBuilder};
use redlock_tower::RedlockLayer;
use tokio::sync::mpsc;

use crate::behaviour::kit::{
    Answer, HEADER, Http2, KEY, LONG, Nodes, Server, by_header, in_time, request,
};

struct Site {
    nodes: Nodes,
    redlock: Redlock,
    /// Told when a handler begins that does not end.
    entered: mpsc::UnboundedReceiver<()>,
    http2: Http2,
    _server: Server,
}

async fn site() -> Site {
    site_of(|client| client).await
}

async fn site_of(client: impl FnOnce(RedlockBuilder) -> RedlockBuilder) -> Site {
    let nodes = Nodes::new();
    let redlock = client(nodes.client()).build().await.unwrap();
    let layer = RedlockLayer::builder(redlock.clone()).options(AcquireOptions::new().wait(LONG));
    let (enters, entered) = mpsc::unbounded_channel();
    let stuck = async move || {
        enters.send(()).unwrap();
        std::future::pending::<()>().await;
    };
    let endless = async || {
        let first = stream::iter([Ok::<_, Infallible>(Bytes::from_static(b"first"))]);
        Body::from_stream(first.chain(stream::pending()))
    };
    let app = Router::new()
        .route("/", any(async || "done"))
        .route("/stuck", any(stuck))
        .route("/endless", any(endless))
        .layer(layer.build(by_header()).unwrap());
    let server = Server::start(app).await;
    Site {
        nodes,
        redlock,
        entered,
        http2: server.connect_http2().await,
        _server: server,
    }
}

fn to(path: &str, key: &str) -> Request<Body> {
    let mut request = request(key);
    *request.uri_mut() = path.parse().unwrap();
    request
}

impl Site {
    /// Waits until exactly `waiters` requests wait for the key.
    async fn waiting(&self, waiters: usize) {
        let has_room_for = |limit: usize| {
            let options = AcquireOptions::new().max_waiters_per_key(limit);
            let acquire = self.redlock.acquire_with(format!("test:{KEY}"), options);
            async move { poll!(pin!(acquire)) }
        };
        in_time(async {
            // A limit that is reached is told at once, and a place that is free is waited in.
            while has_room_for(waiters + 1).await.is_ready()
                || waiters > 0 && has_room_for(waiters).await.is_pending()
            {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
    }
}

#[tokio::test]
async fn a_stream_that_is_reset_in_the_handler_frees_its_lock_and_no_other() {
    let mut site = site().await;
    let mut other = site.http2.send(to("/stuck", "other"));
    let mut stuck = site.http2.send(to("/stuck", KEY));
    let mut next = site.http2.send(to("/", KEY));
    in_time(async {
        tokio::select! {
            _ = async { tokio::join!(&mut other, &mut stuck, &mut next) } => {}
            () = async { for _ in 0..2 { site.entered.recv().await.unwrap() } } => {}
        }
    })
    .await;
    site.nodes.have_keys(2).await;
    drop(stuck);
    let answer = Answer::of(in_time(next).await.unwrap()).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.body[..]),
        (200, &b"done"[..])
    );
    assert!(matches!(poll!(&mut other), Poll::Pending));
    site.nodes.have_keys(1).await;
    drop(other);
    site.nodes.have_keys(0).await;
}

#[tokio::test]
async fn a_stream_that_is_reset_while_it_waits_frees_its_place_and_no_other() {
    let site = site().await;
    let holder = site.redlock.acquire(format!("test:{KEY}")).await.unwrap();
    let mut leaves = site.http2.send(request(KEY));
    assert!(poll!(&mut leaves).is_pending());
    site.waiting(1).await;
    let mut stays = site.http2.send(request(KEY));
    assert!(poll!(&mut stays).is_pending());
    site.waiting(2).await;
    drop(leaves);
    site.waiting(1).await;
    drop(holder);
    assert_eq!(in_time(stays).await.unwrap().status(), 200);
    site.nodes.have_keys(0).await;
}

#[tokio::test]
async fn a_stream_that_is_reset_within_its_body_frees_its_lock() {
    let site = site().await;
    let response = in_time(site.http2.send(to("/endless", KEY))).await.unwrap();
    let mut sibling = in_time(site.http2.send(to("/endless", "other")))
        .await
        .unwrap();
    let mut body = response.into_body();
    assert!(in_time(body.frame()).await.unwrap().is_ok());
    site.nodes.have_keys(2).await;
    drop(body);
    site.nodes.have_keys(1).await;
    assert!(in_time(sibling.body_mut().frame()).await.unwrap().is_ok());
    assert_eq!(
        in_time(site.http2.send(request(KEY)))
            .await
            .unwrap()
            .status(),
        200
    );
}

/// And not ended, which would make a part look like the whole.
#[tokio::test]
async fn a_body_whose_lock_is_lost_is_reset_and_its_siblings_are_not() {
    let site = site_of(|client| client.ttl(Duration::from_millis(500))).await;
    let mut body = in_time(site.http2.send(to("/endless", KEY)))
        .await
        .unwrap()
        .into_body();
    assert!(in_time(body.frame()).await.unwrap().is_ok());
    site.nodes.drop_locks();
    let error = in_time(body.frame()).await.unwrap().unwrap_err();
    assert!(error.to_string().contains("body"), "{error}");
    assert!(!body.is_end_stream());
    let sibling = in_time(site.http2.send(request(KEY))).await.unwrap();
    assert_eq!(sibling.status(), 200);
    site.nodes.have_keys(0).await;
}

/// Over HTTP/1.1 a server does not notice that a client has left whose body it does not read.
#[tokio::test]
async fn a_reset_is_noticed_however_much_of_the_request_is_unread() {
    let site = site().await;
    let holder = site.redlock.acquire(format!("test:{KEY}")).await.unwrap();
    let upload = stream::repeat(Bytes::from_static(&[0; 16 * 1024])).map(Ok::<_, Infallible>);
    let upload = Request::post("/")
        .header(HEADER, KEY)
        .body(Body::from_stream(upload));
    let mut leaves = site.http2.send(upload.unwrap());
    assert!(poll!(&mut leaves).is_pending());
    site.waiting(1).await;
    drop(leaves);
    site.waiting(0).await;
    drop(holder);
    site.nodes.have_keys(0).await;
}

#[tokio::test]
async fn a_connection_that_ends_frees_the_locks_of_all_its_streams() {
    let mut site = site().await;
    let streams = ["a", "b", "c"].map(|key| site.http2.send(to("/stuck", key)));
    let mut all = pin!(futures_util::future::join_all(streams));
    for _ in 0..3 {
        in_time(async {
            tokio::select! {
                _ = all.as_mut() => panic!("the handler never answers"),
                entered = site.entered.recv() => entered.unwrap(),
            }
        })
        .await;
    }
    site.nodes.have_keys(3).await;
    drop(site.http2);
    site.nodes.have_keys(0).await;
}
