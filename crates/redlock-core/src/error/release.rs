use std::{error::Error, fmt, time::Duration};

use super::{NodeReport, nodes};

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
                let ms = self.ends_within.as_millis();
                write!(
                    f,
                    "no majority confirmed the release; the key ends within {ms} ms"
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
