//! The layer around services whose requests are not HTTP's.

use std::{
    pin::{Pin, pin},
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{future::join_all, poll};
use redlock_core::{AcquireOptions, FencingToken, Redlock, ResourceKey, ResourceKeys, Wait};
use redlock_tower::{
    ConfigError, GenericLayer, GenericService, KeyError, KeyExtractor, LossPolicy, Rejection,
    RejectionKind, RequestLease, ServiceError,
};
use tokio::task::yield_now;
use tower::{Layer, Service, ServiceExt, service_fn};
use tower_test::mock::{self, Mock};

use crate::behaviour::kit::{Gauge, Nodes, in_time, is_free, let_others_run, virtual_client};

/// Locks a number unless it is 0, and remembers the tokens that were granted.
#[derive(Clone, Default)]
struct ByNumber(Arc<Mutex<Vec<FencingToken>>>);

impl KeyExtractor<u32> for ByNumber {
    async fn extract(&self, number: &mut u32) -> Result<Option<ResourceKeys>, KeyError> {
        match number {
            0 => Ok(None),
            13 => Err(KeyError::misuse("there is no 13")),
            _ => Ok(Some(ResourceKey::new("test", *number)?.into())),
        }
    }

    fn granted(&self, number: &mut u32, lease: &RequestLease) {
        assert!(lease.is_held());
        assert_eq!(lease.key().as_str(), format!("test:{number}"));
        self.0.lock().unwrap().push(lease.token());
    }
}

fn layer(redlock: &Redlock) -> GenericLayer<ByNumber> {
    GenericLayer::new(redlock.clone(), ByNumber::default())
}

fn with(redlock: &Redlock, options: AcquireOptions) -> Result<GenericLayer<ByNumber>, ConfigError> {
    GenericLayer::with_options(
        redlock.clone(),
        options,
        LossPolicy::Abort,
        ByNumber::default(),
    )
}

#[track_caller]
fn kind(outcome: Result<u32, ServiceError>) -> RejectionKind {
    let error = outcome.unwrap_err();
    error.downcast_ref::<Rejection>().unwrap().kind()
}

async fn double(number: u32) -> Result<u32, &'static str> {
    Ok(2 * number)
}

async fn stuck(_: u32) -> Result<u32, &'static str> {
    std::future::pending().await
}

#[tokio::test(start_paused = true)]
async fn a_request_is_served_under_its_lock_or_without_one() {
    let nodes = Nodes::new();
    let redlock = virtual_client(&nodes).await;
    let key = ByNumber::default();
    let service = GenericLayer::new(redlock.clone(), key.clone()).layer(service_fn(double));
    for number in [0, 7, 7] {
        assert_eq!(service.clone().oneshot(number).await.unwrap(), 2 * number);
    }
    let tokens = key.0.lock().unwrap().clone();
    assert!(tokens.len() == 2 && tokens[0] < tokens[1], "{tokens:?}");
    assert!(is_free(&redlock, "7").await);
    nodes.have_keys(0).await;
}

