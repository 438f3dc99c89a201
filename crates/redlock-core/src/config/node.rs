use std::{fmt, sync::Arc};

#[cfg(feature = "deadpool-redis")]
use deadpool_redis::{Pool, redis::ConnectionInfo};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor, value::MapAccessDeserializer},
};

#[cfg(feature = "deadpool-redis")]
use redlock_redis::NamingReport;
use redlock_redis::{Credentials, CredentialsProvider, Location, NamingUrl, RedisNodeError};

use crate::{MemoryNode, NodeKeys, node::Node};

/// One node: its address, or the node itself.
///
/// It is made `From` a URL or a [`MemoryNode`], and with the feature `deadpool-redis` from a `deadpool_redis::Config` or a
/// ready `deadpool_redis::Pool`.
/// `Debug` shows no credentials.
///
/// # Examples
///
/// ```
/// use redlock_core::NodeConfig;
///
/// let node = NodeConfig::from("redis://:secret@10.0.0.1");
/// assert_eq!(node.name().as_deref(), Some("10.0.0.1:6379"));
/// assert!(!format!("{node:?}").contains("secret"));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct NodeConfig(pub(crate) NodeSpec);

#[derive(Clone)]
pub(crate) enum NodeSpec {
    Redis {
        config: Box<deadpool_redis::Config>,
        credentials: Option<CredentialsProvider>,
    },
    #[cfg(feature = "deadpool-redis")]
    Pool {
        name: Option<Arc<str>>,
        pool: Pool,
    },
    Memory(MemoryNode),
    Other(Arc<dyn Node>),
}

