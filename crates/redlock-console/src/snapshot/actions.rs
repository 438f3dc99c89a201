//! The actions of operators in a snapshot.

use serde::{Deserialize, Serialize};

/// An action of an operator, as the nodes remember it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ActionSnapshot {
    /// The moment.
    pub at: String,
    /// What was done, such as `pause`, `release` or `bless`.
    pub verb: String,
    /// The job or the key.
    pub subject: String,
    /// The operator.
    pub by: Option<String>,
    /// The reason.
    pub reason: Option<String>,
}
