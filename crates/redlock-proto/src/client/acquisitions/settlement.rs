use std::sync::Arc;

use crate::{Instant, Lock};

/// A majority has granted, and a majority is to confirm before the caller has the lease.
///
/// Nodes whose votes count are asked, and so is a node whose vote comes late.
/// So a node that dies between its vote and its confirmation does not matter while a majority is left.
/// A vote counts if its counter is no greater than the token, which was taken from the votes that were there first.
#[derive(Clone, Debug)]
pub(super) struct Settlement {
    /// Its owner distinguishes outcomes of this attempt from those of an earlier one.
    pub(super) lock: Arc<Lock>,
    /// The present round of requests to confirm.
    pub(super) round: u64,
    pub(super) voters: Vec<usize>,
    /// The nodes whose votes are still to come.
    pub(super) awaited: Vec<usize>,
    /// Up to when the lease lasts that the votes have granted.
    pub(super) until: Instant,
}
