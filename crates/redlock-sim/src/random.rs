use redlock_proto::{Entropy, OwnerId};

/// Numbers that look random and follow from a seed: SplitMix64.
///
/// Fast, small and the same on every machine; nothing here needs a generator that cannot be guessed.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the generator of something else, which draws without disturbing this one.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.bits64() ^ 0x5851_f42d_4c95_7f2d)
    }

    pub(crate) const fn bits64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number less than `bound`; 0 if that is 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        let scaled = (u128::from(self.bits64()) * u128::from(bound)) >> 64;
        u64::try_from(scaled).unwrap_or_default()
    }

    /// As [`below`](Self::below), for something that is counted or indexed.
    pub(crate) fn index(&mut self, count: usize) -> usize {
        let bound = u64::try_from(count).unwrap_or(u64::MAX);
        usize::try_from(self.below(bound)).unwrap_or_default()
    }

    /// Returns a number from `least` to `most`.
    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least) + 1)
    }

    /// Returns whether something happens that does so `per_mille` times of a thousand.
    pub(crate) fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1_000) < per_mille
    }

    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.index(of.len())]
    }
}

impl Entropy for Random {
    fn owner(&mut self) -> OwnerId {
        let bits = u128::from(self.bits64()) << 64 | u128::from(self.bits64());
        OwnerId::from_random(bits.to_le_bytes())
    }

    fn bits(&mut self) -> u64 {
        self.bits64()
    }
}
