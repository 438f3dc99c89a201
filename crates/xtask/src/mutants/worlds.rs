//! Mistakes that must show although a world has something to excuse, or only in worlds that have something special.

use super::mutant::{Mutant, by_simulation};

pub(super) const WORLDS: &[Mutant] = &[by_simulation(
    "tombs-ignored-while-clocks-are-set",
    "crates/redlock-proto/src/store.rs",
    "Request::Lock { .. } | Request::Job { .. } if buried => Ok(Reply::Buried),",
    "Request::Lock { .. } if buried && self.vouched && !self.vouched => Ok(Reply::Buried),",
    "clock-steps",
    5_000,
)];
