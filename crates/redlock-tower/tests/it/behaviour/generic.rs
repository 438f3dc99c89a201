//! The layer around services whose requests are not HTTP's.

use std::{
    pin::pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use redlock_core::{AcquireOptions, FencingToken, Redlock, ResourceKey, ResourceKeys, Wait};
use redlock_tower::{
    ConfigError, GenericLayer, KeyError, KeyExtractor, LossPolicy, Rejection, RejectionKind,
    RequestLease, ServiceError,
};
use tower::{Layer, ServiceExt, service_fn};

use crate::behaviour::kit::{Nodes, in_time, is_free, virtual_client};

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
async fn an_error_of_the_inner_service_is_the_outcome_and_releases() {
    let redlock = virtual_client(&Nodes::new()).await;
    let fails = service_fn(async |_: u32| Err::<u32, _>("no"));
    let mut response = pin!(layer(&redlock).layer(fails).oneshot(7));
    let error = response.as_mut().await.unwrap_err();
    assert_eq!(error.to_string(), "no");
    assert!(error.downcast_ref::<Rejection>().is_none());
    // The future is still there, and the lock is not.
    assert!(is_free(&redlock, "7").await);
}
