//! Describes a client, and starts it.

// In the order in which the documentation has the methods.
mod nodes;

mod limits;
mod test_util;

mod build;

use redlock_proto::FanOut;

use crate::{Config, Expert, Redlock, process::VirtualProcess};

/// Describes a client; [`Redlock::builder`] makes it.
///
/// Only the nodes have no default.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use redlock_core::{Redlock, Wait};
/// use std::time::Duration;
///
/// let redlock = Redlock::builder()
///     .in_memory_nodes(3) // in production: .nodes(["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"])
///     .namespace("billing")
///     .ttl(Duration::from_secs(5))
///     .wait(Wait::UpTo(Duration::from_secs(2)))
///     .build()
///     .await?;
/// assert_eq!(redlock.majority(), 2);
/// # assert_eq!(redlock.ttl(), Duration::from_secs(5));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct RedlockBuilder {
    config: Config,
    connect_lazily: bool,
    process: Option<VirtualProcess>,
    seed: Option<u64>,
    fan_out: FanOut,
}

impl Redlock {
    /// Starts to describe a client.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// assert_eq!(redlock.nodes(), 3);
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder() -> RedlockBuilder {
        RedlockBuilder::new()
    }
}

impl RedlockBuilder {
    fn new() -> Self {
        Self {
            config: Config::default(),
            connect_lazily: false,
            process: None,
            seed: None,
            fan_out: FanOut::default(),
        }
    }

    /// Sets rare and dangerous settings.
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_core::Redlock;
    ///
    /// let builder = Redlock::builder()
    ///     .nodes(["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"])
    ///     // Each node has `appendonly yes`, `appendfsync always` and no replica.
    ///     .expert(|expert| expert.dangerous_trust_persistence = true);
    /// # drop(builder);
    /// ```
    pub fn expert(mut self, set: impl FnOnce(&mut Expert)) -> Self {
        set(&mut self.config.expert);
        self
    }
}
