//! The news for an operator.

use std::{fmt, sync::Arc, time::Duration};

use crate::NotAVote;

/// Something an operator should know.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Notice {
    /// A node's grants are votes from now on.
    Votes {
        /// The node.
        node: usize,
    },
    /// A node's grants are no votes any more.
    DoesNotVote {
        /// The node.
        node: usize,
        /// The reason.
        reason: NotAVote,
        /// If it may have forgotten leases: by what.
        forgot: Option<Forgot>,
    },
    /// The first look at the nodes found none that votes, and a majority in quarantine: the namespace is new on them, or
    /// all of them restarted or were emptied.
    ///
    /// It stands for the news of each of these nodes, and of the majority that is missing.
    FirstStart {
        /// The number of nodes in quarantine.
        nodes: usize,
        /// The time until enough of them may vote for a majority.
        ready_in: Duration,
    },
    /// A node votes and refuses to write, so that it grants nothing.
    RefusesWrites {
        /// The node.
        node: usize,
        /// Its error.
        reason: Arc<str>,
    },
    /// A node that refused to write has written again.
    Writes {
        /// The node.
        node: usize,
    },
    /// Enough nodes vote for a majority, or do not.
    Majority {
        /// The change.
        is: Majority,
        /// The number of nodes that vote.
        votes: usize,
        /// The number of nodes that must vote.
        needed: usize,
    },
    /// A renewal of a lease is failing, and little more than a third of the lease's time to live is left.
    Endangered {
        /// The lease.
        lease: u64,
    },
    /// Too few nodes that have kept their counters were read, so the order of tokens rests on the wall clock from here
    /// on.
    FencingDegraded {
        /// The node whose counters were restored.
        node: usize,
        /// `true` if all nodes were read and none has ever counted, or if the node is in quarantine since a
        /// [`FirstStart`](Self::FirstStart).
        is_first_use: bool,
    },
    /// An acquisition begins another attempt, after one that did not win.
    Retries {
        /// The acquisition.
        acquisition: u64,
    },
    /// Callers that waited in line before an acquisition have left the line: one of them may have won.
    MovesUp {
        /// The acquisition.
        acquisition: u64,
    },
    /// An extension was not confirmed by a majority; the lease keeps its deadline.
    ExtensionFailed {
        /// The lease.
        lease: u64,
    },
}

/// The change in the majority of nodes that vote.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must handle every change")]
pub enum Majority {
    /// There is none any more, or none yet: nothing is acquired or renewed.
    Lost,
    /// There is one again.
    Regained,
    /// It is lost with one more node.
    AtRisk,
    /// It outlives the loss of a node again.
    Safe,
}

/// The event by which a node may have forgotten leases, as far as the client has seen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Forgot {
    /// The client has not seen it vote.
    Unseen,
    /// It is another run of a server than before.
    Restarted,
    /// It is the same run, and its mark is gone.
    Emptied,
}

impl fmt::Display for Forgot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unseen => {
                "the namespace is new on it, or it restarted or was emptied before this client saw it vote"
            }
            Self::Restarted => "the server was restarted, or another has taken its place",
            Self::Emptied => "its keys were deleted, its data was replaced, or a replica of it came or went",
        })
    }
}
