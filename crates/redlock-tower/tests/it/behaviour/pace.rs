//! When a client that was refused is told to come again.

use std::{collections::HashSet, convert::Infallible, pin::Pin, time::Duration};

use axum::body::Body;
use futures_util::{future::join_all, poll};
use http::{Request, Response};
use redlock_core::{AcquireOptions, Redlock, Renewal, Wait};
use redlock_tower::{HeaderKey, RedlockLayer, Rejection, ResponseBody};
use tower::{Layer, ServiceExt, service_fn};

use crate::behaviour::kit::{KEY, Nodes, again_in, by_header, in_time, request, virtual_client};

type Answer = Response<ResponseBody<Body>>;
type Asking = Pin<Box<dyn Future<Output = Answer>>>;

const WORK: Duration = Duration::from_secs(4);
const SECOND: Duration = Duration::from_secs(1);

/// Asks a service whose work takes so long for one request after the other.
fn ask(layer: &RedlockLayer<HeaderKey>, key: &str) -> Asking {
    let work = async |_: Request<Body>| {
        tokio::time::sleep(WORK).await;
        Ok::<_, Infallible>(Response::new(Body::empty()))
    };
    let response = layer.layer(service_fn(work)).oneshot(request(key));
    Box::pin(async { in_time(response).await.unwrap() })
}

async fn asking(layer: &RedlockLayer<HeaderKey>) -> Asking {
    let mut asking = ask(layer, KEY);
    assert!(poll!(asking.as_mut()).is_pending());
    asking
}

fn layer(redlock: &Redlock, waiters: usize) -> RedlockLayer<HeaderKey> {
    let builder = RedlockLayer::builder(redlock.clone())
        .options(AcquireOptions::new().wait(Wait::UpTo(60 * SECOND)));
    let builder = builder.options(AcquireOptions::new().max_waiters_per_key(waiters));
    builder.build(by_header()).unwrap()
}

/// After how long the client is told to come again.
fn after(refused: &Answer) -> Duration {
    let rejection = refused.extensions().get::<Rejection>().unwrap();
    let after = rejection.retry_after().unwrap();
    assert_eq!(rejection.clone().retry_after(), Some(after));
    let told = again_in(refused.headers());
    assert_eq!(told, after.as_secs_f64().ceil() as u64);
    after
}

#[track_caller]
fn assert_within(after: Duration, least: Duration, most: Duration) {
    assert!(after >= least && after <= most, "{after:?}");
}

#[tokio::test(start_paused = true)]
async fn a_client_is_told_to_come_again_when_all_who_are_ahead_are_likely_to_be_done() {
    let redlock = virtual_client(&Nodes::new()).await;
    let layer = layer(&redlock, 2);
    // No request has ended yet, so each of the three ahead counts half a second.
    let [holder, first, second] = [(); 3].map(|()| asking(&layer));
    let (holder, first, second) = (holder.await, first.await, second.await);
    assert_within(
        after(&ask(&layer, KEY).await),
        3 * SECOND / 2,
        5 * SECOND / 2,
    );
    join_all([holder, first, second]).await;

    // They have taken four seconds each, and three are ahead again.
    let [holder, first, second] = [(); 3].map(|()| asking(&layer));
    let (_holder, _first, _second) = (holder.await, first.await, second.await);
    assert_within(after(&ask(&layer, KEY).await), 3 * WORK, 3 * WORK * 3 / 2);
}

#[tokio::test(start_paused = true)]
async fn a_holder_elsewhere_counts_until_its_key_ends_at_most() {
    let nodes = Nodes::new();
    let [redlock, elsewhere] = [virtual_client(&nodes).await, virtual_client(&nodes).await];
    let layer = RedlockLayer::builder(redlock)
        .options(AcquireOptions::new().wait(Wait::Never))
        .build(by_header())
        .unwrap();
    assert_eq!(ask(&layer, "another").await.status(), 200);
    for (ttl, least) in [(10 * SECOND, WORK), (2 * SECOND, 2 * SECOND)] {
        let options = AcquireOptions::new().ttl(ttl).renewal(Renewal::Manual);
        let holder = elsewhere.acquire_with(format!("test:{KEY}"), options).await;
        let refused = ask(&layer, KEY).await;
        assert_eq!(refused.status(), 409);
        // The time to live of a key, and what nodes keep of it for their clocks.
        assert_within(
            after(&refused),
            least - SECOND / 10,
            least * 3 / 2 + SECOND / 10,
        );
        drop(holder);
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_is_told_no_more_than_a_minute_however_many_are_ahead() {
    let redlock = virtual_client(&Nodes::new()).await;
    let layer = layer(&redlock, 200);
    let mut ahead = Vec::new();
    for _ in 0..201 {
        ahead.push(asking(&layer).await);
    }
    assert_within(after(&ask(&layer, KEY).await), 60 * SECOND, 70 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn requests_that_are_refused_together_are_not_told_to_come_again_together() {
    let redlock = virtual_client(&Nodes::new()).await;
    let layer = layer(&redlock, 200);
    redlock.close().await;
    let refused = join_all((0..200).map(|_| ask(&layer, KEY))).await;
    let told: HashSet<Duration> = refused.iter().map(after).collect();
    assert!(told.len() > 100, "{told:?}");
    for after in &told {
        assert_within(*after, SECOND / 2, 3 * SECOND / 2);
    }
    let seconds: HashSet<u64> = refused
        .iter()
        .map(|answer| again_in(answer.headers()))
        .collect();
    assert_eq!(seconds, HashSet::from([1, 2]));
}
