//! Clients that were told something else than the others.

use std::ops::Range;

use redlock_proto::Keyspace;

use super::{Micros, Oddities, RATE_ERROR, Setup, Storm, keyspace};
use crate::random::Random;

/// Clients that were told something else than the others about how nodes may forget.
#[derive(Clone, Debug)]
pub(crate) struct Strangers {
    /// The first of them; those after it are strangers too.
    first: usize,
    keyspace: Keyspace,
    max_ttl: Micros,
    /// Whether they are the next deployment: the other clients end one after the other, and are not replaced.
    replace: bool,
    /// The only node that keeps its data, if all others lose theirs once: it remembers the others' longer leases, and
    /// is never out of reach.
    pub(crate) keeper: Option<usize>,
}

impl Setup {
    /// Tells some clients something else than the others; a single wrong clock is all that a majority bears.
    pub(super) fn draw_strangers(&mut self, random: &mut Random) {
        let max_ttl = random.pick(&[self.max_ttl / 4, self.max_ttl, 4 * self.max_ttl]);
        let is_alike = max_ttl == self.max_ttl;
        let loses = self.nodes > 1 && random.chance(250);
        let (max_ttl, is_alike) = if loses {
            (self.max_ttl / 4, false)
        } else {
            (max_ttl, is_alike)
        };
        // They differ in one thing at least.
        let rate_error = if is_alike && random.chance(500) {
            random.pick(&[RATE_ERROR / 2.0, 2.0 * RATE_ERROR])
        } else {
            RATE_ERROR
        };
        let keeper = loses.then(|| random.index(self.nodes));
        if loses {
            self.set_max_ttl(self.max_ttl, false);
            self.storm = Storm::default();
            (self.net.slow, self.net.refused) = (0, 0);
            self.odd = Oddities::default();
            self.rolls = false;
        }
        let trust = self.trust ^ (is_alike && rate_error == RATE_ERROR);
        self.clients = self.clients.max(3);
        self.stray = false;
        self.strangers = Some(Strangers {
            first: self.clients - 1 - random.index(2),
            keyspace: keyspace(max_ttl, trust, rate_error),
            max_ttl,
            replace: random.chance(300),
            keeper,
        });
    }

    fn strangers_with(&self, client: usize) -> Option<&Strangers> {
        let strangers = self.strangers.as_ref();
        strangers.filter(|strangers| client >= strangers.first)
    }

    /// Returns whether a client was told something else than the others.
    pub(crate) fn is_stranger(&self, client: usize) -> bool {
        self.strangers_with(client).is_some()
    }

    /// Returns the clients that end while strangers take their place, if they do.
    pub(crate) fn replaced(&self) -> Range<usize> {
        let strangers = self.strangers.as_ref();
        0..strangers.map_or(0, |strangers| {
            if strangers.replace {
                strangers.first
            } else {
                0
            }
        })
    }

    /// Returns whether strangers use longer leases than the others.
    pub(crate) fn are_strangers_longer(&self) -> bool {
        let strangers = self.strangers.as_ref();
        strangers.is_some_and(|strangers| strangers.max_ttl > self.max_ttl)
    }

    /// Returns what a client is told of the nodes.
    pub(crate) fn space_of(&self, client: usize) -> &Keyspace {
        let strangers = self.strangers_with(client);
        strangers.map_or(&self.keyspace, |strangers| &strangers.keyspace)
    }

    /// Returns how long nodes keep keys at most, as a client is told.
    pub(crate) fn max_ttl_of(&self, client: usize) -> Micros {
        let strangers = self.strangers_with(client);
        strangers.map_or(self.max_ttl, |strangers| strangers.max_ttl)
    }
}
