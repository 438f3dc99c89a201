use std::time::Duration;

/// The longest time that an acquire waits for a resource that another holds.
///
/// It is always finite, because a wait without an end is a hang.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// use redlock_core::{AcquireErrorKind, AcquireOptions, Wait};
/// use std::time::Duration;
///
/// let guard = redlock.acquire("report").await?;
/// for wait in [Wait::Never, Wait::UpTo(Duration::from_millis(20))] {
///     let options = AcquireOptions::new().wait(wait);
///     let refused = redlock.acquire_with("report", options).await.unwrap_err();
///     assert_eq!(refused.kind(), AcquireErrorKind::Contended);
/// }
/// # drop(guard);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Wait {
    /// Makes one attempt, and does not wait.
    Never,
    /// Waits in the local queue and tries again up to this long, a day at most.
    UpTo(Duration),
}

impl Wait {
    pub(crate) fn duration(self) -> Duration {
        match self {
            Self::Never => Duration::ZERO,
            Self::UpTo(longest) => longest.min(LONGEST_WAIT),
        }
    }
}

const LONGEST_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// The side that moves the deadline of a lease: the client or the holder.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// use redlock_core::{AcquireOptions, Renewal};
///
/// let options = AcquireOptions::new().renewal(Renewal::Manual);
/// let guard = redlock.acquire_with("report", options).await?;
/// for _page in 0..3 {
///     // Writes a page.
///     guard.extend().await?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Renewal {
    /// The client, from a third of the time to live on, for as long as the guard lives.
    #[default]
    Automatic,
    /// The holder, by [`LockGuard::extend`](crate::LockGuard::extend).
    Manual,
}
