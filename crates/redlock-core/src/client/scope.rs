//! Scopes of a client's work.

use super::Redlock;
use crate::scope::{End, Scope, current};

impl Redlock {
    /// Runs `work` in a new [`Scope`]: what it acquires, it can acquire again.
    ///
    /// A scope within a scope of the same client has what the outer one holds, too.
    ///
    /// When `work` is done, or dropped, the scope ends and releases whatever it still holds.
    /// A guard that was kept for longer is of no more use: its lease says
    /// [`ScopeEnded`](crate::LossReason::ScopeEnded), and the log has a warning.
    ///
    /// # Cancel safety
    ///
    /// Dropping it drops `work`, and releases what the scope holds.
    pub async fn scope<F: Future>(&self, work: F) -> F::Output {
        let scope = Scope::new(self.id());
        let _end = End(scope.clone());
        scope.enter(work).await
    }

    /// Returns the scope of this client in which this code runs: the innermost, if there are several.
    ///
    /// To take spawned tasks into it by [`Scope::enter`].
    pub fn current_scope(&self) -> Option<Scope> {
        current(self.id()).pop()
    }
}
