//! Locks that were never held before.

use std::time::Duration;

use redlock_core::node::Request;
use redlock_proto::{self as proto, LockMode, NodeKey, OwnerId, Shard, Verb};

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

    /// Returns the field of its counter.
    pub(super) fn shard(self) -> u16 {
        Shard::of(&NodeKey::from(self.key())).number()
    }

    /// Returns the last of the tokens that its acquire asks for.
    pub(super) fn last_token(self) -> u64 {
        self.proposal() + u64::from(TOKENS) - 1
    }

    pub(super) fn acquire(self) -> Request {
        self.request(Verb::Acquire {
            ttl: TTL,
            proposal: self.proposal(),
            block: TOKENS,
            wish: None,
            line: None,
        })
    }

    /// Returns a token that is greater than every counter, as the time of day is.
    fn proposal(self) -> u64 {
        1_795_177_631_000_000 + 100 * self.0
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
/// How many tokens an acquire asks for by default.
const TOKENS: u32 = 16;
