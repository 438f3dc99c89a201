mod acquire;
mod contend;
mod forget;
mod holder;
mod jobs;
mod readers;
mod scope;
mod settings;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio_util::sync::CancellationToken;

pub(crate) use self::settings::{Settings, label_of_this_process};
pub use self::{
    forget::{Forgotten, NodeForgot},
    holder::Holder,
};
use self::{holder::LookSession, readers::Readers};
use crate::{
    NodeAnswer, NodeReport,
    clock::Clock,
    engine::{EngineHandle, Parked},
    keyspace::KeyScheme,
    lease::CallSites,
    meter::Meter,
    names::NodeNames,
    node::Node,
    queue::Queue,
};

/// The client: acquires leases on resources over a fixed set of nodes.
///
/// Cloning it is cheap and returns another handle to the same client.
/// A process needs one client per set of nodes.
/// The client runs on its own thread, so that work which blocks a runtime's thread cannot delay a renewal.
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
    client: Arc<ClientShared>,
    /// Whether its acquires use no scope.
    is_outside_scopes: bool,
}

struct ClientShared {
    engine: EngineHandle,
    queue: Arc<Queue<Parked>>,
    readers: Readers,
    closing: CancellationToken,
    clock: Clock,
    nodes: Vec<Arc<dyn Node>>,
    /// The connections for looks at keys, by node.
    looks: Vec<LookSession>,
    names: NodeNames,
    key_space: KeyScheme,
    settings: Settings,
    namespace: Arc<str>,
    meter: Meter,
    sites: CallSites,
}

impl Redlock {
    /// The shortest time to live that an acquire may ask for: 100 ms.
    pub const MIN_TTL: Duration = Settings::MIN_TTL;

    pub(crate) fn new(
        engine: EngineHandle,
        clock: Clock,
        nodes: Vec<Arc<dyn Node>>,
        names: NodeNames,
        key_space: KeyScheme,
        settings: Settings,
        meter: Meter,
    ) -> Self {
        let queue = Queue::new(clock);
        let closing = CancellationToken::new();
        let client = ClientShared {
            engine,
            queue,
            readers: Readers::new(),
            closing,
            clock,
            looks: nodes.iter().map(|_| LookSession::default()).collect(),
            names,
            nodes,
            namespace: key_space.name(),
            key_space,
            settings,
            meter,
            sites: CallSites::default(),
        };
        Self {
            client: Arc::new(client),
            is_outside_scopes: false,
        }
    }

    /// Makes every waiting and future acquire fail with
    /// [`Closed`](crate::AcquireErrorKind::Closed), and waits until all clean-up is done.
    ///
    /// The connections over which the client heard of its callers' turns are closed.
    /// The client keeps and renews each lease until its guards are dropped; this does not wait for them.
    /// In a [scope](crate::Scope), an acquire still returns another guard of a lease that the scope holds.
    /// Clean-up ends by the nodes' time limit at the latest.
    ///
    /// # Cancel safety
    ///
    /// The client is closed once the future was polled; dropping it only stops waiting.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// use redlock_core::AcquireErrorKind;
    ///
    /// drop(redlock.acquire("report").await?);
    /// redlock.close().await; // the release was confirmed, or its node's time is over
    /// let refused = redlock.acquire("report").await.unwrap_err();
    /// assert_eq!(refused.kind(), AcquireErrorKind::Closed);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn close(&self) {
        self.client.closing.cancel();
        // A caller that waits for a parked lease may be polled late, or never.
        self.client.queue.close();
        self.client
            .engine
            .close(2 * self.client.settings.max_ttl)
            .await;
    }

    /// Returns the state of each node: whether the client can reach it, whether it votes, and if not, why.
    ///
    /// It is meant for health checks and operators; acquires do not need it.
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

    /// Returns whether an acquire of a free resource can succeed now: the client is open, and it can reach a majority
    /// of nodes that vote.
    ///
    /// It is meant for readiness probes.
    /// It asks no node and returns what the client knows: a node that does not answer counts until its time limit.
    ///
    /// # Cancel safety
    ///
    /// Dropping it has no effect.
    pub async fn is_ready(&self) -> bool {
        let standing = self.client.engine.standing().await;
        let voting = standing
            .iter()
            .filter(|answer| **answer == NodeAnswer::Reachable);
        voting.count() >= self.majority() && !self.client.closing.is_cancelled()
    }

    /// Returns the time of the nodes' wall clocks: the median of a majority whose clocks agree within a second.
    ///
    /// It returns `None` if the clocks of no majority agree, or if the client has not reached a majority.
    /// It asks no node, but adds the time since their last answers to the time in these answers.
    /// The error is about a round trip, and 2 % of the time since those answers.
    /// The nodes judge [ticks](Self::claim) by their clocks, so a caller can compare its machine's clock with this.
    ///
    /// # Cancel safety
    ///
    /// Dropping it has no effect.
    ///
    /// # Examples
    ///
    /// ```
    /// # async fn f(redlock: redlock_core::Redlock) -> Result<(), Box<dyn std::error::Error>> {
    /// let theirs = redlock.node_time().await.ok_or("their clocks disagree")?;
    /// let ahead = std::time::SystemTime::now().duration_since(theirs).unwrap_or_default();
    /// println!("this machine's clock is {ahead:?} ahead");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn node_time(&self) -> Option<SystemTime> {
        let time = self.client.engine.node_time().await?;
        SystemTime::UNIX_EPOCH.checked_add(Duration::from_micros(time.as_micros()))
    }

    /// Lets every node vote at once that is only quarantined, and returns the state of each node after that.
    ///
    /// The caller vouches that no node has forgotten a lease that may still be valid.
    /// That is so if the nodes are new, or if no client of the namespace has run for the longest time to live.
    /// If the caller is wrong, a resource may have two holders.
    /// For jobs the caller vouches for more: that no node has forgotten a tick that a client may still claim, however
    /// long ago a replica started it.
    /// A forgotten tick may start again; without a blessing, a node refuses every tick that it may have forgotten.
    /// It is meant for the first start of a set of nodes, and for tests.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped after it was polled, nodes may still be blessed.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::{MemoryNode, Redlock};
    ///
    /// let nodes = [MemoryNode::new(), MemoryNode::new(), MemoryNode::new()];
    /// nodes.iter().for_each(MemoryNode::clear); // like servers that were never used
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
