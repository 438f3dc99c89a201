use std::time::Duration;

/// What is known of a request that was meant for one node.
///
/// A request acts at most once.
/// The difference between [`NotExecuted`](Self::NotExecuted) and [`Unknown`](Self::Unknown) decides
/// about clean-up: a node that may have acted, or may still act, must be told to undo it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// The node did what it was asked to.
    Granted,
    /// The node answered and refused: the key is another's, or it is gone.
    Refused {
        /// How long the present holder's key will stay at most; `None` if nobody holds it, or it
        /// never expires.
        remaining: Option<Duration>,
    },
    /// The request failed before it was sent, or the node said that it did not run it.
    NotExecuted,
    /// The request was sent and no usable answer came in time: it may have run, and may still run.
    Unknown,
}

impl Outcome {
    /// Whether the node may hold, now or later, what it was asked to take.
    pub const fn may_hold(self) -> bool {
        matches!(self, Self::Granted | Self::Unknown)
    }
}
