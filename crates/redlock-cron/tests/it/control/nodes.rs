//! Nodes that do less than they are asked, or later.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures_util::{FutureExt, future::BoxFuture};
use redlock_core::{
    MemoryNode,
    node::{CallResult, Keyspace, Node, NodeKey, Request, Session},
};
use tokio::sync::watch;

/// A node in memory that answers and forgets as the test sets it.
#[derive(Clone, Debug, Default)]
pub(super) struct OddNode {
    node: MemoryNode,
    /// How many requests about jobs it was sent.
    pub(super) asked: Arc<AtomicUsize>,
    /// Whether it never answers.
    pub(super) is_silent: watch::Sender<bool>,
    pub(super) forgets: watch::Sender<Forgets>,
}

/// The time at which a node forgets jobs.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Forgets {
    #[default]
    AtOnce,
    /// It waits until it may forget at once.
    Later,
    /// It was asked to forget, and waits.
    Asked,
}

struct OddSession {
    inner: Box<dyn Session>,
    node: OddNode,
}

impl From<MemoryNode> for OddNode {
    fn from(node: MemoryNode) -> Self {
        Self {
            node,
            ..Self::default()
        }
    }
}

impl Node for OddNode {
    fn name(&self) -> Arc<str> {
        self.node.name()
    }

    fn connect(&self) -> BoxFuture<'static, Result<Box<dyn Session>, Arc<str>>> {
        let (node, inner) = (self.clone(), self.node.connect());
        async {
            let inner = inner.await?;
            Ok(Box::new(OddSession { inner, node }) as Box<dyn Session>)
        }
        .boxed()
    }
}

impl Session for OddSession {
    fn call(
        &mut self,
        keyspace: &Arc<Keyspace>,
        requests: &[Request],
    ) -> BoxFuture<'static, CallResult> {
        let answer = self.inner.call(keyspace, requests);
        let about_jobs = requests
            .iter()
            .filter(|it| matches!(it, Request::Job { .. }));
        self.node
            .asked
            .fetch_add(about_jobs.count(), Ordering::SeqCst);
        let is_silent = *self.node.is_silent.borrow();
        async move {
            if is_silent {
                std::future::pending::<()>().await;
            }
            answer.await
        }
        .boxed()
    }

    fn forget_jobs(&mut self, jobs: &[NodeKey]) -> BoxFuture<'static, Result<usize, Arc<str>>> {
        let (node, jobs) = (self.node.clone(), jobs.to_vec());
        async move {
            node.forgets.send_if_modified(|forgets| {
                let waits = *forgets == Forgets::Later;
                if waits {
                    *forgets = Forgets::Asked;
                }
                waits
            });
            let mut forgets = node.forgets.subscribe();
            drop(forgets.wait_for(|when| *when == Forgets::AtOnce).await);
            node.node.connect().await?.forget_jobs(&jobs).await
        }
        .boxed()
    }
}
