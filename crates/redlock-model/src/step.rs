//! What can happen next.

use crate::state::NodeSet;

/// One thing that happens.
///
/// What a client or a survey concludes is part of the step, so that one that can conclude several things
/// has several steps.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Step {
    /// A client asks every node for the key.
    Start { client: usize, proposal: u8 },
    /// A client's acquire reaches a node.
    Acquire { client: usize, node: usize },
    /// A client will never count what a node answered.
    Lose { client: usize, node: usize },
    /// A client settles on a token by the votes it has counted.
    Settle {
        client: usize,
        counted: NodeSet,
        token: u64,
        /// Where it must be written back first.
        write_back: Option<NodeSet>,
    },
    /// A client's write-back reaches a node.
    WriteBack { client: usize, node: usize },
    /// A client learns that a majority has stored its token.
    Finish { client: usize },
    /// A client gives up, or is gone.
    Fail { client: usize },
    /// The key on a node expires or is released.
    Expire { node: usize },
    /// A node loses its memory.
    Crash { node: usize },
    /// A node's quarantine ends.
    EndQuarantine { node: usize },
    /// A node is read on behalf of one that lost its counters.
    Read { node: usize, of: usize },
    /// A node takes its floor, and votes again.
    Open { node: usize, floor: u64 },
}
