use std::sync::Arc;

use crate::{Reply, Standing};

/// The answer of a node to one call.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a client must handle every part of it"
)]
pub struct Answer {
    /// The node's standing; `None` if it was only asked to let keys go, and did not look.
    pub standing: Option<Standing>,
    /// The result of each request; the error of one that ended with an error, and changed nothing.
    pub replies: Vec<Result<Reply, Arc<str>>>,
}
