//! The slices of time in which the clients of a world get their CPU, as in a container with a quota.

use std::num::NonZeroUsize;

use redlock_proto::Quorum;

use super::{Birth, MS, Micros, Net, Oddities, SECOND, Setup, Storm};
use crate::random::Random;

/// When clients go on, and what they can do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slices {
    pub(crate) on: Micros,
    pub(crate) off: Micros,
    /// How many of the events that have come meanwhile a client deals with in one slice.
    pub(crate) events: usize,
}

impl Setup {
    /// Takes nodes and a network to which nothing happens, and clients that mostly stand still.
    ///
    /// A node's time limit is shorter than a client stands still in most of these worlds.
    pub(super) fn draw_slices(&mut self, random: &mut Random) {
        self.nodes = random.pick(&[1, 3, 3, 5]);
        self.quorum = Quorum::of(NonZeroUsize::new(self.nodes).unwrap_or(NonZeroUsize::MIN));
        self.clients = random.pick(&[1, 2, 3]);
        self.forgets = false;
        self.rolls = false;
        self.stray = false;
        self.birth = Birth::Vouched;
        self.set_keys(3);
        self.set_max_ttl(random.pick(&[4, 8]) * SECOND, false);
        self.storm = Storm::default();
        self.net = Net {
            slow: 0,
            slowest: 0,
            twice: 0,
            refused: 0,
        };
        self.odd = Oddities::default();
        self.lag = 0;
        self.skew = 10 * MS;
        self.spread = 50 * MS;
        self.rate = random.pick(&[0, 100]);
        self.think = random.pick(&[5 * MS, 30 * MS]);
        self.link.calls = random.pick(&[1, 1, 2, 32]);
        self.horizon = 5 * SECOND;
        self.slices = Some(Slices {
            on: random.pick(&[2 * MS, 5 * MS, 20 * MS]),
            off: random.pick(&[20 * MS, 40 * MS, 80 * MS]),
            events: random.pick(&[20, 50, 1_000]),
        });
    }
}
