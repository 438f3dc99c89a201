//! `cargo xtask bench tower`: what the layer adds to a request, against the lock by itself.

use std::{convert::Infallible, hint::black_box, time::Duration};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full};
use redlock_core::{Redlock, ResourceKey};
use redlock_sandbox::{ServerOptions, ServerSet};
use redlock_tower::{HeaderKey, RedlockLayer};
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

use super::table::Table;
use crate::{server, step::Failed};

/// Measures, prints the table, and fails if a goal is missed.
pub(super) fn run() -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failed(format!("bench: {error}")))?;
    let table = runtime.block_on(measure())?;
    eprintln!(
        "\na request on a free key over {NODES} local nodes; medians of {ROUNDS} rounds of {EXCHANGES}\n"
    );
    eprintln!("{}", table.text());
    table.verdict()
}

async fn measure() -> Result<Table, Failed> {
    let mut table = Table::new([
        ("an acquire, and its guard dropped", 0, None),
        ("an acquire, and its release awaited", 0, None),
        ("the handler by itself", 0, None),
        ("the handler behind the layer, without a key", 0, None),
        ("the handler behind the layer", 0, None),
        ("what the layer adds", 0, Some(1.1)),
    ]);
    let mut bench = Bench::start().await?;
    bench.round().await?;
    for _ in 0..ROUNDS {
        table.add(bench.round().await?);
    }
    Ok(table)
}

struct Bench {
    redlock: Redlock,
    /// How many keys there were; each is used once.
    used: u64,
    _servers: ServerSet,
}

impl Bench {
    async fn start() -> Result<Self, Failed> {
        let binary = server::ensure()?;
        let servers = ServerSet::start(&binary, NODES, &ServerOptions::default());
        let servers = servers.map_err(|error| Failed(format!("bench: {error}")))?;
        let redlock = Redlock::builder().nodes(servers.urls()).build().await;
        let redlock = redlock.map_err(|error| Failed(format!("bench: {error}")))?;
        // They were started for this, so they have forgotten nothing.
        redlock.dangerous_bless().await;
        Ok(Self {
            redlock,
            used: 0,
            _servers: servers,
        })
    }

    /// The microseconds of each row, one exchange of each in turn: what disturbs one disturbs all.
    async fn round(&mut self) -> Result<[f64; 6], Failed> {
        let mut handler = Handler;
        let mut unlocked =
            RedlockLayer::new(self.redlock.clone(), |_: &Request<Full<Bytes>>| Ok(None))
                .layer(Handler);
        let key = HeaderKey::new("order", HeaderName::from_static(HEADER));
        let mut locked = RedlockLayer::new(self.redlock.clone(), key).layer(Handler);
        let mut samples: [Vec<Duration>; 5] = Default::default();
        for _ in 0..EXCHANGES {
            let key = self.key()?;
            let start = Instant::now();
            let guard = self.redlock.acquire(key).await;
            drop(guard.map_err(|error| Failed(format!("bench: {error}")))?);
            samples[0].push(start.elapsed());

            let key = self.key()?;
            let start = Instant::now();
            let guard = self.redlock.acquire(key).await;
            let guard = guard.map_err(|error| Failed(format!("bench: {error}")))?;
            let released = guard.release().await;
            released.map_err(|error| Failed(format!("bench: {error}")))?;
            samples[1].push(start.elapsed());

            samples[2].push(exchange(&mut handler, self.next()).await?);
            samples[3].push(exchange(&mut unlocked, self.next()).await?);
            samples[4].push(exchange(&mut locked, self.next()).await?);
        }
        let [dropped, awaited, handler, unlocked, locked] = samples.map(median);
        Ok([
            dropped,
            awaited,
            handler,
            unlocked,
            locked,
            locked - handler,
        ])
    }

    fn key(&mut self) -> Result<ResourceKey, Failed> {
        let key = ResourceKey::new("order", self.next());
        key.map_err(|error| Failed(format!("bench: {error}")))
    }

    fn next(&mut self) -> u64 {
        self.used += 1;
        self.used
    }
}

/// How long one request takes, from its making to the last frame of its answer.
async fn exchange<S, B>(service: &mut S, key: u64) -> Result<Duration, Failed>
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>, Error = Infallible>,
    B: http_body::Body<Data = Bytes>,
{
    let start = Instant::now();
    let mut request = Request::new(Full::default());
    let key = HeaderValue::from(key);
    request.headers_mut().insert(HEADER, key);
    let response = match service.call(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    let status = response.status();
    // The body is dropped at its end, and with it the lock.
    let body = response.into_body().collect().await;
    let body = body.map_err(|_| Failed("bench: the body failed".to_owned()))?;
    let took = start.elapsed();
    if status.is_success() && body.to_bytes() == ANSWER {
        Ok(took)
    } else {
        Err(Failed(format!("bench: the request was refused: {status}")))
    }
}

/// A handler that does next to nothing.
#[derive(Clone)]
struct Handler;

impl Service<Request<Full<Bytes>>> for Handler {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Full<Bytes>>) -> Self::Future {
        black_box(request);
        std::future::ready(Ok(Response::new(Full::from(ANSWER))))
    }
}

fn median(mut samples: Vec<Duration>) -> f64 {
    samples.sort_unstable();
    samples[samples.len() / 2].as_secs_f64() * 1e6
}

const NODES: usize = 5;
const ROUNDS: usize = 21;
const EXCHANGES: usize = 101;
const HEADER: &str = "x-order";
const ANSWER: &str = "done";
