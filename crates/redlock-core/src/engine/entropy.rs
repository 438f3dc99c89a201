use std::{fmt, time::Duration};

use redlock_proto::{Entropy, OwnerId};
use uuid::Uuid;

use crate::clock::Clock;

/// Where the client's randomness comes from.
pub(crate) enum Source {
    /// The operating system.
    System,
    /// A seed, so that a simulation can be repeated.
    Seed(u64),
}

impl Entropy for Source {
    fn owner(&mut self) -> OwnerId {
        match self {
            Self::System => {
                let at = Duration::from_micros(Clock::Boot.wall());
                OwnerId::drawn(Uuid::new_v4().into_bytes(), at)
            }
            Self::Seed(_) => {
                let (high, low) = (self.bits(), self.bits());
                let bits = u128::from(high) << 64 | u128::from(low);
                OwnerId::from_random(bits.to_be_bytes())
            }
        }
    }

    fn bits(&mut self) -> u64 {
        match self {
            // The last bits of each half are the UUID's own.
            Self::System => {
                let (high, low) = Uuid::new_v4().as_u64_pair();
                high ^ low.rotate_left(32)
            }
            // SplitMix64, by Sebastiano Vigna.
            Self::Seed(state) => {
                *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                mixed ^ (mixed >> 31)
            }
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A seed tells the owners to come.
        f.write_str(match self {
            Self::System => "Source::System",
            Self::Seed(_) => "Source::Seed(..)",
        })
    }
}
