//! The keys that a node must have, by its requests and its answers.
//!
//! This second record shows where the model of a node does something else.

use redlock_proto::{LockMode, NodeKey, NodeTime, OwnerId, Reply, Store, Verb};

use crate::{Violation, setup::micros};

/// The owners of each key of a node, and until when they have it.
#[derive(Clone, Debug)]
pub(super) struct Shadow {
    keys: Vec<Vec<Kept>>,
}

/// A key that a node keeps for an owner.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    /// The number of its owner.
    pub(super) owner: u32,
    name: OwnerId,
    /// The mode in which its owner has it.
    mode: LockMode,
    /// It was gone, and came back with old data, and its client does not know.
    pub(super) is_old: bool,
    /// The last millisecond in which it is there.
    until: u64,
}

/// A request about a key, and what the node answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub(super) verb: Verb,
    pub(super) mode: LockMode,
    /// The keys, for all of which it is done or for none.
    pub(super) keys: &'a [usize],
    pub(super) owner: u32,
    pub(super) name: OwnerId,
    pub(super) reply: &'a Reply,
    /// Whether it came by a transaction, which looks for no tombstone.
    pub(super) is_transaction: bool,
    /// Whether that came over a connection that was gone, and no client hears of it.
    pub(super) is_stray: bool,
}

impl Shadow {
    pub(super) fn new(keys: usize) -> Self {
        Self {
            keys: vec![Vec::new(); keys],
        }
    }

    /// Marks all keys as old data.
    pub(super) fn grow_old(&mut self) {
        for kept in self.keys.iter_mut().flatten() {
            kept.is_old = true;
        }
    }

    /// Records that the client of an owner knows that its key is here.
    pub(super) fn be_known(&mut self, owner: u32) {
        let kept = self.keys.iter_mut().flatten();
        for kept in kept.filter(|kept| kept.owner == owner) {
            kept.is_old = false;
        }
    }

    /// Forgets what has expired at `now`, in milliseconds of the node's clock.
    pub(super) fn expire(&mut self, now: u64) {
        for key in &mut self.keys {
            key.retain(|kept| kept.until >= now);
        }
    }

    /// Returns the entry of each owner that has a key at `now`, in milliseconds of the node's clock.
    pub(super) fn kept(&self, key: usize, now: u64) -> impl Iterator<Item = &Kept> {
        self.keys[key].iter().filter(move |kept| kept.until >= now)
    }

