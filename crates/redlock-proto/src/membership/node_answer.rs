use std::{fmt, sync::Arc, time::Duration};

use crate::{HolderLabel, NoClaim, NotAVote, Tick};

/// The answer of a node, or the reason for which it has none.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum NodeAnswer {
    /// It can be reached, and it votes.
    Reachable,
    /// It can be reached and should vote, and it ended what it was last asked for with an error.
    Failing {
        /// The error.
        reason: Arc<str>,
    },
    /// It granted.
    Granted,
    /// It let the key go.
    Released,
    /// Another holds the key there.
    Held {
        /// For how long at most; `None` if the key never expires.
        remaining: Option<Duration>,
        /// The holder's label, if it has one.
        holder: Option<HolderLabel>,
    },
    /// Nobody holds the key there.
    Missing,
    /// It can be reached, and what it grants is no vote.
    NotAVote {
        /// The reason.
        reason: NotAVote,
    },
    /// The tick, or a later one, was claimed there.
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
    /// The node may have forgotten that the tick was claimed.
    Forgot,
    /// The request was not run.
    NotExecuted {
        /// The reason.
        reason: Arc<str>,
    },
    /// The request may have run.
    Unknown {
        /// The reason for which that is not known.
        reason: Arc<str>,
    },
    /// It had not answered when the others decided.
    Pending,
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
                match remaining.map(|remaining| remaining.as_millis()) {
                    Some(ms) => write!(f, "for {ms} ms at most"),
                    None => f.write_str("under a key that never expires"),
                }
            }
            Self::Missing => f.write_str("nobody holds the key"),
            Self::NotAVote { reason } => write!(f, "does not vote: {reason}"),
            Self::Passed { watermark } => write!(f, "the tick at {watermark} was claimed"),
            Self::TooEarly { by } => {
                let ms = by.as_millis();
                write!(f, "too early for the tick, by {ms} ms of its clock")
            }
            Self::TooLate { by } => {
                let ms = by.as_millis();
                write!(f, "too late for the tick, by {ms} ms of its clock")
            }
            Self::Forgot => f.write_str("it may have forgotten that the tick was claimed"),
            Self::NotExecuted { reason } => write!(f, "not executed: {reason}"),
            Self::Unknown { reason } => write!(f, "no usable answer: {reason}"),
            Self::Pending => f.write_str("no answer yet"),
        }
    }
}