impl NodeConfig {
    /// Makes a node of a ready pool; errors and logs call its server by `name`.
    ///
    /// The client takes one connection out of the pool for good, and another whenever that one breaks.
    /// A connection that the pool made before lives on the runtime that made it, so that runtime must outlive the
    /// client.
    /// The client makes its own connections on its thread.
    /// The pool's connections must have no `concurrency_limit`, because it would let requests overtake each other.
    /// A pool does not know its server's address, so the client does not notice two pools of one server.
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_core::{NodeConfig, Redlock, deadpool_redis};
    ///
    /// let pool = deadpool_redis::Config::from_url("redis://10.0.0.1").create_pool(None)?;
    /// let builder = Redlock::builder().node(NodeConfig::pool("10.0.0.1:6379", pool));
    /// # drop(builder);
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "deadpool-redis")]
    pub fn pool(name: impl Into<Arc<str>>, pool: Pool) -> Self {
        Self(NodeSpec::Pool {
            name: Some(name.into()),
            pool,
        })
    }

    /// Makes a node at this URL, whose user and password a provider gives before each connection.
    ///
    /// It is meant for passwords that expire, such as those of a cloud's identity service.
    /// With a URL of Sentinels or of a Cluster, it is asked before each connection to the master, and to a node of the
    /// Cluster.
    /// The URL must have neither a user nor a password.
    /// Most servers go on with a connection whose password has expired.
    /// Where a server ends it, the client connects again with another.
    ///
    /// The provider runs on the client's thread, within a tokio runtime, and must not block it.
    /// It has a part of [`connect_timeout`](crate::RedlockBuilder::connect_timeout), of one second by default, so a
    /// provider that asks a service should remember the answer while it is valid.
    /// While it fails, the node is asked nothing, and the client asks it again as it tries to connect again.
    /// Its error is part of reports and log lines, so it must not repeat a password.
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_core::{Credentials, NodeConfig, Redlock};
    ///
    /// let node = NodeConfig::with_credentials("rediss://cache.internal:6379", || async {
    ///     let password = tokio::fs::read_to_string("/run/secrets/cache").await?;
    ///     Ok::<_, std::io::Error>(Credentials::new("orders", password.trim_end()))
    /// });
    /// let builder = Redlock::builder().best_effort(node);
    /// # drop(builder);
    /// ```
    pub fn with_credentials<F, R, E>(url: impl Into<String>, provider: F) -> Self
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<Credentials, E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let config = deadpool_redis::Config::from_url(url);
        Self::at(config, Some(CredentialsProvider::new(provider)))
    }

    fn at(config: deadpool_redis::Config, credentials: Option<CredentialsProvider>) -> Self {
        Self(NodeSpec::Redis {
            config: Box::new(config),
            credentials,
        })
    }

    /// Reads a list of URLs with commas between them, as `REDLOCK_NODES` has it.
    ///
    /// The Sentinels of one URL have commas between them, too, and so have the nodes of a Cluster.
    /// A malformed URL is reported by [`build`](crate::RedlockBuilder::build).
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_core::NodeConfig;
    ///
    /// let nodes = NodeConfig::list("redis://10.0.0.1, redis+sentinel://s1,s2,s3/orders");
    /// let names: Vec<_> = nodes.iter().filter_map(|node| node.name()).collect();
    /// assert_eq!(names.join(" "), "10.0.0.1:6379 orders@s1:26379");
    /// ```
    pub fn list(urls: &str) -> Vec<Self> {
        urls_of(urls).into_iter().map(Self::from).collect()
    }

    /// Finds the server that has the keys of `namespace` on this node now, and returns how to connect to it, for tools that
    /// send it other commands than a client does.
    ///
    /// Where Sentinels or a Cluster name the server, it asks them, for half of `limit` at most; otherwise it asks no server.
    /// The settings contain the password, which their `Debug` does not show.
    ///
    /// # Errors
    ///
    /// The reason, in words for an operator and without credentials: the URL is malformed, no majority names a server,
    /// or the node is a pool or no Redis server.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives the question up.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::NodeConfig;
    /// use std::time::Duration;
    ///
    /// let node = NodeConfig::from("redis://:secret@10.0.0.1/1");
    /// let server = node.locate("billing", Duration::from_secs(1)).await?;
    /// assert_eq!(server.redis_settings().db(), 1);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "deadpool-redis")]
    pub async fn locate(
        &self,
        namespace: &str,
        limit: std::time::Duration,
    ) -> Result<ConnectionInfo, String> {
        match self.location() {
            Some(Ok(location)) => {
                let located = location.locate(self.credentials(), namespace, limit).await;
                located.map_err(|why| why.to_string())
            }
            Some(Err(refused)) => Err(refused.to_string()),
            None => Err("only the client knows how to connect to it".into()),
        }
    }

    /// Asks all Sentinels of the URL, or all nodes of the Cluster, what they say of the node's server now, for tools that
    /// show it; `None` if no others name it.
    ///
    /// It takes half of `limit` at most.
    ///
    /// # Errors
    ///
    /// The reason, as for [`locate`](Self::locate); a server that does not answer is no error.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives the question up.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::NodeConfig;
    /// use std::time::Duration;
    ///
    /// let second = Duration::from_secs(1);
    /// let node = NodeConfig::from("redis+sentinel://127.0.0.1:1/orders");
    /// let naming = node.naming("billing", second).await?.ok_or("Sentinels name it")?;
    /// assert!(naming.majority.is_none() && naming.informants[0].answer.is_err());
    /// assert_eq!(NodeConfig::from("redis://10.0.0.1").naming("billing", second).await?, None);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "deadpool-redis")]
    pub async fn naming(
        &self,
        namespace: &str,
        limit: std::time::Duration,
    ) -> Result<Option<NamingReport>, String> {
        match self.location() {
            Some(Ok(location)) => {
                let naming = location.naming(self.credentials(), namespace, limit).await;
                naming.map_err(|why| why.to_string())
            }
            Some(Err(refused)) => Err(refused.to_string()),
            None => Ok(None),
        }
    }

    #[cfg(feature = "deadpool-redis")]
    fn credentials(&self) -> Option<&CredentialsProvider> {
        match &self.0 {
            NodeSpec::Redis { credentials, .. } => credentials.as_ref(),
            _ => None,
        }
    }

    fn location(&self) -> Option<Result<Location, RedisNodeError>> {
        match &self.0 {
            NodeSpec::Redis {
                config,
                credentials,
            } => Some(Location::of(config, credentials.as_ref())),
            _ => None,
        }
    }

    /// Returns whether others name the node's server, and another one after a failover: Sentinels, as with a URL like
    /// `redis+sentinel://user:password@s1:26379,s2:26379,s3:26379/orders/0`, or the nodes of a Cluster, as with
    /// `redis+cluster://user:password@c1:6379,c2:6379`, with several [votes](Self::votes) or one.
    ///
    /// The client asks them before each connection and once a second, and counts on the server that a majority of them
    /// names.
    /// In a Cluster, that is the owner of the slot of the vote, and masters and replicas are asked alike.
    /// If no majority answers for five seconds, the node does not vote.
    /// A server that takes another's place does not vote for `max_ttl` and a little more, and five seconds longer.
    /// All clients of a namespace must reach such a node in this way.
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_core::NodeConfig;
    ///
    /// assert!(NodeConfig::from("redis+sentinel://s1,s2,s3/orders").follows_failovers());
    /// assert!(NodeConfig::from("redis+cluster://c1,c2").follows_failovers());
    /// assert!(!NodeConfig::from("redis://10.0.0.1").follows_failovers());
    /// ```
    pub fn follows_failovers(&self) -> bool {
        matches!(self.location(), Some(Ok(Location::Named(_))))
    }

    pub(crate) const fn is_in_memory(&self) -> bool {
        matches!(self.0, NodeSpec::Memory(_))
    }

    /// Returns the nodes that a URL of a Cluster with several votes means, such as `redis+cluster://c1,c2?votes=3`; for
    /// any other node, only that.
    ///
    /// Each vote has its keys in a slot of its own, on another master where the masters have as many slots each in their
    /// order.
    /// All clients of a namespace must give the same number, an odd one from 3 to 9; a Cluster needs as many masters.
    /// The builder takes such a URL as it is; this is for tools that ask each node.
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_core::NodeConfig;
    ///
    /// let votes = NodeConfig::from("redis+cluster://c1,c2?votes=3").votes();
    /// let names: Vec<_> = votes.iter().filter_map(|node| node.name()).collect();
    /// assert_eq!(names.join(" "), "1of3@c1:6379 2of3@c1:6379 3of3@c1:6379");
    /// ```
    pub fn votes(&self) -> Vec<Self> {
        let NodeSpec::Redis {
            config,
            credentials,
        } = &self.0
        else {
            return vec![self.clone()];
        };
        let url = config
            .url
            .as_deref()
            .filter(|_| config.connection.is_none());
        match url.and_then(NamingUrl::urls_of_votes) {
            Some(urls) => {
                let of = |url| Self::at(deadpool_redis::Config::from_url(url), credentials.clone());
                urls.into_iter().map(of).collect()
            }
            None => vec![self.clone()],
        }
    }

    /// Returns the names of resources on this node, which are others than a client's usual ones if it is
    /// [one vote of a Cluster](Self::votes).
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_core::{NodeConfig, Redlock};
    ///
    /// let keys = Redlock::builder().namespace("billing").node_keys()?;
    /// let second = &NodeConfig::from("redis+cluster://c1?votes=3").votes()[1];
    /// assert!(second.node_keys(&keys).pattern().starts_with("{billing:2of3:"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn node_keys(&self, keys: &NodeKeys) -> NodeKeys {
        let vote = match self.location() {
            Some(Ok(Location::Named(url))) => url.vote(),
            _ => None,
        };
        vote.map_or_else(|| keys.clone(), |vote| keys.of_vote(vote))
    }

    /// Returns what is wrong with an address.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self.location() {
            Some(Err(refused)) => Err(refused.to_string()),
            _ => Ok(()),
        }
    }

    /// Returns the name of the node in errors and reports: its address, without credentials.
    ///
    /// It returns `None` for a pool without a name, and if the URL is malformed.
    pub fn name(&self) -> Option<Arc<str>> {
        match &self.0 {
            NodeSpec::Redis { .. } => Some(self.location()?.ok()?.to_string().into()),
            #[cfg(feature = "deadpool-redis")]
            NodeSpec::Pool { name, .. } => name.clone(),
            NodeSpec::Memory(node) => Some(node.name()),
            NodeSpec::Other(node) => Some(node.name()),
        }
    }

    /// Takes a node of your own.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::{
    ///     NodeConfig, Redlock,
    ///     node::{MemoryNode, Node, Session},
    /// };
    /// use std::{future::Future, pin::Pin, sync::Arc};
    ///
    /// /// A node that takes its time to be connected to.
    /// #[derive(Debug)]
    /// struct Slow(MemoryNode);
    ///
    /// impl Node for Slow {
    ///     fn name(&self) -> Arc<str> {
    ///         self.0.name()
    ///     }
    ///
    ///     fn connect(
    ///         &self,
    ///     ) -> Pin<Box<dyn Future<Output = Result<Box<dyn Session>, Arc<str>>> + Send>> {
    ///         let connecting = self.0.connect();
    ///         Box::pin(async {
    ///             tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    ///             connecting.await
    ///         })
    ///     }
    /// }
    ///
    /// let nodes = (0..3).map(|_| NodeConfig::other(Slow(MemoryNode::new())));
    /// let redlock = Redlock::builder().nodes(nodes).build().await?;
    /// assert!(redlock.is_ready().await);
    /// # Ok(())
    /// # }
    /// ```
    pub fn other(node: impl Node) -> Self {
        Self(NodeSpec::Other(Arc::new(node)))
    }
}

