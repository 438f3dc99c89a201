use std::{error::Error, fmt};

use redlock_proto::Loss;

/// A lease that ended before its work did; the work was dropped.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use redlock_core::{AcquireOptions, LossReason, Redlock};
/// use std::{future::pending, time::Duration};
///
/// # let redlock = Redlock::builder().in_memory_nodes(3).virtual_time().build().await?;
/// let options = AcquireOptions::new().max_hold(Duration::from_secs(60));
/// let guard = redlock.acquire_with("report", options).await?;
/// let lost = guard.run(pending::<()>()).await.unwrap_err();
/// assert_eq!(lost.reason(), LossReason::MaxHold);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct LeaseLost {
    reason: LossReason,
}

/// The reason for which a lease is no longer valid.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum LossReason {
    /// Its deadline passed, and no majority had confirmed an extension.
    Expired,
    /// Too many nodes that vote do not have its key for the others to be a majority: another client may have it.
    Revoked,
    /// The clocks of a majority of the nodes have gone ahead of this client's clock by more than the drift allows, so
    /// the nodes may have let the key expire.
    /// Either this machine's clock stood still, as while a hypervisor pauses it, or all those clocks were set forward.
    ClockJump,
    /// The holder has held it for as long as its [`max_hold`](crate::AcquireOptions::max_hold) allows.
    MaxHold,
    /// Its guard released it.
    Released,
    /// Its [scope](crate::Scope) ended before its guards were dropped, and released it.
    ScopeEnded,
}

impl LeaseLost {
    pub(crate) fn new(reason: LossReason) -> Self {
        Self { reason }
    }

    /// Returns the reason.
    pub fn reason(&self) -> LossReason {
        self.reason
    }
}

impl From<Loss> for LossReason {
    fn from(loss: Loss) -> Self {
        match loss {
            Loss::Revoked => Self::Revoked,
            Loss::MaxHold => Self::MaxHold,
            Loss::ClockJump => Self::ClockJump,
            // An unknown loss is reported as the one that is always true by the deadline.
            _ => Self::Expired,
        }
    }
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "its deadline passed without an extension",
            Self::Revoked => "a majority of the nodes votes and does not have its key",
            Self::ClockJump => {
                "the clocks of the nodes went ahead of this machine's, which stood still"
            }
            Self::MaxHold => "it was held for as long as it may be",
            Self::Released => "it was released",
            Self::ScopeEnded => "its scope ended: keep its guards no longer than the scope",
        })
    }
}

impl fmt::Display for LeaseLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the lease is over: {}", self.reason)
    }
}

impl Error for LeaseLost {}

debug_as_display!(LeaseLost);
