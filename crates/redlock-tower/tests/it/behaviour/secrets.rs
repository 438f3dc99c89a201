//! What a client may not find out, and what it may not make up.

use std::{
    convert::Infallible,
    error::Error,
    fmt::Write as _,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{Router, body::Body, extract::Path, routing::get};
use http::{Request, Response};
use http_body_util::BodyExt;
use redlock_core::{AcquireOptions, ResourceKey, ResourceKeys, Wait};
use redlock_tower::{
    GenericLayer, KeyError, LockKey, Locked, OwnedLease, RedlockLayer, RedlockLayerBuilder,
    Rejection, RejectionKind, RequestLease,
};
use tower::{Layer, ServiceExt, service_fn};
use tracing::Level;

use crate::behaviour::kit::{
    KEY, Nodes, by_header, in_time, let_others_run, request, virtual_client,
};

/// Whatever a client calls it, a header is not a lease.
#[tokio::test(start_paused = true)]
async fn no_header_of_a_request_becomes_a_lease_or_a_token() {
    let redlock = virtual_client(&Nodes::new()).await;
    let handler = async |lease: Option<RequestLease>| match lease {
        Some(lease) => lease.token().to_string(),
        None => "none".to_owned(),
    };
    let app: Router = Router::new()
        .route("/", get(handler))
        .layer(RedlockLayer::new(redlock, by_header().optional()));
    const MADE_UP: &str = "9223372036854775807";
    let ask = async |mut request: Request<Body>| {
        for name in [
            "lease",
            "x-lease",
            "token",
            "x-token",
            "fencing-token",
            "x-fencing-token",
            "redlock-token",
            "x-redlock-token",
            "lock-token",
            "if",
            "authorization",
        ] {
            request.headers_mut().insert(name, MADE_UP.parse().unwrap());
        }
        let response = app.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200);
        assert!(!response.headers().values().any(|value| value == MADE_UP));
        let body = response.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(body.to_vec()).unwrap()
    };
    assert_eq!(ask(Request::new(Body::empty())).await, "none");
    let token = ask(request(KEY)).await;
    assert_ne!(token, MADE_UP);
    let next = ask(request(KEY)).await;
    assert!(token.parse::<u64>().unwrap() < next.parse().unwrap());
}

/// What was logged.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

/// All that a program could log of `rejection`, and all that a client is told of it.
fn all_of(rejection: &Rejection) -> String {
    let mut all = format!("{rejection:?} {rejection:#?} {rejection} ");
    let mut source = rejection.source();
    while let Some(error) = source {
        write!(all, "{error:?} {error} ").unwrap();
        source = error.source();
    }
    write!(all, "{:?} {:?}", rejection.problem(), rejection.grpc()).unwrap();
    all
}

/// The refusal of a request behind `builder`, whose handler never answers.
async fn refusal(builder: RedlockLayerBuilder, request: Request<Body>) -> (RejectionKind, String) {
    let stuck =
        async |_: Request<Body>| std::future::pending::<Result<Response<Body>, Infallible>>().await;
    let layer = builder.build(by_header()).unwrap();
    let service = layer.layer(service_fn(stuck));
    let mut seen = format!("{layer:?} ");
    let response = Box::pin(service.oneshot(request));
    let response = in_time(response).await.unwrap();
    let rejection = response.extensions().get::<Rejection>().unwrap();
    let kind = rejection.kind();
    write!(seen, "{} {response:?}", all_of(rejection)).unwrap();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    write!(seen, "{body:?}").unwrap();
    (kind, seen)
}

