use std::{fmt, sync::Arc, time::Duration};

/// What one node had to do with an error.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct NodeReport {
    /// The node's address, without credentials.
    pub node: Arc<str>,
    /// What it said.
    pub answer: NodeAnswer,
}

/// What a node said, or why it said nothing.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum NodeAnswer {
    /// It can be reached.
    Reachable,
    /// It granted.
    Granted,
    /// It let the key go.
    Released,
    /// Another holds the key there.
    Held {
        /// For how long at most; `None` if the key never expires.
        remaining: Option<Duration>,
    },
    /// Nobody holds the key there.
    Missing,
    /// The request was not run.
    NotExecuted {
        /// Why.
        reason: Arc<str>,
    },
    /// The request may have run.
    Unknown {
        /// Why that is not known.
        reason: Arc<str>,
    },
    /// It had not answered when the others decided.
    Pending,
}

impl fmt::Display for NodeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.node, self.answer)
    }
}

impl fmt::Display for NodeAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reachable => f.write_str("reachable"),
            Self::Granted => f.write_str("granted"),
            Self::Released => f.write_str("released"),
            Self::Held {
                remaining: Some(remaining),
            } => {
                write!(
                    f,
                    "held by another for {} ms at most",
                    remaining.as_millis()
                )
            }
            Self::Held { remaining: None } => {
                f.write_str("held by another under a key that never expires")
            }
            Self::Missing => f.write_str("nobody holds the key"),
            Self::NotExecuted { reason } => write!(f, "not executed: {reason}"),
            Self::Unknown { reason } => write!(f, "no usable answer: {reason}"),
            Self::Pending => f.write_str("no answer yet"),
        }
    }
}

/// Writes a line per node, indented, each on a line of its own.
pub(super) fn write_lines(f: &mut fmt::Formatter<'_>, nodes: &[NodeReport]) -> fmt::Result {
    nodes.iter().try_for_each(|node| write!(f, "\n  {node}"))
}
