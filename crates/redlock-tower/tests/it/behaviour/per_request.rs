//! Waits and times to live that requests have of their own.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use axum::{Router, body::Body, extract::FromRequestParts, routing::get};
use http::{Method, Request, StatusCode, request::Parts};
use redlock_core::{AcquireOptions, Redlock, ResourceKey, ResourceKeys, Wait};
use redlock_tower::{
    BoxedKey, ExtensionKey, GenericLayer, InHandler, KeyError, KeyExtractor, LockKey, Locked,
    LossPolicy, RedlockLayer, RedlockLayerBuilder, Rejection, RejectionKind, RequestLease,
};
use tokio::time::Instant;
use tower::{BoxError, Layer, ServiceExt, service_fn};

use crate::behaviour::kit::{KEY, Nodes, by_header, in_time, request, virtual_client};

const SECOND: Duration = Duration::from_secs(1);

/// What a request says of how it is to be locked.
#[derive(Clone, Copy)]
struct Asks {
    wait: Option<Duration>,
    ttl: Option<Duration>,
}

const NOTHING: Asks = Asks {
    wait: None,
    ttl: None,
};

fn asking(asks: Asks) -> Request<Body> {
    let mut request = request(KEY);
    request.extensions_mut().insert(asks);
    request
}

fn asks(head: &Parts) -> Asks {
    *head.extensions.get().unwrap()
}

/// A layer whose requests wait for a second and have ten to live, unless they ask for something else.
fn by_head(redlock: &Redlock) -> RedlockLayerBuilder {
    RedlockLayer::builder(redlock.clone())
        .options(
            AcquireOptions::new()
                .wait(Wait::UpTo(SECOND))
                .ttl(10 * SECOND),
        )
        .options_with(|head| options(asks(head)))
}

/// Answers with the time that its lease has left.
async fn remaining(lease: Option<RequestLease>) -> String {
    let left = lease.map(|lease| lease.remaining().as_millis());
    left.unwrap_or_default().to_string()
}

async fn answer(app: &Router, request: Request<Body>) -> (StatusCode, String) {
    let response = in_time(app.clone().oneshot(request)).await.unwrap();
    let status = response.status();
    let body = axum::body::to_bytes(response.into_body(), 1_000).await;
    (status, String::from_utf8(body.unwrap().to_vec()).unwrap())
}

/// Asserts that a request waits for so long while another has the lock, and has a lease of that length then.
async fn assert_locked_as(
    app: &Router,
    redlock: &Redlock,
    asks: Asks,
    wait: Duration,
    ttl: Duration,
) {
    let guard = redlock.acquire(format!("test:{KEY}")).await.unwrap();
    let began = Instant::now();
    assert_eq!(answer(app, asking(asks)).await.0, StatusCode::CONFLICT);
    assert_eq!(began.elapsed().as_secs(), wait.as_secs());
    guard.release().await.unwrap();

    let (status, left) = answer(app, asking(asks)).await;
    assert_eq!(status, StatusCode::OK);
    let left = Duration::from_millis(left.parse().unwrap());
    assert!(left <= ttl && left > ttl * 9 / 10, "{left:?} of {ttl:?}");
}

const OTHERS: Asks = Asks {
    wait: Some(SECOND.saturating_mul(3)),
    ttl: Some(SECOND.saturating_mul(2)),
};

#[tokio::test(start_paused = true)]
async fn a_request_waits_and_is_locked_as_its_head_says_and_else_as_the_layer_says() {
    let redlock = virtual_client(&Nodes::new()).await;
    let layer = by_head(&redlock).build(by_header()).unwrap();
    let app = Router::new().route("/", get(remaining).route_layer(layer));
    assert_locked_as(&app, &redlock, NOTHING, SECOND, 10 * SECOND).await;
    assert_locked_as(&app, &redlock, OTHERS, 3 * SECOND, 2 * SECOND).await;
    let only_waits = Asks {
        ttl: None,
        ..OTHERS
    };
    assert_locked_as(&app, &redlock, only_waits, 3 * SECOND, 10 * SECOND).await;
}

/// Extracts what the request asks for; it locks what all do.
struct Named(Asks);

impl LockKey for Named {
    fn lock_key(&self) -> Result<ResourceKeys, KeyError> {
        Ok(ResourceKey::new("test", KEY)?.into())
    }
}

