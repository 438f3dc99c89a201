//! P10: what the layer adds to a request, against the lock by itself.

use std::{convert::Infallible, hint::black_box, time::Duration};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full};
use redlock_core::{Redlock, ResourceKey};
use redlock_sandbox::{ServerBinary, ServerOptions, ServerSet};
use redlock_tower::{HeaderKey, RedlockLayer};
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

use super::{Bench, each};
use crate::failed::{Failed, Result};

pub(super) fn p10(bench: &mut Bench) -> Result<()> {
    let rounds = bench.scale.rounds.min(MOST_ROUNDS);
    let title =
        format!("a request on a free key, {NODES} nodes; {rounds} rounds of {EXCHANGES} requests");
    bench.report.begin("P10", &title);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let rounds = runtime.block_on(measure(rounds))?;
    let rows = [
        ("an acquire, and its guard dropped", 0),
        ("an acquire, and its release awaited", 0),
        ("the handler by itself", 0),
        ("the handler behind the layer, without a key", 0),
        ("the handler behind the layer", 0),
        ("what the layer adds", 0),
    ];
    each(&mut bench.report, "P10", rows, &rounds);
    Ok(())
}

async fn measure(rounds: usize) -> Result<Vec<[f64; 6]>> {
    let mut tower = Tower::start().await?;
    tower.round().await?;
    let mut figures = Vec::new();
    for _ in 0..rounds {
        figures.push(tower.round().await?);
    }
    Ok(figures)
}

struct Tower {
    redlock: Redlock,
    /// How many keys there were; each is used once.
    used: u64,
    _servers: ServerSet,
}

impl Tower {
    async fn start() -> Result<Self> {
        let binary = ServerBinary::find()?;
        let servers = ServerSet::start(&binary, NODES, &ServerOptions::default());
        let servers = servers?;
        let redlock = Redlock::builder().nodes(servers.urls()).build().await;
        let redlock = redlock?;
        // They were started for this, so they have forgotten nothing.
        redlock.dangerous_bless().await;
        Ok(Self {
            redlock,
            used: 0,
            _servers: servers,
        })
    }

    /// Measures the microseconds of each line, one exchange of each in turn: what disturbs one disturbs all.
    async fn round(&mut self) -> Result<[f64; 6]> {
        let mut handler = Handler;
        let mut unlocked = RedlockLayer::new(self.redlock.clone(), |_: &Request<Full<Bytes>>| {
            Ok(None::<ResourceKey>)
        })
        .layer(Handler);
        let key = HeaderKey::new("order", HeaderName::from_static(HEADER));
        let mut locked = RedlockLayer::new(self.redlock.clone(), key).layer(Handler);
        let mut samples: [Vec<Duration>; 5] = Default::default();
        for _ in 0..EXCHANGES {
            // Nodes finish a release in the background, so the same pair comes before both lines that are compared.
            self.pair().await?;
            let key = self.key()?;
            let start = Instant::now();
            let guard = self.redlock.acquire(key).await;
            drop(guard?);
            samples[0].push(start.elapsed());

            samples[1].push(self.pair().await?);
            samples[2].push(exchange(&mut handler, self.next()).await?);
            samples[3].push(exchange(&mut unlocked, self.next()).await?);

            self.pair().await?;
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

    /// Measures how long an acquire takes, and its release, which is awaited.
    async fn pair(&mut self) -> Result<Duration> {
        let key = self.key()?;
        let start = Instant::now();
        let guard = self.redlock.acquire(key).await?;
        guard.release().await?;
        Ok(start.elapsed())
    }

    fn key(&mut self) -> Result<ResourceKey> {
        let key = ResourceKey::new("order", self.next());
        key.map_err(|error| Failed(format!("{error}")))
    }

    fn next(&mut self) -> u64 {
        self.used += 1;
        self.used
    }
}

/// Measures how long one request takes, from its making to the last frame of its answer.
async fn exchange<S, B>(service: &mut S, key: u64) -> Result<Duration>
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
    let body = body.map_err(|_| Failed("the body failed".to_owned()))?;
    let took = start.elapsed();
    if status.is_success() && body.to_bytes() == ANSWER {
        Ok(took)
    } else {
        Err(Failed(format!("the request was refused: {status}")))
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
const MOST_ROUNDS: usize = 21;
const EXCHANGES: usize = 101;
const HEADER: &str = "x-order";
const ANSWER: &str = "done";
