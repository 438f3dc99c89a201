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
    pub(super) least: i128,
    pub(super) most: i128,
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
        let micros = |instant: Instant| instant.since_origin().as_micros().cast_signed();
        let shown = i128::from(self.time.as_micros());
        ClockOffset {
            least: shown - micros(self.received),
            most: shown - micros(self.sent.min(self.received)),
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
        // Narrow, because this is asked often. Not rounded down, because it is asked for each answer.
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let drifted = i128::from(micros.div_ceil(DRIFT));
        Self {
            least: self.least - drifted,
            most: self.most + drifted,
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
        narrow(self.ahead.least)
    }

    /// Returns the most by which the clock can be ahead by now, in microseconds.
    pub(super) fn most(&self, now: Instant) -> i64 {
        narrow(self.ahead.after(now.saturating_since(self.received)).most)
    }
}

/// Clocks are not so far apart that this makes a difference.
fn narrow(micros: i128) -> i64 {
    i64::try_from(micros).unwrap_or(if micros < 0 { i64::MIN } else { i64::MAX })
}

/// Two clocks drift apart by a part of this at most, since an answer was seen.
const DRIFT: u64 = 50;
