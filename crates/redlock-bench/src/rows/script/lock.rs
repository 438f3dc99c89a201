//! Locks that were never held before.

use std::time::Duration;

use redlock_core::node::Request;
use redlock_proto::{self as proto, HolderLabel, LockMode, NodeKey, OwnerId, Verb};

/// A lock with a name and an owner of its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lock(u64);

impl Lock {
    /// Returns the next locks after so many.
    pub(super) fn next(used: &mut u64, count: usize) -> Vec<Self> {
        let first = *used;
        *used += count as u64;
        (first..*used).map(Self).collect()
    }

    pub(super) fn key(self) -> String {
        format!("{{bench}}:lock:order:{}", self.0)
    }

    pub(super) fn owner(self) -> OwnerId {
        // Spread as random numbers are.
        let spread = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;
        OwnerId::from_random(u128::from(self.0).wrapping_mul(spread).to_be_bytes())
    }

    /// Returns an acquire by an owner with a label, as owners have one by default.
    pub(super) fn acquire_labelled(self) -> Request {
        let owner = self.owner();
        Request::Lock {
            verb: self.taking(),
            lock: proto::Lock {
                mode: LockMode::Exclusive,
                keys: NodeKey::from(self.key()).into(),
                owner: owner.labelled(HolderLabel::closest("order@web-7c9f8d:4312")),
            }
            .into(),
        }
    }

    /// Returns an acquire by another owner than that of the others.
    pub(super) fn acquire_too(self) -> Request {
        Request::Lock {
            verb: self.taking(),
            lock: proto::Lock {
                mode: LockMode::Exclusive,
                keys: NodeKey::from(self.key()).into(),
                owner: Self(!self.0).owner(),
            }
            .into(),
        }
    }

    pub(super) fn acquire(self) -> Request {
        self.request(self.taking())
    }

    fn taking(self) -> Verb {
        Verb::Acquire {
            ttl: TTL,
            // Greater than every counter, as the time of day is, and sixteen tokens, as by default.
            proposal: 1_795_177_631_000_000 + 100 * self.0,
            block: 16,
            wish: None,
        }
    }

    pub(super) fn release(self) -> Request {
        self.request(Verb::Release { ttl: TTL })
    }

    fn request(self, verb: Verb) -> Request {
        Request::Lock {
            verb,
            lock: proto::Lock {
                mode: LockMode::Exclusive,
                keys: NodeKey::from(self.key()).into(),
                owner: self.owner(),
            }
            .into(),
        }
    }
}

const TTL: Duration = Duration::from_secs(30);
