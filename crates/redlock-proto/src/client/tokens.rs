use super::Now;
use crate::{FencingToken, KeySet, Reply, Shard};

/// The greatest fencing counters that a client has seen, by shard.
#[derive(Debug)]
pub(super) struct Tokens {
    // invariant: one entry per shard
    counters: Vec<u64>,
}

impl Tokens {
    pub(super) fn new() -> Self {
        Self {
            counters: vec![0; usize::from(Shard::COUNT)],
        }
    }

    /// Notes how far a node has counted, as it said in an attempt for so many tokens of these keys.
    pub(super) fn note(&mut self, keys: &KeySet, tokens: u32, reply: &Reply) {
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
        for key in keys {
            let known = &mut self.counters[usize::from(key.shard().number())];
            *known = seen.max(*known);
        }
    }

    /// Returns a counter that is greater than any that was seen, and close to the clock, so that it exceeds those not
    /// seen.
    pub(super) fn proposal(&self, keys: &KeySet, now: Now) -> u64 {
        let seen = keys
            .iter()
            .map(|key| self.counters[usize::from(key.shard().number())]);
        let seen = seen.max().unwrap_or(0).saturating_add(1);
        match wall(now) {
            Some(wall) => seen.max(wall),
            None => seen,
        }
    }

    /// Raises a floor to the greatest counter that this client has seen.
    pub(super) fn at_least_seen(&self, floor: u64) -> u64 {
        let seen = self.counters.iter().copied().max().unwrap_or(0);
        floor.max(seen)
    }
}

/// Returns the wall clock's reading as a counter; `None` if that clock is off by centuries.
pub(super) fn wall(now: Now) -> Option<u64> {
    (now.wall <= FencingToken::MAX.get()).then_some(now.wall)
}
