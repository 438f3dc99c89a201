//! The nodes, and the keys that a client has on them.

use super::RedlockBuilder;
use crate::{Config, Guarantee, MemoryNode, NodeConfig};

impl RedlockBuilder {
    /// Adds a node: a URL or a [`MemoryNode`]; with the feature `deadpool-redis`, also a `deadpool_redis::Config` or a
    /// ready `deadpool_redis::Pool`.
    ///
    /// A URL has one of these forms:
    ///
    /// * `redis://[user[:password]@]host[:port][/db]`;
    /// * the same with `rediss://`, for TLS, which needs the feature `tls-rustls`;
    /// * `unix:///path[?db=2&user=name&pass=password]`;
    /// * a URL of servers that [name the node's server](NodeConfig::follows_failovers).
    ///
    /// Each may have the parameter `protocol=resp3`.
    /// `build` refuses other parameters, fragments and paths, because redis-rs ignores them: `?db=2` would lock in
    /// database 0.
    /// TLS checks certificates against those of the platform, or against those in the file that `SSL_CERT_FILE` names.
    /// A client certificate needs a pool of your own (`NodeConfig::pool`, by the feature `deadpool-redis`).
    ///
    /// Each node must be an independent master: a vote from a replica, or two votes from one server, would
    /// allow two holders at once.
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_core::Redlock;
    ///
    /// let builder = Redlock::builder()
    ///     .node("redis://10.0.0.1")
    ///     .node("redis://:secret@10.0.0.2:6380/1")
    ///     .node("unix:///run/redis.sock");
    /// # drop(builder);
    /// ```
    pub fn node(mut self, node: impl Into<NodeConfig>) -> Self {
        self.config.nodes.push(node.into());
        self
    }

    /// Adds nodes; see [`node`](Self::node).
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_core::Redlock;
    ///
    /// let urls = "redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3";
    /// let builder = Redlock::builder().nodes(urls.split(','));
    /// # drop(builder);
    /// ```
    pub fn nodes<N: Into<NodeConfig>>(mut self, nodes: impl IntoIterator<Item = N>) -> Self {
        self.config.nodes.extend(nodes.into_iter().map(Into::into));
        self
    }

    /// Adds the only node, and trusts it to keep its data: for locks that save double work, on the one server that a service
    /// has.
    ///
    /// Use it where two holders at once are a nuisance and no harm.
    /// The server may have replicas, its name may lead to a promoted one, and it votes at once after a restart or a
    /// failover.
    /// If it has forgotten a lease by then, a second client may acquire it: for up to `max_ttl`, [`Lease::is_held`] is true
    /// for two clients, and the start of a tick may come twice.
    /// A master answers before its replicas have the write, so a failover may forget the leases of the last moments; a
    /// restart without persistence forgets all.
    /// Fencing tokens grow all the same, from the wall clock.
    /// All else is as with a majority: deadlines, renewal, cancellation, the local queue.
    ///
    /// All clients of a namespace must use it: the server remembers it, and refuses others.
    /// [`Lease::guarantee`](crate::Lease::guarantee) tells it of a lease.
    ///
    /// [`Lease::is_held`]: crate::Lease::is_held
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_core::Redlock;
    ///
    /// let builder = Redlock::builder().best_effort("redis://cache.internal");
    /// # drop(builder);
    /// ```
    pub fn best_effort(mut self, node: impl Into<NodeConfig>) -> Self {
        self.config.guarantee = Some(Guarantee::BestEffort);
        self.node(node)
    }

    /// Sets how many replicas of the [one server](Self::best_effort) must have a grant or an extension before it counts.
    ///
    /// Default: 0, which is none.
    /// A failover to one of these replicas forgets no lease.
    /// A failover to another replica may forget leases.
    /// Each acquire and each extension waits for the replicas in addition: about a round trip from the server to them.
    /// While fewer replicas have it within half of [`node_timeout`](Self::node_timeout), acquires and extensions fail.
    /// The client has a second connection to the server for it, and its user needs the right `+wait`.
    ///
    /// Without [`best_effort`](Self::best_effort), `build` fails.
    ///
    /// Source: <https://redis.io/docs/latest/commands/wait/>
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_core::Redlock;
    ///
    /// let builder = Redlock::builder().best_effort("redis://cache.internal").wait_for_replicas(1);
    /// # drop(builder);
    /// ```
    pub fn wait_for_replicas(mut self, count: u8) -> Self {
        self.config.wait_for_replicas = Some(count);
        self
    }

