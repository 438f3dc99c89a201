use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use futures_util::{
    FutureExt, StreamExt,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use redlock_proto::{Gift, Keyspace, NodeKey, NodeTime, Request, RunId, Store};
use tokio::sync::mpsc;

use super::{CallError, CallResult, KeyEntry, Node, Session};
use crate::clock::node_time as wall;

/// A node in the memory of this process.
///
/// It is meant for tests and first runs: it behaves as a server does, without a server.
/// Clones are handles to the same node, so several clients can contend over a set of nodes as
/// replicas of a service contend over real servers.
///
/// It excludes callers of one process only.
/// A new node votes at once, because no client can have used it before.
/// A [cleared](Self::clear) node does not vote until its quarantine has ended.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use redlock_core::{MemoryNode, Redlock};
///
/// let nodes = [MemoryNode::new(), MemoryNode::new(), MemoryNode::new()];
/// let one = Redlock::builder().nodes(nodes.clone()).build().await?;
/// let other = Redlock::builder().nodes(nodes).build().await?;
///
/// let guard = one.acquire("resource").await?;
/// assert!(other.try_acquire("resource").await.is_err());
/// guard.release().await?;
/// assert!(other.try_acquire("resource").await.is_ok());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct MemoryNode {
    shared: Arc<MemoryShared>,
}

struct MemoryShared {
    name: Arc<str>,
    state: Mutex<MemoryState>,
}

struct MemoryState {
    store: Store,
    /// The clients that listen, by their numbers.
    listeners: Vec<(u64, mpsc::UnboundedSender<Gift>)>,
    up: bool,
    /// By how many microseconds its clock is ahead of that of the others.
    ahead: i64,
}

impl MemoryNode {
    /// Makes a node without keys.
    pub fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(1);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let shared = MemoryShared {
            name: format!("memory:{number}").into(),
            state: Mutex::new(MemoryState {
                store: Store::vouched_for(run()),
                listeners: Vec::new(),
                up: true,
                ahead: 0,
            }),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Forgets everything, as a server does that restarts without its data.
    ///
    /// After that, it does not vote until its quarantine has ended: the longest time to live, and a little more.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::{MemoryNode, Redlock};
    ///
    /// let nodes = [MemoryNode::new(), MemoryNode::new(), MemoryNode::new()];
    /// let redlock = Redlock::builder().nodes(nodes.clone()).build().await?;
    /// nodes[0].clear();
    /// let guard = redlock.acquire("report").await?; // the two others vote
    /// # drop(guard);
    /// # Ok(())
    /// # }
    /// ```
    pub fn clear(&self) {
        self.with(|state, _| {
            state.store.flush();
            state.store.restart(run());
        });
    }

    /// Deletes all its lock keys, as an operator may do on a server.
    ///
    /// A holder learns of that when it extends its lease.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::{LossReason, MemoryNode, Redlock};
    ///
    /// let nodes = [MemoryNode::new(), MemoryNode::new(), MemoryNode::new()];
    /// let redlock = Redlock::builder().nodes(nodes.clone()).virtual_time().build().await?;
    /// let guard = redlock.acquire("report").await?;
    /// nodes.iter().for_each(MemoryNode::drop_locks);
    /// assert_eq!(guard.lost().await, LossReason::Revoked); // at the next renewal
    /// # Ok(())
    /// # }
    /// ```
    pub fn drop_locks(&self) {
        self.with(|state, _| state.store.drop_locks());
    }

    /// Sets its wall clock, which continues from there with tokio's time.
    ///
    /// The node uses that clock to judge [claims](crate::Redlock::claim) and to expire keys.
    /// Until this is called, the clock starts from the machine's wall clock at the moment when this process first used
    /// a node in memory.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::{MemoryNode, Redlock};
    /// use std::time::{Duration, SystemTime};
    ///
    /// let nodes = [MemoryNode::new(), MemoryNode::new(), MemoryNode::new()];
    /// let new_year = SystemTime::UNIX_EPOCH + Duration::from_secs(1_798_761_600);
    /// nodes.iter().for_each(|node| node.set_clock(new_year));
    /// let redlock = Redlock::builder().nodes(nodes).virtual_time().build().await?;
    /// redlock.acquire("report").await?;
    /// let time = redlock.node_time().await.ok_or("no majority agrees")?;
    /// assert!(time >= new_year);
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_clock(&self, to: std::time::SystemTime) {
        let since = to.duration_since(std::time::UNIX_EPOCH);
        let to = since.map_or(0, |since| {
            i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
        });
        self.with(|state, _| {
            state.ahead = to.saturating_sub_unsigned(wall().as_micros());
        });
    }

    /// Stops answering, as a server that is shut down does; its keys stay.
    ///
    /// Clients lose their connections to it at the next call.
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
    /// assert!(redlock.acquire("report").await.is_ok(), "one of three is a minority");
    /// nodes[1].stop();
    /// let failed = redlock.acquire("report").await.unwrap_err();
    /// assert_eq!(failed.kind(), AcquireErrorKind::NoQuorum);
    /// # Ok(())
    /// # }
    /// ```
    pub fn stop(&self) {
        self.with(|state, _| {
            state.up = false;
            state.listeners.clear();
        });
    }

    /// Answers again, after a stop.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::{MemoryNode, Redlock};
    ///
    /// let nodes = [MemoryNode::new(), MemoryNode::new(), MemoryNode::new()];
    /// nodes.iter().for_each(MemoryNode::stop);
    /// let redlock = Redlock::builder().nodes(nodes.clone()).virtual_time().connect_lazily().build().await?;
    /// nodes.iter().for_each(MemoryNode::start);
    /// let guard = redlock.acquire("report").await?; // waits until they are connected
    /// # drop(guard);
    /// # Ok(())
    /// # }
    /// ```
    pub fn start(&self) {
        self.with(|state, _| state.up = true);
    }

    /// Returns the number of lock keys that have not expired.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::{MemoryNode, Redlock};
    ///
    /// let node = MemoryNode::new();
    /// let redlock = Redlock::builder().node(node.clone()).build().await?;
    /// let guard = redlock.acquire("report").await?;
    /// assert_eq!(node.keys(), 1);
    /// guard.release().await?;
    /// assert_eq!(node.keys(), 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn keys(&self) -> usize {
        self.with(|state, now| state.store.locks(now))
    }

