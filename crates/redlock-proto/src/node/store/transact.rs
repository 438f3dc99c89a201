//! Transactions: plain requests, carried out by commands that do not look before they act.

use super::{
    Store,
    key::{StoredKey, Wanted},
    mark::{StoredMark, identity},
};
use crate::{
    Done, Keyspace, Lock, LockMode, Look, NodeTime, Request, Transaction, Verb, last_of_block,
};

impl Store {
    /// Does what plain requests ask, in order and in one step, at `time` by the node's clock, whether or not it votes.
    ///
    /// No key may occur twice among the requests.
    /// A tombstone is not looked for: it would be of an owner whose client does not hear the answer.
    pub fn transact(
        &mut self,
        keyspace: &Keyspace,
        requests: &[Request],
        time: NodeTime,
    ) -> Transaction {
        let looks = !requests.iter().all(Request::is_release);
        // A server has no line before it unless a key is to be released, because an extension frees none.
        let reads_lines = requests.iter().any(Request::is_release);
        // All counters are read before any of them is raised.
        let before: Vec<u64> = requests
            .iter()
            .map(|it| self.before(keyspace, it))
            .collect();
        let floor = self.fences.get(keyspace.fence()).map_or(0, |it| it.floor);
        let done = requests.iter().zip(before);
        let done = done.map(|(request, before)| match request {
            Request::Lock { verb, lock } if request.is_plain() => {
                self.expire_key(lock.keys.first(), time.as_millis());
                if reads_lines && !matches!(verb, Verb::Acquire { .. }) {
                    self.forget_line(keyspace, lock.keys.first(), time);
                }
                let is_awaited = self.is_awaited(keyspace, request, time);
                match verb {
                    Verb::Release { .. } if is_awaited => Done::Compared {
                        is_owner: false,
                        is_awaited,
                    },
                    _ => self.do_plain(keyspace, (*verb, lock), before, time),
                }
            }
            _ => Done::Failed,
        });
        Transaction {
            done: done.collect(),
            look: looks.then(|| self.glance(keyspace, time)),
            floor: Some(floor),
        }
    }

    fn before(&self, keyspace: &Keyspace, request: &Request) -> u64 {
        let Request::Lock { lock, .. } = request else {
            return 0;
        };
        let shard = lock.keys.first_shard().number();
        let counters = self.fences.get(keyspace.fence());
        let stored = counters.and_then(|counters| counters.shards.get(&shard));
        stored.copied().unwrap_or(0)
    }

    fn do_plain(
        &mut self,
        keyspace: &Keyspace,
        (verb, lock): (Verb, &Lock),
        before: u64,
        time: NodeTime,
    ) -> Done {
        let key = lock.keys.first();
        let holder = self.keys.get(key).map(StoredKey::owner);
        let is_owner = holder == Some(Some(lock.owner));
        let take = |store: &mut Self, ttl| {
            let wanted = Wanted {
                verb,
                mode: LockMode::Exclusive,
                owner: lock.owner,
                now: time.as_millis(),
                may_have_it: true,
            };
            store.take(key, &wanted, ttl);
        };
        match verb {
            Verb::Acquire {
                ttl,
                proposal,
                block,
                ..
            } => {
                if holder.is_none() {
                    take(self, ttl);
                }
                let shard = lock.keys.first_shard().number();
                self.raise_counter(keyspace, shard, last_of_block(proposal, block));
                Done::Took {
                    is_owner: holder.is_none(),
                    before: Some(before),
                    is_counted: true,
                }
            }
            Verb::Extend { ttl, .. } => {
                if is_owner {
                    take(self, ttl);
                }
                Done::Compared {
                    is_owner,
                    is_awaited: false,
                }
            }
            Verb::Release { .. } => {
                if is_owner {
                    self.keys.remove(key);
                }
                Done::Compared {
                    is_owner,
                    is_awaited: false,
                }
            }
            Verb::Heal { .. } | Verb::Tombstone { .. } => Done::Failed,
        }
    }

    /// Reads what it says of itself, and changes nothing.
    fn glance(&self, keyspace: &Keyspace, time: NodeTime) -> Look {
        Look {
            mark: self.marks.get(keyspace.mark()).map(StoredMark::to_wire),
            is_master: true,
            data: identity(&self.run, &self.data).into(),
            time,
        }
    }
}
