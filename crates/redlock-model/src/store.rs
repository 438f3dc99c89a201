//! The nodes of a check, as `redlock-proto`'s `Store` decides what they do.

use std::{cell::RefCell, collections::HashMap, hash::Hash, time::Duration};

use redlock_proto::{
    InLine, Keyspace, Lock, LockMode, NodeTime, OwnerId, Quarantine, Reply, Request, Store, Verb,
};

/// What a node does, for each question that it was asked: its state and the request.
#[derive(Debug)]
pub(crate) struct Decided<Q, A> {
    pub(crate) keyspace: Keyspace,
    known: RefCell<HashMap<Q, A>>,
}

impl<Q: Copy + Eq + Hash, A: Copy> Decided<Q, A> {
    /// Returns the answer to a question that was asked before, or else what `decide` says.
    pub(crate) fn ask(&self, question: Q, decide: impl FnOnce() -> A) -> A {
        if let Some(known) = self.known.borrow().get(&question) {
            return *known;
        }
        let answer = decide();
        self.known.borrow_mut().insert(question, answer);
        answer
    }

    /// Has a store execute a request at `time`.
    pub(crate) fn call(
        &self,
        store: &mut Store,
        request: Request,
        time: NodeTime,
    ) -> Option<Reply> {
        let mut answer = store.call(&self.keyspace, &[request], time);
        answer.replies.pop()?.ok()
    }
}

impl<Q, A> Default for Decided<Q, A> {
    fn default() -> Self {
        Self {
            keyspace: Keyspace::new("{model}", Quarantine::new(LONGEST, 0.0)),
            known: RefCell::default(),
        }
    }
}

/// Returns a request for the one key.
pub(crate) fn lock(owner: OwnerId, mode: LockMode, verb: Verb) -> Request {
    let keys = KEY.into();
    Request::Lock {
        verb,
        lock: Lock { mode, keys, owner }.into(),
    }
}

/// Returns the acquire that proposes this token.
pub(crate) fn acquire(proposal: u8, wish: Option<Duration>, line: Option<InLine>) -> Verb {
    Verb::Acquire {
        ttl: FOREVER,
        proposal: proposal.into(),
        block: 1,
        wish,
        line,
    }
}

/// Returns the owner of this number.
pub(crate) fn owner(number: u8) -> OwnerId {
    OwnerId::from_random([number; 16])
}

pub(crate) const KEY: &str = "{model}:lock:a";
pub(crate) const FOREVER: Duration = Duration::from_secs(1_000_000);
pub(crate) const NOON: NodeTime = NodeTime::from_micros(1_795_262_400_000_000);
const LONGEST: Duration = Duration::from_millis(100);
