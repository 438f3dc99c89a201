//! What clients with tasks have in common.

use std::time::Duration;

/// A client whose calls are futures.
pub(super) trait Locks: Clone + Send + Sync + 'static {
    /// A lock that is held.
    type Held: Send;

    /// Acquires `key` for `ttl`, or returns `None` if that failed.
    fn acquire(&self, key: &str, ttl: Duration) -> impl Future<Output = Option<Self::Held>> + Send;

    /// Releases what is held, and says if a majority has confirmed that.
    fn release(&self, held: Self::Held) -> impl Future<Output = bool> + Send;

    /// Says if a lock is still held, as far as the client knows; most clients do not look after what they hold.
    fn is_held(_: &Self::Held) -> bool {
        false
    }
}
