//! The mode of an acquire: alone, or with other readers.

use super::AcquireOptions;
use crate::Mode;

impl AcquireOptions {
    /// Shares the resource with other readers, as [`acquire_shared`](crate::Redlock::acquire_shared) says.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// use redlock_core::{AcquireOptions, Wait};
    ///
    /// let options = AcquireOptions::new().shared().wait(Wait::Never);
    /// let report = redlock.acquire_with("accounts", options.clone()).await?;
    /// let another = redlock.acquire_with("accounts", options).await?;
    /// assert!(redlock.try_acquire("accounts").await.is_err());
    /// # drop((report, another));
    /// # Ok(())
    /// # }
    /// ```
    pub fn shared(mut self) -> Self {
        self.mode = Mode::Shared;
        self
    }

    /// Returns the mode of the lease that these options ask for: exclusive, unless [`shared`](Self::shared) is set.
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_core::{AcquireOptions, Mode};
    ///
    /// assert_eq!(AcquireOptions::new().mode(), Mode::Exclusive);
    /// assert_eq!(AcquireOptions::new().shared().mode(), Mode::Shared);
    /// ```
    pub fn mode(&self) -> Mode {
        self.mode
    }
}
