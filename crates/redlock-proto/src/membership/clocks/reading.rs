//! The clock of a node as one answer shows it, and as all of its answers do.

use std::time::Duration;

use crate::{Instant, NodeTime};

/// A node's wall clock as one answer showed it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a driver must fill in every part of it"
)]
pub struct ClockReading {
    /// The time that it showed.
    pub time: NodeTime,
    /// The time at which the request was sent.
    pub sent: Instant,
    /// The time at which the answer was seen.
    pub received: Instant,
}

/// The least and the most by which a node's clock is ahead of the client's, in microseconds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct ClockOffset {
    pub(super) least: i64,
    pub(super) most: i64,
}

/// By how much a clock is ahead, as far as all its answers up to the last one tell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Track {
    ahead: ClockOffset,
    received: Instant,
}

impl ClockReading {
    /// Returns by how much the node's clock was ahead at some moment between sending and seeing.
    pub(super) fn ahead(&self) -> ClockOffset {
        let ahead_of = |instant: Instant| {
            let shown = i64::try_from(self.time.as_micros()).unwrap_or(i64::MAX);
            shown.saturating_sub(micros(instant.since_origin()))
        };
        ClockOffset {
            least: ahead_of(self.received),
            most: ahead_of(self.sent.min(self.received)),
        }
    }

    /// Returns by how much it can be ahead by now.
    pub(super) fn ahead_by(&self, now: Instant) -> ClockOffset {
        self.ahead().after(now.saturating_since(self.received))
    }
}

impl ClockOffset {
    /// Returns by how much the clock can be ahead when `time` has passed.
    fn after(self, time: Duration) -> Self {
        // Not rounded down, because this is asked for each answer.
        let drifted = micros(time).saturating_add(DRIFT - 1) / DRIFT;
        Self {
            least: self.least.saturating_sub(drifted),
            most: self.most.saturating_add(drifted),
        }
    }
}

impl Track {
    /// Begins with a clock's first answer.
    pub(super) fn of(reading: &ClockReading) -> Self {
        Self {
            ahead: reading.ahead(),
            received: reading.received,
        }
    }

    /// Takes in another answer; returns whether the clock has moved for certain.
    ///
    /// What all answers allow is kept, because the way of each leaves more open than all of them do.
    pub(super) fn take_in(&mut self, reading: &ClockReading) -> bool {
        let last = self
            .ahead
            .after(reading.received.saturating_since(self.received));
        let now = reading.ahead();
        *self = Self {
            ahead: ClockOffset {
                least: last.least.clamp(now.least, now.most),
                most: last.most.clamp(now.least, now.most),
            },
            received: reading.received,
        };
        now.least > last.most || now.most < last.least
    }

    /// Returns the least by which the clock was ahead at the last answer, in microseconds.
    pub(super) fn least(&self) -> i64 {
        self.ahead.least
    }

    /// Returns the most by which the clock can be ahead by now, in microseconds.
    pub(super) fn most(&self, now: Instant) -> i64 {
        self.ahead.after(now.saturating_since(self.received)).most
    }
}

/// Returns a length of time in microseconds; 64 bits are enough for any that matters, and are quick.
pub(super) fn micros(time: Duration) -> i64 {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    let micros = seconds.saturating_mul(1_000_000);
    micros.saturating_add(time.subsec_micros().into())
}

/// Two clocks drift apart by a part of this at most, since an answer was seen.
const DRIFT: i64 = 50;
