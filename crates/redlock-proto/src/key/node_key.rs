use std::{fmt, sync::Arc};

/// A key on the nodes, already encoded.
///
/// It may carry the name of what is locked, which is the application's secret: `Debug` shows its length
/// only, and it has no `Display`.
#[derive(Clone, Eq, Hash, PartialEq)]
pub struct NodeKey(Arc<str>);

impl NodeKey {
    /// Returns the key as the nodes know it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for NodeKey {
    fn from(key: &str) -> Self {
        Self(key.into())
    }
}

impl From<String> for NodeKey {
    fn from(key: String) -> Self {
        Self(key.into())
    }
}

impl fmt::Debug for NodeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeKey({} bytes)", self.0.len())
    }
}

/// The number of the counter, of a namespace's, that counts the leases of a resource.
///
/// Every node keeps [`COUNT`](Self::COUNT) counters, however many resources there are, so that they take
/// the same memory for ever (74 kB on a Redis server) and never expire.
/// Resources that share one skip numbers, which does no harm.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Shard(
    // invariant: below COUNT
    u16,
);

impl Shard {
    /// The number of counters.
    pub const COUNT: u16 = 1_024;

    /// Returns the counter of the resource with this key.
    ///
    /// All clients of a namespace must agree on it, so it never changes: FNV-1a with 64 bits, folded.
    pub fn of(key: &NodeKey) -> Self {
        let hash = key
            .as_str()
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        let folded = (hash ^ (hash >> 32)) % u64::from(Self::COUNT);
        Self(u16::try_from(folded).unwrap_or_default())
    }

    /// Returns its number, below [`COUNT`](Self::COUNT).
    pub const fn number(self) -> u16 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use crate::{Lock, LockMode, OwnerId, Request, Verb};

    #[test]
    fn debug_of_a_request_shows_no_name() {
        let request = Request::Lock {
            verb: Verb::Release {
                ttl: std::time::Duration::ZERO,
            },
            lock: Lock {
                mode: LockMode::Exclusive,
                keys: "{redlock}:lock:iban:DE02120300000000202051".into(),
                owner: OwnerId::from_random([1; 16]),
            }
            .into(),
        };
        assert!(!format!("{request:?}").contains("DE02"), "{request:?}");
    }
}
