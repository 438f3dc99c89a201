//! Scopes of a client's work.

use super::Redlock;
use crate::{
    engine::Origin,
    guard::scope::{Scope, ScopeEnd, Scopes, current},
};

impl Redlock {
    /// Runs `work` in a new [`Scope`], in which `work` can acquire again a resource that it holds.
    ///
    /// A scope within a scope of the same client also has the leases of the outer one.
    ///
    /// When `work` is done, or dropped, the scope ends and releases every lease that it still holds.
    /// A guard that outlives its scope is useless: its lease reports
    /// [`ScopeEnded`](crate::LossReason::ScopeEnded), and the client logs a warning.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `work`, and releases every lease of the scope.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// let token = redlock
    ///     .scope(async {
    ///         let outer = redlock.acquire("account:7").await?;
    ///         let inner = redlock.acquire("account:7").await?; // the same lease
    ///         assert_eq!(outer.token(), inner.token());
    ///         Ok::<_, redlock_core::AcquireError>(inner.token())
    ///     })
    ///     .await?;
    /// assert!(redlock.try_acquire("account:7").await?.token() > token);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn scope<F: Future>(&self, work: F) -> F::Output {
        let origin = Origin {
            client: self.id(),
            namespace: self.namespace(),
        };
        let scope = Scope::new(origin);
        let _end = ScopeEnd(scope.clone());
        scope.enter(work).await
    }

    /// Makes this handle acquire outside of every [scope](Scope): an acquire uses no lease of a scope, and its lease
    /// outlives all scopes.
    ///
    /// It is meant for middleware that holds a lock beyond the scope in which a caller may call it, as the layer of
    /// `redlock-tower` does.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// let outside = redlock.clone().outside_scopes();
    /// let guard = redlock.scope(outside.acquire("report")).await?;
    /// assert!(guard.is_held(), "the scope has ended");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn outside_scopes(mut self) -> Self {
        self.is_outside_scopes = true;
        self
    }

    /// Returns the scope of this client in which this code runs: the innermost, if there are several.
    ///
    /// A task that the work spawns needs it, to join the scope by [`Scope::enter`].
    pub fn current_scope(&self) -> Option<Scope> {
        current(self.id()).pop()
    }

    /// Returns the scopes whose leases an acquire of this handle uses, if there are any.
    pub(crate) fn scopes(&self) -> Option<Scopes> {
        if self.is_outside_scopes {
            None
        } else {
            Scopes::current(self.id())
        }
    }
}
