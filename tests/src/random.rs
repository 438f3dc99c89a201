use std::time::Duration;

use uuid::Uuid;

/// Random numbers for loads and moments: fast, and of no other worth.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// A generator with a seed from the operating system.
    pub fn new() -> Self {
        Self(Uuid::new_v4().as_u64_pair().0 | 1)
    }

    /// A number below `end`, which is not zero.
    pub fn below(&mut self, end: u64) -> u64 {
        // Marsaglia's xorshift with 64 bits of state.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }

    /// A duration below `longest`, in microseconds.
    pub fn below_duration(&mut self, longest: Duration) -> Duration {
        let micros = u64::try_from(longest.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(self.below(micros.max(1)))
    }
}

impl Default for Random {
    fn default() -> Self {
        Self::new()
    }
}
