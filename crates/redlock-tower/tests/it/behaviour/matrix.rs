//! Every way to give a request up, in every state that it can be in.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::body::Body;
use bytes::Bytes;
use futures_util::{FutureExt, future::BoxFuture, poll, stream};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use redlock_core::{
    AcquireErrorKind, AcquireOptions, MemoryNode, NodeConfig, Redlock,
    node::{CallResult, Keyspace, Node, Request as Op, Session},
};
use redlock_tower::RedlockLayer;
use tokio::{sync::mpsc, task::JoinSet, time::Instant};
use tower::{Service, ServiceBuilder, ServiceExt};
use tower_http::timeout::{ResponseBodyTimeoutLayer, TimeoutLayer};

use crate::behaviour::kit::{
    KEY, LONG, Nodes, by_header, in_time, let_others_run, request, virtual_client,
};

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// Behind another request of this replica.
    Queued,
    /// Another replica holds the lock.
    Contending,
    /// The nodes have the key, and their answers are on their way.
    BeingGranted,
    Readying,
    InTheHandler,
    InTheBody,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Drop,
    /// By layers outside of the lock's.
    TimeLimit,
    /// Of the task that runs the request.
    Abort,
}

/// A service that gets stuck in the state that it is to be in, and tells of it.
#[derive(Clone)]
struct Stuck {
    state: State,
    told: mpsc::UnboundedSender<()>,
}

impl Stuck {
    fn is_in(&self, state: State) -> bool {
        if self.state == state {
            // The receiver may be gone.
            let _ = self.told.send(());
        }
        self.state == state
    }
}

impl Service<Request<Body>> for Stuck {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        if self.is_in(State::Readying) {
            Poll::Pending
        } else {
            Poll::Ready(Ok(()))
        }
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        let this = self.clone();
        async move {
            if this.is_in(State::InTheHandler) {
                std::future::pending::<()>().await;
            }
            let frames = stream::poll_fn(move |_| {
                if this.is_in(State::InTheBody) {
                    Poll::Pending
                } else {
                    Poll::Ready(None::<Result<Bytes, Infallible>>)
                }
            });
            Ok(Response::new(Body::from_stream(frames)))
        }
        .boxed()
    }
}

/// A node whose answers can be slow; it does at once what it is asked.
#[derive(Clone, Debug)]
struct SlowNode {
    node: MemoryNode,
    answer_ms: Arc<AtomicU64>,
}

impl Node for SlowNode {
    fn name(&self) -> Arc<str> {
        self.node.name()
    }

    fn connect(&self) -> BoxFuture<'static, Result<Box<dyn Session>, Arc<str>>> {
        let this = self.clone();
        async move {
            let session = this.node.connect().await?;
            let answer_ms = this.answer_ms;
            Ok(Box::new(SlowSession { session, answer_ms }) as _)
        }
        .boxed()
    }
}

struct SlowSession {
    session: Box<dyn Session>,
    answer_ms: Arc<AtomicU64>,
}

impl Session for SlowSession {
    fn call(&mut self, space: &Arc<Keyspace>, ops: &[Op]) -> BoxFuture<'static, CallResult> {
        let answers = self.session.call(space, ops);
        let answer_ms = Duration::from_millis(self.answer_ms.load(SeqCst));
        async move {
            let answers = answers.await;
            tokio::time::sleep(answer_ms).await;
            answers
        }
        .boxed()
    }
}

/// A client whose nodes answer as slowly as the number says.
async fn slow_client(nodes: &Nodes) -> (Redlock, Arc<AtomicU64>) {
    let answer_ms = Arc::new(AtomicU64::new(0));
    let slow = nodes.each().map(|node| {
        let answer_ms = Arc::clone(&answer_ms);
        NodeConfig::other(SlowNode { node, answer_ms })
    });
    let builder = Redlock::builder().nodes(slow).virtual_time();
    (builder.build().await.unwrap(), answer_ms)
}