#[tokio::test(start_paused = true)]
async fn a_layer_behind_another_with_the_same_key_refuses_at_once() {
    let redlock = virtual_client(&Nodes::new()).await;
    let service = layer(&redlock).layer(layer(&redlock).layer(service_fn(double)));
    let began = tokio::time::Instant::now();
    assert_eq!(kind(service.oneshot(7).await), RejectionKind::Misuse);
    assert!(began.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn every_refusal_is_an_error_that_says_its_kind() {
    let nodes = Nodes::new();
    let redlock = virtual_client(&nodes).await;
    let never = || AcquireOptions::new().wait(Wait::Never);
    let ask = async |options, number| {
        let service = with(&redlock, options).unwrap().layer(service_fn(stuck));
        kind(in_time(service.oneshot(number)).await)
    };
    assert_eq!(ask(never(), 13).await, RejectionKind::Misuse);
    let hold = Duration::from_millis(200);
    assert_eq!(ask(never().max_hold(hold), 7).await, RejectionKind::Lost);
    let holder = redlock.acquire("test:7").await.unwrap();
    assert_eq!(ask(never(), 7).await, RejectionKind::Contended);
    let full = AcquireOptions::new().max_waiters_per_key(0);
    assert_eq!(ask(full, 7).await, RejectionKind::Overloaded);
    drop(holder);
    nodes.stop();
    assert_eq!(ask(never(), 7).await, RejectionKind::Unavailable);
    redlock.close().await;
    assert_eq!(ask(never(), 7).await, RejectionKind::Closed);
}

#[tokio::test(start_paused = true)]
async fn options_that_cannot_be_are_refused_when_the_layer_is_built() {
    let redlock = virtual_client(&Nodes::new()).await;
    let ttl = AcquireOptions::new().ttl(Duration::ZERO);
    assert_eq!(with(&redlock, ttl).unwrap_err().field(), "ttl");
    let max_hold = AcquireOptions::new().max_hold(Duration::ZERO);
    assert_eq!(with(&redlock, max_hold).unwrap_err().field(), "max_hold");
}

#[tokio::test(start_paused = true)]
async fn a_signalled_service_finishes_after_a_loss() {
    let nodes = Nodes::new();
    let redlock = virtual_client(&nodes).await;
    let slow = service_fn(async |number| {
        tokio::time::sleep(Duration::from_secs(60)).await;
        double(number).await
    });
    for (on_lost, finishes) in [(LossPolicy::Signal, true), (LossPolicy::Abort, false)] {
        let options = AcquireOptions::new().ttl(Duration::from_secs(1));
        let key = ByNumber::default();
        let layer = GenericLayer::with_options(redlock.clone(), options, on_lost, key).unwrap();
        let outcome = layer.layer(slow).oneshot(7);
        let trouble = async {
            nodes.have_keys(1).await;
            nodes.drop_locks();
        };
        let (outcome, ()) = tokio::join!(outcome, trouble);
        if finishes {
            assert_eq!(outcome.unwrap(), 14);
        } else {
            assert_eq!(kind(outcome), RejectionKind::Lost);
        }
        assert!(is_free(&redlock, "7").await);
        nodes.have_keys(0).await;
    }
}

#[tokio::test(start_paused = true)]
async fn closing_ends_a_wait() {
    let redlock = virtual_client(&Nodes::new()).await;
    let _holder = redlock.acquire("test:7").await.unwrap();
    let service = layer(&redlock).layer(service_fn(double));
    let close = async {
        let_others_run().await;
        redlock.close().await;
    };
    let start = tokio::time::Instant::now();
    let (outcome, ()) = tokio::join!(service.oneshot(7), close);
    assert_eq!(kind(outcome), RejectionKind::Closed);
    assert_eq!(start.elapsed(), Duration::ZERO);
}

type Guarded = GenericService<Mock<u32, u32>, ByNumber>;

fn mocked(redlock: &Redlock) -> (Guarded, mock::Handle<u32, u32>) {
    let (inner, handle) = mock::pair();
    (layer(redlock).layer(inner), handle)
}

/// The mock panics when it is called without having been made ready.
#[tokio::test(start_paused = true)]
async fn it_is_ready_at_once_and_makes_the_inner_service_ready_under_the_lock() {
    let nodes = Nodes::new();
    let (mut service, mut handle) = mocked(&virtual_client(&nodes).await);
    handle.allow(0);
    assert!(poll!(pin!(service.ready())).is_ready());
    let response = service.clone().call(7);
    let serve = async {
        nodes.have_keys(1).await;
        let_others_run().await;
        assert!(poll!(pin!(handle.next_request())).is_pending());
        handle.allow(1);
        let (number, answer) = handle.next_request().await.unwrap();
        answer.send_response(number + 1);
    };
    let (outcome, ()) = in_time(async { tokio::join!(response, serve) }).await;
    assert_eq!(outcome.unwrap(), 8);
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_inner_service_is_the_outcome_and_releases() {
    let redlock = virtual_client(&Nodes::new()).await;
    let (mut service, mut handle) = mocked(&redlock);
    let mut response = pin!(service.call(7));
    let fail = async { handle.next_request().await.unwrap().1.send_error("no") };
    let (outcome, ()) = tokio::join!(response.as_mut(), fail);
    let error = outcome.unwrap_err();
    assert_eq!(error.to_string(), "no");
    assert!(error.downcast_ref::<Rejection>().is_none());
    assert!(is_free(&redlock, "7").await);

    let mut response = pin!(service.call(7));
    handle.send_error("worn out");
    assert_eq!(response.as_mut().await.unwrap_err().to_string(), "worn out");
    // The future is still there, and the lock is not.
    assert!(is_free(&redlock, "7").await);
}

#[tokio::test(start_paused = true)]
async fn a_storm_of_clones_never_overlaps_on_a_key() {
    let redlock = virtual_client(&Nodes::new()).await;
    let gauge = Gauge::default();
    let inside = gauge.clone();
    let options = AcquireOptions::new().wait(crate::behaviour::kit::LONG);
    let service = with(&redlock, options)
        .unwrap()
        .layer(service_fn(move |number: u32| {
            let (one, all) = (inside.enter(&number.to_string()), inside.enter("all"));
            async move {
                let_others_run().await;
                drop((one, all));
                double(number).await
            }
        }));
    let storm = (0..60).map(|i| service.clone().oneshot(1 + i % 3));
    assert!(join_all(storm).await.iter().all(Result::is_ok));
    for key in ["1", "2", "3"] {
        assert_eq!((gauge.peak(key), gauge.total(key)), (1, 20), "{key}");
    }
    assert!(gauge.peak("all") > 1, "different keys run side by side");
}

/// With an await point in its readiness and in its answer.
#[derive(Clone, Default)]
struct Slow {
    asked: bool,
}

impl Service<u32> for Slow {
    type Response = u32;
    type Error = &'static str;
    type Future = Pin<Box<dyn Future<Output = Result<u32, &'static str>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
        if std::mem::replace(&mut self.asked, true) {
            return Poll::Ready(Ok(()));
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn call(&mut self, number: u32) -> Self::Future {
        Box::pin(async move {
            yield_now().await;
            double(number).await
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_drop_at_any_await_point_frees_the_lock() {
    let nodes = Nodes::new();
    let redlock = virtual_client(&nodes).await;
    for polls in 0.. {
        let mut response = Box::pin(layer(&redlock).layer(Slow::default()).call(7));
        let mut left = polls;
        let done = std::future::poll_fn(|cx| match left {
            0 => Poll::Ready(false),
            _ => {
                left -= 1;
                response.as_mut().poll(cx).map(|_| true)
            }
        });
        let done = done.await;
        drop(response);
        assert!(is_free(&redlock, "7").await, "after a drop at poll {polls}");
        nodes.have_keys(0).await;
        if done {
            assert!(polls > 3, "every phase was cut off: {polls} polls");
            return;
        }
    }
}
