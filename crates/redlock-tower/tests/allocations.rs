//! What the layer costs a request in allocations.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::convert::Infallible;

use bytes::Bytes;
use http::{HeaderName, Request, Response};
use http_body_util::{BodyExt, Full};
use redlock_core::{Redlock, ResourceKey};
use redlock_tower::{HeaderKey, KeyExtractor, RedlockLayer};
use tower::{Layer, Service, service_fn};

type Req = Request<Full<Bytes>>;

/// The allocations of this thread in `work`; the client works on a thread of its own.
fn allocations<F: Future>(runtime: &tokio::runtime::Runtime, work: F) -> u64 {
    let work = std::pin::pin!(work);
    // Whatever a first poll of anything sets up is not counted: each measure comes after a warm-up.
    allocation_counter::measure(|| drop(runtime.block_on(work))).count_total
}

fn request() -> Req {
    let request = Request::get("/").header("x-account", "7");
    request.body(Full::default()).unwrap()
}

/// The median of what `work` allocates.
fn median(runtime: &tokio::runtime::Runtime, mut work: impl AsyncFnMut()) -> u64 {
    let mut counts: Vec<u64> = (0..101).map(|_| allocations(runtime, work())).collect();
    counts.sort_unstable();
    counts[counts.len() / 2]
}

/// The whole exchange with `service`.
async fn exchange<S, B>(service: &mut S)
where
    S: Service<Req, Response = Response<B>>,
    S::Error: std::fmt::Debug,
    B: http_body::Body,
    B::Error: std::fmt::Debug,
{
    std::future::poll_fn(|cx| service.poll_ready(cx))
        .await
        .unwrap();
    let response = service.call(request()).await.unwrap();
    response.into_body().collect().await.unwrap();
}

fn handler() -> impl Service<Req, Response = Response<Full<Bytes>>, Error = Infallible> + Clone {
    service_fn(async |_: Req| Ok(Response::new(Full::from("done"))))
}

fn around<K: KeyExtractor<Req>>(redlock: &Redlock, key: K) -> u64 {
    let runtime = runtime();
    let mut service = RedlockLayer::new(redlock.clone(), key).layer(handler());
    median(&runtime, async || exchange(&mut service).await)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

#[test]
fn the_layer_allocates_at_most_six_times_for_a_lock_and_never_without_one() {
    let runtime = runtime();
    let redlock = runtime
        .block_on(Redlock::builder().in_memory_nodes(3).build())
        .unwrap();
    let mut bare = handler();
    let bare = median(&runtime, async || exchange(&mut bare).await);
    let acquire = median(&runtime, async || {
        let key = ResourceKey::new("account", "7").unwrap();
        drop(redlock.acquire(key).await.unwrap());
    });
    let unlocked = around(&redlock, |_: &Req| Ok(None::<ResourceKey>));
    let header = HeaderKey::new("account", HeaderName::from_static("x-account"));
    let locked = around(&redlock, header);
    eprintln!("handler {bare}, acquire {acquire}, unlocked {unlocked}, locked {locked}");
    assert_eq!(unlocked, bare);
    let own = locked - bare - acquire;
    assert!(own <= 6, "{own} of {locked}");
}
