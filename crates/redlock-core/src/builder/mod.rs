//! Describes a client, and starts it.

// In the order in which the documentation has the methods.
mod nodes;

mod limits;
mod load;
mod trust;
mod virtual_time;

mod build;

use crate::{Config, FanOut, Redlock, VirtualProcess};

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
    max_waiters_per_key: usize,
    max_waiters: usize,
    max_hand_overs: u32,
    connect_lazily: bool,
    functions: bool,
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
            max_waiters_per_key: 1_024,
            max_waiters: 65_536,
            max_hand_overs: 63,
            connect_lazily: false,
            functions: true,
            process: None,
            seed: None,
            fan_out: FanOut::default(),
        }
    }
}
