//! Fencing counters: what a client has seen of them.

use super::{Client, Entropy, Now};
use crate::{FencingToken, Reply, Shard};

impl<E: Entropy> Client<E> {
    /// A node said how far it has counted.
    pub(super) fn note_counter(&mut self, round: u64, reply: &Reply) {
        let Some((shard, tokens)) = self.rounds.get(&round).and_then(|round| round.counts) else {
            return;
        };
        let seen = match reply {
            Reply::Taken { counter } | Reply::Claimed { counter, .. } => {
                counter.saturating_add(u64::from(tokens.max(1)) - 1)
            }
            Reply::Held { counter, .. } => *counter,
            _ => return,
        };
        if seen > FencingToken::MAX.get() {
            // Somebody else has written it; whoever went on from there would be refused everywhere.
            return;
        }
        let known = &mut self.counters[usize::from(shard.number())];
        *known = seen.max(*known);
    }

    /// Greater than any counter that was seen, and close to the clock so that it exceeds those not seen.
    pub(super) fn proposal(&self, shard: Shard, now: Now) -> u64 {
        let seen = self.counters[usize::from(shard.number())].saturating_add(1);
        match now.wall <= FencingToken::MAX.get() {
            true => seen.max(now.wall),
            // The clock is off by centuries.
            false => seen,
        }
    }
}
