use super::Now;
use crate::{FencingToken, KeySet, Reply, Shard};

/// The greatest fencing counters that a client has seen, and the last ones that it has proposed, by shard.
#[derive(Debug)]
pub(super) struct Tokens {
    // invariant: one entry per shard
    counters: Vec<u64>,
    // invariant: one entry per shard
    proposed: Vec<u64>,
}

impl Tokens {
    pub(super) fn new() -> Self {
        Self {
            counters: vec![0; usize::from(Shard::COUNT)],
            proposed: vec![0; usize::from(Shard::COUNT)],
        }
    }

    /// Notes how far a node has counted, by its reply to an attempt for `tokens` tokens of these keys.
    pub(super) fn note(&mut self, keys: &KeySet, tokens: u32, reply: &Reply) {
        let seen = match reply {
            Reply::Taken { counter } | Reply::Claimed { counter, .. } => last_of(*counter, tokens),
            Reply::Held { counter, .. } | Reply::InLine { counter, .. } => *counter,
            _ => return,
        };
        if seen > FencingToken::MAX.get() {
            // Another program has written the counter; a client that counted on from there would be refused everywhere.
            return;
        }
        for key in keys {
            let known = &mut self.counters[usize::from(key.shard().number())];
            *known = seen.max(*known);
        }
    }

    /// Returns the counter to propose for `tokens` tokens of these keys.
    ///
    /// It is greater than any counter that was seen, and close to the clock, so that it exceeds the ones not seen.
    ///
    /// It is beyond what was proposed before.
    /// Otherwise, two attempts of one shard that are on their way at once would propose the same.
    /// Each node would have to answer the second of them with another counter.
    pub(super) fn propose(&mut self, keys: &KeySet, tokens: u32, now: Now) -> u64 {
        let greatest = |counters: &[u64]| {
            let shards = keys.iter().map(|key| usize::from(key.shard().number()));
            shards.map(|shard| counters[shard]).max().unwrap_or(0)
        };
        let seen = greatest(&self.counters).saturating_add(1);
        let least = wall(now).map_or(seen, |wall| seen.max(wall));
        let next = greatest(&self.proposed).saturating_add(1);
        // Attempts that are refused take no counters. Without a bound they would lead proposals away from the clock.
        let proposal = if next < least.saturating_add(LEAD) {
            next.max(least)
        } else {
            least
        };
        for key in keys {
            self.proposed[usize::from(key.shard().number())] = last_of(proposal, tokens);
        }
        proposal
    }

    /// Raises a floor to the greatest counter that this client has seen.
    pub(super) fn at_least_seen(&self, floor: u64) -> u64 {
        let seen = self.counters.iter().copied().max().unwrap_or(0);
        floor.max(seen)
    }
}

/// By how much less than this proposals are ahead of what was seen and of the clock: a second.
const LEAD: u64 = 1_000_000;

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
        assert_eq!(tokens.at_least_seen(0), 0, "no node has said so");
    }

    #[test]
    fn proposals_that_are_refused_do_not_run_away_from_the_clock() {
        let (keys, mut tokens) = (KeySet::from("orders"), Tokens::new());
        for _ in 0..10_000 {
            let proposal = tokens.propose(&keys, 1_000, NOON);
            assert!((NOON.wall..NOON.wall + LEAD).contains(&proposal));
        }
        let counter = NOON.wall + 2 * LEAD;
        tokens.note(&keys, 1, &Reply::Taken { counter });
        assert_eq!(tokens.propose(&keys, 1, NOON), counter + 1);
    }

    #[test]
    fn what_somebody_wrote_beyond_the_range_is_not_gone_on_from() {
        let (keys, mut tokens) = (KeySet::from("orders"), Tokens::new());
        let max = FencingToken::MAX.get();
        for counter in [max - 62, max + 1, u64::MAX] {
            tokens.note(&keys, 64, &Reply::Taken { counter });
            assert_eq!(tokens.at_least_seen(0), 0);
        }
        let counter = max - 63;
        tokens.note(&keys, 64, &Reply::Taken { counter });
        assert_eq!(tokens.at_least_seen(0), max);
    }
}
