//! Presence of the keys of a lease on one node, as the owner knows it.

/// Whether a node has the lease's key, or all its keys.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Presence {
    No,
    /// It has not all of several keys, and perhaps some.
    NotAll,
    /// It does, or the request for it is on its way over a connection that stands.
    Yes,
    /// It lost the key and is being given it again; what it says of an extension was asked before.
    Healing,
    /// Nobody knows, and a request for it may arrive at any time.
    Unknown,
}
