//! What requests are given: ordinary values, and those around which something changes.

use std::time::Duration;

use super::{MICRO, MS};
use crate::differential::{
    cast::SHARDS,
    random::Random,
    step::{Number, Since, When},
};

/// Returns a time to live, of none to half a minute.
pub(super) fn ttl(random: &mut Random) -> Duration {
    match random.below(4) {
        0 => random.pick(&[Duration::ZERO, 999 * MICRO, MS, 2 * MS, 5 * MS]),
        1 => Duration::from_millis(1 + random.below(500)),
        // What is finer than a millisecond is cut off.
        2 => Duration::from_micros(1_000 + random.below(100_000)),
        _ => 30_000 * MS,
    }
}

pub(super) fn number(random: &mut Random) -> Number {
    match random.below(8) {
        0 => Number::Is(0),
        1 => Number::Is(random.below(50)),
        // Microseconds of the wall clock, as clients propose them: sixteen digits.
        2 => Number::Is(1_795_177_631_000_000 + random.below(1_000_000)),
        _ => Number::Seen {
            shard: random.index(SHARDS),
            offset: random.pick(&[-2, -1, 0, 1, 2, 100]),
        },
    }
}

/// Returns a counter near the greatest one, or near where doubles end.
pub(super) fn edge(random: &mut Random) -> Number {
    const MAX: u64 = (1 << 53) - (1 << 20);
    let around = |middle: u64, random: &mut Random| Number::Is(middle - 3 + random.below(6));
    match random.below(8) {
        0..4 => around(MAX, random),
        4..6 => Number::Is(MAX - random.below(25)),
        6 => around(1 << 53, random),
        _ => Number::Is(random.pick(&[u64::MAX, 1 << 60, 1 << 63])),
    }
}

pub(super) fn when(random: &mut Random) -> When {
    let near = [
        -501, -500, -101, -100, -2, -1, 0, 1, 2, 99, 100, 101, 2_000, 2_001,
    ];
    let offset = random.pick(&near);
    match random.below(10) {
        0..5 => When::Watermark {
            offset: offset.clamp(-2, 2),
        },
        5..7 => When::Since { offset },
        _ => When::Now { offset },
    }
}

/// Mostly what the clock shows; in milliseconds after that.
pub(super) fn horizon(random: &mut Random) -> i64 {
    random.pick(&[0, 0, 0, 0, -1, 1, -1_000, 50_000])
}

pub(super) fn since(random: &mut Random) -> Since {
    match random.below(10) {
        0..6 => Since::Told { offset: 0 },
        6..9 => Since::Told {
            offset: random.pick(&[-1_000, -1, 1, 1_000]),
        },
        _ => Since::Never,
    }
}
