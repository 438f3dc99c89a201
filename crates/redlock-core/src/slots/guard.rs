use crate::{LockGuard, ReleaseError};

/// The holder of a slot; dropping it frees the slot.
///
/// It keeps every promise of a [`LockGuard`].
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// let slot = redlock.slots("reports", 4)?.acquire().await?;
/// assert!(slot.slot() < 4);
/// let pages = slot.guard().run(async { 3 }).await?; // dropped if the lease is lost
/// slot.release().await?;
/// # assert_eq!(pages, 3);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[clippy::has_significant_drop]
#[must_use = "dropping the guard frees the slot"]
pub struct SlotGuard {
    pub(super) guard: LockGuard,
    pub(super) slot: usize,
}

impl SlotGuard {
    /// Returns the number of the held slot: below [`Slots::count`](crate::Slots::count).
    pub fn slot(&self) -> usize {
        self.slot
    }

    /// Returns the guard of the slot's lock, with its lease and its token.
    pub fn guard(&self) -> &LockGuard {
        &self.guard
    }

    /// Returns the guard of the slot's lock, which frees the slot when it is dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// // For code that takes any guard.
    /// let guard: redlock_core::LockGuard = redlock.slots("reports", 4)?.acquire().await?.into_guard();
    /// guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn into_guard(self) -> LockGuard {
        self.guard
    }

    /// Frees the slot, as [`LockGuard::release`] does.
    ///
    /// # Errors
    ///
    /// As [`LockGuard::release`].
    ///
    /// # Cancel safety
    ///
    /// As [`LockGuard::release`].
    pub async fn release(self) -> Result<(), ReleaseError> {
        self.guard.release().await
    }
}
