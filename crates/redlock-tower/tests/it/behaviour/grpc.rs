//! The layer around a server of gRPC, as one of its clients sees it.

use std::{pin::Pin, sync::Arc, time::Duration};

use futures_util::{Stream, StreamExt, stream};
use redlock_core::{AcquireOptions, Redlock, Wait};
use redlock_tower::{KeyExtractor, PathKey, RedlockLayer, RedlockLayerBuilder};
use tokio::{net::TcpListener, sync::Notify, task::JoinSet};
use tonic::{
    Code, Request, Response, Status, Streaming,
    transport::{Channel, Server, server::TcpIncoming},
};
use tonic_health::pb::{
    HealthCheckRequest, HealthCheckResponse,
    health_client::HealthClient,
    health_server::{Health, HealthServer},
};

use crate::behaviour::kit::{HEADER, KEY, Nodes, by_header, in_time};

/// Checks that end at once unless they are to be `stuck`, and watches that never end.
struct Patient {
    stuck: Arc<Notify>,
}

const STUCK: &str = "stuck";

fn serving() -> HealthCheckResponse {
    HealthCheckResponse { status: 1 }
}

#[tonic::async_trait]
impl Health for Patient {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        if request.get_ref().service == STUCK {
            self.stuck.notify_one();
            std::future::pending::<()>().await;
        }
        Ok(Response::new(serving()))
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn watch(
        &self,
        _: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let first = stream::iter([Ok(serving())]);
        Ok(Response::new(first.chain(stream::pending()).boxed()))
    }
}

/// A server behind a layer and a client of it; dropping it ends both.
struct Site {
    nodes: Nodes,
    redlock: Redlock,
    client: HealthClient<Channel>,
    /// Notified when a check is stuck.
    stuck: Arc<Notify>,
    _tasks: JoinSet<()>,
}

impl Site {
    async fn new() -> Self {
        let nodes = Nodes::new();
        let ttl = Duration::from_millis(500);
        let redlock = nodes.client().ttl(ttl).build().await.unwrap();
        Self::behind(nodes, redlock, |builder| {
            builder.build(by_header()).unwrap()
        })
        .await
    }

    async fn behind<K>(
        nodes: Nodes,
        redlock: Redlock,
        layer: impl FnOnce(RedlockLayerBuilder) -> RedlockLayer<K>,
    ) -> Self
    where
        K: KeyExtractor<http::Request<tonic::body::Body>>,
    {
        let builder =
            RedlockLayer::builder(redlock.clone()).options(AcquireOptions::new().wait(Wait::Never));
        let stuck = Arc::new(Notify::new());
        let service = HealthServer::new(Patient {
            stuck: Arc::clone(&stuck),
        });
        let mut server = Server::builder().layer(layer(builder));
        let router = server.add_service(service);
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let incoming = TcpIncoming::from(listener);
            router.serve_with_incoming(incoming).await.unwrap();
        });
        let channel = Channel::from_shared(format!("http://{address}")).unwrap();
        Self {
            nodes,
            redlock,
            client: HealthClient::new(channel.connect().await.unwrap()),
            stuck,
            _tasks: tasks,
        }
    }

    async fn check(&self, service: &str) -> Result<HealthCheckResponse, Status> {
        self.check_for(Some(KEY), service).await
    }

    async fn check_for(
        &self,
        key: Option<&str>,
        service: &str,
    ) -> Result<HealthCheckResponse, Status> {
        let request = asking(key, service);
        let response = in_time(self.client.clone().check(request)).await;
        response.map(Response::into_inner)
    }

    async fn watch(&self) -> Streaming<HealthCheckResponse> {
        let request = asking(Some(KEY), "");
        let response = in_time(self.client.clone().watch(request)).await;
        response.unwrap().into_inner()
    }
}

fn asking(key: Option<&str>, service: &str) -> Request<HealthCheckRequest> {
    let mut request = Request::new(HealthCheckRequest {
        service: service.to_owned(),
    });
    if let Some(key) = key {
        request.metadata_mut().insert(HEADER, key.parse().unwrap());
    }
    request
}

