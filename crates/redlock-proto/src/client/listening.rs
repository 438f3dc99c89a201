//! The nodes whose messages a client hears: they tell of keys that they give to its callers in their turn.

use super::{Effect, effect::Outbox};

/// The nodes whose messages the client hears.
///
/// A caller that waits in line where its client does not hear of its turn would keep others waiting.
#[derive(Debug)]
pub(super) struct Listening {
    /// The number under which nodes know the client, once it was drawn.
    number: Option<u64>,
    /// Whether the driver was told to listen.
    has_begun: bool,
    // invariant: one entry per node
    nodes: Vec<bool>,
}

impl Listening {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            number: None,
            has_begun: false,
            nodes: vec![false; nodes],
        }
    }

    /// Returns the number under which nodes know the client; `draw` draws it at random.
    pub(super) fn number(&mut self, draw: impl FnOnce() -> u64) -> u64 {
        *self.number.get_or_insert_with(draw)
    }

    /// Has the driver listen to the nodes for messages to this number, if it does not yet.
    pub(super) fn begin(&mut self, number: u64, outbox: &mut Outbox) {
        if !std::mem::replace(&mut self.has_begun, true) {
            outbox.push(Effect::Listen { number });
        }
    }

    /// Takes in whether a node is listened to.
    pub(super) fn on_listening(&mut self, node: usize, is_heard: bool) {
        if let Some(heard) = self.nodes.get_mut(node) {
            *heard = is_heard;
        }
    }

    /// Returns how many nodes it hears.
    pub(super) fn heard(&self) -> usize {
        self.nodes.iter().filter(|heard| **heard).count()
    }
}
