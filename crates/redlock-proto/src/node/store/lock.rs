//! Requests about locks: which owners get the keys, keep them, and release them.

use std::{sync::Arc, time::Duration};

use super::{
    Store, check_range,
    key::{StoredKey, Wanted},
    millis, slots,
};
use crate::{KeySet, Keyspace, LockMode, NodeKey, Reply, Verb, next_counter};

impl Store {
    /// Does what a request wants with these keys, none of which has expired: with all of them, or with none.
    pub(super) fn lock(
        &mut self,
        keyspace: &Keyspace,
        keys: &KeySet,
        wanted: &Wanted,
    ) -> Result<Reply, Arc<str>> {
        let held = || keys.iter().filter_map(|key| self.keys.get(key.key()));
        let own = held().filter(|held| held.is_owned(wanted)).count();
        let is_owner = own == keys.iter().len();
        let others = held().filter_map(|held| Some((held, held.in_the_way(wanted)?)));
        let others: Vec<(&StoredKey, u64)> = others.collect();
        let other = others.iter().max_by_key(|(_, until)| *until);
        let asked = if let Verb::Acquire { .. } = wanted.verb {
            self.counter_of_all(keyspace, keys)
        } else {
            0
        };
        let refused = other.map(|(other, until)| {
            let is_told = matches!(wanted.verb, Verb::Acquire { .. });
            Reply::Held {
                remaining: Some(Duration::from_millis((until - wanted.now).max(1))),
                counter: asked,
                holder: other.label().filter(|_| is_told),
                is_shared: is_told && !wanted.mode.is_shared() && other.is_shared(),
            }
        });
        let only_shared = others.iter().all(|(other, _)| other.is_shared());
        if let Verb::Acquire { .. } = wanted.verb
            && let Some(others) = slots::others(&self.slots, (keys, wanted.mode), wanted.now)
        {
            return Ok(others);
        }
        let count = |store: &mut Self, counter: u64| {
            check_range(counter)?;
            for key in keys {
                store.raise_counter(keyspace, key.shard().number(), counter);
            }
            Ok::<_, Arc<str>>(())
        };
        let take = |store: &mut Self, ttl: Duration| {
            slots::keep(
                &mut store.slots,
                (keys, wanted.mode),
                wanted.now + millis(ttl).max(1),
            );
            for key in keys {
                store.take(key.key(), wanted, ttl);
            }
        };
        match (wanted.verb, refused) {
            (Verb::Acquire { wish, .. }, Some(refused)) => {
                if let Some(wish) =
                    wish.filter(|_| only_shared && wanted.mode == LockMode::Exclusive)
                {
                    for key in keys {
                        let held = self.keys.get_mut(key.key());
                        let held = held.filter(|held| held.in_the_way(wanted).is_some());
                        held.into_iter().for_each(|held| held.wish(wanted, wish));
                    }
                }
                Ok(refused)
            }
            (Verb::Heal { .. }, Some(refused)) => Ok(refused),
            (
                Verb::Acquire {
                    ttl,
                    proposal,
                    block,
                    ..
                },
                None,
            ) => {
                let floor = self.fences.get(keyspace.fence()).map_or(0, |f| f.floor);
                let counter = next_counter(asked, floor, proposal);
                count(self, counter.saturating_add(u64::from(block.max(1)) - 1))?;
                take(self, ttl);
                Ok(Reply::Taken { counter })
            }
            (Verb::Extend { .. }, refused) if !is_owner => Ok(refused.unwrap_or(Reply::Missing)),
            (Verb::Extend { ttl, write_back }, _) => {
                if let Some(counter) = write_back {
                    count(self, counter)?;
                }
                take(self, ttl);
                Ok(Reply::Done)
            }
            (Verb::Heal { ttl, counter }, None) => {
                count(self, counter)?;
                take(self, ttl);
                Ok(Reply::Done)
            }
            (Verb::Release { .. } | Verb::Tombstone { .. }, refused) => {
                for key in keys {
                    if let Some(held) = self.keys.remove(key.key())
                        && let Some(left) = held.released(wanted)
                    {
                        self.keys.insert(key.key().clone(), left);
                    }
                }
                if let Verb::Tombstone { ttl } = wanted.verb {
                    let tombstone = Wanted {
                        mode: LockMode::Exclusive,
                        ..*wanted
                    };
                    self.take(&keyspace.tombstone(wanted.owner), &tombstone, ttl);
                }
                Ok(match refused {
                    _ if own > 0 => Reply::Done,
                    Some(refused) => refused,
                    None => Reply::Missing,
                })
            }
        }
    }

    pub(super) fn take(&mut self, key: &NodeKey, wanted: &Wanted, ttl: Duration) {
        if self.keys.len() + self.slots.len() >= self.sweep_at {
            self.keys.retain(|_, held| held.until() >= wanted.now);
            self.slots.retain(|_, (_, until)| *until >= wanted.now);
            self.sweep_at = (2 * (self.keys.len() + self.slots.len())).max(64);
        }
        let before = self.keys.remove(key);
        self.keys
            .insert(key.clone(), StoredKey::taken(before, wanted, ttl));
    }
}
