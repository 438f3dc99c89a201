//! Deletes what the nodes remember of jobs.

use std::{fmt, sync::Arc};

use futures_util::future::join_all;
use tokio::time::timeout;

use super::Redlock;
use crate::{
    ResourceKey,
    node::{Node, NodeKey},
};

/// The answers of nodes that were asked to forget jobs.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// let forgotten = redlock.dangerous_forget_jobs(&["close-day".parse()?]).await;
/// for node in forgotten.nodes() {
///     if let Some(why) = node.why_not() {
///         eprintln!("{} may remember the job: {why}", node.node());
///     }
/// }
/// assert!(forgotten.is_whole(), "else again, once all nodes can be reached");
/// assert!(!forgotten.was_anything(), "it never ran");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a node that could not be asked remembers them"]
pub struct Forgotten {
    nodes: Vec<NodeForgot>,
}

/// The answer of one node that was asked to forget jobs.
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
/// nodes[2].stop();
/// let forgotten = redlock.dangerous_forget_jobs(&["close-day".parse()?]).await;
/// let [first, _, third] = forgotten.nodes() else {
///     return Err("there are three".into());
/// };
/// assert!(first.why_not().is_none());
/// assert!(third.why_not().is_some(), "{} is down", third.node());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct NodeForgot {
    node: Arc<str>,
    deleted: Result<usize, Arc<str>>,
}

impl Redlock {
    /// Deletes on every node the records of these jobs: the newest claimed tick, and the last runs.
    ///
    /// After that, replicas may start a tick a second time while its window is open.
    /// So use it only for jobs whose ticks no client claims any more; it does not check whether a job runs.
    /// `redlock_cron::dangerous_forget` does check, and knows the resources under which the nodes remember a job of
    /// that crate.
    ///
    /// Each node has the client's `connect_timeout` and `node_timeout` to answer.
    /// A node that did not answer may still remember the jobs, and then reports them to every client again.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, any of the nodes may have forgotten the jobs.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// let forgotten = redlock.dangerous_forget_jobs(&["close-day".parse()?]).await;
    /// assert!(forgotten.is_whole());
    /// assert!(redlock.job_status("close-day").await?.state().is_some_and(|state| state.runs.is_empty()));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn dangerous_forget_jobs(&self, jobs: &[ResourceKey]) -> Forgotten {
        let client = &*self.client;
        let keys: Vec<NodeKey> = jobs
            .iter()
            .map(|job| client.key_space.encode_job(job))
            .collect();
        let limit = client.settings.connect_timeout + client.settings.node_timeout;
        let asked = client.nodes.iter().map(async |node| {
            let answer = timeout(limit, forget(&**node, &keys)).await;
            NodeForgot {
                node: node.name(),
                deleted: answer.unwrap_or_else(|_| Err("no answer in time".into())),
            }
        });
        Forgotten {
            nodes: join_all(asked).await,
        }
    }
}

/// Asks one node, over a connection for this.
async fn forget(node: &dyn Node, keys: &[NodeKey]) -> Result<usize, Arc<str>> {
    node.connect().await?.forget_jobs(keys).await
}

impl Forgotten {
    /// Returns whether no node remembers anything of the jobs.
    pub fn is_whole(&self) -> bool {
        self.nodes.iter().all(|node| node.deleted.is_ok())
    }

    /// Returns whether any node remembered anything.
    pub fn was_anything(&self) -> bool {
        let mut deleted = self.nodes.iter().flat_map(|node| &node.deleted);
        deleted.any(|keys| *keys > 0)
    }

    /// Returns the answer of each node, in the order in which the nodes were given to the client.
    pub fn nodes(&self) -> &[NodeForgot] {
        &self.nodes
    }
}

impl NodeForgot {
    /// Returns the node.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Returns why the node may still remember the jobs; `None` if it does not.
    pub fn why_not(&self) -> Option<&str> {
        self.deleted.as_ref().err().map(|why| &**why)
    }
}

impl fmt::Display for NodeForgot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.why_not() {
            None => write!(f, "{}: remembers nothing of it", self.node),
            Some(why) => write!(f, "{}: may still remember it: {why}", self.node),
        }
    }
}
