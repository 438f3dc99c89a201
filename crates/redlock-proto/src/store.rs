use std::collections::HashMap;

use crate::{Instant, NodeKey, OwnerId, Reply, Request, Verb};

/// What a node does, as a model: the keys it has, and the effect of each [`Request`].
///
/// In-memory nodes run this; on real servers a script does the same.
/// Time is an argument here too, and it is the *node's* clock, not the client's.
///
/// Expired keys are forgotten when they are touched, and all of them whenever the store has doubled,
/// so that keys used once do not accumulate.
#[derive(Debug, Default)]
pub struct Store {
    keys: HashMap<NodeKey, Held>,
    sweep_at: usize,
}

#[derive(Debug)]
struct Held {
    owner: OwnerId,
    until: Instant,
}

impl Store {
    /// A store without keys.
    pub fn new() -> Self {
        Self::default()
    }

    /// Does what `request` asks, at `now` by the node's clock.
    pub fn apply(&mut self, request: &Request, now: Instant) -> Reply {
        if self
            .keys
            .get(&request.key)
            .is_some_and(|held| held.until <= now)
        {
            self.keys.remove(&request.key);
        }
        let held = self.keys.get_mut(&request.key);
        match (request.verb, held) {
            (Verb::Acquire { ttl }, None) => {
                self.sweep(now);
                let held = Held {
                    owner: request.owner,
                    until: now + ttl,
                };
                self.keys.insert(request.key.clone(), held);
                Reply::Done
            }
            (Verb::Extend { ttl }, Some(held)) if held.owner == request.owner => {
                held.until = now + ttl;
                Reply::Done
            }
            (Verb::Release, Some(held)) if held.owner == request.owner => {
                self.keys.remove(&request.key);
                Reply::Done
            }
            (_, Some(held)) => Reply::Held {
                remaining: Some(held.until.saturating_since(now)),
            },
            (_, None) => Reply::Missing,
        }
    }

    /// Forgets everything, as a server that restarts without its data does.
    pub fn clear(&mut self) {
        self.keys.clear();
    }

    /// The number of keys that have not expired at `now`.
    pub fn len(&self, now: Instant) -> usize {
        self.keys.values().filter(|held| held.until > now).count()
    }

    /// Whether every key has expired at `now`.
    pub fn is_empty(&self, now: Instant) -> bool {
        self.len(now) == 0
    }

    fn sweep(&mut self, now: Instant) {
        if self.keys.len() >= self.sweep_at {
            self.keys.retain(|_, held| held.until > now);
            self.sweep_at = (2 * self.keys.len()).max(64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const TTL: Duration = Duration::from_secs(10);

    fn at(seconds: u64) -> Instant {
        Instant::from_origin(Duration::from_secs(seconds))
    }

    fn request(verb: Verb, owner: u8) -> Request {
        Request {
            verb,
            key: "key".into(),
            owner: OwnerId::from_random([owner; 16]),
        }
    }

    #[test]
    fn a_key_is_one_owners_until_it_expires() {
        let mut store = Store::new();
        let acquire = |owner| request(Verb::Acquire { ttl: TTL }, owner);
        assert_eq!(store.apply(&acquire(1), at(0)), Reply::Done);
        let remaining = Some(Duration::from_secs(7));
        assert_eq!(store.apply(&acquire(2), at(3)), Reply::Held { remaining });
        assert_eq!(store.apply(&acquire(2), at(10)), Reply::Done);
    }

    #[test]
    fn s04_extending_a_missing_key_does_not_create_it() {
        let mut store = Store::new();
        assert_eq!(
            store.apply(&request(Verb::Extend { ttl: TTL }, 1), at(0)),
            Reply::Missing
        );
        assert!(store.is_empty(at(0)));
    }

    #[test]
    fn s21_a_key_is_not_touched_for_another_owner() {
        let mut store = Store::new();
        store.apply(&request(Verb::Acquire { ttl: TTL }, 1), at(0));
        for verb in [
            Verb::Release,
            Verb::Extend { ttl: 5 * TTL },
            Verb::Acquire { ttl: 5 * TTL },
        ] {
            let remaining = Some(Duration::from_secs(8));
            assert_eq!(
                store.apply(&request(verb, 2), at(2)),
                Reply::Held { remaining }
            );
        }
        assert_eq!(store.apply(&request(Verb::Release, 1), at(2)), Reply::Done);
        assert_eq!(
            store.apply(&request(Verb::Release, 1), at(2)),
            Reply::Missing
        );
    }

    #[test]
    fn l09_keys_used_once_do_not_accumulate() {
        let mut store = Store::new();
        for key in 0..100_000u64 {
            let now = Instant::from_origin(Duration::from_millis(key));
            let request = Request {
                verb: Verb::Acquire {
                    ttl: Duration::from_millis(50),
                },
                key: key.to_string().into(),
                owner: OwnerId::from_random([1; 16]),
            };
            assert_eq!(store.apply(&request, now), Reply::Done);
            assert!(
                store.keys.len() <= 200,
                "{} keys are kept",
                store.keys.len()
            );
        }
    }
}
