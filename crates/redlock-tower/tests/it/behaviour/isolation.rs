//! One busy key must not slow another one down.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::body::Body;
use futures_util::future::join_all;
use http::{Request, Response};
use redlock_core::AcquireOptions;
use redlock_tower::RedlockLayer;
use tokio::{sync::Semaphore, time::Instant};
use tower::{ServiceBuilder, ServiceExt, limit::GlobalConcurrencyLimitLayer, service_fn};

use crate::behaviour::kit::{LONG, Nodes, by_header, request, virtual_client};

const WORK: Duration = Duration::from_millis(20);

/// With the inner service's readiness passed through, the requests that wait for the hot key sit on
/// all places behind the inner limit.
#[tokio::test(start_paused = true)]
async fn a_hot_key_does_not_slow_an_unrelated_one_behind_an_inner_limit() {
    let redlock = virtual_client(&Nodes::new()).await;
    let service = ServiceBuilder::new()
        .layer(
            RedlockLayer::builder(redlock)
                .options(AcquireOptions::new().wait(LONG))
                .build(by_header())
                .unwrap(),
        )
        .layer(GlobalConcurrencyLimitLayer::with_semaphore(Arc::new(
            Semaphore::new(4),
        )))
        .service(service_fn(|_: Request<Body>| async {
            tokio::time::sleep(WORK).await;
            Ok::<_, Infallible>(Response::new(Body::empty()))
        }));

    let start = Instant::now();
    let hot = join_all((0..40).map(|_| service.clone().oneshot(request("hot"))));
    let cold = async {
        // After the others have done what they can.
        tokio::time::sleep(WORK / 4).await;
        let start = Instant::now();
        let response = service.clone().oneshot(request("cold")).await.unwrap();
        assert_eq!(response.status(), 200);
        start.elapsed()
    };
    let (hot, cold) = tokio::join!(hot, cold);
    assert!(
        hot.into_iter()
            .all(|response| response.unwrap().status() == 200)
    );
    assert!(
        start.elapsed() >= 40 * WORK,
        "the hot key was served one by one"
    );
    assert!(cold <= 2 * WORK, "the unrelated key took {cold:?}");
}
