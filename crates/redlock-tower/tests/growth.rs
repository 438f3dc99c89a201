//! Keys that requests name once leave nothing behind in the process.
//!
//! `REDLOCK_KEYS=1000000 cargo test --release -p redlock-tower --test growth -- --nocapture` takes a million.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{convert::Infallible, env, fs, ops::Range};

use bytes::Bytes;
use http::{HeaderName, Request, Response};
use http_body_util::{BodyExt, Full};
use redlock_core::Redlock;
use redlock_tower::{HeaderKey, RedlockLayer, RedlockService};
use tokio::task::JoinSet;
use tower::{Layer, Service, ServiceExt, service_fn};

/// With these, whatever grows to a bound of its own has grown.
const WARM: u64 = 20_000;
/// What is kept of a key is no less, as its name is no shorter.
const LEAST_LEAK: u64 = 32;
const TASKS: u64 = 64;

/// Makes one request for each key; the bodies of some are never read.
async fn request_once<S>(service: &RedlockService<S, HeaderKey>, keys: Range<u64>)
where
    S: Service<Request<()>, Response = Response<Full<Bytes>>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
{
    let mut running = JoinSet::new();
    for task in 0..TASKS {
        let (service, keys) = (service.clone(), keys.clone());
        running.spawn(async move {
            for key in keys.filter(|key| key % TASKS == task) {
                let request = Request::get("/").header(HEADER, key).body(()).unwrap();
                let response = service.clone().oneshot(request).await.unwrap();
                assert_eq!(response.status(), 200);
                if (key / TASKS).is_multiple_of(2) {
                    response.into_body().collect().await.unwrap();
                }
            }
        });
    }
    running.join_all().await;
}

/// The memory of this process, in bytes.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.unwrap().trim().trim_end_matches(" kB");
    kilobytes.parse::<u64>().unwrap() * 1_024
}

// One test, because memory is counted for the whole process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l09_keys_that_requests_name_once_leave_no_memory_behind() {
    let keys = env::var("REDLOCK_KEYS").map_or(40_000, |keys| keys.parse().unwrap());
    let redlock = Redlock::builder().in_memory_nodes(3).build().await.unwrap();
    let handler = service_fn(async |_: Request<()>| Ok(Response::new(Full::from("done"))));
    let key = HeaderKey::new("account", HeaderName::from_static(HEADER));
    let service = RedlockLayer::new(redlock, key).layer(handler);
    request_once(&service, 0..WARM).await;
    let mut grown = u64::MAX;
    // What is kept of a key is there each time; a busy machine's buffers are not.
    for round in 0..10 {
        let warm = resident();
        let first = WARM + round * keys;
        request_once(&service, first..first + keys).await;
        grown = resident().saturating_sub(warm);
        println!("{keys} keys: {grown} bytes more than {warm}");
        if grown < LEAST_LEAK * keys {
            return;
        }
    }
    panic!("{keys} keys leave {grown} bytes");
}

const HEADER: &str = "x-account";
