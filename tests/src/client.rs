use std::time::Duration;

use redlock_core::{NodeConfig, Redlock, RedlockBuilder};

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
    match builder(nodes, ttl).build().await {
        Ok(client) => {
            client.dangerous_bless().await;
            client
        }
        Err(error) => panic!("the client could not be built: {error}"),
    }
}

const LONGEST: Duration = Duration::from_secs(60);
