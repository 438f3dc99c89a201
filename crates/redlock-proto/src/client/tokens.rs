use super::Now;
use crate::{FencingToken, KeySet, Reply, Shard};

/// The greatest fencing counters that a client has seen or proposed, by shard.
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
        match reply {
            Reply::Taken { counter } | Reply::Claimed { counter, .. } => {
                self.reach(keys, last_of(*counter, tokens));
            }
            Reply::Held { counter, .. } => self.reach(keys, *counter),
            _ => {}
        }
    }

    /// Returns what to propose for so many tokens of these keys: a counter that is greater than any that was seen or
    /// proposed before, and close to the clock, so that it exceeds those not seen.
    ///
    /// Two attempts of one shard that are on their way at once would else propose the same.
    /// The second of them would have to be told another counter by each node, and nodes that hear them in different
    /// orders would tell different ones.
    pub(super) fn propose(&mut self, keys: &KeySet, tokens: u32, now: Now) -> u64 {
        let known = keys
            .iter()
            .map(|key| self.counters[usize::from(key.shard().number())]);
        let least = known.max().unwrap_or(0).saturating_add(1);
        let proposal = wall(now).map_or(least, |wall| least.max(wall));
        self.reach(keys, last_of(proposal, tokens));
        proposal
    }

    /// Goes on from here; from a counter out of range, which somebody else has written, every node would refuse to.
    fn reach(&mut self, keys: &KeySet, counter: u64) {
        if counter > FencingToken::MAX.get() {
            return;
        }
        for key in keys {
            let known = &mut self.counters[usize::from(key.shard().number())];
            *known = counter.max(*known);
        }
    }

    /// Raises a floor to the greatest counter that this client has seen or proposed.
    pub(super) fn at_least_known(&self, floor: u64) -> u64 {
        let known = self.counters.iter().copied().max().unwrap_or(0);
        floor.max(known)
    }
}

fn last_of(first: u64, tokens: u32) -> u64 {
    first.saturating_add(u64::from(tokens.max(1)) - 1)
}

/// Returns the wall clock's reading as a counter; `None` if that clock is off by centuries.
pub(super) fn wall(now: Now) -> Option<u64> {
    (now.wall <= FencingToken::MAX.get()).then_some(now.wall)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Instant;

    const NOON: Now = Now {
        clock: Instant::ORIGIN,
        wall: 1_795_262_400_000_000,
    };

    #[test]
    fn attempts_that_are_on_their_way_at_once_propose_different_tokens() {
        let (keys, mut tokens) = (KeySet::from("orders"), Tokens::new());
        assert_eq!(tokens.propose(&keys, 64, NOON), NOON.wall);
        assert_eq!(tokens.propose(&keys, 1, NOON), NOON.wall + 64);
        assert_eq!(tokens.propose(&keys, 0, NOON), NOON.wall + 65);
        assert_eq!(tokens.at_least_known(0), NOON.wall + 65);
    }

    #[test]
    fn what_somebody_wrote_beyond_the_range_is_not_gone_on_from() {
        let (keys, mut tokens) = (KeySet::from("orders"), Tokens::new());
        let max = FencingToken::MAX.get();
        for counter in [max - 62, max + 1, u64::MAX] {
            tokens.note(&keys, 64, &Reply::Taken { counter });
            assert_eq!(tokens.at_least_known(0), 0);
        }
        let counter = max - 63;
        tokens.note(&keys, 64, &Reply::Taken { counter });
        assert_eq!(tokens.at_least_known(0), max);
    }
}
