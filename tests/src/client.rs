use std::time::Duration;

use redlock_core::{FanOut, NodeAnswer, NodeConfig, NodeReport, Redlock, RedlockBuilder};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use crate::now;

/// How a client reaches its nodes.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Connect {
    /// The nodes' URLs.
    pub nodes: Vec<String>,
    /// The time to live.
    pub ttl: Duration,
    /// The longest time to live, by which nodes know how long they must not vote after they forgot something.
    pub max_ttl: Duration,
    /// How long a node may take to answer, if that is not the default.
    pub node_timeout: Option<Duration>,
    /// Whether it vouches for the nodes, so that they vote at once.
    pub vouches: bool,
}

impl Connect {
    /// Connects to these nodes, which were started for this test, so that it can vouch for them.
    pub fn to(nodes: Vec<String>, ttl: Duration) -> Self {
        Self {
            nodes,
            ttl,
            max_ttl: LONGEST,
            node_timeout: None,
            vouches: true,
        }
    }

    /// As it was described, with other settings at their defaults.
    pub fn builder(&self) -> RedlockBuilder {
        let mut builder = builder(&self.nodes, self.ttl).max_ttl(self.max_ttl);
        if let Some(limit) = self.node_timeout {
            builder = builder.node_timeout(limit);
        }
        builder
    }

    /// A client that is connected to a majority of the nodes.
    ///
    /// # Panics
    ///
    /// If it cannot be built.
    pub async fn client(&self) -> Redlock {
        match self.builder().build().await {
            Ok(client) => {
                if self.vouches {
                    client.dangerous_bless().await;
                }
                client
            }
            Err(error) => panic!("the client could not be built: {error}"),
        }
    }
}

/// A client of these nodes, with their other settings left at their defaults.
pub fn builder<N: Into<NodeConfig>>(
    nodes: impl IntoIterator<Item = N>,
    ttl: Duration,
) -> RedlockBuilder {
    Redlock::builder().nodes(nodes).ttl(ttl).max_ttl(LONGEST)
}

/// A client that is connected to a majority of these nodes, which were started for this test: it vouches for
/// them.
///
/// # Panics
///
/// If it cannot be built.
pub async fn client<N: Into<NodeConfig>>(
    nodes: impl IntoIterator<Item = N>,
    ttl: Duration,
) -> Redlock {
    vouching(builder(nodes, ttl)).await
}

/// As [`client`], which asks all nodes at once, where a test counts what each was asked.
///
/// # Panics
///
/// If it cannot be built.
pub async fn wide_client<N: Into<NodeConfig>>(
    nodes: impl IntoIterator<Item = N>,
    ttl: Duration,
) -> Redlock {
    vouching(builder(nodes, ttl).fan_out(FanOut::All)).await
}

async fn vouching(builder: RedlockBuilder) -> Redlock {
    match builder.build().await {
        Ok(client) => {
            client.dangerous_bless().await;
            client
        }
        Err(error) => panic!("the client could not be built: {error}"),
    }
}

/// Waits until exactly `nodes` nodes vote.
///
/// # Panics
///
/// If another number of them votes after `limit`.
pub async fn voting(redlock: &Redlock, nodes: usize, limit: Duration) {
    let until = now() + limit;
    loop {
        let reports = redlock.node_reports().await;
        let votes = |report: &&NodeReport| report.answer == NodeAnswer::Reachable;
        if reports.iter().filter(votes).count() == nodes {
            return;
        }
        assert!(
            now() < until,
            "not {nodes} nodes vote within {limit:?}: {reports:#?}"
        );
        sleep(POLL).await;
    }
}

const POLL: Duration = Duration::from_millis(5);
const LONGEST: Duration = Duration::from_secs(60);
