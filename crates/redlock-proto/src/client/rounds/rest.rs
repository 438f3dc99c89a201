use crate::Instant;

/// How much time a round has left when its timer is due.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum Rest {
    /// Its nodes have more: it is looked at again at this moment.
    Until(Instant),
    /// None.
    Over(Limit),
}

/// The limit that a round has reached.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in super::super) enum Limit {
    /// The one of an attempt that has split the votes.
    Split,
    /// Each node that owes an outcome has said nothing for as long as it may.
    Silence,
    /// It has lasted for too long, though a node that owes an outcome answers others, or was not sent its request yet.
    RanOut,
}
