//! A lock that is taken out of its request: in a spawned task, and on a connection that was upgraded.

use std::{
    convert::Infallible,
    future::{Future, pending, poll_fn},
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    extract::Request,
    routing::{MethodRouter, get},
};
use futures_util::{FutureExt, StreamExt, stream};
use http::{Response, StatusCode, header};
use http_body_util::BodyExt;
use hyper_util::rt::TokioIo;
use redlock_core::{AcquireOptions, LossReason, Redlock};
use redlock_tower::{LossPolicy, OwnedLease, RedlockLayer, RedlockLayerBuilder, RequestLease};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::mpsc,
    task::JoinSet,
};
use tower::ServiceExt;

use crate::behaviour::kit::{
    KEY, Nodes, Server, by_header, in_time, is_free, request, virtual_client,
};

/// The tasks that handlers spawn; they end with the test.
#[derive(Clone, Default)]
struct Tasks(Arc<Mutex<JoinSet<()>>>);

impl Tasks {
    fn spawn(&self, task: impl Future<Output: Send> + Send + 'static) {
        let task = async move { drop(task.await) };
        self.0.lock().unwrap().spawn(task);
    }
}

/// Waits until a request would get the lock at once.
async fn freed(redlock: &Redlock) {
    in_time(async {
        while !is_free(redlock, KEY).await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// A server whose only route upgrades to an echo, and keeps its lock for that if it is `owned`.
async fn echo(layer: RedlockLayerBuilder, owned: bool) -> (Server, Tasks) {
    let tasks = Tasks::default();
    let spawned = tasks.clone();
    let handler = async move |lease: RequestLease, mut request: Request| {
        let upgrade = hyper::upgrade::on(&mut request);
        let echo = async {
            let mut socket = TokioIo::new(upgrade.await.expect("the client upgrades"));
            let mut bytes = [0; 16];
            while let Ok(read @ 1..) = socket.read(&mut bytes).await {
                let written = socket.write_all(&bytes[..read]).await;
                written.expect("the client reads");
            }
        };
        if owned {
            spawned.spawn(lease.into_owned().expect("it has its lock").run(echo));
        } else {
            spawned.spawn(echo);
        }
        Response::builder()
            .status(StatusCode::SWITCHING_PROTOCOLS)
            .header(header::CONNECTION, "upgrade")
            .header(header::UPGRADE, "echo")
            .body(Body::empty())
            .unwrap()
    };
    let layer = layer.build(by_header()).unwrap();
    let app = Router::new().route("/", get(handler).route_layer(layer));
    (Server::start(app).await, tasks)
}

/// A connection that was upgraded, by what goes over the wire.
async fn upgraded(server: &Server) -> TcpStream {
    let mut socket = server.raw().await;
    let head = format!(
        "GET / HTTP/1.1\r\nhost: test\r\nx-key: {KEY}\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(in_time(socket.read_u8()).await.unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 101"));
    socket
}

async fn is_echoed(socket: &mut TcpStream) -> bool {
    let mut echoed = [0; 4];
    socket.write_all(b"ping").await.is_ok()
        && in_time(socket.read_exact(&mut echoed)).await.is_ok()
        && echoed == *b"ping"
}

/// Waits until the server closes the connection.
async fn closed(socket: &mut TcpStream) {
    let read = in_time(socket.read(&mut [0; 1])).await;
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
}

#[tokio::test]
async fn an_upgraded_connection_keeps_the_lock_that_its_handler_has_taken_out() {
    let nodes = Nodes::new();
    let redlock = nodes.client().build().await.unwrap();
    let (server, _tasks) = echo(RedlockLayer::builder(redlock.clone()), true).await;
    let mut socket = upgraded(&server).await;
    assert!(is_echoed(&mut socket).await);
    assert!(!is_free(&redlock, KEY).await, "the connection is open");
    assert!(is_echoed(&mut socket).await);
    drop(socket);
    freed(&redlock).await;

    // And one that does not take it out has lost it with the head of its response.
    let (server, _tasks) = echo(RedlockLayer::builder(redlock.clone()), false).await;
    let mut socket = upgraded(&server).await;
    freed(&redlock).await;
    assert!(is_echoed(&mut socket).await);
}

#[tokio::test]
async fn an_upgraded_connection_is_closed_when_its_lease_is_lost() {
    let nodes = Nodes::new();
    let redlock = nodes.client().ttl(Duration::from_secs(1));
    let redlock = redlock.build().await.unwrap();
    let (server, _tasks) = echo(RedlockLayer::builder(redlock.clone()), true).await;
    let mut socket = upgraded(&server).await;
    assert!(is_echoed(&mut socket).await);
    nodes.drop_locks();
    closed(&mut socket).await;
    freed(&redlock).await;
}

#[tokio::test]
async fn the_longest_hold_of_the_layer_ends_an_upgraded_connection() {
    let nodes = Nodes::new();
    let redlock = nodes.client().build().await.unwrap();
    let layer = RedlockLayer::builder(redlock.clone())
        .options(AcquireOptions::new().max_hold(Duration::from_millis(700)));
    let (server, _tasks) = echo(layer, true).await;
    let mut socket = upgraded(&server).await;
    assert!(is_echoed(&mut socket).await);
    assert!(!is_free(&redlock, KEY).await);
    closed(&mut socket).await;
    freed(&redlock).await;
}

/// What a handler answers behind a layer.
async fn answer(layer: RedlockLayerBuilder, handler: MethodRouter) -> Response<Body> {
    let layer = layer.build(by_header()).unwrap();
    let app = Router::new().route("/", handler.route_layer(layer));
    in_time(app.oneshot(request(KEY))).await.unwrap()
}

/// A lock that was taken out of a request that is over.
async fn taken_out(layer: RedlockLayerBuilder) -> OwnedLease {
    let (told, mut taken) = mpsc::unbounded_channel();
    let handler = async move |lock: OwnedLease| told.send(lock).expect("it is waited for");
    assert_eq!(answer(layer, get(handler)).await.status(), 200);
    taken.recv().await.expect("the handler has sent it")
}

#[tokio::test(start_paused = true)]
async fn a_spawned_task_keeps_the_lock_until_it_is_done() {
    let redlock = virtual_client(&Nodes::new()).await;
    let lock = taken_out(RedlockLayer::builder(redlock.clone())).await;
    assert!(!is_free(&redlock, KEY).await, "the request is over");
    let done = lock.run(async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(!is_free(&redlock, KEY).await, "it is renewed");
        7
    });
    assert_eq!(done.await.unwrap(), 7);
    assert!(is_free(&redlock, KEY).await);
}

#[tokio::test(start_paused = true)]
async fn work_that_goes_on_without_its_request_obeys_the_rules_of_the_layer() {
    let nodes = Nodes::new();
    let redlock = virtual_client(&nodes).await;
    let layer = || RedlockLayer::builder(redlock.clone());
    let lock = taken_out(layer()).await;
    let (lost, ()) =
        in_time(async { tokio::join!(lock.run(pending::<()>()), async { nodes.drop_locks() }) })
            .await;
    assert_eq!(lost.unwrap_err().reason(), LossReason::Revoked);
    assert!(is_free(&redlock, KEY).await);

    let hold = Duration::from_secs(3);
    let lock = taken_out(layer().options(AcquireOptions::new().max_hold(hold))).await;
    let lost = in_time(lock.run(pending::<()>())).await;
    assert_eq!(lost.unwrap_err().reason(), LossReason::MaxHold);

    let lock = taken_out(
        layer()
            .options(AcquireOptions::new().max_hold(hold))
            .on_lost(LossPolicy::Signal),
    )
    .await;
    let lease = lock.lease().clone();
    let done = lock.run(async move {
        let reason = lease.lost().await;
        tokio::time::sleep(hold).await;
        reason
    });
    assert_eq!(in_time(done).await.unwrap(), LossReason::MaxHold);
}

#[tokio::test(start_paused = true)]
async fn a_view_of_a_lock_that_was_taken_out_prolongs_nothing() {
    let redlock = virtual_client(&Nodes::new()).await;
    let lock = taken_out(RedlockLayer::builder(redlock.clone())).await;
    // By dereference a clone is a view too, and no second lock.
    let views: [RequestLease; 2] = [lock.lease().clone(), (*lock).clone()];
    for view in &views {
        assert_eq!((view.token(), view.is_held()), (lock.token(), true));
        assert!(view.clone().into_owned().is_err(), "there is one lock");
    }
    drop(lock);
    assert!(is_free(&redlock, KEY).await);
    for view in views {
        assert!(!view.is_held() && view.remaining().is_zero());
        assert_eq!(in_time(view.lost()).await, LossReason::Released);
    }
}

#[tokio::test(start_paused = true)]
async fn it_is_released_wherever_it_is_dropped() {
    let nodes = Nodes::new();
    let redlock = virtual_client(&nodes).await;
    let layer = || RedlockLayer::builder(redlock.clone());
    drop(taken_out(layer()).await);
    assert!(is_free(&redlock, KEY).await, "without being run");
    drop(taken_out(layer()).await.run(pending::<()>()));
    assert!(is_free(&redlock, KEY).await, "before the first poll");
    for polls in 1..4 {
        let lock = taken_out(layer()).await;
        let mut run = Box::pin(lock.run(async {
            loop {
                tokio::task::yield_now().await;
            }
        }));
        for _ in 0..polls {
            assert_eq!(run.as_mut().now_or_never(), None);
        }
        drop(run);
        assert!(is_free(&redlock, KEY).await, "after poll {polls}");
    }
    let run = taken_out(layer()).await.run(async { panic!("as it may") });
    let panicked = AssertUnwindSafe(run).catch_unwind().await;
    assert!(panicked.is_err());
    assert!(is_free(&redlock, KEY).await, "after a panic");
    taken_out(layer()).await.release().await.unwrap();
    assert!(is_free(&redlock, KEY).await);
    let guard = taken_out(layer()).await.into_guard();
    assert!(!is_free(&redlock, KEY).await);
    drop(guard);
    assert!(is_free(&redlock, KEY).await);
    nodes.have_keys(0).await;
}

#[tokio::test(start_paused = true)]
async fn it_can_be_taken_once_and_only_while_its_request_lasts() {
    let redlock = virtual_client(&Nodes::new()).await;
    let layer = || RedlockLayer::builder(redlock.clone());
    let kept = Arc::new(Mutex::new(None));
    let keep = Arc::clone(&kept);
    let handler = async move |lease: RequestLease| *keep.lock().unwrap() = Some(lease);
    assert_eq!(answer(layer(), get(handler)).await.status(), 200);
    let lease: RequestLease = kept.lock().unwrap().take().unwrap();
    assert!(lease.into_owned().is_err(), "its request is over");
    assert!(is_free(&redlock, KEY).await);

    let twice = async |lease: RequestLease| {
        let lock = lease.clone().into_owned()?;
        let again = lease.into_owned().map(drop);
        assert!(lock.is_held(), "and the first goes on");
        again
    };
    assert_eq!(answer(layer(), get(twice)).await.status(), 500);
    let twice = async |_: OwnedLease, _: OwnedLease| {};
    let response = answer(layer(), get(twice)).await;
    assert_eq!(response.status(), 500);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8(body.to_vec()).unwrap();
    assert!(text.contains("taken out before"), "{text}");
    assert!(is_free(&redlock, KEY).await);
}

#[tokio::test(start_paused = true)]
async fn a_request_goes_on_without_the_lock_that_its_handler_has_released() {
    let redlock = virtual_client(&Nodes::new()).await;
    let inner = redlock.clone();
    let handler = async move |lock: OwnedLease| {
        lock.release().await.unwrap();
        assert!(is_free(&inner, KEY).await, "for others, and for itself");
        tokio::time::sleep(Duration::from_secs(15)).await;
        "done"
    };
    let response = answer(RedlockLayer::builder(redlock), get(handler)).await;
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, "done");
}

