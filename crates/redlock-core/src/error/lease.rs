//! The errors of a lease that was acquired: it was lost, or not extended, or not released.

use std::{error::Error, fmt, time::Duration};

use redlock_proto::{Loss, Rounded};

use super::{NodeReport, nodes};

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

/// An extension that moved no deadline.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use redlock_core::{AcquireOptions, ExtendErrorKind, MemoryNode, Redlock, Renewal};
///
/// let nodes = [MemoryNode::new(), MemoryNode::new(), MemoryNode::new()];
/// let redlock = Redlock::builder().nodes(nodes.clone()).virtual_time().build().await?;
/// let options = AcquireOptions::new().renewal(Renewal::Manual);
/// let guard = redlock.acquire_with("report", options).await?;
/// nodes[0].stop();
/// nodes[1].stop();
/// let error = guard.extend().await.unwrap_err();
/// assert_eq!(error.kind(), ExtendErrorKind::Unconfirmed);
/// assert_eq!(error.reports().len(), 3);
/// assert!(guard.is_held(), "it keeps its deadline");
/// # Ok(())
/// # }
/// ```
pub struct ExtendError {
    kind: ExtendErrorKind,
    reports: Vec<NodeReport>,
}

/// The kind of an [`ExtendError`].
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ExtendErrorKind {
    /// No majority confirmed in time.
    /// The lease stays valid up to its previous deadline, and another extension may succeed.
    Unconfirmed,
    /// The lease is lost; it never comes back.
    Lost,
}

impl ExtendError {
    pub(crate) fn unconfirmed(reports: Vec<NodeReport>) -> Self {
        Self {
            kind: ExtendErrorKind::Unconfirmed,
            reports,
        }
    }

    pub(crate) fn lost(reports: Vec<NodeReport>) -> Self {
        Self {
            kind: ExtendErrorKind::Lost,
            reports,
        }
    }

    /// Returns why it failed.
    pub fn kind(&self) -> ExtendErrorKind {
        self.kind
    }

    /// Returns the answer of each node; empty if the client asked no node.
    pub fn reports(&self) -> &[NodeReport] {
        &self.reports
    }
}

impl fmt::Display for ExtendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            ExtendErrorKind::Unconfirmed => {
                "no majority confirmed the extension; the lease keeps its deadline"
            }
            ExtendErrorKind::Lost => "the lease is lost",
        })?;
        nodes::write_lines(f, &self.reports)
    }
}

impl Error for ExtendError {}

debug_as_display!(ExtendError);

/// A release that no majority confirmed, or that came too late.
///
/// The work that the lease guarded is done, and the caller need not try again.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use redlock_core::{MemoryNode, Redlock, ReleaseErrorKind};
/// use std::time::Duration;
///
/// let nodes = [MemoryNode::new(), MemoryNode::new(), MemoryNode::new()];
/// let redlock = Redlock::builder().nodes(nodes.clone()).virtual_time().build().await?;
/// let guard = redlock.acquire("report").await?;
/// nodes[0].stop();
/// nodes[1].stop();
/// let error = guard.release().await.unwrap_err();
/// assert_eq!(error.kind(), ReleaseErrorKind::Unconfirmed);
/// assert!(error.ends_within() <= Duration::from_secs(10), "then others can have it");
/// assert_eq!(error.reports().len(), 3);
/// # Ok(())
/// # }
/// ```
pub struct ReleaseError {
    kind: ReleaseErrorKind,
    reports: Vec<NodeReport>,
    ends_within: Duration,
}

/// The kind of a [`ReleaseError`].
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ReleaseErrorKind {
    /// Fewer than a majority confirmed in time; the key ends by itself within
    /// [`ReleaseError::ends_within`].
    Unconfirmed,
    /// The lease had been lost before its release: a part of the work may have run while another caller held the
    /// resource.
    Lost,
    /// The end of its [scope](crate::Scope) had released the lease, because the guard outlived the scope.
    ScopeEnded,
}

impl ReleaseError {
    pub(crate) fn unconfirmed(reports: Vec<NodeReport>, ends_within: Duration) -> Self {
        Self {
            kind: ReleaseErrorKind::Unconfirmed,
            reports,
            ends_within,
        }
    }

    pub(crate) fn lost() -> Self {
        Self::of(ReleaseErrorKind::Lost)
    }

    pub(crate) fn scope_ended() -> Self {
        Self::of(ReleaseErrorKind::ScopeEnded)
    }

    fn of(kind: ReleaseErrorKind) -> Self {
        Self {
            kind,
            reports: Vec::new(),
            ends_within: Duration::ZERO,
        }
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ReleaseErrorKind {
        self.kind
    }

    /// Returns the time within which the key ends on nodes that did not confirm.
    pub fn ends_within(&self) -> Duration {
        self.ends_within
    }

    /// Returns the answer of each node; empty if the lease had been lost.
    pub fn reports(&self) -> &[NodeReport] {
        &self.reports
    }
}

impl fmt::Display for ReleaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ReleaseErrorKind::Unconfirmed => {
                let left = Rounded(self.ends_within);
                write!(
                    f,
                    "no majority confirmed the release; the key ends within {left}"
                )?;
            }
            ReleaseErrorKind::Lost => f.write_str("the lease had been lost before its release")?,
            ReleaseErrorKind::ScopeEnded => {
                f.write_str(
                    "its scope had released the lease: drop guards before their scope ends",
                )?;
            }
        }
        nodes::write_lines(f, &self.reports)
    }
}

impl Error for ReleaseError {}

debug_as_display!(ReleaseError);
