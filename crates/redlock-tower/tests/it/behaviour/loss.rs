//! What happens when the lease is lost under a request.

use std::{
    convert::Infallible,
    error::Error,
    future::poll_fn,
    io,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::{Router, body::Body, routing::get};
use bytes::Bytes;
use futures_util::poll;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Empty};
use redlock_core::{AcquireErrorKind, Redlock};
use redlock_tower::{RedlockLayer, Rejection, RejectionKind};
use tokio::{sync::mpsc, time::Instant};
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::behaviour::kit::{
    KEY, Nodes, Server, again_in, by_header, in_time, is_free, request, virtual_client,
};

const TTL: Duration = Duration::from_secs(10);

/// Sets its flag when it is dropped.
#[derive(Clone)]
struct Gone(Arc<AtomicBool>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Never answers, and says when it is entered and left.
async fn stuck(
    entered: mpsc::UnboundedSender<()>,
    _gone: Gone,
) -> Result<Response<Empty<Bytes>>, Infallible> {
    entered.send(()).unwrap();
    std::future::pending().await
}

async fn a_stuck_handler_is_dropped_when(trouble: impl Fn(&Nodes)) {
    let nodes = Nodes::new();
    let redlock = virtual_client(&nodes).await;
    let (entered, mut enters) = mpsc::unbounded_channel();
    let gone = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&gone);
    let handler =
        service_fn(move |_: Request<Body>| stuck(entered.clone(), Gone(Arc::clone(&flag))));
    let service = RedlockLayer::new(redlock.clone(), by_header()).layer(handler);

    let mut response = pin!(service.oneshot(request(KEY)));
    tokio::select! {
        _ = response.as_mut() => panic!("the handler never answers"),
        _ = enters.recv() => {}
    }
    let start = Instant::now();
    gone.store(false, SeqCst);
    trouble(&nodes);
    let response = in_time(response.as_mut()).await.unwrap();

    assert!(gone.load(SeqCst), "the handler goes first");
    assert!(
        start.elapsed() < TTL,
        "before the lease can be another's: {:?}",
        start.elapsed()
    );
    assert_eq!(response.status(), 503);
    assert!((1..=2).contains(&again_in(response.headers())));
    let rejection = response.extensions().get::<Rejection>().unwrap();
    assert_eq!(rejection.kind(), RejectionKind::Lost);
    // The response is still there, and its turn is not, whatever the nodes say.
    let next = redlock.try_acquire(format!("test:{KEY}")).await;
    assert_ne!(
        next.err().map(|error| error.kind()),
        Some(AcquireErrorKind::Contended)
    );
}

#[tokio::test(start_paused = true)]
async fn a_handler_is_dropped_when_the_nodes_forget_the_key() {
    a_stuck_handler_is_dropped_when(Nodes::drop_locks).await;
}

// Shows: T2.7.
#[tokio::test(start_paused = true)]
async fn a_handler_is_dropped_when_the_nodes_are_gone() {
    a_stuck_handler_is_dropped_when(Nodes::stop).await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_lost_while_the_inner_service_is_busy_answers_503() {
    let nodes = Nodes::new();
    let (inner, mut handle) = tower_test::mock::pair::<Request<Body>, Response<Empty<Bytes>>>();
    handle.allow(0);
    let redlock = virtual_client(&nodes).await;
    let response = RedlockLayer::new(redlock, by_header())
        .layer(inner)
        .call(request(KEY));
    let trouble = async {
        nodes.have_keys(1).await;
        nodes.drop_locks();
    };
    assert_eq!(
        in_time(async { tokio::join!(response, trouble) })
            .await
            .0
            .unwrap()
            .status(),
        503
    );
    assert!(handle.next_request().await.is_none(), "it was never called");
}

/// The request is not polled from before the loss until long after it, as when the process was stopped.
/// The handler must then not run on, not even to answer.
// Shows: T2.7.
#[tokio::test(start_paused = true)]
async fn a_handler_is_not_polled_after_a_pause_longer_than_the_lease() {
    let nodes = Nodes::new();
    let redlock = virtual_client(&nodes).await;
    let polls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&polls);
    let handler = service_fn(move |_: Request<Body>| {
        let polls = Arc::clone(&counted);
        poll_fn(move |_| match polls.fetch_add(1, SeqCst) {
            0 => Poll::Pending,
            _ => Poll::Ready(Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new()))),
        })
    });
    let mut response = pin!(
        RedlockLayer::new(redlock, by_header())
            .layer(handler)
            .oneshot(request(KEY))
    );
    while polls.load(SeqCst) == 0 {
        assert!(poll!(response.as_mut()).is_pending());
        tokio::task::yield_now().await;
    }
    nodes.stop();
    tokio::time::sleep(TTL).await;
    assert_eq!(in_time(response).await.unwrap().status(), 503);
    assert_eq!(polls.load(SeqCst), 1);
}

