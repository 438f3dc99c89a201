//! Fixtures: nodes in memory behind a link that can be slow, silent or cut.

use std::{
    sync::{
        Arc, LazyLock, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream::BoxStream};
use redlock_core::{
    FanOut, MemoryNode, NodeConfig, Redlock, RedlockBuilder,
    node::{CallError, CallResult, Gift, KeyEntry, Keyspace, Node, NodeKey, Request, Session},
};
use tracing::{
    Dispatch, Subscriber,
    subscriber::{DefaultGuard, NoSubscriber, set_default},
};

pub(crate) const MS: Duration = Duration::from_millis(1);
pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// A node in memory behind a faulty link.
#[derive(Clone, Debug)]
pub(crate) struct FaultyNode {
    pub(crate) node: MemoryNode,
    faults: Arc<Mutex<Faults>>,
    requests: Arc<AtomicUsize>,
    subscriptions: Arc<AtomicUsize>,
    connects: Arc<AtomicUsize>,
}

/// What the link does to a call that is made now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    /// The request arrives this much later; order is kept.
    pub(crate) request_delay: Duration,
    /// The reply arrives this much later.
    pub(crate) reply_delay: Duration,
    /// The request arrives and the reply never does.
    pub(crate) silent: bool,
    /// Neither arrives.
    pub(crate) black_hole: bool,
    /// The node's messages cannot be heard.
    pub(crate) is_mute: bool,
    /// The request arrives, and then the connection is cut.
    pub(crate) cut_after_execution: bool,
}

impl Faults {
    const NONE: Self = Self {
        request_delay: Duration::ZERO,
        reply_delay: Duration::ZERO,
        silent: false,
        black_hole: false,
        is_mute: false,
        cut_after_execution: false,
    };

    pub(crate) const SILENT: Self = Self {
        silent: true,
        ..Self::NONE
    };

    pub(crate) const BLACK_HOLE: Self = Self {
        black_hole: true,
        ..Self::NONE
    };

    pub(crate) const CUT: Self = Self {
        cut_after_execution: true,
        ..Self::NONE
    };

    /// Requests arrive this much later.
    pub(crate) const fn late_requests(request_delay: Duration) -> Self {
        Self {
            request_delay,
            ..Self::NONE
        }
    }

    /// Replies arrive this much later.
    pub(crate) const fn late_replies(reply_delay: Duration) -> Self {
        Self {
            reply_delay,
            ..Self::NONE
        }
    }
}

impl FaultyNode {
    pub(crate) fn new() -> Self {
        Self {
            node: MemoryNode::new(),
            faults: Arc::default(),
            requests: Arc::default(),
            subscriptions: Arc::default(),
            connects: Arc::default(),
        }
    }

    /// Makes another link to the same node, with faults of its own.
    pub(crate) fn by_another_link(&self) -> Self {
        Self {
            node: self.node.clone(),
            ..Self::new()
        }
    }

    /// Returns how many clients listen to the node's messages.
    pub(crate) fn subscriptions(&self) -> usize {
        self.subscriptions.load(Ordering::SeqCst)
    }

    /// Returns how many connections to the node were begun so far.
    pub(crate) fn connects(&self) -> usize {
        self.connects.load(Ordering::SeqCst)
    }

    /// Returns how many requests were sent to the node so far.
    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    pub(crate) fn set(&self, faults: Faults) {
        *self.faults.lock().expect("no fixture panics") = faults;
    }

    pub(crate) fn heal(&self) {
        self.set(Faults::default());
    }
}

impl Node for FaultyNode {
    fn name(&self) -> Arc<str> {
        self.node.name()
    }

    fn connect(&self) -> BoxFuture<'static, Result<Box<dyn Session>, Arc<str>>> {
        let this = self.clone();
        self.connects.fetch_add(1, Ordering::SeqCst);
        async move {
            let inner = this.node.connect().await?;
            if this.faults.lock().expect("no fixture panics").black_hole {
                std::future::pending::<()>().await;
            }
            let inner = Arc::new(tokio::sync::Mutex::new(inner));
            Ok(Box::new(FaultySession {
                inner,
                faults: this.faults,
                requests: this.requests,
                subscriptions: this.subscriptions,
            }) as Box<dyn Session>)
        }
        .boxed()
    }
}

struct FaultySession {
    // tokio's mutex is fair, so requests that are delayed alike arrive in order.
    inner: Arc<tokio::sync::Mutex<Box<dyn Session>>>,
    faults: Arc<Mutex<Faults>>,
    requests: Arc<AtomicUsize>,
    subscriptions: Arc<AtomicUsize>,
}

/// A subscription that is counted until it is dropped.
struct Subscription(Arc<AtomicUsize>);

