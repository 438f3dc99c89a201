//! The order in which replicas ask for a tick.
//!
//! Each waits for a part of the job's spread, from the tick on by the nodes' clocks: for a random part of its first half
//! if it is the replica's turn, and of its second half if it is not.
//! It is not the turn of the replicas that won the last ticks, as long as others are known to have won one.
//! So replicas take turns without a word to each other, one that is alone never waits for others, and a dead one is
//! forgotten after some ticks.
//! No promise rests on this order: the claim decides which replica may start the tick.

use std::{
    collections::{BTreeMap, HashSet},
    time::Duration,
};

use parking_lot::Mutex;
use redlock_core::Tick;

use super::random_up_to;

/// The replicas that won the last ticks of a job, as far as this replica knows.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<BTreeMap<Tick, String>>);

impl Turns {
    /// Notes the replica that won a tick.
    pub(crate) fn won(&self, tick: Tick, replica: &str) {
        let mut winners = self.0.lock();
        winners.insert(tick, replica.to_owned());
        if winners.len() > REMEMBERED {
            winners.pop_first();
        }
    }

    /// Returns how long after a tick a replica asks for it, at most `spread`.
    pub(crate) fn delay(&self, replica: &str, spread: Duration) -> Duration {
        let half = spread / 2;
        if self.is_turn_of(replica) {
            random_up_to(half)
        } else {
            half + random_up_to(half)
        }
    }

    fn is_turn_of(&self, replica: &str) -> bool {
        let winners = self.0.lock();
        let known: HashSet<_> = winners.values().collect();
        let others = known.len().saturating_sub(1);
        let mut last = winners.values().rev().take(others);
        !last.any(|winner| winner == replica)
    }
}

/// As many ticks as nodes remember of a job.
const REMEMBERED: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(winners: &[&str]) -> Turns {
        let turns = Turns::default();
        for (tick, winner) in (1..).zip(winners) {
            turns.won(Tick::from_millis(tick).unwrap(), winner);
        }
        turns
    }

    #[test]
    fn it_is_the_turn_of_all_but_the_last_winners() {
        for (winners, mine) in [
            (vec![], true),
            (vec!["me", "me", "me"], true),
            (vec!["b", "me"], false),
            (vec!["me", "b"], true),
            (vec!["c", "me", "b"], false),
            (vec!["c", "me", "b", "c"], true),
            (vec!["b", "c", "b", "c"], true),
        ] {
            assert_eq!(turns(&winners).is_turn_of("me"), mine, "{winners:?}");
        }
    }

    #[test]
    fn a_replica_that_is_gone_is_forgotten() {
        let mut winners = vec!["gone"];
        winners.extend(["me"; REMEMBERED - 1]);
        assert!(!turns(&winners).is_turn_of("me"));
        winners.push("me");
        assert!(turns(&winners).is_turn_of("me"));
    }

    #[test]
    fn whose_turn_it_is_asks_before_the_others_and_nobody_after_the_spread() {
        let spread = Duration::from_millis(500);
        let (turn, other) = (turns(&["me", "b"]), turns(&["b", "me"]));
        for _ in 0..1_000 {
            let (first, second) = (turn.delay("me", spread), other.delay("me", spread));
            assert!(first <= spread / 2 && spread / 2 <= second && second <= spread);
        }
        assert_eq!(other.delay("me", Duration::ZERO), Duration::ZERO);
    }
}
