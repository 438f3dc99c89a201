//! Time limits, clocks, and the number of waiting callers.

use std::time::Duration;

use super::RedlockBuilder;
use crate::Wait;

impl RedlockBuilder {
    /// Sets how long nodes keep a key without a renewal, unless an acquire asks for another time to live: from
    /// 100 ms to `max_ttl`.
    ///
    /// Default: 10 s.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::Redlock;
    /// use std::time::Duration;
    ///
    /// // Others wait for 3 s at most where a holder crashed.
    /// let ttl = Duration::from_secs(3);
    /// let redlock = Redlock::builder().in_memory_nodes(3).ttl(ttl).build().await?;
    /// assert!(redlock.acquire("report").await?.remaining() < ttl);
    /// # Ok(())
    /// # }
    /// ```
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.config.ttl = Some(ttl);
        self
    }

    /// Sets the longest time to live that an acquire may ask for, up to 24 hours.
    ///
    /// Default: 30 s.
    /// The `ttl` must not be longer: with less than 10 s here, set [`ttl`](Self::ttl) too.
    /// A node that restarts without its data must not vote for longer than this, so all clients of a
    /// set of nodes must use the same value.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::{AcquireErrorKind, AcquireOptions, Redlock};
    /// use std::time::Duration;
    ///
    /// let redlock = Redlock::builder()
    ///     .in_memory_nodes(3)
    ///     .max_ttl(Duration::from_secs(15))
    ///     .build()
    ///     .await?;
    /// let too_long = AcquireOptions::new().ttl(Duration::from_secs(16));
    /// let refused = redlock.acquire_with("report", too_long).await.unwrap_err();
    /// assert_eq!(refused.kind(), AcquireErrorKind::Misuse);
    /// # Ok(())
    /// # }
    /// ```
    pub fn max_ttl(mut self, max_ttl: Duration) -> Self {
        self.config.max_ttl = Some(max_ttl);
        self
    }

    /// Sets how long an acquire waits for a resource that another caller holds, unless it asks for another wait.
    ///
    /// Default: up to 5 s.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::{AcquireErrorKind, Redlock, Wait};
    ///
    /// let redlock = Redlock::builder().in_memory_nodes(3).wait(Wait::Never).build().await?;
    /// let guard = redlock.acquire("report").await?;
    /// let refused = redlock.acquire("report").await.unwrap_err(); // at once
    /// assert_eq!(refused.kind(), AcquireErrorKind::Contended);
    /// # drop(guard);
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait(mut self, wait: Wait) -> Self {
        self.config.wait = Some(wait.duration());
        self
    }

    /// Sets how long an outage of the nodes may last before acquires fail because of it: any time, zero included.
    ///
    /// Default: 2 s, so that no acquire fails because of a proxy or a node that is back within a second.
    /// The [`wait`](Self::wait) is for another holder; it does not help when too few nodes give a usable answer.
    /// The client counts the time from the moment at which it saw the majority go, and not from each acquire.
    /// So during an outage that has lasted longer, every acquire fails with its first attempt.
    /// While the client makes its first connections, for [`connect_timeout`](Self::connect_timeout) at most, no outage has
    /// begun.
    /// If a majority is missing only because nodes are in quarantine, an acquire waits until they vote.
    /// It fails with its first attempt if they have said that they need longer than the rest of its wait.
    /// An acquire never waits longer than its own wait.
    /// A [claim](crate::Redlock::claim) of a tick waits for a majority for as long as its own wait.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::{AcquireErrorKind, MemoryNode, Redlock};
    /// use std::time::Duration;
    ///
    /// let nodes = [MemoryNode::new(), MemoryNode::new(), MemoryNode::new()];
    /// let redlock = Redlock::builder()
    ///     .nodes(nodes.clone())
    ///     .quorum_wait(Duration::ZERO)
    ///     .build()
    ///     .await?;
    /// nodes[0].stop();
    /// nodes[1].stop();
    /// let failed = redlock.acquire("report").await.unwrap_err(); // at once
    /// assert_eq!(failed.kind(), AcquireErrorKind::NoQuorum);
    /// # Ok(())
    /// # }
    /// ```
    pub fn quorum_wait(mut self, quorum_wait: Duration) -> Self {
        self.config.quorum_wait = Some(quorum_wait);
        self
    }

    /// Sets how long a node that owes an answer may stay silent before the client stops waiting for it: from 1 ms
    /// to 60 s.
    ///
    /// The time starts when a request was written to the connection, and starts again with each answer of the node.
    /// Requests that wait in this process, because it has more to do than it can, use up the caller's wait instead.
    /// If that ends first, the acquire fails as its last attempt did, or as
    /// [`Overloaded`](crate::AcquireErrorKind::Overloaded) if none has failed yet.
    /// Default: a tenth of `ttl`, between 50 ms and 500 ms.
    /// It is never longer than half the time to live that an acquire asks for.
    /// The client waits only for a majority, so this limit matters when a majority is slow.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::Redlock;
    /// use std::time::Duration;
    ///
    /// // The nodes are 40 ms away, so a round trip takes 80 ms, and more at times.
    /// let limit = Duration::from_millis(400);
    /// let redlock = Redlock::builder().in_memory_nodes(3).node_timeout(limit).build().await?;
    /// # assert!(redlock.is_ready().await);
    /// # Ok(())
    /// # }
    /// ```
    pub fn node_timeout(mut self, limit: Duration) -> Self {
        self.config.node_timeout = Some(limit);
        self
    }

    /// Sets how long a connection to a node may take to be made: from 1 ms to 60 s.
    ///
    /// Default: 1 s; 10 s if all nodes are in memory, for a test on a machine that has no time for the client's thread.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::Redlock;
    /// use std::time::Duration;
    ///
    /// // A handshake of TLS with nodes in another region takes three round trips.
    /// let limit = Duration::from_secs(3);
    /// let redlock = Redlock::builder().in_memory_nodes(3).connect_timeout(limit).build().await?;
    /// # assert!(redlock.is_ready().await);
    /// # Ok(())
    /// # }
    /// ```
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.config.connect_timeout = Some(limit);
        self
    }

    /// Sets after how long without another call the client tries the connection to a node: from 100 ms to 60 s.
    ///
    /// Default: 1 s.
    /// A service that is paid by the command wants a longer one: with 10 s, an idle client sends a node a tenth of the
    /// commands.
    /// Every call that grants or keeps a lease looks at the node by itself, so a longer one harms no lease.
    /// But an idle client then learns as much later that a connection is dead, or that a master has become a replica; the
    /// first acquire after it may have to wait for `node_timeout`.
    /// Where [others name a node's server](crate::NodeConfig::follows_failovers), the client asks them once a second all the same.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::Redlock;
    /// use std::time::Duration;
    ///
    /// let seldom = Duration::from_secs(10);
    /// let redlock = Redlock::builder().in_memory_nodes(3).heartbeat(seldom).build().await?;
    /// # assert!(redlock.is_ready().await);
    /// # Ok(())
    /// # }
    /// ```
    pub fn heartbeat(mut self, after: Duration) -> Self {
        self.config.heartbeat = Some(after);
        self
    }

    /// Sets by how much the rate of any clock involved may be off: from 0 to 0.25.
    ///
    /// Default: 0.01, which is one per cent.
    /// Exclusion rests on it.
    /// For example, chrony slews a clock by up to 8.3 % unless `maxslewrate` is set.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::Redlock;
    /// use std::time::Duration;
    ///
    /// let redlock = Redlock::builder()
    ///     .in_memory_nodes(3)
    ///     .ttl(Duration::from_secs(10))
    ///     .clock_rate_error(0.09) // chrony slews by up to 8.3 %
    ///     .build()
    ///     .await?;
    /// let guard = redlock.acquire("report").await?;
    /// assert!(guard.remaining() < Duration::from_millis(9_100)); // the holder ends earlier
    /// # Ok(())
    /// # }
    /// ```
    pub fn clock_rate_error(mut self, error: f64) -> Self {
        self.config.clock_rate_error = Some(error);
        self
    }

    /// Sets how many callers of this process may wait for one resource; more fail with
    /// [`Overloaded`](crate::AcquireErrorKind::Overloaded).
    ///
    /// With 0 a caller does not wait behind another caller of this process, only for other processes.
    /// One attempt, with [`Wait::Never`](crate::Wait::Never), does not wait, and fails as
    /// [`Contended`](crate::AcquireErrorKind::Contended).
    /// Default: 1,024.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::{AcquireErrorKind, Redlock};
    ///
    /// let redlock = Redlock::builder().in_memory_nodes(3).max_waiters_per_key(0).build().await?;
    /// let guard = redlock.acquire("report").await?;
    /// let refused = redlock.acquire("report").await.unwrap_err(); // at once
    /// assert_eq!(refused.kind(), AcquireErrorKind::Overloaded);
    /// # drop(guard);
    /// # Ok(())
    /// # }
    /// ```
    pub fn max_waiters_per_key(mut self, waiters: usize) -> Self {
        self.config.max_waiters_per_key = Some(waiters);
        self
    }
}
