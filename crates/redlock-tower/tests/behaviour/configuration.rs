//! What can be asked of a layer.

use std::{convert::Infallible, time::Duration};

use axum::body::Body;
use http::{Request, Response};
use redlock_core::Redlock;
use redlock_tower::{ConfigError, HeaderKey, RedlockLayer};
use tower::{Layer, ServiceExt, service_fn};

use crate::kit::{KEY, Nodes, by_header, request};

fn with_ttl(redlock: &Redlock, ttl: Duration) -> Result<RedlockLayer<HeaderKey>, ConfigError> {
    RedlockLayer::builder(redlock.clone())
        .ttl(ttl)
        .build(by_header())
}

#[tokio::test]
async fn a_time_to_live_out_of_range_is_told_when_the_layer_is_built() {
    let redlock = Nodes::new().client().build().await.unwrap();
    let step = Duration::from_millis(1);
    for ttl in [Duration::from_millis(100) - step, redlock.max_ttl() + step] {
        let error = with_ttl(&redlock, ttl).unwrap_err();
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
    let service =
        service_fn(async |_: Request<Body>| Ok::<_, Infallible>(Response::new(Body::empty())));
    for ttl in [Duration::from_millis(100), redlock.ttl(), redlock.max_ttl()] {
        let service = with_ttl(&redlock, ttl).unwrap().layer(service);
        let response = service.oneshot(request(KEY)).await.unwrap();
        assert_eq!(response.status(), 200, "{ttl:?}");
    }
}
