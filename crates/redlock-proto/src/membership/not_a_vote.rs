use std::{fmt, sync::Arc, time::Duration};

use crate::{Quarantine, Unfit};

/// The reason for which a grant of a node is not a vote.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum NotAVote {
    /// It may have forgotten leases.
    Quarantined {
        /// The time until it may vote again, if its clock is not set back meanwhile.
        ready_in: Duration,
    },
    /// It cannot leave its quarantine, because it answers with an error when a client looks at it or tells it to vote.
    Stuck {
        /// Its error.
        reason: Arc<str>,
    },
    /// Its wall clock does not agree with a majority of the others.
    Clock,
    /// The client reaches too few other nodes to know whether its wall clock agrees with theirs.
    Alone,
    /// It is the same server as another node, which votes for both.
    SameServer {
        /// The other node's place in the list of nodes, from 0.
        of: usize,
    },
    /// Clients with another longest time to live, or of another version, use this namespace on it.
    PolicyMismatch {
        /// The policy of the others.
        theirs: Arc<str>,
        /// The policy of this client.
        ours: Arc<str>,
    },
    /// An operator must change something about the node first.
    Unfit(Unfit),
    /// The client has not read its server info yet.
    Unexamined,
}

impl NotAVote {
    /// Returns whether an operator has to change something first.
    pub(crate) const fn needs_a_change(&self) -> bool {
        matches!(
            self,
            Self::SameServer { .. } | Self::PolicyMismatch { .. } | Self::Unfit(_)
        )
    }

    /// Returns when the node may vote again, if it is only quarantined.
    pub const fn ready_in(&self) -> Option<Duration> {
        match self {
            Self::Quarantined { ready_in } => Some(*ready_in),
            _ => None,
        }
    }
}

impl fmt::Display for NotAVote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quarantined { ready_in } => write!(
                f,
                "it may have forgotten leases: wait, it votes in {} ms at the earliest",
                ready_in.as_millis()
            ),
            Self::Stuck { reason } => write!(f, "it cannot leave its quarantine: {reason}"),
            Self::Clock => f.write_str(
                "its clock differs from the others' by more than a second; synchronise it",
            ),
            Self::Alone => {
                f.write_str("too few other nodes can be reached to compare its clock with theirs")
            }
            Self::SameServer { of } => write!(
                f,
                "it is the same server as nodes[{of}]; each vote needs a server of its own"
            ),
            Self::PolicyMismatch { theirs, ours }
                if Quarantine::version_of(theirs) != Quarantine::version_of(ours) =>
            {
                write!(
                    f,
                    "another version of this client uses this namespace there ({theirs}), and this one has {ours}; see Versions in the crate's documentation"
                )
            }
            Self::PolicyMismatch { theirs, ours } => {
                f.write_str("clients with another policy use this namespace there: ")?;
                let all = Quarantine::differences(theirs, ours).unwrap_or_default();
                for (name, theirs, ours) in &all {
                    write!(f, "their {name} is {theirs}, and this client's is {ours}; ")?;
                }
                if all.is_empty() {
                    write!(f, "theirs is {theirs}, and this client's is {ours}; ")?;
                }
                f.write_str("give this client their value, or the other clients this one: see Another policy in docs/operating.md")
            }
            Self::Unfit(unfit) => unfit.fmt(f),
            Self::Unexamined => f.write_str("it has not said yet what it is"),
        }
    }
}
