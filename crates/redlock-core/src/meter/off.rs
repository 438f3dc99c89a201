#![expect(
    clippy::unused_self,
    reason = "as in the other form, which has something to do"
)]

use std::sync::Arc;

use redlock_proto::{Instant, NodeAnswer};

use super::Offsets;
use crate::LossReason;

/// Something that counts nothing, and reads no time.
#[derive(Clone, Debug)]
pub(crate) struct NoMetrics;

impl NoMetrics {
    pub(crate) const IS_ON: bool = false;

    pub(crate) fn new(_namespace: &Arc<str>, _majority: usize, _nodes: &[Arc<str>]) -> Self {
        Self
    }

    pub(crate) fn lock(&self, _class: Option<&str>) -> Self {
        Self
    }

    pub(crate) fn election(&self, _class: &str) -> Self {
        Self
    }

    pub(crate) fn node(&self, _node: usize) -> Self {
        Self
    }

    /// Returns `false`: no recorder needs the state of the nodes.
    pub(crate) fn is_due(&self, _now: impl FnOnce() -> Instant) -> bool {
        false
    }

    pub(crate) fn look(
        &self,
        _up: &[bool],
        _answers: &[NodeAnswer],
        _offsets: &Offsets,
        _now: Instant,
    ) {
    }

    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self
    }

    pub(crate) fn begins_to_wait(&self, _is_several: bool) {}
    pub(crate) fn stops_waiting(&self, _is_several: bool) {}
    pub(crate) fn turn_began(&self, _is_several: bool, _waited: &Self) {}
    pub(crate) fn acquire_ended(&self, _is_several: bool, _result: &'static str, _took: &Self) {}
    pub(crate) fn retries(&self) {}
    pub(crate) fn lease_began(&self) {}
    pub(crate) fn ended(&self, _why: LossReason, _held: &Self) {}
    pub(crate) fn extended(&self, _is_confirmed: bool) {}
    pub(crate) fn endangered(&self) {}
    pub(crate) fn answered(&self, _is_answer: bool, _took: &Self) {}

    pub(crate) fn start() -> Self {
        Self
    }
}
