//! What the tests share: nodes and clients, a key, a gauge of overlap, and a server with its client.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{Router, body::Body};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, Request, Response, StatusCode, Version, header};
use http_body_util::BodyExt;
use hyper::{
    body::Incoming,
    client::conn::{http1, http2},
    rt::Executor,
};
use hyper_util::rt::TokioIo;
use redlock_core::{AcquireErrorKind, MemoryNode, Redlock, RedlockBuilder, Wait};
use redlock_tower::{HeaderKey, Rejection, RejectionKind};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// The header that names the resource in most tests, and a resource.
pub(crate) const HEADER: &str = "x-key";
pub(crate) const KEY: &str = "secret-7";

pub(crate) fn by_header() -> HeaderKey {
    HeaderKey::new("test", HeaderName::from_static(HEADER))
}

pub(crate) fn request(key: &str) -> Request<Body> {
    Request::get("/")
        .header(HEADER, key)
        .body(Body::empty())
        .unwrap()
}

/// Three nodes in memory, and what can be seen of a lock on them.
pub(crate) struct Nodes(Vec<MemoryNode>);

impl Nodes {
    pub(crate) fn new() -> Self {
        Self((0..3).map(|_| MemoryNode::new()).collect())
    }

    pub(crate) fn client(&self) -> RedlockBuilder {
        Redlock::builder().nodes(self.each())
    }

    pub(crate) fn each(&self) -> impl Iterator<Item = MemoryNode> {
        self.0.iter().cloned()
    }

    pub(crate) fn forget(&self) {
        self.0.iter().for_each(MemoryNode::clear);
    }

    pub(crate) fn drop_locks(&self) {
        self.0.iter().for_each(MemoryNode::drop_locks);
    }

    pub(crate) fn stop(&self) {
        self.0.iter().for_each(MemoryNode::stop);
    }

    /// Waits until every node has exactly `keys` keys.
    pub(crate) async fn have_keys(&self, keys: usize) {
        eventually(|| self.0.iter().all(|node| node.keys() == keys)).await;
    }
}

/// A client on the test's own runtime and clock, for tests with paused time.
pub(crate) async fn virtual_client(nodes: &Nodes) -> Redlock {
    nodes.client().virtual_time().build().await.unwrap()
}

/// Whether a request for `key` would get the lock at once.
pub(crate) async fn is_free(redlock: &Redlock, key: &str) -> bool {
    match redlock.try_acquire(format!("test:{key}")).await {
        Ok(_) => true,
        Err(error) => match error.kind() {
            AcquireErrorKind::Contended | AcquireErrorKind::AlreadyHeld => false,
            _ => panic!("{error}"),
        },
    }
}