/// A body that gives one frame and then waits, and that is ready again if it is polled once more.
struct Dripping {
    polls: Arc<AtomicUsize>,
    _gone: Gone,
}

impl http_body::Body for Dripping {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.polls.fetch_add(1, SeqCst) {
            1 => Poll::Pending,
            _ => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"drip"))))),
        }
    }
}

struct Drip {
    polls: Arc<AtomicUsize>,
    gone: Arc<AtomicBool>,
    body: redlock_tower::ResponseBody<Dripping>,
}

async fn dripping(redlock: &Redlock) -> Drip {
    let (polls, gone) = (
        Arc::new(AtomicUsize::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let (counted, flag) = (Arc::clone(&polls), Arc::clone(&gone));
    let handler = service_fn(move |_: Request<Body>| {
        let body = Dripping {
            polls: Arc::clone(&counted),
            _gone: Gone(Arc::clone(&flag)),
        };
        async { Ok::<_, Infallible>(Response::new(body)) }
    });
    let service = RedlockLayer::new(redlock.clone(), by_header()).layer(handler);
    let body = service.oneshot(request(KEY)).await.unwrap().into_body();
    Drip { polls, gone, body }
}

#[tokio::test(start_paused = true)]
async fn a_body_ends_with_an_error_and_is_dropped_when_the_lease_is_lost() {
    let nodes = Nodes::new();
    let redlock = virtual_client(&nodes).await;
    let Drip {
        polls,
        gone,
        mut body,
    } = dripping(&redlock).await;
    assert!(body.frame().await.unwrap().is_ok());
    assert!(!gone.load(SeqCst));
    nodes.drop_locks();

    let error = in_time(body.frame()).await.unwrap().unwrap_err();
    assert_eq!(
        error.downcast_ref::<Rejection>().unwrap().kind(),
        RejectionKind::Lost
    );
    assert!(gone.load(SeqCst));
    assert_eq!(polls.load(SeqCst), 2);
    assert!(body.frame().await.is_none());
    assert!(is_free(&redlock, KEY).await);
}

#[tokio::test(start_paused = true)]
async fn a_body_is_not_polled_after_a_pause_longer_than_the_lease() {
    let nodes = Nodes::new();
    let redlock = virtual_client(&nodes).await;
    let Drip {
        polls,
        gone,
        mut body,
    } = dripping(&redlock).await;
    nodes.stop();
    tokio::time::sleep(TTL).await;
    assert!(body.frame().await.unwrap().is_err());
    assert!(gone.load(SeqCst));
    assert_eq!(polls.load(SeqCst), 0);
}

#[tokio::test]
async fn a_client_sees_that_a_body_was_cut_off() {
    let nodes = Nodes::new();
    let redlock = nodes
        .client()
        .ttl(Duration::from_millis(300))
        .build()
        .await
        .unwrap();
    let endless = || async {
        use futures_util::{StreamExt, stream};
        let first = stream::iter([Ok::<_, Infallible>(Bytes::from_static(b"first"))]);
        Body::from_stream(first.chain(stream::pending()))
    };
    let layer = RedlockLayer::new(redlock, by_header());
    let server = Server::start(Router::new().route("/", get(endless).layer(layer))).await;
    let mut connection = server.connect().await;
    let mut body = connection.send(request(KEY)).await.into_body();
    assert!(body.frame().await.unwrap().is_ok());
    nodes.drop_locks();
    // And not the end, which would make a part look like the whole.
    let error = in_time(body.frame()).await.unwrap().unwrap_err();
    let source = error.source().unwrap().downcast_ref::<io::Error>();
    assert_eq!(source.unwrap().kind(), io::ErrorKind::UnexpectedEof);
}
