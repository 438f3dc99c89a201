//! Dropping the response's future or the body, wherever it is, frees everything.

use std::{
    convert::Infallible,
    pin::{Pin, pin},
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use axum::{Router, body::Body, routing::get};
use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Empty, StreamBody};
use redlock_core::{AcquireOptions, Redlock};
use redlock_tower::{RedlockLayer, RequestLease};
use tokio::{sync::mpsc, task::yield_now};
use tower::{Layer, Service};

use crate::behaviour::kit::{
    KEY, LONG, Nodes, Server, by_header, in_time, is_free, request, virtual_client,
};

/// A service with an await point in each of its phases: readiness, response and body.
#[derive(Clone, Default)]
struct Slow {
    asked: bool,
}

type FrameResult = Result<Frame<Bytes>, Infallible>;
type SlowBody = StreamBody<Pin<Box<dyn futures_util::Stream<Item = FrameResult> + Send>>>;

impl Service<Request<Body>> for Slow {
    type Response = Response<SlowBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        if std::mem::replace(&mut self.asked, true) {
            return Poll::Ready(Ok(()));
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        Box::pin(async {
            yield_now().await;
            yield_now().await;
            let frames = stream::unfold(0, |sent| async move {
                yield_now().await;
                (sent < 2).then(|| (Ok(Frame::data(Bytes::from_static(b"part"))), sent + 1))
            });
            Ok(Response::new(StreamBody::new(Box::pin(frames) as _)))
        })
    }
}

/// Polls `work` so many times at most and drops it then.
async fn cut_off_after<F: Future>(polls: usize, work: F) -> Option<F::Output> {
    let mut work = pin!(work);
    let mut left = polls;
    std::future::poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        work.as_mut().poll(cx).map(Some)
    })
    .await
}

async fn whole_exchange(redlock: Redlock) {
    let layer = RedlockLayer::builder(redlock)
        .options(AcquireOptions::new().wait(LONG))
        .build(by_header())
        .unwrap();
    let response = layer
        .layer(Slow::default())
        .call(request(KEY))
        .await
        .unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(
        response.into_body().collect().await.unwrap().to_bytes(),
        "partpart"
    );
}

// Shows: T5.1.
#[tokio::test(start_paused = true)]
async fn a_drop_at_any_await_point_frees_the_lock_at_once() {
    let nodes = Nodes::new();
    let redlock = virtual_client(&nodes).await;
    let mut polls = 0;
    while cut_off_after(polls, whole_exchange(redlock.clone()))
        .await
        .is_none()
    {
        assert!(
            is_free(&redlock, KEY).await,
            "not free after a drop at poll {polls}"
        );
        nodes.have_keys(0).await;
        polls += 1;
    }
    assert!(polls > 6, "every phase was cut off: {polls} polls");
}

#[tokio::test(start_paused = true)]
async fn a_drop_at_any_await_point_of_a_waiting_request_frees_its_place() {
    let nodes = Nodes::new();
    let redlock = virtual_client(&nodes).await;
    let mut polls = 0;
    loop {
        let holder = redlock.try_acquire(format!("test:{KEY}")).await.unwrap();
        // The lock is handed over while it waits, so that the cuts also fall after that.
        let release = async {
            yield_now().await;
            yield_now().await;
            drop(holder);
        };
        let exchange = cut_off_after(polls, whole_exchange(redlock.clone()));
        let (done, ()) = tokio::join!(exchange, release);
        assert!(
            is_free(&redlock, KEY).await,
            "not free after a drop at poll {polls}"
        );
        nodes.have_keys(0).await;
        if done.is_some() {
            break;
        }
        polls += 1;
    }
    assert!(polls > 6, "every phase was cut off: {polls} polls");
}

/// Says what the lease was like when it was dropped.
struct LastLook {
    lease: RequestLease,
    was_held: Arc<Mutex<Option<bool>>>,
}

impl Drop for LastLook {
    fn drop(&mut self) {
        *self.was_held.lock().unwrap() = Some(self.lease.is_held());
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_handler_is_gone_before_its_lock_is() {
    let redlock = virtual_client(&Nodes::new()).await;
    let was_held = Arc::default();
    let (entered, mut enters) = mpsc::unbounded_channel();
    let seen = Arc::clone(&was_held);
    let handler = tower::service_fn(move |request: Request<Body>| {
        let lease = request.extensions().get::<RequestLease>().unwrap().clone();
        let look = LastLook {
            lease,
            was_held: Arc::clone(&seen),
        };
        entered.send(()).unwrap();
        async move {
            let _look = look;
            std::future::pending::<Result<Response<Empty<Bytes>>, Infallible>>().await
        }
    });
    let mut service = RedlockLayer::new(redlock.clone(), by_header()).layer(handler);
    tokio::select! {
        _ = service.call(request(KEY)) => panic!("the handler never answers"),
        _ = enters.recv() => {}
    }
    assert_eq!(*was_held.lock().unwrap(), Some(true));
    assert!(is_free(&redlock, KEY).await);
}

/// The response's future may be kept for a while after it is done.
#[tokio::test(start_paused = true)]
async fn what_a_finished_handler_owns_is_gone_before_its_lock_is() {
    let redlock = virtual_client(&Nodes::new()).await;
    let was_held = Arc::default();
    let seen = Arc::clone(&was_held);
    let handler = tower::service_fn(move |request: Request<Body>| {
        let look = LastLook {
            lease: request.extensions().get::<RequestLease>().unwrap().clone(),
            was_held: Arc::clone(&seen),
        };
        std::future::poll_fn(move |_| {
            assert!(look.lease.is_held());
            Poll::Ready(Err::<Response<Empty<Bytes>>, _>("no"))
        })
    });
    let mut service = RedlockLayer::new(redlock.clone(), by_header()).layer(handler);
    let mut response = pin!(service.call(request(KEY)));
    assert_eq!(response.as_mut().await.unwrap_err(), "no");
    let was_held = was_held.lock().unwrap().take();
    assert_eq!(was_held, Some(true));
    assert!(is_free(&redlock, KEY).await);
}

#[tokio::test]
async fn a_client_that_disconnects_frees_the_lock_and_its_place() {
    let nodes = Nodes::new();
    let redlock = nodes.client().build().await.unwrap();
    let (entered, mut enters) = mpsc::unbounded_channel();
    let layer = RedlockLayer::builder(redlock.clone())
        .options(AcquireOptions::new().wait(LONG))
        .build(by_header())
        .unwrap();
    let handler = move || {
        entered.send(()).unwrap();
        std::future::pending::<()>()
    };
    let server = Server::start(Router::new().route("/", get(handler).layer(layer))).await;

    for _ in 0..3 {
        // The one before has left, so this one gets in however long the wait is.
        let mut connection = server.connect().await;
        in_time(async {
            tokio::select! {
                _ = connection.send(request(KEY)) => panic!("the handler never answers"),
                _ = enters.recv() => {}
            }
        })
        .await;
    }
    nodes.have_keys(0).await;
}
