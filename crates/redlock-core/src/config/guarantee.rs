use serde::Deserialize;

use crate::BuildError;

/// The ground on which the exclusion of a client's leases rests.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use redlock_core::{Guarantee, MemoryNode, Redlock};
///
/// let redlock = Redlock::builder().best_effort(MemoryNode::new()).build().await?;
/// let guard = redlock.acquire("thumbnail:7").await?;
/// assert_eq!(guard.lease().guarantee(), Guarantee::BestEffort);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq)]
#[non_exhaustive]
#[serde(rename_all = "snake_case")]
pub enum Guarantee {
    /// A majority of independent nodes grants a lease, and a node that may have forgotten leases does not vote.
    #[default]
    Quorum,
    /// One server grants a lease, and is trusted to keep its data: if it forgets a lease, a second client may hold it.
    ///
    /// See [`RedlockBuilder::best_effort`](crate::RedlockBuilder::best_effort).
    BestEffort,
}

impl Guarantee {
    pub(super) fn read(text: &str) -> Result<Self, BuildError> {
        match text {
            "quorum" => Ok(Self::Quorum),
            "best_effort" => Ok(Self::BestEffort),
            _ => {
                let message = format!("{text:?} is neither quorum nor best_effort");
                Err(BuildError::misuse("REDLOCK_GUARANTEE", message))
            }
        }
    }
}
