//! The backfill of a job, as the nodes remember it.
//!
//! A backfill is a moment, and each of its ticks is claimed as a moment of its own: the moment of the backfill and the
//! number of the tick, in milliseconds.
//! The records have a [`BackfillEntry`] in place of a configuration.

use chrono::{DateTime, TimeDelta, Utc};
use redlock_core::RunRecord;

use super::outcome::is_outcome;
use crate::job::Fingerprint;

/// The most ticks of one [backfill](crate::request_backfill).
pub const MOST_BACKFILLED: u64 = 100;

/// The part of a backfill that a record is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum BackfillEntry {
    /// Its beginning, with the number of its ticks.
    Plan(u64),
    /// The run of one of its ticks.
    Run(DateTime<Utc>),
}

impl BackfillEntry {
    /// The number of a record that ends the backfill before it.
    pub(crate) const CANCELLED: u64 = FORMAT << 56;

    /// Returns the number for a record: the format, what it is about, 22 bits of the schedule, and a number of ticks or
    /// the seconds of one.
    pub(crate) fn number(self, schedule: Fingerprint) -> u64 {
        let (kind, value) = match self {
            Self::Plan(ticks) => (0, ticks),
            Self::Run(tick) => (RUN, u64::try_from(tick.timestamp()).unwrap_or(0)),
        };
        FORMAT << 56 | kind | (schedule.schedule() % SCHEDULES) << VALUE | value.min(VALUES - 1)
    }

    /// Reads the record of a part of a backfill; `None` for another record.
    pub(crate) fn of(record: &RunRecord) -> Option<Self> {
        let number = record.fingerprint;
        if number >> 56 != FORMAT {
            return None;
        }
        let value = number % VALUES;
        if number & RUN == 0 {
            return Some(Self::Plan(value));
        }
        let tick = DateTime::from_timestamp(value.cast_signed(), 0)?;
        Some(Self::Run(tick))
    }
}

/// Returns the moment under which a tick is claimed; the first has the number 1.
pub(crate) fn moment_of_tick(backfill: DateTime<Utc>, number: u64) -> DateTime<Utc> {
    backfill + TimeDelta::milliseconds(number.min(MOST_BACKFILLED).cast_signed())
}

/// Returns whether this is the record of an action that ends the backfill before it.
pub(crate) fn is_cancelled(record: &RunRecord) -> bool {
    is_outcome(record, CANCELLED)
}

/// The outcome of the claim of a tick that a backfill runs under a claim of its own.
pub(crate) const USED_UP: &str = "backfilled";

/// The word of an action that ends a backfill.
pub(crate) const CANCELLED: &str = "cancelled";

/// The outcome of a tick of a backfill that is not started, because a run of it ended well before.
pub(crate) const ALREADY_OK: &str = "already-ok";

/// Not the format of fingerprints, pauses, dead-man's switches or requests.
const FORMAT: u64 = 6;
const RUN: u64 = 1 << 55;

/// The bits of a value, which are enough for the seconds up to the year 2242.
const VALUE: u32 = 33;
const VALUES: u64 = 1 << VALUE;
const SCHEDULES: u64 = 1 << 22;