    fn with<T>(&self, f: impl FnOnce(&mut MemoryState, NodeTime) -> T) -> T {
        // The store is whole at every moment, also after a panic.
        let mut state = self
            .shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // Read under the lock, so that time does not go back from one call to the next.
        let time = wall().as_micros().saturating_add_signed(state.ahead);
        f(&mut state, NodeTime::from_micros(time))
    }
}

impl MemoryState {
    /// Brings the messages of a call to the clients that listen.
    fn publish(&mut self) {
        for (client, gift) in self.store.take_messages() {
            self.listeners.retain(|(listener, messages)| {
                *listener != client || messages.send(gift.clone()).is_ok()
            });
        }
    }
}

impl Default for MemoryNode {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MemoryNode")
            .field(&self.shared.name)
            .finish()
    }
}

impl Node for MemoryNode {
    fn name(&self) -> Arc<str> {
        Arc::clone(&self.shared.name)
    }

    fn connect(&self) -> BoxFuture<'static, Result<Box<dyn Session>, Arc<str>>> {
        let session = if self.with(|state, _| state.up) {
            Ok(Box::new(MemorySession { node: self.clone() }) as Box<dyn Session>)
        } else {
            Err("the node is stopped".into())
        };
        std::future::ready(session).boxed()
    }
}

struct MemorySession {
    node: MemoryNode,
}

impl Session for MemorySession {
    fn call(
        &mut self,
        keyspace: &Arc<Keyspace>,
        requests: &[Request],
    ) -> BoxFuture<'static, CallResult> {
        let answer = self.node.with(|state, now| {
            if state.up {
                state
                    .listeners
                    .retain(|(_, messages)| !messages.is_closed());
                let listeners = state.listeners.iter().map(|(client, _)| *client);
                state.store.set_subscribers(listeners);
                let answer = state.store.call(keyspace, requests, now);
                state.publish();
                Ok(answer)
            } else {
                Err(CallError::lost("the node is stopped"))
            }
        });
        std::future::ready(answer).boxed()
    }

    fn listen(
        &mut self,
        _: &Arc<Keyspace>,
        client: u64,
    ) -> BoxFuture<'static, Result<BoxStream<'static, Gift>, Arc<str>>> {
        let heard = self.node.with(|state, _| {
            if !state.up {
                return Err("the node is stopped".into());
            }
            let (sender, messages) = mpsc::unbounded_channel();
            state
                .listeners
                .retain(|(_, messages)| !messages.is_closed());
            state.listeners.push((client, sender));
            let next = async |mut messages: mpsc::UnboundedReceiver<Gift>| {
                messages.recv().await.map(|gift| (gift, messages))
            };
            Ok(stream::unfold(messages, next).boxed())
        });
        std::future::ready(heard).boxed()
    }

    fn forget_jobs(&mut self, jobs: &[NodeKey]) -> BoxFuture<'static, Result<usize, Arc<str>>> {
        let forgotten = self.node.with(|state, _| {
            let forgotten = state.up.then(|| state.store.forget_jobs(jobs));
            forgotten.ok_or_else(|| "the node is stopped".into())
        });
        std::future::ready(forgotten).boxed()
    }

    fn read_key(
        &mut self,
        key: &NodeKey,
    ) -> BoxFuture<'static, Result<Option<KeyEntry>, Arc<str>>> {
        let entry = self.node.with(|state, now| {
            if !state.up {
                return Err("the node is stopped".into());
            }
            Ok(state.store.value(key, now).map(|value| KeyEntry {
                value,
                remaining: state.store.remaining(key, now),
            }))
        });
        std::future::ready(entry).boxed()
    }
}

/// Returns a new run of a node.
fn run() -> RunId {
    RunId::from(&*uuid::Uuid::new_v4().simple().to_string())
}