/// One exchange from the request to the end of the body, with a time limit on each half.
async fn exchange(redlock: Redlock, inner: Stuck, limit: Duration) {
    let layer = RedlockLayer::builder(redlock).options(AcquireOptions::new().wait(LONG));
    let stack = ServiceBuilder::new()
        .layer(ResponseBodyTimeoutLayer::new(limit))
        .layer(TimeoutLayer::with_status_code(
            StatusCode::GATEWAY_TIMEOUT,
            limit,
        ))
        .layer(layer.build(by_header()).unwrap())
        .service(inner);
    let response = stack.oneshot(request(KEY)).await.unwrap();
    if response.status() == 200 {
        assert!(response.into_body().collect().await.is_err(), "cut off");
    } else {
        assert_eq!(response.status(), 504);
    }
}

/// Whether one more caller may wait if so many do; the holder is none of them.
async fn has_room(redlock: &Redlock, waiters: usize) -> bool {
    let options = AcquireOptions::new().max_waiters_per_key(waiters);
    let mut acquire = Box::pin(redlock.acquire_with(format!("test:{KEY}"), options));
    match poll!(acquire.as_mut()) {
        Poll::Pending => true,
        Poll::Ready(Ok(_)) => panic!("somebody holds it"),
        Poll::Ready(Err(error)) => {
            assert_eq!(error.kind(), AcquireErrorKind::Overloaded);
            false
        }
    }
}

async fn given_up(state: State, end: End) {
    let case = format!("{state:?}, {end:?}");
    let nodes = Nodes::new();
    let replica = virtual_client(&nodes).await;
    let (redlock, answer_ms) = slow_client(&nodes).await;
    let key = format!("test:{KEY}");
    let holder = match state {
        State::Queued => Some(redlock.acquire(key.clone()).await.unwrap()),
        State::Contending => Some(replica.acquire(key.clone()).await.unwrap()),
        _ => None,
    };
    answer_ms.store(if state == State::BeingGranted { 300 } else { 0 }, SeqCst);

    let (told, mut tells) = mpsc::unbounded_channel();
    let inner = Stuck { state, told };
    let (limit, reached_by) = match end {
        End::TimeLimit => (Duration::from_millis(100), Duration::from_millis(100)),
        End::Drop | End::Abort => (Duration::from_secs(3600), Duration::from_secs(10)),
    };
    let work = exchange(redlock.clone(), inner, limit);
    let reached = tokio::time::timeout(reached_by, async {
        match state {
            State::Queued => {
                let_others_run().await;
                assert!(!has_room(&redlock, 1).await, "it waits");
            }
            State::Contending => let_others_run().await,
            State::BeingGranted => nodes.have_keys(1).await,
            _ => tells.recv().await.unwrap(),
        }
    });
    in_time(async {
        match end {
            End::Drop => {
                let mut work = Box::pin(work);
                tokio::select! {
                    () = work.as_mut() => panic!("it is stuck: {case}"),
                    reached = reached => reached.unwrap(),
                }
            }
            End::TimeLimit => tokio::join!(work, reached).1.unwrap(),
            End::Abort => {
                let mut tasks = JoinSet::new();
                tasks.spawn(work);
                reached.await.unwrap();
                tasks.shutdown().await;
            }
        }
    })
    .await;

    answer_ms.store(0, SeqCst);
    if state == State::Queued {
        assert!(has_room(&redlock, 1).await, "its place is free: {case}");
    }
    drop(holder);
    nodes.have_keys(0).await;
    for client in [&redlock, &replica] {
        let start = Instant::now();
        let guard = client.try_acquire(key.clone()).await;
        assert!(guard.is_ok(), "nothing is held: {case}");
        assert_eq!(start.elapsed(), Duration::ZERO, "{case}");
        drop(guard);
        nodes.have_keys(0).await;
    }
}

const STATES: [State; 6] = [
    State::Queued,
    State::Contending,
    State::BeingGranted,
    State::Readying,
    State::InTheHandler,
    State::InTheBody,
];

#[tokio::test(start_paused = true)]
async fn a_request_that_is_dropped_leaves_nothing() {
    for state in STATES {
        given_up(state, End::Drop).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_an_outer_time_limit_ends_leaves_nothing() {
    for state in STATES {
        given_up(state, End::TimeLimit).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_whose_task_is_aborted_leaves_nothing() {
    for state in STATES {
        given_up(state, End::Abort).await;
    }
}