    /// Applies what a node said that it did; an error says why the node must not have done that.
    ///
    /// If the node took, healed or extended a key, this returns the last millisecond in which the key is there.
    pub(super) fn follow(
        &mut self,
        asked: Asked<'_>,
        now: u64,
    ) -> Result<Option<u64>, &'static str> {
        let kept = || asked.keys.iter().map(|key| self.kept(*key, now));
        let is_own = |kept: &Kept| kept.owner == asked.owner;
        let mode = match asked.mode {
            LockMode::Upgrade { .. } => LockMode::Exclusive,
            mode => mode,
        };
        // An owner that shares a key does not have it exclusively.
        let is_its = |kept: &Kept| {
            is_own(kept) && (mode, kept.mode) != (LockMode::Exclusive, LockMode::Shared)
        };
        let bothers = |kept: &Kept| {
            let is_upgraded = asked.mode
                == LockMode::Upgrade {
                    of: kept.name.secret(),
                };
            let shares = kept.mode == LockMode::Shared && (mode == LockMode::Shared || is_upgraded);
            !is_its(kept) && !shares
        };
        let has_some = kept().flatten().any(is_its);
        let has_all = kept().all(|mut kept| kept.any(is_its));
        // An owner that has a key keeps it, also beside one that has upgraded its lease.
        let is_anothers = asked
            .keys
            .iter()
            .any(|key| !self.kept(*key, now).any(is_its) && self.kept(*key, now).any(bothers));
        let is_release = matches!(asked.verb, Verb::Release { .. } | Verb::Tombstone { .. });
        if let (Verb::Acquire { .. }, Reply::PolicyMismatch | Reply::Tombstoned) =
            (asked.verb, asked.reply)
        {
            // What a transaction has taken for it is taken back.
            for key in asked.keys {
                self.keys[*key].retain(|kept| !is_its(kept));
            }
            return Ok(None);
        }
        if let (
            Verb::Acquire { wish: Some(_), .. },
            Reply::Held {
                is_shared: true, ..
            },
        ) = (asked.verb, asked.reply)
        {
            // The wish is written, and with it all owners that have not expired.
            for key in asked.keys {
                if self.kept(*key, now).next().is_some() {
                    self.keys[*key].retain(|kept| kept.until >= now);
                }
            }
        }
        if is_release && asked.mode != LockMode::Exclusive {
            for key in asked.keys {
                let kept = &mut self.keys[*key];
                if kept.iter().any(is_its) {
                    // What is left of a key that is shared is written, and does not end in this millisecond.
                    let left = kept.iter_mut().filter(|kept| kept.until == now);
                    left.for_each(|kept| kept.until += 1);
                }
            }
        }
        if !matches!(asked.reply, Reply::Taken { .. }) && !asked.reply.is_done() {
            // A transaction leaves a key that callers wait for to the script.
            let is_left = *asked.reply == Reply::Unclear;
            return if is_release && has_some && !is_left {
                Err("it was not released for its owner")
            } else {
                Ok(None)
            };
        }
        let ttl = match asked.verb {
            // What a transaction has taken for it is its own.
            Verb::Acquire { .. } if is_anothers || has_some && mode == LockMode::Shared => {
                return Err("it was taken from its owner");
            }
            Verb::Heal { .. } if is_anothers => {
                return Err("it was healed over its owner");
            }
            Verb::Extend { .. } if !has_all => {
                return Err("it was extended for somebody who does not have it");
            }
            Verb::Release { .. } | Verb::Tombstone { .. } if !has_some => {
                return Err("it was released by somebody who does not have it");
            }
            Verb::Release { .. } | Verb::Tombstone { .. } => {
                for key in asked.keys {
                    self.keys[*key].retain(|kept| !is_its(kept));
                }
                return Ok(None);
            }
            Verb::Acquire { ttl, .. } | Verb::Heal { ttl, .. } | Verb::Extend { ttl, .. } => ttl,
        };
        let is_extended = matches!(asked.verb, Verb::Extend { .. });
        let until = now + micros(ttl) / 1_000;
        for key in asked.keys {
            let was_old = self.kept(*key, now).any(|kept| is_own(kept) && kept.is_old);
            let kept = &mut self.keys[*key];
            kept.retain(|kept| kept.until >= now && !is_own(kept));
            kept.push(Kept {
                owner: asked.owner,
                name: asked.name,
                mode,
                is_old: is_extended && was_old || asked.is_stray,
                until,
            });
        }
        Ok(Some(until))
    }

    /// Records that the node gave a free key to an owner that waited for it.
    pub(super) fn give(&mut self, key: usize, owner: u32, name: OwnerId, until: u64) {
        self.keys[key].clear();
        self.keys[key].push(Kept {
            owner,
            name,
            mode: LockMode::Exclusive,
            is_old: false,
            until,
        });
    }

    /// Compares a key with what the node has; an error says how they differ.
    pub(super) fn compare(
        &self,
        key: usize,
        name: &NodeKey,
        store: &Store,
        now: u64,
    ) -> Result<(), &'static str> {
        let has = |kept: &Kept, millis: u64| {
            let at = NodeTime::from_micros(millis * 1_000);
            let mut holders = store.holders(name, at);
            holders.any(|holder| holder == (kept.name, kept.mode))
        };
        let at = NodeTime::from_micros(now * 1_000);
        let kept = || self.kept(key, now);
        if store.holders(name, at).count() > kept().count() {
            return Err("the node has it, and nobody took it");
        }
        if !kept().all(|kept| has(kept, now)) {
            return Err("the node does not have it for its owner");
        }
        if !kept().all(|kept| has(kept, kept.until)) {
            return Err("the node keeps it for less than it said");
        }
        if kept().any(|kept| has(kept, kept.until + 1)) {
            return Err("the node keeps it for longer than it was told");
        }
        Ok(())
    }
}

