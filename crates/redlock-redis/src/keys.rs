//! Names that are keys just as they are.

use redlock_proto::Keyspace;

/// With what the nodes' own keys begin where names stay as they are.
pub const VERBATIM: &str = "{redlock:verbatim}";

/// Returns whether names stay as they are.
pub(crate) fn is_verbatim(keyspace: &Keyspace) -> bool {
    keyspace.mark().as_str().starts_with(VERBATIM)
}