/// The handler is one piece of work with what it has started, until it has answered.
#[tokio::test(start_paused = true)]
async fn a_loss_ends_the_handler_and_not_the_body_of_a_request_whose_lock_was_taken_out() {
    let nodes = Arc::new(Nodes::new());
    let redlock = virtual_client(&nodes).await;
    let layer = || RedlockLayer::builder(redlock.clone());
    let trouble = Arc::clone(&nodes);
    let handler = async move |_lock: OwnedLease| {
        trouble.drop_locks();
        pending::<()>().await;
    };
    assert_eq!(answer(layer(), get(handler)).await.status(), 503);
    assert!(is_free(&redlock, KEY).await);

    let (told, mut taken) = mpsc::unbounded_channel();
    let handler = async move |lock: OwnedLease| {
        told.send(lock).expect("it is waited for");
        let frames = stream::iter(["a", "b"]).then(async |frame| {
            tokio::time::sleep(Duration::from_secs(30)).await;
            Ok::<_, Infallible>(frame)
        });
        Body::from_stream(frames)
    };
    let response = answer(layer(), get(handler)).await;
    let lock = taken.recv().await.unwrap();
    let (body, lost) = tokio::join!(response.into_body().collect(), async {
        nodes.drop_locks();
        let lost = lock.run(pending::<()>());
        tokio::time::timeout(Duration::from_secs(3_600), lost).await
    });
    let lost = lost.expect("the work ends with the lease");
    assert_eq!(lost.unwrap_err().reason(), LossReason::Revoked);
    assert_eq!(body.expect("it is not cut off").to_bytes(), "ab");
}

