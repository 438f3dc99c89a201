//! What nodes do, as `redlock-proto` decides it.

use redlock_proto::{LockMode, NodeVerb, OwnerId, Reply, Request, Store, Verb};

use super::state::{CLIENTS, Key};
use crate::{
    store::{Decided, FOREVER, KEY, NOON, acquire, lock, owner as owner_of},
    three_nodes::number,
};

/// What a node is asked on behalf of a client.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct Ask {
    pub(super) by: usize,
    pub(super) mode: LockMode,
    pub(super) what: What,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) enum What {
    Acquire,
    /// To take the key by a transaction, which does not look before it acts.
    Transact,
    /// To keep the key, and to store this token unless it is 0.
    Extend(u8),
    /// To take the key again if it is free, and to store this token.
    Heal(u8),
    Release,
}

/// What becomes of a node, and the counter that came with a grant; 0 for anything else that it did as it was asked.
type Done = ((Key, u8), Option<u8>);

/// Nodes, and what they did whenever they were asked the same in the same state.
#[derive(Debug, Default)]
pub(super) struct Nodes(Decided<(Key, u8, Ask), Done>);

impl Nodes {
    /// Returns what becomes of a node with this key and counter, and what it did, unless it refused.
    pub(super) fn ask(&self, key: Key, counter: u8, ask: Ask) -> Done {
        let question = (key, counter, ask);
        self.0.ask(question, || self.decide(key, counter, ask))
    }

    fn decide(&self, key: Key, counter: u8, ask: Ask) -> Done {
        let mut store = self.store(key, counter);
        let acquire = |wish| acquire(1, wish, None);
        let verb = match ask.what {
            What::Acquire => acquire((ask.mode == LockMode::Exclusive).then_some(FOREVER)),
            What::Transact => acquire(None),
            What::Extend(token) => Verb::Extend {
                ttl: FOREVER,
                write_back: (token > 0).then_some(token.into()),
            },
            What::Heal(token) => heal(token),
            What::Release => Verb::Release { ttl: FOREVER },
        };
        let request = lock(owner(ask.by), ask.mode, verb);
        let reply = if ask.what == What::Transact {
            self.transact(&mut store, request)
        } else {
            self.call(&mut store, request)
        };
        let done = match reply {
            Some(Reply::Taken { counter }) => u8::try_from(counter).ok(),
            Some(reply) if reply.is_done() => Some(0),
            _ => None,
        };
        (self.read(&mut store), done)
    }

    /// Returns a store that knows what the node knows.
    fn store(&self, key: Key, counter: u8) -> Store {
        let mut store = Store::vouched_for("run".into());
        let stranger = OwnerId::from_random([0xff; 16]);
        self.call(
            &mut store,
            lock(stranger, LockMode::Exclusive, heal(counter)),
        );
        let release = Verb::Release { ttl: FOREVER };
        self.call(&mut store, lock(stranger, LockMode::Exclusive, release));
        let sharers = (0..CLIENTS).filter(|by| key.shared >> by & 1 == 1);
        for by in sharers.clone() {
            self.call(&mut store, lock(owner(by), LockMode::Shared, heal(0)));
        }
        if let Some(by) = usize::from(key.alone).checked_sub(1) {
            let mode = match sharers.clone().next() {
                None => LockMode::Exclusive,
                Some(sharer) => LockMode::Upgrade {
                    of: owner(sharer).secret(),
                },
            };
            self.call(&mut store, lock(owner(by), mode, heal(0)));
        }
        store
    }

    /// Returns what a store knows; a wish ends at once, as it may.
    fn read(&self, store: &mut Store) -> (Key, u8) {
        let mut key = Key::default();
        for (holder, mode) in store.holders(&KEY.into(), NOON) {
            let Some(by) = (0..CLIENTS).find(|by| owner(*by) == holder) else {
                continue;
            };
            match mode {
                LockMode::Shared => key.shared |= 1 << by,
                LockMode::Exclusive | LockMode::Upgrade { .. } => key.alone = number(by),
            }
        }
        let counter = match self.call(store, Request::Node(NodeVerb::Survey)) {
            Some(Reply::Greatest(counter)) => u8::try_from(counter).unwrap_or(u8::MAX),
            _ => 0,
        };
        (key, counter)
    }

    fn transact(&self, store: &mut Store, request: Request) -> Option<Reply> {
        let requests = [request];
        let done = store.transact(&self.0.keyspace, &requests, NOON);
        done.judge(&self.0.keyspace, &requests).replies.pop()?.ok()
    }

    fn call(&self, store: &mut Store, request: Request) -> Option<Reply> {
        self.0.call(store, request, NOON)
    }
}

fn heal(counter: u8) -> Verb {
    Verb::Heal {
        ttl: FOREVER,
        counter: counter.into(),
    }
}

pub(super) fn owner(by: usize) -> OwnerId {
    owner_of(number(by))
}
