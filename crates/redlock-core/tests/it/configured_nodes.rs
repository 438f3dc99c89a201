//! Every way to name a node, on real servers; they fail without one.

use deadpool_redis::{
    Config, ConnectionAddr, ConnectionInfo, PoolConfig, RedisConnectionInfo, Runtime, Timeouts,
};
use redlock_core::{AcquireErrorKind, NodeAnswer, NodeConfig, NodeReport, Redlock};
use redlock_sandbox::{Server, ServerBinary, ServerOptions, ServerSet};

fn start(options: &ServerOptions, count: usize) -> ServerSet {
    let binary = ServerBinary::find().unwrap_or_else(|error| panic!("{error}"));
    ServerSet::start(&binary, count, options).expect("the servers start")
}

/// The nodes hold locks: taken by one client, refused to another.
async fn works(nodes: impl Fn() -> Vec<NodeConfig>) {
    let one = Redlock::builder()
        .nodes(nodes())
        .build()
        .await
        .expect("the nodes are up");
    let other = Redlock::builder()
        .nodes(nodes())
        .build()
        .await
        .expect("the nodes are up");
    one.dangerous_bless().await; // the servers are new
    let guard = one.try_acquire("key").await.expect("nobody holds it");
    let refused = other.try_acquire("key").await.expect_err("it is held");
    assert_eq!(refused.kind(), AcquireErrorKind::Contended);
    let holds = |report: &NodeReport| matches!(report.answer, NodeAnswer::Held { .. });
    assert!(refused.reports().iter().any(holds), "{refused}");
    for report in refused.reports() {
        // Those that the holder did not ask may grant it.
        let is_free = matches!(report.answer, NodeAnswer::Pending | NodeAnswer::Granted);
        assert!(is_free || holds(report), "{refused}");
    }
    guard.release().await.expect("a majority confirms");
    drop(other.try_acquire("key").await.expect("it is free"));
    one.close().await;
    other.close().await;
}

#[tokio::test]
async fn urls() {
    let servers = start(&ServerOptions::default(), 3);
    works(|| servers.urls().into_iter().map(NodeConfig::from).collect()).await;
}

#[tokio::test]
async fn deadpool_configurations() {
    let servers = start(&ServerOptions::default().password("hunter2"), 2);
    works(|| {
        let connection = ConnectionInfo {
            addr: ConnectionAddr::Tcp("127.0.0.1".to_owned(), servers[1].port()),
            redis: RedisConnectionInfo {
                password: Some("hunter2".to_owned()),
                ..RedisConnectionInfo::default()
            },
        };
        let by_url = Config::from_url(servers[0].url());
        vec![
            by_url.into(),
            Config::from_connection_info(connection).into(),
        ]
    })
    .await;
}

/// As services have it that set time limits for all their pools.
#[tokio::test]
async fn deadpool_configurations_with_time_limits() {
    let servers = start(&ServerOptions::default(), 3);
    works(|| {
        let node = |url: String| {
            let mut config = Config::from_url(url);
            let pool = config.pool.insert(PoolConfig::new(2));
            pool.timeouts = Timeouts::wait_millis(500);
            config.into()
        };
        servers.urls().into_iter().map(node).collect()
    })
    .await;
}

#[tokio::test]
async fn ready_pools() {
    let servers = start(&ServerOptions::default(), 3);
    let pool = |server: &Server| {
        let config = Config::from_url(server.url());
        config
            .create_pool(Some(Runtime::Tokio1))
            .expect("the configuration is valid")
    };
    works(|| {
        let named = NodeConfig::pool("cache-1", pool(&servers[0]));
        vec![named, pool(&servers[1]).into(), pool(&servers[2]).into()]
    })
    .await;
}

#[tokio::test]
async fn a_pool_is_called_by_its_name() {
    let mut servers = start(&ServerOptions::default(), 3);
    let mut nodes: Vec<NodeConfig> = servers.urls().into_iter().map(NodeConfig::from).collect();
    let config = Config::from_url(servers[2].url());
    let pool = config
        .create_pool(Some(Runtime::Tokio1))
        .expect("the configuration is valid");
    nodes[2] = NodeConfig::pool("cache-3", pool);
    let redlock = Redlock::builder()
        .nodes(nodes)
        .build()
        .await
        .expect("the nodes are up");
    // Of new nodes, the client could still report the quarantine.
    redlock.dangerous_bless().await;
    servers[1].kill().expect("it is ours");
    servers[2].kill().expect("it is ours");
    let error = redlock
        .try_acquire("key")
        .await
        .expect_err("two of three are down");
    assert_eq!(error.kind(), AcquireErrorKind::NoQuorum);
    assert!(error.to_string().contains("\n  cache-3: "), "{error}");
}

#[tokio::test]
async fn unix_sockets() {
    let folder = tempfile::tempdir().expect("there is room for a socket");
    let path = folder.path().join("redis.sock");
    let socket = path.to_str().expect("the path is text");
    let options = ServerOptions::default()
        .argument("--unixsocket")
        .argument(socket);
    let _servers = start(&options, 1);
    works(|| vec![format!("unix://{socket}").into()]).await;
}

#[tokio::test]
async fn databases_of_one_server_are_one_node() {
    let servers = start(&ServerOptions::default(), 1);
    works(|| vec![format!("{}/3", servers[0].url()).into()]).await;
    let url = servers[0].url();
    let twice = [format!("{url}/1"), format!("{url}/2")];
    let error = Redlock::builder()
        .nodes(twice)
        .build()
        .await
        .expect_err("one server, two votes");
    assert_eq!(error.field(), "nodes[1]");
}
