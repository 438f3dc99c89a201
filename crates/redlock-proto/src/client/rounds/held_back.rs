use std::time::Duration;

use crate::Request;

/// What is left to send of an attempt that asks a majority first.
#[derive(Debug)]
pub(in super::super) struct HeldBack {
    /// The request, for the other nodes.
    pub(in super::super) request: Request,
    /// The time limit of the attempt as a whole.
    pub(in super::super) limit: Duration,
}