#[tokio::test(start_paused = true)]
async fn an_inner_layer_with_the_same_key_takes_out_the_lock_of_the_outer_one() {
    let redlock = virtual_client(&Nodes::new()).await;
    let (told, mut taken) = mpsc::unbounded_channel();
    let handler = async move |lock: OwnedLease| told.send(lock).expect("it is waited for");
    let lock = || RedlockLayer::new(redlock.clone(), by_header());
    let handler = get(handler).route_layer(lock()).route_layer(lock());
    let app: Router = Router::new().route("/", handler);
    let response = in_time(app.oneshot(request(KEY))).await.unwrap();
    assert_eq!(response.status(), 200);
    let lock = taken.recv().await.unwrap();
    assert!(!is_free(&redlock, KEY).await);
    drop(lock);
    assert!(is_free(&redlock, KEY).await);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_request_leaves_the_lock_to_the_task_that_has_it() {
    let redlock = virtual_client(&Nodes::new()).await;
    let (told, mut taken) = mpsc::unbounded_channel();
    let handler = async move |lock: OwnedLease| {
        told.send(lock).expect("it is waited for");
        pending::<()>().await;
    };
    let layer = RedlockLayer::new(redlock.clone(), by_header());
    let app: Router = Router::new().route("/", get(handler).route_layer(layer));
    let mut response = Box::pin(app.oneshot(request(KEY)));
    let lock = in_time(poll_fn(|cx| {
        assert!(response.as_mut().poll(cx).is_pending());
        taken.poll_recv(cx)
    }))
    .await
    .unwrap();
    drop(response);
    assert!(lock.is_held());
    assert!(!is_free(&redlock, KEY).await);
    drop(lock);
    assert!(is_free(&redlock, KEY).await);
}