/// Splits a list of URLs at its commas; some URLs have commas between their hosts, too.
fn urls_of(list: &str) -> Vec<String> {
    let mut urls: Vec<String> = Vec::new();
    let parts = list.split(',').map(str::trim);
    for part in parts.filter(|part| !part.is_empty()) {
        match urls.last_mut() {
            Some(last) if NamingUrl::has_open_list(last) && !part.contains("://") => {
                last.push(',');
                last.push_str(part);
            }
            _ => urls.push(part.to_owned()),
        }
    }
    urls
}

impl From<&str> for NodeConfig {
    fn from(url: &str) -> Self {
        url.to_owned().into()
    }
}

impl From<String> for NodeConfig {
    fn from(url: String) -> Self {
        Self::at(deadpool_redis::Config::from_url(url), None)
    }
}

impl From<&String> for NodeConfig {
    fn from(url: &String) -> Self {
        url.as_str().into()
    }
}

#[cfg(feature = "deadpool-redis")]
impl From<deadpool_redis::Config> for NodeConfig {
    fn from(config: deadpool_redis::Config) -> Self {
        Self::at(config, None)
    }
}

#[cfg(feature = "deadpool-redis")]
impl From<Pool> for NodeConfig {
    fn from(pool: Pool) -> Self {
        Self(NodeSpec::Pool { name: None, pool })
    }
}

