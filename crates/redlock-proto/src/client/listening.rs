//! The nodes whose messages a client hears: they tell of keys that they give to its callers in their turn.

use std::time::Duration;

use super::{
    Effect,
    effect::Outbox,
    timers::{Timer, Timers},
};
use crate::Instant;

/// The nodes whose messages the client hears.
///
/// A caller that waits in line where its client does not hear of its turn would keep others waiting.
#[derive(Debug)]
pub(super) struct Listening {
    /// The number under which nodes know the client, once it was drawn.
    number: Option<u64>,
    /// When a caller needed it last; `None` while the driver does not listen.
    needed: Option<Instant>,
    /// Whether nodes are given signs of life.
    pub(super) gives_signs: bool,
    // invariant: one entry per node
    nodes: Vec<bool>,
}

impl Listening {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            number: None,
            needed: None,
            gives_signs: false,
            nodes: vec![false; nodes],
        }
    }

    /// Returns the number under which nodes know the client; `draw` draws it at random.
    pub(super) fn number(&mut self, draw: impl FnOnce() -> u64) -> u64 {
        *self.number.get_or_insert_with(draw)
    }

    /// Returns whether nodes know the client under this number.
    pub(super) fn is_own(&self, number: u64) -> bool {
        self.number == Some(number)
    }

    /// Has the driver listen to the nodes for messages to this number, until no caller has needed that for [`IDLE`].
    pub(super) fn begin(
        &mut self,
        number: u64,
        now: Instant,
        timers: &mut Timers,
        outbox: &mut Outbox,
    ) {
        if self.needed.replace(now).is_none() {
            timers.set(now + IDLE, Timer::Listening);
            let number = Some(number);
            outbox.push(Effect::Listen { number });
        }
    }

    /// Has the driver listen no longer if no caller has needed it for long; else looks again when that may be so.
    pub(super) fn on_timer(&mut self, now: Instant, timers: &mut Timers, outbox: &mut Outbox) {
        let Some(needed) = self.needed else {
            return;
        };
        if now < needed + IDLE {
            timers.set(needed + IDLE, Timer::Listening);
            return;
        }
        self.end(outbox);
    }

    /// Has the driver listen no longer.
    pub(super) fn end(&mut self, outbox: &mut Outbox) {
        if self.needed.take().is_some() {
            self.nodes.fill(false);
            outbox.push(Effect::Listen { number: None });
        }
    }

    /// Takes in whether a node is listened to.
    pub(super) fn on_listening(&mut self, node: usize, is_heard: bool) {
        if let Some(is_open) = self.nodes.get_mut(node) {
            *is_open = is_heard && self.needed.is_some();
        }
    }

    /// Returns how many nodes it hears.
    pub(super) fn count(&self) -> usize {
        self.nodes.iter().filter(|is_open| **is_open).count()
    }
}

/// For how long the client listens after a caller has waited last.
///
/// A caller that waits asks again more often than that.
const IDLE: Duration = Duration::from_secs(60);
