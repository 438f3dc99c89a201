use std::collections::VecDeque;

use super::{Effect, Notice};

/// What the driver is to do, in order.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    effects: VecDeque<Effect>,
}

impl Outbox {
    pub(super) fn push(&mut self, effect: Effect) {
        self.effects.push_back(effect);
    }

    /// Tells an operator something.
    pub(super) fn notice(&mut self, notice: Notice) {
        self.push(Effect::Notice(notice));
    }

    /// Takes the first effect.
    pub(super) fn pop(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }
}
