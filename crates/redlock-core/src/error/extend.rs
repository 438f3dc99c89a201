use std::{error::Error, fmt};

use super::{NodeReport, nodes};

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
