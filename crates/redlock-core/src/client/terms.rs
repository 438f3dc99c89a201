//! The settings of a client, and the options that it can grant.

use std::{sync::Arc, time::Duration};

use super::Redlock;
use crate::{AcquireOptions, InvalidOption};

impl Redlock {
    /// Returns a number for this client that no other client of the process has; all its handles tell the same.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// let handle = redlock.clone();
    /// assert_eq!(handle.id(), redlock.id());
    /// # Ok(())
    /// # }
    /// ```
    pub fn id(&self) -> u64 {
        self.client.engine.client()
    }

    /// Returns the namespace of all keys; `verbatim` where names are keys just as they are.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::Redlock;
    ///
    /// let redlock = Redlock::builder().in_memory_nodes(3).namespace("billing").build().await?;
    /// assert_eq!(&*redlock.namespace(), "billing");
    /// # Ok(())
    /// # }
    /// ```
    pub fn namespace(&self) -> Arc<str> {
        Arc::clone(&self.client.namespace)
    }

    /// Returns the number of nodes.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// assert_eq!(redlock.nodes(), 3);
    /// # Ok(())
    /// # }
    /// ```
    pub fn nodes(&self) -> usize {
        self.client.names.len()
    }

    /// Returns the number of nodes that must grant: a strict majority.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// assert_eq!((redlock.nodes(), redlock.majority()), (3, 2));
    /// # Ok(())
    /// # }
    /// ```
    pub fn majority(&self) -> usize {
        self.nodes() / 2 + 1
    }

    /// Returns the time to live of a lease for which none is asked.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// use std::time::Duration;
    ///
    /// assert_eq!(redlock.ttl(), Duration::from_secs(10));
    /// # Ok(())
    /// # }
    /// ```
    pub fn ttl(&self) -> Duration {
        self.client.settings.ttl
    }

    /// Returns the longest time to live that may be asked for.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// use std::time::Duration;
    ///
    /// assert_eq!(redlock.max_ttl(), Duration::from_secs(30));
    /// # Ok(())
    /// # }
    /// ```
    pub fn max_ttl(&self) -> Duration {
        self.client.settings.max_ttl
    }

    /// Returns whether it runs in virtual time, which is for tests (`RedlockBuilder::virtual_time`, with the feature
    /// `test-util`).
    ///
    /// A library on top of a client asks this before it reads clocks of its own, so that both go by the same time.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::Redlock;
    ///
    /// let redlock = Redlock::builder().in_memory_nodes(3).virtual_time().build().await?;
    /// assert!(redlock.is_in_virtual_time());
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_in_virtual_time(&self) -> bool {
        self.client.clock.is_virtual()
    }

    /// Checks that leases can be asked for with `options`.
    ///
    /// [`acquire_with`](Self::acquire_with) does it too; this is for programs that take options when they are set
    /// up, long before the first acquire.
    ///
    /// # Errors
    ///
    /// The option at fault, and what it may be.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// use redlock_core::AcquireOptions;
    /// use std::time::Duration;
    ///
    /// let options = AcquireOptions::new().ttl(Duration::from_secs(3_600));
    /// let invalid = redlock.check(&options).unwrap_err();
    /// assert_eq!(invalid.field(), "ttl");
    /// # Ok(())
    /// # }
    /// ```
    pub fn check(&self, options: &AcquireOptions) -> Result<(), InvalidOption> {
        self.client.settings.timing_of(options).map(drop)
    }
}
