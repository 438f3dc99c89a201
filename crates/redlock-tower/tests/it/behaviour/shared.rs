//! Layers whose requests share what they lock, if they only read.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use axum::body::Body;
use http::{Method, Request, Response};
use redlock_core::{AcquireOptions, Mode, Redlock, Wait};
use redlock_tower::{RedlockLayer, RedlockLayerBuilder, Rejection, RejectionKind};
use tokio::task::JoinSet;
use tower::{Layer, ServiceExt, service_fn};

use crate::behaviour::kit::{Nodes, by_header, in_time, request, virtual_client};

fn shared_if(shares: bool) -> AcquireOptions {
    let options = AcquireOptions::new();
    if shares { options.shared() } else { options }
}

fn by_method(redlock: &Redlock) -> RedlockLayerBuilder {
    RedlockLayer::builder(redlock.clone())
        .options_with(|head| shared_if(head.method.is_safe()))
        .options(AcquireOptions::new().wait(Wait::UpTo(Duration::from_secs(60))))
}

fn asks(method: Method) -> Request<Body> {
    let mut request = request("a");
    *request.method_mut() = method;
    request
}

/// What runs at a moment, and the most that did.
#[derive(Default)]
struct Inside {
    readers: AtomicUsize,
    writers: AtomicUsize,
    most_readers: AtomicUsize,
}

impl Inside {
    async fn work(&self, method: &Method) {
        let is_reader = method.is_safe();
        let own = if is_reader {
            &self.readers
        } else {
            &self.writers
        };
        let before = own.fetch_add(1, SeqCst);
        if is_reader {
            self.most_readers.fetch_max(before + 1, SeqCst);
            assert_eq!(self.writers.load(SeqCst), 0, "somebody writes");
        } else {
            assert_eq!(
                (before, self.readers.load(SeqCst)),
                (0, 0),
                "it is not alone"
            );
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        own.fetch_sub(1, SeqCst);
    }
}

// Shows: R4.7.
#[tokio::test(start_paused = true)]
async fn requests_that_read_run_together_on_all_replicas_and_those_that_write_alone() {
    let nodes = Nodes::new();
    let inside = Arc::new(Inside::default());
    let mut requests = JoinSet::new();
    for replica in 0..3 {
        let layer = by_method(&virtual_client(&nodes).await);
        let inside = Arc::clone(&inside);
        let served = service_fn(move |request: Request<Body>| {
            let inside = Arc::clone(&inside);
            async move {
                inside.work(request.method()).await;
                Ok::<_, Infallible>(Response::new(Body::empty()))
            }
        });
        let served = layer.build(by_header()).unwrap().layer(served);
        for number in 0..40 {
            let method = if number % 8 == replica {
                Method::POST
            } else {
                Method::GET
            };
            let served = served.clone();
            requests.spawn(async move {
                tokio::time::sleep(Duration::from_millis(7 * number)).await;
                let answer = served.oneshot(asks(method)).await.unwrap();
                assert_eq!(answer.status(), 200);
            });
        }
    }
    in_time(requests.join_all()).await;
    assert!(inside.most_readers.load(SeqCst) >= 6);
    nodes.have_keys(0).await;
}

// Shows: R4.7.
#[tokio::test(start_paused = true)]
async fn a_request_that_shares_a_key_does_not_get_it_alone_and_the_other_way_round_it_does() {
    let redlock = virtual_client(&Nodes::new()).await;
    let outer = |shares: bool| {
        let layer = RedlockLayer::builder(redlock.clone()).options_with(move |_| shared_if(shares));
        layer.build(by_header()).unwrap()
    };
    let served =
        service_fn(async |_: Request<Body>| Ok::<_, Infallible>(Response::new(Body::empty())));
    let within = |first: bool, second: bool| {
        let service = outer(first).layer(outer(second).layer(served));
        service.oneshot(asks(Method::GET))
    };
    for (first, second, status) in [
        (true, true, 200),
        (false, true, 200),
        (false, false, 200),
        (true, false, 500),
    ] {
        let answer = within(first, second).await.unwrap();
        assert_eq!(answer.status(), status, "{first} {second}");
        if status == 500 {
            let rejection = answer.extensions().get::<Rejection>().unwrap();
            assert_eq!(rejection.kind(), RejectionKind::Misuse);
        }
    }
    assert_eq!(
        redlock.try_acquire("test:a").await.unwrap().mode(),
        Mode::Exclusive
    );
}

#[tokio::test(start_paused = true)]
async fn a_layer_with_slots_shares_nothing() {
    let redlock = virtual_client(&Nodes::new()).await;
    let slots = || RedlockLayer::builder(redlock.clone()).slots(2);
    let refused = slots().options(shared_if(true)).build(by_header());
    assert_eq!(refused.unwrap_err().field(), "shared");

    let some = slots().options_with(|head| shared_if(head.method.is_safe()));
    let served =
        service_fn(async |_: Request<Body>| Ok::<_, Infallible>(Response::new(Body::empty())));
    let service = some.build(by_header()).unwrap().layer(served);
    let writes = service.clone().oneshot(asks(Method::PUT)).await.unwrap();
    assert_eq!(writes.status(), 200);
    let reads = service.oneshot(asks(Method::GET)).await.unwrap();
    assert_eq!(reads.status(), 500);
    let rejection = reads.extensions().get::<Rejection>().unwrap();
    assert_eq!(rejection.kind(), RejectionKind::Misuse);
}
