//! A node whose server refuses calls for a while, whose connection takes its time, or whose code
//! panics.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};
use redlock_core::{
    MemoryNode, NodeConfig, Redlock, RedlockBuilder,
    node::{CallError, CallResult, Keyspace, Node, Request, Session},
};

use crate::paused_time::fixtures::MS;

#[derive(Clone, Debug)]
pub(crate) struct OddNode {
    pub(crate) node: MemoryNode,
    pub(crate) refuse: Switch,
    pub(crate) cut: Switch,
    pub(crate) panic: Switch,
    connect: Duration,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Switch(Arc<AtomicBool>);

impl Switch {
    pub(crate) fn set(&self, on: bool) {
        self.0.store(on, Ordering::SeqCst);
    }

    fn is_on(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

pub(crate) fn odd(nodes: usize, connect: Duration) -> Vec<OddNode> {
    let odd = |_| OddNode {
        node: MemoryNode::new(),
        refuse: Switch::default(),
        cut: Switch::default(),
        panic: Switch::default(),
        connect,
    };
    (0..nodes).map(odd).collect()
}

pub(crate) async fn client(nodes: &[OddNode]) -> Redlock {
    let nodes = nodes.iter().map(|node| NodeConfig::other(node.clone()));
    let builder: RedlockBuilder = Redlock::builder().nodes(nodes).virtual_time();
    builder.build().await.expect("the nodes are up")
}

pub(crate) fn keys(nodes: &[OddNode]) -> Vec<usize> {
    nodes.iter().map(|node| node.node.keys()).collect()
}

impl Node for OddNode {
    fn name(&self) -> Arc<str> {
        self.node.name()
    }

    fn connect(&self) -> BoxFuture<'static, Result<Box<dyn Session>, Arc<str>>> {
        let node = self.clone();
        async move {
            tokio::time::sleep(node.connect).await;
            let inner = node.node.connect().await?;
            Ok(Box::new(OddSession { inner, node }) as Box<dyn Session>)
        }
        .boxed()
    }
}

struct OddSession {
    inner: Box<dyn Session>,
    node: OddNode,
}

impl Session for OddSession {
    fn call(
        &mut self,
        keyspace: &Arc<Keyspace>,
        requests: &[Request],
    ) -> BoxFuture<'static, CallResult> {
        assert!(!self.node.panic.is_on(), "a mistake in the node's code");
        if self.node.refuse.is_on() {
            return async {
                tokio::time::sleep(MS).await;
                let busy = "BUSY Redis is busy running a script";
                Err(CallError::not_executed(busy))
            }
            .boxed();
        }
        let answer = self.inner.call(keyspace, requests);
        if self.node.cut.is_on() {
            async { Err(CallError::lost("connection reset")) }.boxed()
        } else {
            answer
        }
    }
}
