//! P17: requests for one resource at several replicas, behind the layer.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use redlock_core::{AcquireOptions, ResourceKey, Wait};
use redlock_tower::RedlockLayer;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};
use tower_layer::Layer;
use tower_service::Service;

use super::{Bench, clients::start};
use crate::{
    contender::Spread,
    failed::{Failed, Result},
    report::{OURS, Table, number},
    statistics::Summary,
};

pub(super) fn p17(bench: &mut Bench) -> Result<()> {
    let count = bench.scale.requests;
    let title = format!(
        "{count} requests for one key, one in {} ms, holds of {} ms; {REPLICAS} replicas behind the layer, {NODES} nodes",
        APART.as_millis(),
        HOLD.as_millis()
    );
    bench.report.begin("P17", &title);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let served = runtime.block_on(serve(count))?;
    let figures = [
        ("p99 wait, × the ideal", late(&served)),
        (
            "farthest from the order of arrival, × all requests",
            out_of_order(&served),
        ),
    ];
    let mut table = Table::new(["", "ratio"]);
    for (metric, figure) in figures {
        let figure = vec![figure];
        table.add([metric.to_owned(), number(Summary::of(&figure).median)]);
        bench.report.add("P17", OURS, metric, "", &figure);
    }
    eprintln!("\n{}", table.text());
    Ok(())
}

/// Sends requests to the replicas at random; returns when each came and when it was served, in the order of arrival.
async fn serve(count: u32) -> Result<Vec<Served>> {
    let (_servers, clients) = start(NODES, REPLICAS).await?;
    // Patient enough for all of them.
    let options = AcquireOptions::new()
        .wait(Wait::UpTo(Duration::from_secs(600)))
        .max_waiters_per_key(usize::MAX);
    let handler = Handler::default();
    let mut replicas = Vec::new();
    let key = ResourceKey::new("order", 42)?;
    for client in clients {
        let key = key.clone();
        let key = move |_: &Request<Full<Bytes>>| Ok(Some(key.clone()));
        let layer = RedlockLayer::builder(client).options(options.clone());
        replicas.push(layer.build(key)?.layer(handler.clone()));
    }
    let began = Instant::now();
    let mut requests = JoinSet::new();
    for number in 0..count {
        // As a load balancer that knows nothing of keys.
        let random = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let mut replica = replicas[usize::try_from(random)? % REPLICAS].clone();
        requests.spawn(async move {
            sleep_until(began + APART * number).await;
            let mut request = Request::new(Full::default());
            request.extensions_mut().insert(Instant::now());
            let response = match replica.call(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            };
            let status = response.status();
            // The lock is held up to the end of the body.
            let ended = response.into_body().collect().await;
            if status.is_success() && ended.is_ok() {
                return Ok(());
            }
            Err(Failed(format!("a request was refused: {status}")))
        });
    }
    while let Some(request) = requests.join_next().await {
        request.map_err(|error| Failed(format!("{error}")))??;
    }
    let served = handler.served.lock();
    let mut served = served.unwrap_or_else(PoisonError::into_inner).clone();
    served.sort_unstable_by_key(|one| one.came);
    Ok(served)
}

/// A handler that takes its time, and notes when it begins.
#[derive(Clone, Default)]
struct Handler {
    served: Arc<Mutex<Vec<Served>>>,
}

impl Service<Request<Full<Bytes>>> for Handler {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Full<Bytes>>) -> Self::Future {
        let began = Instant::now();
        let came = request.extensions().get().copied().unwrap_or(began);
        let mut served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
        served.push(Served { came, began });
        Box::pin(async {
            sleep(HOLD).await;
            Ok(Response::new(Full::default()))
        })
    }
}

/// A request that was served.
#[derive(Clone, Copy, Debug)]
struct Served {
    came: Instant,
    began: Instant,
}

/// Divides the wait of the slowest of a hundred requests by what it would be with no time between two holds.
fn late(served: &[Served]) -> f64 {
    let mut free = None;
    let ideal = served.iter().map(|one| {
        let begins = free.unwrap_or(one.came).max(one.came);
        free = Some(begins + HOLD);
        begins - one.came
    });
    let ideal: Vec<_> = ideal.collect();
    let waits: Vec<_> = served.iter().map(|one| one.began - one.came).collect();
    Spread::of(waits).p99.as_secs_f64() / Spread::of(ideal).p99.as_secs_f64()
}

/// Finds the request that was served the most places before or after its own, as a share of all.
fn out_of_order(served: &[Served]) -> f64 {
    let mut order: Vec<usize> = (0..served.len()).collect();
    order.sort_unstable_by_key(|number| served[*number].began);
    let places = order.iter().enumerate();
    let farthest = places.map(|(place, number)| place.abs_diff(*number)).max();
    farthest.unwrap_or_default() as f64 / served.len() as f64
}

const NODES: usize = 3;
const REPLICAS: usize = 3;
const HOLD: Duration = Duration::from_millis(50);
/// Twice as many requests come as can be served.
const APART: Duration = Duration::from_millis(25);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_compared_with_those_that_are_served_in_order_and_at_once() {
        let start = Instant::now();
        let served = |began: &[u32]| {
            let numbers = 0_u32..;
            let all = numbers.zip(began).map(|(number, began)| Served {
                came: start + APART * number,
                began: start + APART * *began,
            });
            all.collect::<Vec<_>>()
        };
        let ideal = served(&[0, 2, 4, 6]);
        assert!((late(&ideal) - 1.0).abs() < 1e-9);
        assert!(out_of_order(&ideal).abs() < 1e-9);
        // The last one is served first, and the others one turn later.
        let unfair = served(&[5, 7, 9, 3]);
        assert!((late(&unfair) - 7.0 / 3.0).abs() < 1e-9);
        assert!((out_of_order(&unfair) - 0.75).abs() < 1e-9);
    }
}
