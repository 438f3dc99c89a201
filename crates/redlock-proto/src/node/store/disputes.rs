//! The keys that a node has refused lately.

use std::collections::HashMap;

use crate::{KeySet, NodeKey};

/// The keys that a client was refused, each with the last [`PERIOD`] of the node's clock in which that was.
#[derive(Clone, Debug, Default)]
pub(super) struct Disputes {
    refused: HashMap<NodeKey, u64>,
    /// With this many, the entries that are over are swept out.
    sweep_at: usize,
}

impl Disputes {
    /// Notes that a client was refused these keys at `now`, in milliseconds.
    pub(super) fn note(&mut self, keys: &KeySet, now: u64) {
        let period = now / PERIOD;
        if self.refused.len() >= self.sweep_at {
            self.refused.retain(|_, refused| !is_over(*refused, period));
            self.sweep_at = (2 * self.refused.len()).max(64);
        }
        for key in keys {
            self.refused.insert(key.key().clone(), period);
        }
    }

    /// Returns whether a client was refused one of these keys in this period or in the one before.
    pub(super) fn concern(&self, keys: &KeySet, now: u64) -> bool {
        let mut refused = keys.iter().filter_map(|key| self.refused.get(key.key()));
        refused.any(|refused| !is_over(*refused, now / PERIOD))
    }
}

/// In milliseconds.
const PERIOD: u64 = 4_000;

const fn is_over(refused: u64, period: u64) -> bool {
    refused.saturating_add(1) < period
}
