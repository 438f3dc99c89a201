use crate::OwnerId;

/// The mode in which a holder has its keys: exclusive, or shared with other readers.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a node must handle every mode")]
pub enum Mode {
    /// No other holder has the keys at the same time: a writer.
    #[default]
    Exclusive,
    /// Other holders may share the keys: a reader.
    Shared,
    /// As [`Exclusive`](Self::Exclusive), of a holder that already shares the keys: its own shared lease is not in the way.
    ///
    /// On a node the two leases exist beside each other until one of them is released.
    /// So a lease that could not be upgraded is as good as before.
    Upgrade {
        /// The owner of the shared lease.
        of: OwnerId,
    },
}

impl Mode {
    /// Returns whether other holders may share the keys.
    pub const fn is_shared(self) -> bool {
        matches!(self, Self::Shared)
    }
}