#[tokio::test(start_paused = true)]
async fn a_key_is_in_no_log_above_trace_and_in_no_answer() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(Level::TRACE)
        .with_ansi(false)
        .without_time()
        .with_writer(move || writer.clone())
        .finish();
    // The driver of a client in virtual time is on this thread too.
    let _capture = tracing::subscriber::set_default(subscriber);

    let nodes = Nodes::new();
    let redlock = virtual_client(&nodes).await;
    let builder =
        || RedlockLayer::builder(redlock.clone()).options(AcquireOptions::new().wait(Wait::Never));
    let mut seen = Vec::new();
    let long = request(&KEY.repeat(100));
    seen.push(refusal(builder(), long).await);
    let lost = refusal(builder(), request(KEY));
    let trouble = async {
        nodes.have_keys(1).await;
        let_others_run().await;
        nodes.drop_locks();
    };
    seen.push(tokio::join!(lost, trouble).0);
    let short = builder().options(AcquireOptions::new().max_hold(Duration::from_millis(200)));
    seen.push(refusal(short, request(KEY)).await);
    let holder = redlock.acquire(format!("test:{KEY}")).await.unwrap();
    seen.push((
        RejectionKind::Contended,
        format!("{holder:?} {:?}", holder.lease()),
    ));
    seen.push(refusal(builder(), request(KEY)).await);
    let full = builder().options(AcquireOptions::new().wait(Wait::UpTo(Duration::from_secs(5))));
    seen.push(
        refusal(
            full.options(AcquireOptions::new().max_waiters_per_key(0)),
            request(KEY),
        )
        .await,
    );
    nodes.stop();
    assert_eq!(
        holder.lease().lost().await,
        redlock_core::LossReason::Expired
    );
    drop(holder);
    seen.push(refusal(builder(), request(KEY)).await);
    redlock.close().await;
    seen.push(refusal(builder(), request(KEY)).await);

    let kinds: Vec<_> = seen.iter().map(|(kind, _)| *kind).collect();
    use RejectionKind::{Closed, Contended, Key, Lost, Overloaded, Unavailable};
    let all = [
        Key,
        Lost,
        Lost,
        Contended,
        Contended,
        Overloaded,
        Unavailable,
        Closed,
    ];
    assert_eq!(kinds, all);
    for (kind, seen) in seen {
        assert!(!seen.contains(KEY), "{kind:?}: {seen}");
    }
    let log = log.text();
    for event in ["a lease was lost", "node is down"] {
        assert!(log.contains(event), "{log}");
    }
    // A refusal says why, and what each node had to do with it.
    let refused = |line: &&str| line.contains(TARGET) && line.contains("refused");
    let refusals: Vec<_> = log.lines().filter(refused).collect();
    assert_eq!(refusals.len(), all.len() - 1, "{refusals:#?}");
    assert!(
        refusals.iter().all(|line| line.starts_with("DEBUG")),
        "{refusals:#?}"
    );
    let unavailable = refusals.iter().find(|line| line.contains("Unavailable"));
    assert!(unavailable.unwrap().contains("memory:"), "{unavailable:?}");
    for line in log
        .lines()
        .filter(|line| !line.trim_start().starts_with("TRACE"))
    {
        assert!(!line.contains(KEY), "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_layer_that_is_set_up_wrongly_is_an_error_in_the_log() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .without_time()
        .with_writer(move || writer.clone())
        .finish();
    let _capture = tracing::subscriber::set_default(subscriber);
    let wrong = |_: &Request<Body>| -> Result<Option<ResourceKey>, KeyError> {
        Err(KeyError::misuse("there is no such parameter"))
    };
    let redlock = virtual_client(&Nodes::new()).await;
    let inner =
        service_fn(async |_: Request<Body>| Ok::<_, Infallible>(Response::new(Body::empty())));
    let service = RedlockLayer::new(redlock.clone(), wrong).layer(inner);
    assert_eq!(service.oneshot(request(KEY)).await.unwrap().status(), 500);
    let generic = GenericLayer::new(redlock.clone(), wrong).layer(inner);
    assert!(generic.oneshot(request(KEY)).await.is_err());
    let log = log.text();
    let origin = format!("client={} namespace=\"redlock\"", redlock.id());
    let lines = log
        .lines()
        .filter(|line| line.contains("ERROR redlock::http"));
    let lines: Vec<&str> = lines.collect();
    assert_eq!(lines.len(), 2, "{log}");
    for line in lines {
        assert!(line.contains("there is no such parameter"), "{line}");
        assert!(line.contains(&origin), "{line}");
    }
}

#[tokio::test]
async fn a_handler_without_a_layer_around_it_is_an_error_in_the_log() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .without_time()
        .with_writer(move || writer.clone())
        .finish();
    let _capture = tracing::subscriber::set_default(subscriber);
    let app: Router = Router::new()
        .route("/lease", get(async |_: RequestLease| "never"))
        .route("/owned", get(async |_: OwnedLease| "never"))
        .route("/locked/{id}", get(async |_: Locked<Path<Order>>| "never"))
        .route("/open", get(async |_: Option<RequestLease>| "served"));
    let ask = async |path: &str| {
        let request = Request::get(path).body(Body::empty()).unwrap();
        app.clone().oneshot(request).await.unwrap().status()
    };
    assert_eq!(ask("/open").await, 200);
    assert_eq!(log.text(), "", "it may do without a lease");
    for path in ["/lease", "/owned", "/locked/1"] {
        assert_eq!(ask(path).await, 500);
    }
    let log = log.text();
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), 3, "{log}");
    for line in lines {
        assert!(line.contains("ERROR redlock::http"), "{line}");
        assert!(
            line.contains("layer") && line.contains("around this route"),
            "{line}"
        );
    }
}

#[derive(Debug, serde::Deserialize)]
struct Order(u64);

impl LockKey for Order {
    fn lock_key(&self) -> Result<ResourceKeys, KeyError> {
        Ok(ResourceKey::new("order", self.0)?.into())
    }
}

const TARGET: &str = "redlock::http";
