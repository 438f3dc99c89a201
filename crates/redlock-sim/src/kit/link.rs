use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};
use redlock_core::{
    NodeConfig, Redlock, RedlockBuilder,
    node::{CallError, CallResult, Keyspace, Node, Request, Session},
};
use tokio::{task::JoinSet, time::sleep};

use super::{SimNode, SimNodes};

/// One client's connections to all nodes.
///
/// Clones are handles to the same connections.
#[derive(Clone, Debug)]
pub struct Links {
    links: Arc<[NodeLink]>,
}

/// One client's connection to one node.
#[derive(Clone)]
struct NodeLink {
    node: SimNode,
    state: Arc<Mutex<State>>,
}

struct State {
    fault: Fault,
    /// Requests that arrive after their connection was given up.
    late: JoinSet<()>,
}

/// The fault of a connection, for the calls on it from now on.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Fault {
    /// No fault: a call takes no time.
    #[default]
    None,
    /// Requests and replies take this long; their order is kept.
    Slow {
        /// Requests.
        request: Duration,
        /// Replies.
        reply: Duration,
    },
    /// Requests arrive, and replies do not arrive.
    NoReplies,
    /// Nothing arrives, and no new connection is made.
    BlackHole,
    /// The connection is cut before the request arrives; the next one works.
    CutBefore,
    /// The connection is cut after the request was executed; the next one works.
    CutAfter,
    /// The connection is cut, and the request still arrives this much later, as from the buffer of a proxy.
    Late {
        /// The delay.
        by: Duration,
    },
}

impl SimNodes {
    /// Returns connections of one client to all nodes.
    pub fn links(&self) -> Links {
        Links::new(&self.nodes)
    }
}

impl Links {
    fn new(nodes: &[SimNode]) -> Self {
        let link = |node: &SimNode| NodeLink {
            node: node.clone(),
            state: Arc::new(Mutex::new(State {
                fault: Fault::None,
                late: JoinSet::new(),
            })),
        };
        Self {
            links: nodes.iter().map(link).collect(),
        }
    }

    /// Describes a client that uses these connections, in virtual time.
    ///
    /// Set a [seed](RedlockBuilder::dangerous_seed) for a run that can be repeated.
    pub fn client(&self) -> RedlockBuilder {
        let nodes = self.links.iter().cloned().map(NodeConfig::other);
        Redlock::builder().nodes(nodes).virtual_time()
    }

    /// Sets the fault of the connection to `node` from now on.
    ///
    /// # Panics
    ///
    /// If there is no such node.
    pub fn set(&self, node: usize, fault: Fault) {
        self.links[node].state().fault = fault;
    }

    /// Cuts the client off from these nodes.
    ///
    /// # Panics
    ///
    /// If there is no such node.
    pub fn cut_off(&self, nodes: &[usize]) {
        for node in nodes {
            self.set(*node, Fault::BlackHole);
        }
    }

    /// Repairs every connection.
    pub fn heal(&self) {
        for link in self.links.iter() {
            link.state().fault = Fault::None;
        }
    }

    /// Returns the number of connections.
    pub fn len(&self) -> usize {
        self.links.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }
}

impl NodeLink {
    fn state(&self) -> MutexGuard<'_, State> {
        // The state is consistent at every moment, also after a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for NodeLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fault = self.state().fault;
        f.debug_struct("NodeLink")
            .field("node", &self.node)
            .field("fault", &fault)
            .finish()
    }
}

impl Node for NodeLink {
    fn name(&self) -> Arc<str> {
        self.node.name()
    }

    fn connect(&self) -> BoxFuture<'static, Result<Box<dyn Session>, Arc<str>>> {
        let link = self.clone();
        async move {
            if link.state().fault == Fault::BlackHole {
                std::future::pending::<()>().await;
            }
            link.node.running().await;
            let start = link.node.accept().ok_or("connection refused")?;
            let session = SimSession {
                link,
                start,
                turn: Arc::default(),
            };
            Ok(Box::new(session) as Box<dyn Session>)
        }
        .boxed()
    }
}

struct SimSession {
    link: NodeLink,
    start: u64,
    // Fair, so that requests which are delayed alike arrive in order.
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl Session for SimSession {
    fn call(
        &mut self,
        keyspace: &Arc<Keyspace>,
        requests: &[Request],
    ) -> BoxFuture<'static, CallResult> {
        let call = Call {
            link: self.link.clone(),
            start: self.start,
            keyspace: Arc::clone(keyspace),
            requests: requests.to_vec(),
        };
        let fault = {
            let mut state = self.link.state();
            let fault = state.fault;
            if matches!(
                fault,
                Fault::CutBefore | Fault::CutAfter | Fault::Late { .. }
            ) {
                state.fault = Fault::None;
            }
            fault
        };
        let turn = Arc::clone(&self.turn);
        async move {
            let turn = turn.lock_owned().await;
            let answer = call.through(fault).await?;
            drop(turn);
            if let Fault::Slow { reply, .. } = fault {
                sleep(reply).await;
            }
            Ok(answer)
        }
        .boxed()
    }
}

struct Call {
    link: NodeLink,
    start: u64,
    keyspace: Arc<Keyspace>,
    requests: Vec<Request>,
}

impl Call {
    /// Brings the call to the node, as far as the fault lets it, and back.
    async fn through(self, fault: Fault) -> CallResult {
        match fault {
            Fault::BlackHole => std::future::pending().await,
            Fault::CutBefore => return Err(CallError::lost("connection reset")),
            Fault::Late { by } => {
                let link = self.link.clone();
                link.state().late.spawn(async move {
                    sleep(by).await;
                    // No caller waits for the answer.
                    drop(self.execute().await);
                });
                return Err(CallError::lost("connection reset"));
            }
            Fault::Slow { request, .. } => sleep(request).await,
            Fault::None | Fault::NoReplies | Fault::CutAfter => {}
        }
        let answer = self.execute().await;
        match fault {
            Fault::NoReplies => std::future::pending().await,
            Fault::CutAfter => Err(CallError::lost("connection reset")),
            _ => answer,
        }
    }

    async fn execute(&self) -> CallResult {
        self.link.node.running().await;
        self.link
            .node
            .call(self.start, &self.keyspace, &self.requests)
            .ok_or_else(|| CallError::lost("the node is down"))
    }
}
