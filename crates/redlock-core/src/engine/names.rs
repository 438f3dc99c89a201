//! The nodes of a client by name, and the server that each of them is at this moment.

use std::{
    ops::Deref,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::node::Node;

/// The nodes of a client, in their order.
///
/// Clones share the servers: the driver notes them, and reports show them.
#[derive(Clone, Debug)]
pub(crate) struct NodeNames(Arc<[Arc<NodeName>]>);

/// A node by name.
#[derive(Debug)]
pub(crate) struct NodeName {
    /// Its address without credentials, or where its server is asked for.
    pub(crate) name: Arc<str>,
    /// The address of the server of its session, if others name the server.
    server: Mutex<Option<Arc<str>>>,
}

impl NodeNames {
    pub(crate) fn of(nodes: &[Arc<dyn Node>]) -> Self {
        let name = |node: &Arc<dyn Node>| {
            Arc::new(NodeName {
                name: node.name(),
                server: Mutex::default(),
            })
        };
        Self(nodes.iter().map(name).collect())
    }
}

impl Deref for NodeNames {
    type Target = [Arc<NodeName>];

    fn deref(&self) -> &[Arc<NodeName>] {
        &self.0
    }
}

impl NodeName {
    /// Returns the address of the server of its session, if others name the server.
    pub(crate) fn server(&self) -> Option<Arc<str>> {
        self.lock().clone()
    }

    /// Notes the server of a session that begins, or that a session has ended.
    pub(super) fn set_server(&self, server: Option<Arc<str>>) {
        *self.lock() = server;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<str>>> {
        // Nothing panics while the lock is held.
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
