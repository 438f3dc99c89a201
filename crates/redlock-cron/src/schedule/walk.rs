//! The walk along the instants of a zone, from one change of its clocks to the next.
//!
//! Between two changes, local time runs as in a world without them, and the pattern says which times match.
//! What a change adds or takes is decided here: a fixed time in a gap is due at the first instant after it, and one that
//! exists twice is due at its first instant.

use std::ops::Range;

use chrono::{DateTime, NaiveDate, NaiveDateTime, Offset, TimeDelta, TimeZone};
use chrono_tz::Tz;

use super::pattern::{BEGIN, END, Pattern};

/// Seconds since the Unix epoch between which no clock of the zone changes.
struct Stretch<'a> {
    pattern: &'a Pattern,
    zone: Tz,
    begin: i64,
    end: i64,
}

/// Returns the first tick at or after `from`, in seconds since the Unix epoch.
pub(super) fn first_from(pattern: &Pattern, zone: Tz, mut from: i64) -> Option<i64> {
    loop {
        // Nothing is due before the next time that matches, wherever clocks change.
        let next = pattern.first_in(utc(from - FURTHEST)?..END)?;
        let stretch = Stretch::from(pattern, zone, from.max(seconds(next) - FURTHEST));
        if let Some(tick) = stretch.first() {
            return Some(tick);
        }
        from = stretch.end;
    }
}

/// Returns the last tick before `end`, in seconds since the Unix epoch.
pub(super) fn last_before(pattern: &Pattern, zone: Tz, mut end: i64) -> Option<i64> {
    loop {
        let last = pattern.last_in(BEGIN..utc(end + FURTHEST)?)?;
        let stretch = Stretch::until(pattern, zone, end.min(seconds(last) + FURTHEST));
        if let Some(tick) = stretch.last() {
            return Some(tick);
        }
        end = stretch.begin;
    }
}

/// Returns the day for which a tick is due: the day of the time that matches, also if that time is in a gap.
pub(super) fn day_of(pattern: &Pattern, tick: DateTime<Tz>) -> NaiveDate {
    let local = tick.naive_local();
    if pattern.first_in(local..local + SECOND).is_some() {
        return local.date();
    }
    let stretch = Stretch::from(pattern, tick.timezone(), tick.timestamp());
    let in_gap = stretch.in_gap().last();
    in_gap.unwrap_or(local).date()
}

impl<'a> Stretch<'a> {
    fn from(pattern: &'a Pattern, zone: Tz, begin: i64) -> Self {
        let end = change_between(zone, begin, begin + LONGEST).unwrap_or(begin + LONGEST);
        Self {
            pattern,
            zone,
            begin,
            end,
        }
    }

    fn until(pattern: &'a Pattern, zone: Tz, end: i64) -> Self {
        let begin = change_between(zone, end - 1 - LONGEST, end - 1);
        Self {
            pattern,
            zone,
            begin: begin.unwrap_or(end - 1 - LONGEST),
            end,
        }
    }

    /// Returns the first tick in it.
    fn first(&self) -> Option<i64> {
        if self.in_gap().next().is_some() {
            return Some(self.begin);
        }
        let (offset, mut times) = self.local_times()?;
        while let Some(time) = self.pattern.first_in(times.clone()) {
            let tick = seconds(time - offset);
            if self.is_due(time, tick) {
                return Some(tick);
            }
            times.start = time + SECOND;
        }
        None
    }

    /// Returns the last tick in it.
    fn last(&self) -> Option<i64> {
        let (offset, mut times) = self.local_times()?;
        while let Some(time) = self.pattern.last_in(times.clone()) {
            let tick = seconds(time - offset);
            if self.is_due(time, tick) {
                return Some(tick);
            }
            times.end = time;
        }
        self.in_gap().next().map(|_| self.begin)
    }

    /// Returns the offset of local times from UTC, and the local times themselves.
    fn local_times(&self) -> Option<(TimeDelta, Range<NaiveDateTime>)> {
        let offset = offset(self.zone, self.begin);
        Some((offset, utc(self.begin)? + offset..utc(self.end)? + offset))
    }

    /// Returns whether a local time that matches is due at this of its instants.
    fn is_due(&self, time: NaiveDateTime, tick: i64) -> bool {
        let first = || self.zone.from_local_datetime(&time).earliest();
        self.pattern.repeats || first().is_some_and(|first| first.timestamp() == tick)
    }

    /// Returns the fixed times that the change at its begin leaves out, except those of days that do not exist.
    fn in_gap(&self) -> impl Iterator<Item = NaiveDateTime> {
        let at = |offset| utc(self.begin).map(|begin| begin + offset);
        let (before, after) = (
            offset(self.zone, self.begin - 1),
            offset(self.zone, self.begin),
        );
        let gap = match (at(before), at(after)) {
            (Some(first), Some(end)) if first < end && !self.pattern.repeats => first..end,
            _ => NaiveDateTime::MIN..NaiveDateTime::MIN,
        };
        let next = move |from| self.pattern.first_in(from..gap.end);
        let times = std::iter::successors(next(gap.start), move |time| next(*time + SECOND));
        times.filter(move |time| exists(time.date(), &gap))
    }
}

/// Returns whether a gap leaves a part of a day.
fn exists(day: NaiveDate, gap: &Range<NaiveDateTime>) -> bool {
    let begin = NaiveDateTime::from(day);
    gap.start > begin || gap.end < begin + TimeDelta::days(1)
}

/// Returns the first instant after the change of the clocks that is after one instant and not after another.
fn change_between(zone: Tz, before: i64, after: i64) -> Option<i64> {
    let old = offset(zone, before);
    if offset(zone, after) == old {
        return None;
    }
    let (mut before, mut after) = (before, after);
    while after - before > 1 {
        let middle = before + (after - before) / 2;
        if offset(zone, middle) == old {
            before = middle;
        } else {
            after = middle;
        }
    }
    Some(after)
}

fn offset(zone: Tz, instant: i64) -> TimeDelta {
    let utc = utc(instant).unwrap_or_default();
    let offset = zone.offset_from_utc_datetime(&utc).fix();
    TimeDelta::seconds(offset.local_minus_utc().into())
}

fn utc(instant: i64) -> Option<NaiveDateTime> {
    Some(DateTime::from_timestamp(instant, 0)?.naive_utc())
}

fn seconds(utc: NaiveDateTime) -> i64 {
    utc.and_utc().timestamp()
}

const SECOND: TimeDelta = TimeDelta::seconds(1);

/// In seconds: clocks of a zone do not change twice in this time; the zone data has no two changes within six days.
const LONGEST: i64 = 12 * 60 * 60;

/// In seconds: more than a local time, as a number, is away from its instant.
const FURTHEST: i64 = 48 * 60 * 60;
