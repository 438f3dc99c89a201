mod acquire;
mod contend;
mod forget;
mod jobs;
mod readers;
mod scope;
mod terms;

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio_util::sync::CancellationToken;

pub use self::forget::{Forgotten, NodeForgot};
use self::readers::Readers;
use crate::{
    NodeAnswer, NodeReport,
    clock::Clock,
    engine::{EngineHandle, Parked},
    keyspace::KeySpace,
    meter::Meter,
    node::Node,
    queue::Queue,
    settings::Settings,
};

/// The client: acquires leases on resources over a fixed set of nodes.
///
/// Cloning it is cheap and gives another handle to the same client; a process needs one per set of
/// nodes.
/// The client runs on a thread of its own, so that work which blocks a runtime's thread cannot
/// delay a renewal.
/// That thread ends when the last handle and the last guard are dropped and the clean-up is done.
///
/// # Examples
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use redlock_core::Redlock;
///
/// let redlock = Redlock::builder()
///     .nodes(["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"])
///     .build()
///     .await?;
/// let guard = redlock.acquire("invoice:2026-11").await?;
/// let sent = guard.run(async { /* work that must not overlap */ }).await;
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Redlock {
    client: Arc<Shared>,
}

struct Shared {
    engine: EngineHandle,
    queue: Arc<Queue<Parked>>,
    readers: Readers,
    closing: CancellationToken,
    clock: Clock,
    nodes: Vec<Arc<dyn Node>>,
    names: Vec<Arc<str>>,
    key_space: KeySpace,
    settings: Settings,
    namespace: Arc<str>,
    meter: Meter,
}

impl Redlock {
    /// The shortest time to live that may be asked for: 100 ms.
    pub const MIN_TTL: Duration = Settings::MIN_TTL;

    pub(crate) fn new(
        engine: EngineHandle,
        clock: Clock,
        nodes: Vec<Arc<dyn Node>>,
        key_space: KeySpace,
        settings: Settings,
        meter: Meter,
    ) -> Self {
        let queue = Queue::new(clock);
        let closing = CancellationToken::new();
        let client = Shared {
            engine,
            queue,
            readers: Readers::new(),
            closing,
            clock,
            names: nodes.iter().map(|node| node.name()).collect(),
            nodes,
            namespace: key_space.name(),
            key_space,
            settings,
            meter,
        };
        Self {
            client: Arc::new(client),
        }
    }

    /// Makes every waiting and future acquire fail with
    /// [`Closed`](crate::AcquireErrorKind::Closed), and waits until all clean-up is done.
    ///
    /// Leases that are held stay held, and renewed, until their guards are dropped; this does not
    /// wait for them.
    /// In a [scope](crate::Scope), what it holds can be had again.
    /// Clean-up ends by the nodes' time limit at the latest.
    ///
    /// # Cancel safety
    ///
    /// The client is closed once this was polled; dropping it only stops waiting.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// use redlock_core::AcquireErrorKind;
    ///
    /// let guard = redlock.acquire("report").await?;
    /// drop(guard);
    /// redlock.close().await; // the release was confirmed, or its node's time is over
    /// let refused = redlock.acquire("report").await.unwrap_err();
    /// assert_eq!(refused.kind(), AcquireErrorKind::Closed);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn close(&self) {
        self.client.closing.cancel();
        self.client.engine.close().await;
    }

    /// Returns where each node stands: whether it can be reached and votes, and if not, why.
    ///
    /// For health checks and operators; acquires do not need it.
    ///
    /// # Cancel safety
    ///
    /// Dropping it has no effect.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::{MemoryNode, NodeAnswer, Redlock};
    ///
    /// let nodes = [MemoryNode::new(), MemoryNode::new(), MemoryNode::new()];
    /// let redlock = Redlock::builder().nodes(nodes).build().await?;
    /// for report in redlock.node_reports().await {
    ///     println!("{report}"); // such as "10.0.0.1:6379: reachable"
    ///     assert_eq!(report.answer, NodeAnswer::Reachable);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn node_reports(&self) -> Vec<NodeReport> {
        NodeReport::of_all(&self.client.names, self.client.engine.standing().await)
    }

    /// Returns whether an acquire can succeed now, if nobody holds the resource: the client is open, and a majority of its
    /// nodes can be reached and votes.
    ///
    /// For readiness probes.
    /// It is what the client knows without asking any node: one that does not answer counts until its time limit.
    ///
    /// # Cancel safety
    ///
    /// Dropping it has no effect.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// assert!(redlock.is_ready().await);
    /// redlock.close().await;
    /// assert!(!redlock.is_ready().await);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn is_ready(&self) -> bool {
        let standing = self.client.engine.standing().await;
        let voting = standing
            .iter()
            .filter(|answer| **answer == NodeAnswer::Reachable);
        voting.count() >= self.majority() && !self.client.closing.is_cancelled()
    }

    /// Returns what the nodes' wall clocks show now: the one in the middle, of a majority that agrees within a second.
    ///
    /// `None` if no majority does, or so many have not been reached.
    /// It is what their last answers said and the time since then, so that no node is asked; it is known to about a
    /// round trip, and to 2 % of that time.
    /// The nodes judge [ticks](Self::claim) by their clocks, so this says how far off a machine's own is.
    ///
    /// # Cancel safety
    ///
    /// Dropping it has no effect.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::Redlock;
    /// use std::time::{Duration, SystemTime};
    ///
    /// let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
    /// redlock.acquire("invoice:2026-11").await?.release().await?;
    /// let theirs = redlock.node_time().await.ok_or("their clocks disagree")?;
    /// let ahead = SystemTime::now().duration_since(theirs).unwrap_or_default();
    /// assert!(ahead < Duration::from_secs(1), "synchronise this machine's clock");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn node_time(&self) -> Option<SystemTime> {
        let time = self.client.engine.node_time().await?;
        SystemTime::UNIX_EPOCH.checked_add(Duration::from_micros(time.as_micros()))
    }

    /// Lets every node vote at once that is only quarantined, and says where each node stands then.
    ///
    /// The caller vouches that none of the nodes has forgotten a lease that may still be valid: that they are new, or
    /// that no client of the namespace has run for the longest time to live.
    /// If that is not so, two holders are possible.
    /// Of jobs the caller vouches for more: that none of the nodes has forgotten a tick that may still be claimed, however
    /// long ago it was started.
    /// Ticks that were forgotten may start again; without a blessing, a node refuses all that it may have forgotten.
    /// It is for the first start of a set of nodes, and for tests.
    ///
    /// # Cancel safety
    ///
    /// Nodes may be told all the same after it was polled.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::{MemoryNode, Redlock};
    ///
    /// let nodes = [MemoryNode::new(), MemoryNode::new(), MemoryNode::new()];
    /// nodes.iter().for_each(MemoryNode::clear); // as servers are that nobody has used
    /// let redlock = Redlock::builder().nodes(nodes).build().await?;
    /// assert!(!redlock.is_ready().await);
    /// redlock.dangerous_bless().await;
    /// assert!(redlock.is_ready().await);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn dangerous_bless(&self) -> Vec<NodeReport> {
        NodeReport::of_all(&self.client.names, self.client.engine.bless().await)
    }
}

impl fmt::Debug for Redlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redlock")
            .field("nodes", &self.nodes())
            .field("settings", &self.client.settings)
            .finish_non_exhaustive()
    }
}