    /// Adds this many fresh nodes in memory, for tests and first runs.
    ///
    /// They exclude callers of this client only; to let several clients contend, share [`MemoryNode`]s between them.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::Redlock;
    ///
    /// let redlock = Redlock::builder().in_memory_nodes(5).build().await?;
    /// assert_eq!((redlock.nodes(), redlock.majority()), (5, 3));
    /// # Ok(())
    /// # }
    /// ```
    pub fn in_memory_nodes(self, nodes: usize) -> Self {
        self.nodes((0..nodes).map(|_| MemoryNode::new()))
    }

    /// Takes settings over from a configuration; a setting that it leaves out does not change, and its nodes are added.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::{Config, Redlock};
    /// use std::time::Duration;
    ///
    /// // What is in both is taken from the later one.
    /// let mut config = Config::default(); // or `Config::from_env()`, or `Config::from_file("redlock.toml")`
    /// (config.namespace, config.ttl) = (Some("billing".to_owned()), Some(Duration::from_secs(5)));
    /// let redlock = Redlock::builder()
    ///     .in_memory_nodes(3)
    ///     .config(config)
    ///     .ttl(Duration::from_secs(3))
    ///     .build()
    ///     .await?;
    /// assert_eq!(&*redlock.namespace(), "billing");
    /// assert_eq!(redlock.ttl(), Duration::from_secs(3));
    /// # Ok(())
    /// # }
    /// ```
    pub fn config(mut self, mut config: Config) -> Self {
        let mut nodes = std::mem::take(&mut self.config.nodes);
        nodes.append(&mut config.nodes);
        self.config = self.config.overridden_by(config);
        self.config.nodes = nodes;
        self
    }

    /// Sets the namespace of all keys: 1 to 32 letters, digits, `.`, `_` or `-`.
    ///
    /// Default: `redlock`.
    /// Clients of different namespaces do not exclude each other.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::{MemoryNode, Redlock};
    ///
    /// let nodes = [MemoryNode::new(), MemoryNode::new(), MemoryNode::new()];
    /// let billing = Redlock::builder().nodes(nodes.clone()).namespace("billing").build().await?;
    /// let staging = Redlock::builder().nodes(nodes).namespace("staging").build().await?;
    ///
    /// let guard = billing.acquire("report").await?;
    /// let other = staging.acquire("report").await?; // not the same lock
    /// # drop((guard, other));
    /// # Ok(())
    /// # }
    /// ```
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.config.namespace = Some(namespace.into());
        self
    }

    /// Sets the label by which other clients see this client as a holder: 1 to 64 printable characters of ASCII.
    ///
    /// Default: the host and the process, such as `web-7:4312`.
    /// Nodes keep the label behind the secret by which the holder releases a lease, together with the
    /// [class](crate::AcquireOptions::class) of the lease: `order@web-7:4312`.
    /// [`AcquireError::holder`](crate::AcquireError::holder) and the errors of other clients show it.
    /// The label is public, and no decision depends on it.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::{MemoryNode, Redlock, ResourceKey};
    ///
    /// let nodes = [MemoryNode::new(), MemoryNode::new(), MemoryNode::new()];
    /// let one = Redlock::builder().nodes(nodes.clone()).label("web-7").build().await?;
    /// let other = Redlock::builder().nodes(nodes).label("web-8").build().await?;
    ///
    /// let guard = one.acquire(ResourceKey::new("order", 42)?).await?;
    /// let refused = other.try_acquire("order:42").await.unwrap_err();
    /// let holder = refused.holder().ok_or("no label was told")?;
    /// assert_eq!(holder.as_str(), "order@web-7");
    /// # drop(guard);
    /// # Ok(())
    /// # }
    /// ```
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.config.label = Some(label.into());
        self
    }

    /// Does not wait for connections in [`build`](Self::build), and does not fail without a majority.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::{MemoryNode, Redlock};
    ///
    /// let nodes = [MemoryNode::new(), MemoryNode::new(), MemoryNode::new()];
    /// nodes.iter().for_each(MemoryNode::stop);
    /// assert!(Redlock::builder().nodes(nodes.clone()).build().await.is_err());
    ///
    /// let redlock = Redlock::builder().nodes(nodes).connect_lazily().build().await?;
    /// assert!(!redlock.is_ready().await);
    /// # Ok(())
    /// # }
    /// ```
    pub fn connect_lazily(mut self) -> Self {
        self.connect_lazily = true;
        self
    }
}