/// A failure with this `code`, which says when to come again if that makes sense.
#[track_caller]
fn assert_failed<T: std::fmt::Debug>(
    outcome: Result<T, Status>,
    code: Code,
    again_in: Option<u64>,
) {
    let status = outcome.unwrap_err();
    assert_eq!(status.code(), code, "{status:?}");
    let pushback = status.metadata().get("grpc-retry-pushback-ms");
    let pushback = pushback.map(|ms| ms.to_str().unwrap().parse::<u64>().unwrap());
    match again_in {
        // A part of it is random.
        Some(at_most) => assert!((500..=at_most).contains(&pushback.unwrap()), "{status:?}"),
        None => assert_eq!(pushback, None),
    }
    let all = format!("{status:?}");
    assert!(!status.message().is_empty());
    for secret in [KEY, "test:", "memory"] {
        assert!(!all.contains(secret), "{all}");
    }
}

#[tokio::test]
async fn a_call_that_gets_its_lock_is_served_and_releases() {
    let site = Site::new().await;
    assert_eq!(site.check("").await.unwrap(), serving());
    site.nodes.have_keys(0).await;
    let mut watch = site.watch().await;
    assert_eq!(in_time(watch.message()).await.unwrap(), Some(serving()));
    site.nodes.have_keys(1).await;
    assert_failed(site.check("").await, Code::Aborted, Some(1500));
    drop(watch);
    site.nodes.have_keys(0).await;
}

#[tokio::test]
async fn a_held_resource_is_aborted() {
    let site = Site::new().await;
    let _holder = site.redlock.acquire(format!("test:{KEY}")).await.unwrap();
    assert_failed(site.check("").await, Code::Aborted, Some(1500));
}

#[tokio::test]
async fn too_many_waiting_calls_are_resource_exhausted() {
    let nodes = Nodes::new();
    let redlock = nodes.client().build().await.unwrap();
    let full = |builder: RedlockLayerBuilder| {
        let waits = builder.options(AcquireOptions::new().wait(Wait::UpTo(Duration::from_secs(5))));
        waits
            .options(AcquireOptions::new().max_waiters_per_key(0))
            .build(by_header())
            .unwrap()
    };
    let site = Site::behind(nodes, redlock, full).await;
    let _holder = site.redlock.acquire(format!("test:{KEY}")).await.unwrap();
    assert_failed(site.check("").await, Code::ResourceExhausted, Some(1500));
}

#[tokio::test]
async fn no_quorum_and_a_closed_client_are_unavailable() {
    let site = Site::new().await;
    site.nodes.stop();
    assert_failed(site.check("").await, Code::Unavailable, Some(6000));
    site.redlock.close().await;
    assert_failed(site.check("").await, Code::Unavailable, Some(1500));
}

#[tokio::test]
async fn a_missing_or_an_invalid_key_is_an_invalid_argument() {
    let site = Site::new().await;
    assert_failed(site.check_for(None, "").await, Code::InvalidArgument, None);
    let long = KEY.repeat(100);
    let outcome = site.check_for(Some(&long), "").await;
    assert_failed(outcome, Code::InvalidArgument, None);
    site.nodes.have_keys(0).await;
}

#[tokio::test]
async fn a_layer_that_is_set_up_wrongly_is_internal() {
    let nodes = Nodes::new();
    let redlock = nodes.client().build().await.unwrap();
    let wrong = |builder: RedlockLayerBuilder| builder.build(PathKey::new("order", "id")).unwrap();
    let site = Site::behind(nodes, redlock, wrong).await;
    assert_failed(site.check("").await, Code::Internal, None);
}

#[tokio::test]
async fn a_lock_that_is_lost_before_the_answer_aborts() {
    let site = Site::new().await;
    let trouble = async {
        site.stuck.notified().await;
        site.nodes.drop_locks();
    };
    let (outcome, ()) = tokio::join!(site.check(STUCK), trouble);
    assert_failed(outcome, Code::Aborted, Some(1500));
    site.nodes.have_keys(0).await;
}

/// Its status is in the trailers, so that a client does not take a part for the whole.
#[tokio::test]
async fn a_lock_that_is_lost_within_a_stream_aborts_it() {
    let site = Site::new().await;
    let mut watch = site.watch().await;
    assert_eq!(in_time(watch.message()).await.unwrap(), Some(serving()));
    site.nodes.drop_locks();
    assert_failed(in_time(watch.message()).await, Code::Aborted, Some(1500));
    assert!(watch.trailers().await.unwrap().is_none());
    site.nodes.have_keys(0).await;
    // And the connection is still good.
    assert_eq!(site.check("").await.unwrap(), serving());
}
