//! The view of a guard on its lease.

use std::time::Duration;

use super::LockGuard;
use crate::{FencingToken, Lease, LeaseLost, LossReason, Mode, ResourceKey};

impl LockGuard {
    /// Returns whether the lease is exclusive or shared, as [`Lease::mode`] says.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// use redlock_core::Mode;
    ///
    /// let guard = redlock.acquire("catalogue").await?;
    /// assert_eq!(guard.mode(), Mode::Exclusive);
    /// guard.downgrade().await?;
    /// assert_eq!(guard.mode(), Mode::Shared);
    /// # Ok(())
    /// # }
    /// ```
    pub fn mode(&self) -> Mode {
        self.lease().mode()
    }

    /// Returns a view of the lease, which the holder can clone and pass on.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// let guard = redlock.acquire("import").await?;
    /// let lease = guard.lease().clone();
    /// let watch = tokio::spawn(async move { lease.lost().await });
    /// guard.release().await?;
    /// assert_eq!(watch.await?, redlock_core::LossReason::Released);
    /// # Ok(())
    /// # }
    /// ```
    pub fn lease(&self) -> &Lease {
        self.held.lease()
    }

    /// Returns the fencing token of this lease, as [`Lease::token`] says: greater than that of every lease on the resource
    /// before it.
    ///
    /// Pass it to the resource with each write, and let the resource refuse older tokens; see
    /// [`Fence`](crate::Fence).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// use redlock_core::Fence;
    ///
    /// // In the resource: a row's column, say, that each write compares and sets.
    /// let mut fence = Fence::new();
    ///
    /// let first = redlock.acquire("account:7").await?.token(); // and let go
    /// let second = redlock.acquire("account:7").await?;
    /// fence.write(second.token())?;
    /// assert!(fence.write(first).is_err(), "the write of an earlier holder is late");
    /// # Ok(())
    /// # }
    /// ```
    pub fn token(&self) -> FencingToken {
        self.lease().token()
    }

    /// Returns the key of the lease; the first of its [keys](Self::keys) if it has several.
    pub fn key(&self) -> &ResourceKey {
        self.lease().key()
    }

    /// Returns all keys of the lease, in order.
    pub fn keys(&self) -> &[ResourceKey] {
        self.lease().keys()
    }

    /// Runs `work` for as long as the lease is valid, as [`Lease::run`] says.
    ///
    /// # Errors
    ///
    /// The lease was lost, and this dropped `work` unfinished.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with its timer enabled.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `work`; the lease stays with the guard.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// let guard = redlock.acquire("invoice:2026-11").await?;
    /// let total = guard.run(async { 6 * 7 }).await?;
    /// assert_eq!(total, 42);
    /// guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, LeaseLost> {
        self.lease().run(work).await
    }

    /// Returns whether the lease is valid at this moment, as [`Lease::is_held`] says.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// let guard = redlock.acquire("invoice:2026-11").await?;
    /// // Code that blocks its thread cannot be dropped in time: it asks before each step that matters.
    /// for _page in 0..3 {
    ///     if !guard.is_held() {
    ///         return Err("the lease was lost".into());
    ///     }
    /// }
    /// assert!(guard.remaining() <= redlock.ttl());
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_held(&self) -> bool {
        self.lease().is_held()
    }

    /// Returns how much longer the lease is valid, as [`Lease::remaining`] says; zero once it is lost.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// use std::time::Duration;
    ///
    /// let guard = redlock.acquire("report").await?;
    /// // Work that takes two seconds at most begins only with time to spare.
    /// if guard.remaining() > Duration::from_secs(4) {
    ///     // Works.
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn remaining(&self) -> Duration {
        self.lease().remaining()
    }

    /// Waits until the lease is no longer valid, as [`Lease::lost`] says.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with its timer enabled.
    ///
    /// # Cancel safety
    ///
    /// Dropping it has no effect.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// # async fn import() {}
    /// let guard = redlock.acquire("import").await?;
    /// tokio::select! {
    ///     biased; // the clock first
    ///     reason = guard.lost() => eprintln!("import is given up: {reason}"),
    ///     () = import() => guard.release().await?,
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn lost(&self) -> LossReason {
        self.lease().lost().await
    }

    /// Waits until the lease is in danger, as [`Lease::endangered`] says.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with its timer enabled.
    ///
    /// # Cancel safety
    ///
    /// Dropping it has no effect.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// # async fn next_batch() -> Option<()> { None }
    /// let guard = redlock.acquire("import").await?;
    /// loop {
    ///     tokio::select! {
    ///         biased;
    ///         () = guard.endangered() => break, // keeps what is done, begins nothing new
    ///         batch = next_batch() => if batch.is_none() { break },
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn endangered(&self) {
        self.lease().endangered().await;
    }

    /// Returns whether the lease is in danger, as [`Lease::is_endangered`] says.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// let guard = redlock.acquire("import").await?;
    /// for _batch in 0..3 {
    ///     if guard.is_endangered() {
    ///         break;
    ///     }
    ///     // Imports a batch.
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_endangered(&self) -> bool {
        self.lease().is_endangered()
    }
}
