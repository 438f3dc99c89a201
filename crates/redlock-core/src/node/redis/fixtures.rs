//! Requests for tests of calls and answers, all for one lock.

use std::time::Duration;

use redlock_proto::{Lock, LockMode, OwnerId, Verb};

use crate::node::Request;

pub(super) const TTL: Duration = Duration::from_secs(1);
pub(super) const RELEASE: Verb = Verb::Release { ttl: TTL };

pub(super) fn lock(verb: Verb) -> Request {
    let lock = Lock {
        mode: LockMode::Exclusive,
        keys: "a".into(),
        owner: OwnerId::from_random([1; 16]),
    };
    Request::Lock {
        verb,
        lock: lock.into(),
    }
}

pub(super) fn acquire(proposal: u64) -> Request {
    lock(Verb::Acquire {
        ttl: TTL,
        proposal,
        block: 16,
        wish: None,
    })
}

pub(super) fn extend(write_back: Option<u64>) -> Request {
    lock(Verb::Extend {
        ttl: TTL,
        write_back,
    })
}