/// Waits until `condition` holds, by polling: a node in memory does not signal its changes.
pub(crate) async fn eventually(condition: impl Fn() -> bool) {
    in_time(async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

/// What `work` comes to, in a time that it cannot need: a test that fails must also end.
pub(crate) async fn in_time<F: Future>(work: F) -> F::Output {
    let limit = Duration::from_secs(20);
    let outcome = tokio::time::timeout(limit, work).await;
    outcome.expect("what a test waits for comes in time")
}

/// Lets every task that can run do so, a good many times.
pub(crate) async fn let_others_run() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// How many are inside at once, per key.
#[derive(Clone, Default)]
pub(crate) struct Gauge(Arc<Mutex<HashMap<String, Count>>>);

#[derive(Clone, Copy, Default)]
struct Count {
    inside: usize,
    peak: usize,
    total: usize,
}

impl Gauge {
    /// Counts as inside until the answer is dropped.
    pub(crate) fn enter(&self, key: &str) -> Inside {
        let mut counts = self.0.lock().unwrap();
        let count = counts.entry(key.to_owned()).or_default();
        count.inside += 1;
        count.total += 1;
        count.peak = count.peak.max(count.inside);
        Inside {
            gauge: self.clone(),
            key: key.to_owned(),
        }
    }

    pub(crate) fn peak(&self, key: &str) -> usize {
        self.0.lock().unwrap()[key].peak
    }

    pub(crate) fn total(&self, key: &str) -> usize {
        self.0.lock().unwrap()[key].total
    }
}

pub(crate) struct Inside {
    gauge: Gauge,
    key: String,
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.gauge
            .0
            .lock()
            .unwrap()
            .get_mut(&self.key)
            .unwrap()
            .inside -= 1;
    }
}

/// `axum::serve(listener, router)` on a real socket; dropping it ends it.
pub(crate) struct Server {
    address: SocketAddr,
    _tasks: JoinSet<()>,
}

impl Server {
    pub(crate) async fn start(app: Router) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self {
            address,
            _tasks: tasks,
        }
    }

    pub(crate) async fn connect(&self) -> Connection {
        let stream = self.raw().await;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        let mut tasks = JoinSet::new();
        // An error of the connection is also one of the request that is under way.
        tasks.spawn(async move { drop(connection.await) });
        Connection {
            sender,
            _tasks: tasks,
        }
    }

    /// A connection for what no client of HTTP would send.
    pub(crate) async fn raw(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    pub(crate) async fn connect_http2(&self) -> Http2 {
        let stream = TokioIo::new(self.raw().await);
        let tasks = Tasks::default();
        let connected = http2::handshake(tasks.clone(), stream).await;
        let (sender, connection) = connected.unwrap();
        tasks.execute(async move { drop(connection.await) });
        Http2 { sender, tasks }
    }

    /// The whole answer to `request`, on a connection of its own.
    pub(crate) async fn answer(&self, request: Request<Body>) -> Answer {
        self.answer_over(Version::HTTP_11, request).await
    }

    pub(crate) async fn answer_over(&self, http: Version, request: Request<Body>) -> Answer {
        in_time(async {
            Answer::of(match http {
                Version::HTTP_2 => self.connect_http2().await.send(request).await.unwrap(),
                _ => self.connect().await.send(request).await,
            })
            .await
        })
        .await
    }
}

/// A connection of an HTTP/1.1 client; dropping it disconnects.
pub(crate) struct Connection {
    sender: http1::SendRequest<Body>,
    _tasks: JoinSet<()>,
}

impl Connection {
    pub(crate) async fn send(&mut self, mut request: Request<Body>) -> Response<Incoming> {
        self.sender.ready().await.unwrap();
        request
            .headers_mut()
            .insert(header::HOST, "test".parse().unwrap());
        self.sender.send_request(request).await.unwrap()
    }
}

/// A connection of an HTTP/2 client; dropping it disconnects.
pub(crate) struct Http2 {
    sender: http2::SendRequest<Body>,
    tasks: Tasks,
}

impl Drop for Http2 {
    fn drop(&mut self) {
        // They have the set themselves, to start more.
        self.tasks.0.lock().unwrap().abort_all();
    }
}

/// The tasks of a connection.
#[derive(Clone, Default)]
struct Tasks(Arc<Mutex<JoinSet<()>>>);

impl<F: Future<Output: Send> + Send + 'static> Executor<F> for Tasks {
    fn execute(&self, task: F) {
        let task = async move { drop(task.await) };
        self.0.lock().unwrap().spawn(task);
    }
}

impl Http2 {
    /// A stream of its own for `request`; dropping the future, or the response's body, resets it.
    pub(crate) fn send(
        &self,
        mut request: Request<Body>,
    ) -> impl Future<Output = hyper::Result<Response<Incoming>>> + Unpin + use<> {
        let path = request.uri().path();
        *request.uri_mut() = format!("http://test{path}").parse().unwrap();
        Box::pin(self.sender.clone().send_request(request))
    }
}

/// A response as it came over the wire.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) async fn of(response: Response<Incoming>) -> Self {
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Self {
            status: head.status,
            headers: head.headers,
            body,
        }
    }
}

/// After how many seconds the answer with these headers tells its client to come again.
pub(crate) fn again_in(headers: &HeaderMap) -> u64 {
    headers["retry-after"].to_str().unwrap().parse().unwrap()
}

/// Answers with 423 if another request holds the resource, and otherwise as the layer does.
pub(crate) fn locked_as_423(rejection: &Rejection) -> Response<Bytes> {
    let mut response = rejection.problem();
    if rejection.kind() == RejectionKind::Contended {
        *response.status_mut() = StatusCode::LOCKED;
    }
    response
}

/// A wait that no test outlasts.
pub(crate) const LONG: Wait = Wait::UpTo(Duration::from_secs(60));

/// Has work go on in a task that outlives its request.
#[expect(
    clippy::disallowed_methods,
    reason = "what outlives its request is what is tested"
)]
pub(crate) fn detach<F>(work: F) -> tokio::task::JoinHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    tokio::spawn(work)
}
