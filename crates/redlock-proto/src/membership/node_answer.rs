use std::{fmt, sync::Arc, time::Duration};

use crate::{HolderLabel, NoClaim, Quarantine, RequestError, Rounded, Tick, Unfit};

/// The answer of a node, or the reason for which it has none.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum NodeAnswer {
    /// The client can reach the node, and the node votes.
    Reachable,
    /// The client can reach the node, which should vote, but the node ended the last request with an error.
    Failing {
        /// The error.
        reason: Arc<str>,
    },
    /// The node granted.
    Granted,
    /// The node released the key.
    Released,
    /// Another holder has the key there.
    Held {
        /// The time until the key ends at the latest; `None` if the key never expires.
        remaining: Option<Duration>,
        /// The holder's label, if it has one.
        holder: Option<HolderLabel>,
    },
    /// Other clients give the resource another number of slots there.
    OtherSlots {
        /// Their number.
        count: u8,
        /// The time after which the node forgets it, unless they acquire or renew a slot until then, or try to.
        remaining: Duration,
    },
    /// No holder has the key there.
    Missing,
    /// The client can reach the node, but the node's grants are no votes.
    NotAVote {
        /// The reason.
        reason: NotAVote,
    },
    /// A replica has claimed the tick, or a later one, there.
    Passed {
        /// The watermark.
        watermark: Tick,
    },
    /// It is too early for the tick, by the node's clock.
    TooEarly {
        /// The time that is missing.
        by: Duration,
    },
    /// It is too late for the tick, by the node's clock.
    TooLate {
        /// The time that is over.
        by: Duration,
    },
    /// The node may have forgotten a claim of the tick.
    Forgot,
    /// The node did not execute the request.
    NotExecuted {
        /// The reason.
        reason: Arc<str>,
    },
    /// The node may have executed the request.
    Unknown {
        /// The reason for which that is not known.
        reason: Arc<str>,
    },
    /// The node had not answered when the other nodes decided.
    Pending,
}

impl NodeAnswer {
    /// Returns whether this is the standing of a node that votes, even if the node fails at this moment.
    pub const fn votes(&self) -> bool {
        matches!(self, Self::Reachable | Self::Failing { .. })
    }
}

impl From<&NoClaim> for NodeAnswer {
    fn from(refusal: &NoClaim) -> Self {
        match refusal {
            NoClaim::Passed(last) => Self::Passed {
                watermark: last.tick,
            },
            NoClaim::Early { by } => Self::TooEarly { by: *by },
            NoClaim::Late { by } => Self::TooLate { by: *by },
            NoClaim::Forgot => Self::Forgot,
        }
    }
}

impl From<&RequestError> for NodeAnswer {
    fn from(error: &RequestError) -> Self {
        let reason = Arc::clone(&error.reason);
        if error.may_have_run {
            Self::Unknown { reason }
        } else {
            Self::NotExecuted { reason }
        }
    }
}

impl fmt::Display for NodeAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reachable => f.write_str("reachable"),
            Self::Failing { reason } => write!(f, "reachable, and fails: {reason}"),
            Self::Granted => f.write_str("granted"),
            Self::Released => f.write_str("released"),
            Self::Held { remaining, holder } => {
                let holder = holder.as_ref().map_or("another", HolderLabel::as_str);
                write!(f, "held by {holder} ")?;
                match remaining.map(Rounded) {
                    Some(left) => write!(f, "for {left} at most"),
                    None => f.write_str("under a key that never expires"),
                }
            }
            Self::OtherSlots { count, remaining } => {
                let left = Rounded(*remaining);
                write!(f, "others give it {count} slots, remembered for {left}")
            }
            Self::Missing => f.write_str("nobody holds the key"),
            Self::NotAVote { reason } => write!(f, "does not vote: {reason}"),
            Self::Passed { watermark } => write!(f, "the tick at {watermark} was claimed"),
            Self::TooEarly { by } => {
                let by = Rounded(*by);
                write!(f, "too early for the tick, by {by} of its clock")
            }
            Self::TooLate { by } => {
                let by = Rounded(*by);
                write!(f, "too late for the tick, by {by} of its clock")
            }
            Self::Forgot => f.write_str("it may have forgotten that the tick was claimed"),
            Self::NotExecuted { reason } => write!(f, "not executed: {reason}"),
            Self::Unknown { reason } => write!(f, "no usable answer: {reason}"),
            Self::Pending => f.write_str("no answer yet"),
        }
    }
}

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
                "it may have forgotten leases: wait, it votes in {} at the earliest",
                Rounded(*ready_in)
            ),
            Self::Stuck { reason } => write!(f, "it cannot leave its quarantine: {reason}"),
            Self::Clock => f.write_str(
                "its clock differs from the others' by more than a second; synchronise it",
            ),
            Self::Alone => {
                f.write_str("too few other nodes can be reached to compare its clock with theirs; it is well: bring the others back")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_as_in_the_other_texts_for_people() {
        let (left, by) = (Duration::from_millis(11_674), Duration::from_millis(61_500));
        let reason = NotAVote::Quarantined { ready_in: left };
        let remaining = Some(left);
        let holder = None;
        for (answer, words) in [
            (
                NodeAnswer::NotAVote { reason },
                "votes in 11 s at the earliest",
            ),
            (NodeAnswer::Held { remaining, holder }, "for 11 s at most"),
            (NodeAnswer::TooEarly { by }, "by 1 min 1 s of its clock"),
        ] {
            let text = answer.to_string();
            assert!(text.contains(words), "{text}");
        }
    }
}
