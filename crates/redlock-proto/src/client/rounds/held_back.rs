use std::time::Duration;

use crate::Verb;

/// What is left to send of an attempt that asks a majority first.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct HeldBack {
    /// What the other nodes would be asked.
    pub(in super::super) verb: Verb,
    /// The time limit of the attempt as a whole.
    pub(in super::super) limit: Duration,
}
