//! Worlds in which informants name the server of each node.

use std::num::NonZeroUsize;

use redlock_proto::{Keyspace, Quorum};

use super::{Birth, MS, Micros, Net, Oddities, SECOND, Setup, Storm};
use crate::random::Random;

/// How many informants each node has.
pub(crate) const INFORMANTS: usize = 3;

/// How the servers of nodes are named.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named {
    /// About how often an informant tells the others which pair it names.
    pub(crate) hello: Micros,
    /// How many in a thousand messages between clients and informants are lost.
    pub(crate) lost: u64,
    /// How many in a thousand messages between informants are lost.
    pub(crate) unheard: u64,
    /// Whether informants count those that lost their file until they are told to forget them.
    pub(crate) ghosts: bool,
    /// How many in a thousand failovers come within the time for which a session may send without a confirmation.
    pub(crate) hasty: u64,
}

impl Setup {
    /// Gives each node two servers, and time for failovers.
    ///
    /// Most worlds have one node: with more, a mistake shows only if it is made on a majority of them at once.
    /// Leases are short, because a quarantine lasts for five seconds longer than the longest of them.
    pub(super) fn draw_named(&mut self, random: &mut Random) {
        self.nodes = random.pick(&[1, 1, 1, 1, 1, 1, 2, 3]);
        self.quorum = Quorum::of(NonZeroUsize::new(self.nodes).unwrap_or(NonZeroUsize::MIN));
        self.clients = random.pick(&[2, 3, 3]);
        self.forgets = false;
        self.rolls = false;
        self.stray = false;
        self.birth = random.pick(&[
            Birth::Vouched,
            Birth::Vouched,
            Birth::Vouched,
            Birth::Unknown,
        ]);
        self.set_keys(1);
        self.set_max_ttl(random.pick(&[500 * MS, 1_000 * MS, 2_000 * MS]), false);
        let quarantine = self.keyspace.quarantine().following_failovers();
        self.keyspace = Keyspace::new("{sim}", quarantine);
        self.storm = Storm {
            crashes: random.below(3),
            freezes: random.below(3),
            cuts: random.below(6),
            holes: random.below(4),
            isolations: random.below(2),
            pauses: random.below(4),
            kills: random.below(3),
            ..Storm::default()
        };
        self.net = Net {
            refused: 0,
            ..self.net
        };
        self.odd = Oddities {
            suspends: random.chance(200),
            ..Oddities::default()
        };
        self.skew = random.pick(&[0, 10 * MS, 200 * MS]);
        self.think = random.pick(&[30 * MS, 100 * MS]);
        self.horizon = random.between(14, 26) * SECOND;
        self.named = Some(Named {
            hello: random.pick(&[100 * MS, 500 * MS, SECOND]),
            lost: random.pick(&[0, 50, 300]),
            unheard: random.pick(&[0, 100, 700]),
            ghosts: random.chance(200),
            hasty: random.pick(&[100, 300, 600]),
        });
    }
}