/// Returns what is wrong about a key on a node.
pub(super) const fn wrong(node: usize, key: usize, what: &'static str) -> Violation {
    Violation::ForeignKey { node, key, what }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use redlock_proto::{Keyspace, Lock, Quarantine, Request};

    use super::*;

    const TTL: Duration = Duration::from_millis(100);
    const RELEASE: Verb = Verb::Release { ttl: TTL };
    const EXTEND: Verb = Verb::Extend {
        ttl: TTL,
        write_back: None,
    };

    fn name() -> NodeKey {
        "{sim}:lock:a".into()
    }

    fn acquire() -> Verb {
        Verb::Acquire {
            ttl: TTL,
            proposal: 1,
            block: 1,
            wish: None,
            line: None,
        }
    }

    fn heal() -> Verb {
        Verb::Heal {
            ttl: TTL,
            counter: 1,
        }
    }

    fn owner(number: u32) -> OwnerId {
        OwnerId::from_random([u8::try_from(number).unwrap(); 16])
    }

    fn follow(shadow: &mut Shadow, verb: Verb, owner_number: u32, reply: &Reply) -> bool {
        let asked = Asked {
            verb,
            mode: LockMode::Exclusive,
            keys: &[0],
            owner: owner_number,
            name: owner(owner_number),
            reply,
            is_transaction: false,
            is_stray: false,
        };
        shadow.follow(asked, 1_000).is_ok()
    }

    /// Owner 1 has the key.
    fn taken() -> Shadow {
        let mut shadow = Shadow::new(1);
        assert!(follow(
            &mut shadow,
            acquire(),
            1,
            &Reply::Taken { counter: 1 }
        ));
        shadow
    }

    #[test]
    fn what_is_done_for_somebody_who_does_not_have_the_key_is_found() {
        let taken_again = Reply::Taken { counter: 2 };
        assert!(!follow(&mut taken(), acquire(), 2, &taken_again));
        for verb in [EXTEND, heal(), RELEASE, Verb::Tombstone { ttl: TTL }] {
            assert!(!follow(&mut taken(), verb, 2, &Reply::Done), "{verb:?}");
            assert!(follow(&mut taken(), verb, 1, &Reply::Done), "{verb:?}");
        }
        assert!(!follow(&mut Shadow::new(1), EXTEND, 1, &Reply::Done));
        assert!(follow(&mut Shadow::new(1), heal(), 1, &Reply::Done));
        assert!(!follow(&mut taken(), RELEASE, 1, &Reply::Missing));
    }

    #[test]
    fn a_node_that_has_something_else_than_it_said_is_found() {
        let keyspace = Keyspace::new("{sim}", Quarantine::new(TTL, 0.01));
        let at = NodeTime::from_micros(1_000_000);
        let with = |verb: Option<Verb>| {
            let mut store = Store::vouched_for("run".into());
            let requests: Vec<Request> = verb
                .into_iter()
                .map(|verb| Request::Lock {
                    verb,
                    lock: Lock {
                        mode: LockMode::Exclusive,
                        keys: name().into(),
                        owner: owner(1),
                    }
                    .into(),
                })
                .collect();
            store.call(&keyspace, &requests, at);
            store
        };
        let same =
            |shadow: &Shadow, store: &Store| shadow.compare(0, &name(), store, 1_000).is_ok();
        let shorter = Verb::Heal {
            ttl: TTL / 2,
            counter: 1,
        };
        assert!(same(&taken(), &with(Some(acquire()))));
        assert!(same(&Shadow::new(1), &with(None)));
        assert!(!same(&Shadow::new(1), &with(Some(acquire()))));
        assert!(!same(&taken(), &with(None)));
        assert!(!same(&taken(), &with(Some(shorter))));
        let mut short = Shadow::new(1);
        assert!(follow(&mut short, shorter, 1, &Reply::Done));
        assert!(!same(&short, &with(Some(acquire()))));
    }
}
