#![expect(
    clippy::unused_self,
    reason = "as in the other form, which has something to do"
)]

use std::sync::Arc;

use redlock_proto::{Instant, NodeAnswer};

use super::Offsets;
use crate::LossReason;

#[derive(Clone, Debug)]
pub(crate) struct Meter;

impl Meter {
    pub(crate) fn new(_namespace: &Arc<str>, _majority: usize, _nodes: &[Arc<str>]) -> Self {
        Self
    }

    pub(crate) fn lock(&self, _class: Option<&str>) -> LockMeter {
        LockMeter
    }

    pub(crate) fn node(&self, _node: usize) -> NodeMeter {
        NodeMeter
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
}

#[derive(Clone, Debug)]
pub(crate) struct LockMeter;

impl LockMeter {
    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self
    }

    pub(crate) fn begins_to_wait(&self) {}
    pub(crate) fn stops_waiting(&self) {}
    pub(crate) fn has_its_turn(&self, _waited: &Stopwatch) {}
    pub(crate) fn is_over(&self, _result: &'static str, _took: &Stopwatch) {}
    pub(crate) fn retries(&self) {}
    pub(crate) fn is_held(&self) {}
    pub(crate) fn ended(&self, _why: LossReason, _held: &Stopwatch) {}
    pub(crate) fn extended(&self, _is_confirmed: bool) {}
    pub(crate) fn endangered(&self) {}
}

#[derive(Clone, Debug)]
pub(crate) struct NodeMeter;

impl NodeMeter {
    pub(crate) const IS_ON: bool = false;

    pub(crate) fn answered(&self, _is_answer: bool, _took: &Stopwatch) {}
}

/// No time is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch;

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self
    }
}
