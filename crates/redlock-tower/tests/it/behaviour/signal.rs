//! A lease that is lost under a request that only asked to be told.

use std::{convert::Infallible, pin::pin, sync::Arc};

use axum::body::Body;
use futures_util::{StreamExt, poll, stream};
use http::{Request, Response};
use http_body_util::BodyExt;
use redlock_core::{LossReason, Redlock};
use redlock_tower::{LossPolicy, RedlockLayer, RedlockService, RequestLease};
use tokio::sync::{Notify, mpsc};
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::behaviour::kit::{KEY, Nodes, by_header, in_time, is_free, request, virtual_client};

fn signalling<S>(redlock: &Redlock, inner: S) -> RedlockService<S, redlock_tower::HeaderKey> {
    let builder = RedlockLayer::builder(redlock.clone()).on_lost(LossPolicy::Signal);
    builder.build(by_header()).unwrap().layer(inner)
}

/// Says that it was entered, waits until told to go on, and then gives a body that does so for each of its frames.
fn patient(
    go_on: &Arc<Notify>,
    entered: mpsc::UnboundedSender<()>,
) -> impl Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send>
+ Clone
+ use<> {
    let go_on = Arc::clone(go_on);
    service_fn(move |request: Request<Body>| {
        let go_on = Arc::clone(&go_on);
        entered.send(()).unwrap();
        async move {
            go_on.notified().await;
            let lease = request.extensions().get::<RequestLease>().unwrap();
            let said = format!("{:?};", lease.is_held());
            let frames = stream::iter([said, "a;".to_owned(), "b".to_owned()]);
            let frames = frames.then(move |frame| {
                let go_on = Arc::clone(&go_on);
                async move {
                    go_on.notified().await;
                    Ok::<_, Infallible>(frame)
                }
            });
            Ok(Response::new(Body::from_stream(frames)))
        }
    })
}

#[tokio::test(start_paused = true)]
async fn the_handler_and_the_body_run_on_after_a_loss() {
    let nodes = Nodes::new();
    let (redlock, replica) = (virtual_client(&nodes).await, virtual_client(&nodes).await);
    let go_on = Arc::new(Notify::new());
    let (entered, mut enters) = mpsc::unbounded_channel();
    let service = signalling(&redlock, patient(&go_on, entered));
    let mut response = pin!(service.oneshot(request(KEY)));
    tokio::select! {
        _ = response.as_mut() => panic!("it was not told to go on"),
        _ = enters.recv() => {}
    }

    nodes.drop_locks();
    // The resource is another's now, and the layer lets this request finish all the same.
    let other = replica.acquire(format!("test:{KEY}")).await.unwrap();
    tokio::time::sleep(2 * redlock.ttl()).await;
    assert!(poll!(response.as_mut()).is_pending());
    go_on.notify_one();
    let response = in_time(response).await.unwrap();
    assert_eq!(response.status(), 200);
    let mut body = response.into_body();
    for expected in ["false;", "a;", "b"] {
        go_on.notify_one();
        let frame = in_time(body.frame()).await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), expected);
    }
    assert!(in_time(body.frame()).await.is_none());
    assert!(other.lease().is_held(), "its release is not the other's");
}

#[tokio::test(start_paused = true)]
async fn a_body_runs_on_after_a_loss_in_its_midst() {
    let nodes = Nodes::new();
    let redlock = virtual_client(&nodes).await;
    let go_on = Arc::new(Notify::new());
    go_on.notify_one();
    let (entered, _enters) = mpsc::unbounded_channel();
    let service = signalling(&redlock, patient(&go_on, entered));
    let mut body = service.oneshot(request(KEY)).await.unwrap().into_body();
    go_on.notify_one();
    assert_eq!(
        body.frame().await.unwrap().unwrap().into_data().unwrap(),
        "true;"
    );
    nodes.stop();
    tokio::time::sleep(2 * redlock.ttl()).await;
    for _ in 0..2 {
        go_on.notify_one();
        assert!(in_time(body.frame()).await.unwrap().is_ok());
    }
    assert!(body.frame().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn the_lease_tells_the_handler_of_the_loss_and_of_its_reason() {
    let nodes = Nodes::new();
    let redlock = virtual_client(&nodes).await;
    let handler = service_fn(async |request: Request<Body>| {
        let lease = request.extensions().get::<RequestLease>().unwrap();
        let reason = lease.lost().await;
        assert!(!lease.is_held());
        Ok::<_, Infallible>(Response::new(Body::from(format!("{reason:?}"))))
    });
    let response = signalling(&redlock, handler).oneshot(request(KEY));
    let trouble = async {
        nodes.have_keys(1).await;
        nodes.drop_locks();
    };
    let (response, ()) = in_time(async { tokio::join!(response, trouble) }).await;
    let body = response.unwrap().into_body().collect().await.unwrap();
    assert_eq!(body.to_bytes(), format!("{:?}", LossReason::Revoked));
    assert!(is_free(&redlock, KEY).await);
}

#[tokio::test(start_paused = true)]
async fn a_signalled_request_still_releases_at_its_end() {
    let nodes = Nodes::new();
    let redlock = virtual_client(&nodes).await;
    let go_on = Arc::new(Notify::new());
    go_on.notify_one();
    let (entered, _enters) = mpsc::unbounded_channel();
    let service = signalling(&redlock, patient(&go_on, entered));
    let body = service.oneshot(request(KEY)).await.unwrap().into_body();
    assert!(!is_free(&redlock, KEY).await, "the body holds");
    drop(body);
    assert!(is_free(&redlock, KEY).await);
    nodes.have_keys(0).await;
}
