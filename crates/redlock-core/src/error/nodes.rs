use std::{fmt, sync::Arc};

pub use redlock_proto::{NodeAnswer, NotAVote, Unfit};

use crate::{
    Printable,
    names::{NodeName, NodeNames},
};

/// The report of one node: its address, and its answer.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use redlock_core::{MemoryNode, NodeAnswer, Redlock};
///
/// let nodes = [MemoryNode::new(), MemoryNode::new(), MemoryNode::new()];
/// let redlock = Redlock::builder().nodes(nodes.clone()).build().await?;
/// nodes[0].clear(); // as a restart without data
/// redlock.acquire("report").await?;
/// for report in redlock.node_reports().await {
///     if report.answer != NodeAnswer::Reachable {
///         println!("{report}"); // such as "10.0.0.1:6379: in quarantine for 31.3 s"
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct NodeReport {
    /// The node's address, without credentials; where others name its server, where they are asked, such as
    /// `orders@s1:26379`.
    pub node: Arc<str>,
    /// The node's answer.
    pub answer: NodeAnswer,
    server: Option<Arc<str>>,
}

impl NodeReport {
    /// Names the nodes that gave these answers.
    pub(crate) fn of_all(names: &NodeNames, answers: Vec<NodeAnswer>) -> Vec<Self> {
        let named = names.iter().zip(answers);
        let report = |(node, answer): (&Arc<NodeName>, NodeAnswer)| Self {
            node: Arc::clone(&node.name),
            answer,
            server: node.server(),
        };
        named.map(report).collect()
    }

    /// Returns the address of the server that the node is at this moment, without credentials, where Sentinels or the nodes
    /// of a Cluster name it.
    ///
    /// It returns `None` for a node whose own name is its server's address, and while there is no connection.
    pub fn server(&self) -> Option<&str> {
        self.server.as_deref()
    }
}

impl fmt::Display for NodeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Names and reasons may come from other programs.
        let server = self.server.as_ref();
        let server = server.map_or_else(String::new, |server| format!(" ({server})"));
        let line = format!("{}{server}: {}", self.node, self.answer);
        write!(f, "{}", Printable::new(&line))
    }
}

/// Writes a line per node, indented, each on a line of its own.
pub(super) fn write_lines(f: &mut fmt::Formatter<'_>, nodes: &[NodeReport]) -> fmt::Result {
    nodes.iter().try_for_each(|node| write!(f, "\n  {node}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_would_change_the_text_beside_it_is_shown_escaped() {
        let report = NodeReport {
            node: "cache\u{1b}[2J\u{202e}1".into(),
            answer: NodeAnswer::Reachable,
            server: None,
        };
        assert_eq!(report.to_string(), "cache\\u{1b}[2J\\u{202e}1: reachable");
    }

    #[test]
    fn the_server_of_the_moment_is_beside_the_name() {
        let report = NodeReport {
            node: "orders@s1:26379".into(),
            answer: NodeAnswer::Reachable,
            server: Some("10.0.0.9:6379".into()),
        };
        assert_eq!(report.server(), Some("10.0.0.9:6379"));
        let line = "orders@s1:26379 (10.0.0.9:6379): reachable";
        assert_eq!(report.to_string(), line);
    }
}
