//! Settings for tests; with the feature `test-util`.

#![cfg(feature = "test-util")]

use redlock_proto::FanOut;

use super::RedlockBuilder;
use crate::process::VirtualProcess;

impl RedlockBuilder {
    /// Runs the client on the calling tokio runtime and on its clock, instead of on a thread of its own
    /// and the operating system's clock.
    ///
    /// It needs the feature `test-util`, and is meant for tests with paused time, over nodes in memory.
    /// Without it, [`build`](Self::build) fails while tokio's time is paused.
    /// Do not use it in production: a handler that blocks its thread would delay the renewal of leases.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::{Redlock, Renewal, AcquireOptions};
    /// use std::time::Duration;
    ///
    /// // In a test: #[tokio::test(start_paused = true)]
    /// let redlock = Redlock::builder().in_memory_nodes(3).virtual_time().build().await?;
    /// let options = AcquireOptions::new().renewal(Renewal::Manual);
    /// let guard = redlock.acquire_with("report", options).await?;
    /// tokio::time::sleep(Duration::from_secs(10)).await; // takes no time
    /// assert!(!guard.is_held());
    /// # Ok(())
    /// # }
    /// ```
    pub fn virtual_time(self) -> Self {
        self.virtual_process(&VirtualProcess::new())
    }

    /// Runs the client as [`virtual_time`](Self::virtual_time) does, as a part of this process: when it is frozen,
    /// so is the client, with its timers and connections.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::{Redlock, VirtualProcess};
    /// use std::time::Duration;
    ///
    /// // In a test: #[tokio::test(start_paused = true)]
    /// let process = VirtualProcess::new();
    /// let redlock = Redlock::builder().in_memory_nodes(3).virtual_process(&process).build().await?;
    /// let guard = redlock.acquire("report").await?;
    /// process.freeze(); // nothing renews the lease
    /// tokio::time::sleep(Duration::from_secs(10)).await;
    /// assert!(!guard.is_held());
    /// # process.thaw();
    /// # Ok(())
    /// # }
    /// ```
    pub fn virtual_process(mut self, process: &VirtualProcess) -> Self {
        self.process = Some(process.clone());
        self
    }

    /// Derives all random values from this seed, owners included, so that a test can repeat a simulation.
    ///
    /// It is for tests only: any client that knows the seed can release every lease of this client.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::Redlock;
    ///
    /// let redlock = Redlock::builder()
    ///     .in_memory_nodes(3)
    ///     .virtual_time()
    ///     .dangerous_seed(42)
    ///     .build()
    ///     .await?;
    /// # assert!(redlock.is_ready().await);
    /// # Ok(())
    /// # }
    /// ```
    pub fn dangerous_seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets how many of the nodes an acquire or a renewal asks at once, for tests of both ways.
    ///
    /// Default: [`FanOut::Adaptive`], which [Fan-out](crate::guide::waiting#fan-out) describes; it is the only choice in production.
    /// With [`FanOut::Majority`] the renewals of a single lease ask a majority, too; [`FanOut::All`] always asks all.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::{FanOut, Redlock};
    ///
    /// // Three of the five are asked for each lease.
    /// let redlock = Redlock::builder()
    ///     .in_memory_nodes(5)
    ///     .fan_out(FanOut::Majority)
    ///     .build()
    ///     .await?;
    /// assert_eq!(redlock.majority(), 3);
    /// # Ok(())
    /// # }
    /// ```
    pub fn fan_out(mut self, fan_out: FanOut) -> Self {
        self.fan_out = fan_out;
        self
    }
}
