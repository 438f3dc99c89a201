use super::NodeKey;

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
