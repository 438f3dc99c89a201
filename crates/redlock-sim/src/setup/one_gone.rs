//! Worlds in which one node is lost again and again, and all others are well.

use std::num::NonZeroUsize;

use redlock_proto::Quorum;

use super::{Birth, MS, Net, Oddities, SECOND, Setup, Storm};
use crate::random::Random;

impl Setup {
    /// Leaves all nodes but one well, with everything that they rest on.
    pub(super) fn lose_only_one(&mut self, random: &mut Random) {
        self.nodes = random.pick(&[3, 3, 5]);
        self.quorum = Quorum::of(NonZeroUsize::new(self.nodes).unwrap_or(NonZeroUsize::MIN));
        self.set_max_ttl(random.pick(&[1_000 * MS, 2_000 * MS]), false);
        self.spread = random.pick(&[0, 50 * MS]);
        (self.stray, self.lag) = (false, 0);
        (self.forgets, self.rolls) = (false, false);
        self.birth = Birth::Vouched;
        self.storm = Storm::default();
        self.odd = Oddities::default();
        self.net = Net {
            slow: 0,
            slowest: 0,
            refused: 0,
            ..self.net
        };
        // A caller that finds others in line has asked all nodes. Only one that finds the key free asks a majority.
        self.clients = random.pick(&[2, 3]);
        self.set_keys(3);
        self.think = random.pick(&[30 * MS, 150 * MS]);
        self.horizon = 3 * SECOND + 3 * self.max_ttl;
    }
}