impl<S: Sync> FromRequestParts<S> for Named {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(asks(parts)))
    }
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_the_handler_takes_is_as_the_head_says_too() {
    let redlock = virtual_client(&Nodes::new()).await;
    let layer = by_head(&redlock).build(InHandler).unwrap();
    let handler = async |named: Locked<Named>| {
        assert!(
            named
                .0
                .ttl
                .is_none_or(|ttl| named.lease().remaining() <= ttl)
        );
        remaining(Some(named.lease().clone())).await
    };
    let app = Router::new().route("/", get(handler).route_layer(layer));
    assert_locked_as(&app, &redlock, NOTHING, SECOND, 10 * SECOND).await;
    assert_locked_as(&app, &redlock, OTHERS, 3 * SECOND, 2 * SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn a_time_to_live_that_cannot_be_granted_is_the_programs_fault() {
    let redlock = virtual_client(&Nodes::new()).await;
    let layer = by_head(&redlock).build(by_header()).unwrap();
    let app: Router = Router::new().route("/", get(remaining).route_layer(layer));
    for ttl in [Duration::ZERO, redlock.max_ttl() + SECOND] {
        let ttl = Some(ttl);
        let response = app.clone().oneshot(asking(Asks { ttl, ..NOTHING })).await;
        let response = response.unwrap();
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let rejection = response.extensions().get::<Rejection>().unwrap();
        assert_eq!(rejection.kind(), RejectionKind::Misuse);
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_the_layer_does_not_lock_is_not_asked() {
    let redlock = virtual_client(&Nodes::new()).await;
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let layer = by_head(&redlock)
        .only([Method::POST])
        .options_with(move |_| {
            counted.fetch_add(1, SeqCst);
            AcquireOptions::new()
        })
        .build(by_header())
        .unwrap();
    let app = Router::new().route("/", get(remaining).post(remaining).layer(layer));
    assert_eq!(answer(&app, asking(NOTHING)).await.1, "0", "unlocked");
    assert_eq!(asked.load(SeqCst), 0);
    let mut locked = asking(NOTHING);
    *locked.method_mut() = Method::POST;
    assert_ne!(answer(&app, locked).await.1, "0");
    assert_eq!(asked.load(SeqCst), 1);
}

/// A value in the extensions that says by itself how it is locked.
#[derive(Clone)]
struct Batch(Asks);

impl LockKey for Batch {
    fn lock_key(&self) -> Result<ResourceKeys, KeyError> {
        Ok(ResourceKey::new("test", KEY)?.into())
    }

    fn options(&self) -> AcquireOptions {
        options(self.0)
    }
}

fn options(Asks { wait, ttl }: Asks) -> AcquireOptions {
    let mut options = AcquireOptions::new();
    if let Some(wait) = wait {
        options = options.wait(Wait::UpTo(wait));
    }
    if let Some(ttl) = ttl {
        options = options.ttl(ttl);
    }
    options
}

#[tokio::test(start_paused = true)]
async fn what_a_key_says_goes_before_what_the_head_says() {
    let redlock = virtual_client(&Nodes::new()).await;
    let from_the_head = |builder: RedlockLayerBuilder| {
        builder.options_with(|_| {
            let options = AcquireOptions::new();
            options.wait(Wait::UpTo(5 * SECOND)).ttl(7 * SECOND)
        })
    };
    let boxed = BoxedKey::<Request<Body>>::new(ExtensionKey::<Batch>::new());
    let layer = from_the_head(by_head(&redlock)).build(boxed).unwrap();
    // The value is there before the layer sees the request, as what an outer layer has found.
    let batch = axum::middleware::map_request(async |mut request: Request<Body>| {
        let asks = *request.extensions().get::<Asks>().unwrap();
        request.extensions_mut().insert(Batch(asks));
        request
    });
    let app = Router::new().route("/", get(remaining).route_layer(layer).route_layer(batch));
    assert_locked_as(&app, &redlock, OTHERS, 3 * SECOND, 2 * SECOND).await;
    assert_locked_as(&app, &redlock, NOTHING, 5 * SECOND, 7 * SECOND).await;
}

/// A request that is none of HTTP, and answered with what its lease has left.
struct Charge {
    asks: Asks,
    left: Duration,
}

struct ByCharge;

impl KeyExtractor<Charge> for ByCharge {
    async fn extract(&self, _: &mut Charge) -> Result<Option<ResourceKeys>, KeyError> {
        Ok(Some(ResourceKey::new("test", KEY)?.into()))
    }

    fn options(&self, charge: &Charge) -> AcquireOptions {
        options(charge.asks)
    }

    fn granted(&self, charge: &mut Charge, lease: &RequestLease) {
        charge.left = lease.remaining();
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_of_another_protocol_is_locked_as_its_key_says() {
    let redlock = virtual_client(&Nodes::new()).await;
    let defaults = options(Asks {
        wait: Some(SECOND),
        ttl: Some(10 * SECOND),
    });
    let layer = GenericLayer::with_options(redlock.clone(), defaults, LossPolicy::Abort, ByCharge);
    let service = layer.unwrap().layer(service_fn(async |charge: Charge| {
        Ok::<_, BoxError>(charge.left)
    }));
    let left = Duration::ZERO;
    for (asks, wait, ttl) in [
        (NOTHING, SECOND, 10 * SECOND),
        (OTHERS, 3 * SECOND, 2 * SECOND),
    ] {
        let guard = redlock.acquire(format!("test:{KEY}")).await.unwrap();
        let began = Instant::now();
        let refused = in_time(service.clone().oneshot(Charge { asks, left })).await;
        assert!(refused.is_err());
        assert_eq!(began.elapsed().as_secs(), wait.as_secs());
        guard.release().await.unwrap();
        let left = service
            .clone()
            .oneshot(Charge { asks, left })
            .await
            .unwrap();
        assert!(left <= ttl && left > ttl * 9 / 10, "{left:?} of {ttl:?}");
    }
}