impl Subscription {
    fn begin(count: Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Session for FaultySession {
    fn call(
        &mut self,
        keyspace: &Arc<Keyspace>,
        requests: &[Request],
    ) -> BoxFuture<'static, CallResult> {
        let faults = *self.faults.lock().expect("no fixture panics");
        self.requests.fetch_add(requests.len(), Ordering::SeqCst);
        let (inner, requests) = (Arc::clone(&self.inner), requests.to_vec());
        let keyspace = Arc::clone(keyspace);
        async move {
            if faults.black_hole {
                std::future::pending::<()>().await;
            }
            let mut inner = inner.lock().await;
            if !faults.request_delay.is_zero() {
                tokio::time::sleep(faults.request_delay).await;
            }
            let answer = inner.call(&keyspace, &requests).await;
            drop(inner);
            if faults.silent {
                std::future::pending::<()>().await;
            }
            if faults.cut_after_execution {
                return Err(CallError::lost("connection reset"));
            }
            tokio::time::sleep(faults.reply_delay).await;
            answer
        }
        .boxed()
    }

    fn listen(
        &mut self,
        keyspace: &Arc<Keyspace>,
        client: u64,
    ) -> BoxFuture<'static, Result<BoxStream<'static, Gift>, Arc<str>>> {
        let (inner, keyspace) = (Arc::clone(&self.inner), Arc::clone(keyspace));
        let faults = Arc::clone(&self.faults);
        let count = Arc::clone(&self.subscriptions);
        async move {
            if faults.lock().expect("no fixture panics").is_mute {
                return Err("it may not subscribe".into());
            }
            let gifts = inner.lock().await.listen(&keyspace, client).await?;
            let subscription = Subscription::begin(count);
            let of_node = Arc::clone(&faults);
            let muted = async move {
                while !of_node.lock().expect("no fixture panics").is_mute {
                    tokio::time::sleep(SECOND / 4).await;
                }
            };
            let muted = Box::pin(muted);
            // A message takes as long as a reply.
            let late = move |gift| {
                let _counted = &subscription;
                let delay = faults.lock().expect("no fixture panics").reply_delay;
                async move {
                    tokio::time::sleep(delay).await;
                    gift
                }
            };
            Ok(gifts.then(late).take_until(muted).boxed())
        }
        .boxed()
    }

    fn read_key(
        &mut self,
        key: &NodeKey,
    ) -> BoxFuture<'static, Result<Option<KeyEntry>, Arc<str>>> {
        let faults = *self.faults.lock().expect("no fixture panics");
        let (inner, key) = (Arc::clone(&self.inner), key.clone());
        async move {
            if faults.black_hole || faults.silent {
                std::future::pending::<()>().await;
            }
            let entry = inner.lock().await.read_key(&key).await;
            tokio::time::sleep(faults.reply_delay).await;
            entry
        }
        .boxed()
    }
}

pub(crate) fn faulty(nodes: usize) -> Vec<FaultyNode> {
    (0..nodes).map(|_| FaultyNode::new()).collect()
}

/// Returns the builder of a client in the test's own, paused time.
pub(crate) fn client_of(nodes: &[FaultyNode]) -> RedlockBuilder {
    let nodes = nodes.iter().map(|node| NodeConfig::other(node.clone()));
    Redlock::builder().nodes(nodes).virtual_time()
}

pub(crate) async fn client(nodes: &[FaultyNode]) -> Redlock {
    client_of(nodes).build().await.expect("the nodes are up")
}

/// Returns a client that asks all nodes at once, where a test looks at the keys of each.
pub(crate) async fn wide_client(nodes: &[FaultyNode]) -> Redlock {
    let builder = client_of(nodes).fan_out(FanOut::All);
    builder.build().await.expect("the nodes are up")
}

/// Returns the number of keys on each node.
pub(crate) fn keys(nodes: &[FaultyNode]) -> Vec<usize> {
    nodes.iter().map(|node| node.node.keys()).collect()
}

/// Lets everything that is ready happen, without time passing.
pub(crate) async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// What a future comes to within a minute; a test whose client forgot something fails, and does not
/// hang.
pub(crate) async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(60 * SECOND, future)
        .await
        .expect("nothing here takes a minute")
}

/// Has a subscriber hear what this thread says, until what this returns is dropped.
pub(crate) fn listens(subscriber: impl Subscriber + Send + Sync + 'static) -> DefaultGuard {
    // While a process has one subscriber, a line that another thread comes to first is silent for that one too, because
    // `tracing` asks only the subscriber of the thread. So there are always more.
    static OTHERS: LazyLock<[Dispatch; 2]> =
        LazyLock::new(|| [(); 2].map(|()| Dispatch::new(NoSubscriber::new())));
    LazyLock::force(&OTHERS);
    set_default(subscriber)
}