impl From<MemoryNode> for NodeConfig {
    fn from(node: MemoryNode) -> Self {
        Self(NodeSpec::Memory(node))
    }
}

impl fmt::Debug for NodeConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            NodeSpec::Redis { .. } => "NodeConfig(redis, ..)",
            #[cfg(feature = "deadpool-redis")]
            NodeSpec::Pool { .. } => "NodeConfig(pool, ..)",
            NodeSpec::Memory(_) => "NodeConfig(memory)",
            NodeSpec::Other(_) => "NodeConfig(other)",
        })
    }
}

impl<'de> Deserialize<'de> for NodeConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct UrlOrTable;

        /// A configuration of deadpool-redis, of which no field is passed over: it may be a password.
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Table {
            url: Option<String>,
            connection: Option<deadpool_redis::ConnectionInfo>,
            pool: Option<deadpool_redis::PoolConfig>,
        }

        impl<'de> Visitor<'de> for UrlOrTable {
            type Value = NodeConfig;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a URL such as redis://host:6379, or a table with a url or a connection",
                )
            }

            fn visit_str<E: Error>(self, url: &str) -> Result<NodeConfig, E> {
                Ok(url.into())
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<NodeConfig, A::Error> {
                let Table {
                    url,
                    connection,
                    pool,
                } = Table::deserialize(MapAccessDeserializer::new(map))?;
                let config = deadpool_redis::Config {
                    url,
                    connection,
                    pool,
                };
                Ok(NodeConfig::at(config, None))
            }
        }

        deserializer.deserialize_any(UrlOrTable)
    }
}
