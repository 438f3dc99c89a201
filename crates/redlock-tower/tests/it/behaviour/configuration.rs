//! What can be asked of a layer.

use std::{
    convert::Infallible,
    future::{Ready, ready},
    time::Duration,
};

use axum::body::Body;
use http::{Request, Response};
use redlock_core::{AcquireOptions, Redlock, Wait};
use redlock_tower::{ConfigError, ConfigErrorKind, HeaderKey, RedlockLayer};
use tokio::time::Instant;
use tower::{Layer, ServiceExt, service_fn, util::ServiceFn};

use crate::behaviour::kit::{KEY, Nodes, by_header, request, virtual_client};

fn with_ttl(redlock: &Redlock, ttl: Duration) -> Result<RedlockLayer<HeaderKey>, ConfigError> {
    RedlockLayer::builder(redlock.clone())
        .options(AcquireOptions::new().ttl(ttl))
        .build(by_header())
}

type Outcome = Ready<Result<Response<Body>, Infallible>>;

fn handler() -> ServiceFn<fn(Request<Body>) -> Outcome> {
    service_fn(|_| ready(Ok(Response::new(Body::empty()))))
}

#[tokio::test]
async fn a_time_to_live_out_of_range_is_told_when_the_layer_is_built() {
    let redlock = Nodes::new().client().build().await.unwrap();
    let step = Duration::from_millis(1);
    for ttl in [Duration::from_millis(100) - step, redlock.max_ttl() + step] {
        let error = with_ttl(&redlock, ttl).unwrap_err();
        assert_eq!(error.kind(), ConfigErrorKind::Misuse);
        assert_eq!(error.field(), "ttl");
        assert!(
            error.to_string().contains("not between 100ms and"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_time_to_live_that_a_layer_takes_is_one_that_a_client_takes() {
    let client = Nodes::new().client().clock_rate_error(0.25);
    let redlock = client.build().await.unwrap();
    for ttl in [Duration::from_millis(100), redlock.ttl(), redlock.max_ttl()] {
        let service = with_ttl(&redlock, ttl).unwrap().layer(handler());
        let response = service.oneshot(request(KEY)).await.unwrap();
        assert_eq!(response.status(), 200, "{ttl:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_as_long_as_it_was_asked_to() {
    let redlock = virtual_client(&Nodes::new()).await;
    let _holder = redlock.acquire(format!("test:{KEY}")).await.unwrap();
    let default = RedlockLayer::builder(redlock.clone());
    let waits = [
        (
            default
                .clone()
                .options(AcquireOptions::new().wait(Wait::Never)),
            Duration::ZERO,
        ),
        (
            default
                .clone()
                .options(AcquireOptions::new().wait(Wait::UpTo(WAIT))),
            WAIT,
        ),
        (default, Duration::from_secs(5)),
    ];
    for (builder, wait) in waits {
        let service = builder.build(by_header()).unwrap().layer(handler());
        let start = Instant::now();
        let response = service.oneshot(request(KEY)).await.unwrap();
        assert_eq!(response.status(), 409);
        let waited = start.elapsed();
        assert!(
            waited >= wait && waited < wait + SLACK,
            "{waited:?} for {wait:?}"
        );
    }
}

const WAIT: Duration = Duration::from_millis(300);
/// Timers have a resolution of a millisecond.
const SLACK: Duration = Duration::from_millis(10);
