//! Local days that do not exist, because a zone crossed the date line, and other gaps of more than two hours.
//!
//! Samoa went from 29 to 31 December 2011, and the station Casey put its clocks forward by three hours four times.
//! croner ends its search where such a time would match, and says the same as where there is nothing more to find, so
//! that the search has to go on behind the gap.
//! Such a gap is stepped over, and its ticks with it.

use chrono::{DateTime, NaiveDate, NaiveTime, Offset, SubsecRound, TimeDelta, TimeZone};
use chrono_tz::Tz;
use croner::Cron;

/// Returns the first instant after the next long gap from `time` on.
pub(super) fn next_end(time: &DateTime<Tz>) -> Option<DateTime<Tz>> {
    let ahead = |steps: i32| time.checked_add_signed(STEP * steps);
    (0..LONGEST_SEARCH).find_map(|steps| end_between(&ahead(steps)?, &ahead(steps + 1)?))
}

/// Returns the last second before the newest long gap before `time`.
pub(super) fn previous_begin(time: &DateTime<Tz>) -> Option<DateTime<Tz>> {
    let back = |steps: i32| time.checked_sub_signed(STEP * steps);
    let end = (0..LONGEST_SEARCH).find_map(|steps| end_between(&back(steps + 1)?, &back(steps)?));
    Some(end? - TimeDelta::seconds(1))
}

/// Returns the first instant after a long gap, if there is one after `before` and not after `after`.
fn end_between(before: &DateTime<Tz>, after: &DateTime<Tz>) -> Option<DateTime<Tz>> {
    let offset = |time: &DateTime<Tz>| time.offset().fix().local_minus_utc();
    if offset(after) - offset(before) <= LONGEST_GAP {
        return None;
    }
    let (mut before, mut after) = (*before, *after);
    while after.timestamp() - before.timestamp() > 1 {
        let middle = before + (after - before) / 2;
        let side = if offset(&middle) == offset(&before) {
            &mut before
        } else {
            &mut after
        };
        *side = middle.trunc_subsecs(0);
    }
    Some(after)
}

/// Returns whether a tick stands for one of such a day, of which croner makes some due at its end.
pub(super) fn is_from_one(tick: &DateTime<Tz>, cron: &Cron) -> bool {
    let is_midnight = tick.time() == NaiveTime::MIN;
    let day_before = tick.date_naive().pred_opt();
    is_midnight
        && day_before.is_some_and(|day| !exists(day, &tick.timezone()))
        && !cron.is_time_matching(tick).unwrap_or(true)
}

/// Looks at noon, because no change of the clocks for the season spans it.
fn exists(day: NaiveDate, zone: &Tz) -> bool {
    let noon = NaiveTime::from_hms_opt(12, 0, 0).expect("there is a noon");
    zone.from_local_datetime(&day.and_time(noon))
        .earliest()
        .is_some()
}

/// In seconds: as far as croner looks for the end of a gap.
const LONGEST_GAP: i32 = 2 * 60 * 60;

/// Clocks do not change twice in so long.
const STEP: TimeDelta = TimeDelta::hours(12);

/// In steps, for ten years: as far as zone data is likely to know of such a gap, and near enough to be searched at each
/// wake-up.
const LONGEST_SEARCH: i32 = 10 * 366 * 2;

#[cfg(test)]
mod tests {
    use crate::schedule::Schedule;
    use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
    use chrono_tz::Tz;

    /// Zones with the day that does not exist there.
    const TABLE: &[(Tz, &str)] = &[
        (Tz::Pacific__Apia, "2011-12-30"),
        (Tz::Pacific__Fakaofo, "2011-12-30"),
        (Tz::Pacific__Kwajalein, "1993-08-21"),
        (Tz::Pacific__Kiritimati, "1994-12-31"),
    ];

    fn days(pattern: &str, zone: Tz, from: DateTime<Utc>, count: usize) -> Vec<NaiveDate> {
        let schedule = Schedule::parse(pattern, zone).unwrap();
        let next = |tick: &DateTime<Utc>| schedule.next_after(*tick);
        let ticks = std::iter::successors(schedule.next_after(from), next).take(count);
        ticks
            .map(|tick| tick.with_timezone(&zone).date_naive())
            .collect()
    }

    #[test]
    fn a_day_that_does_not_exist_is_stepped_over() {
        for (zone, missing) in TABLE {
            let missing: NaiveDate = missing.parse().unwrap();
            let noon = missing.and_hms_opt(12, 0, 0).unwrap().and_utc();
            let from = noon - TimeDelta::days(3);
            let first = from.with_timezone(zone).date_naive();
            for hour in [0, 9, 15, 23] {
                let found = days(&format!("0 0 {hour} * * *"), *zone, from, 6);
                let expected: Vec<_> = first
                    .iter_days()
                    .filter(|day| *day != missing && *day >= found[0])
                    .take(6)
                    .collect();
                assert_eq!(found, expected, "{zone} at {hour}");
            }
        }
    }

    /// The station Casey went from 00:00 to 03:00 on 22 October 2016.
    #[test]
    fn a_gap_of_three_hours_does_not_end_a_schedule() {
        let zone = Tz::Antarctica__Casey;
        let at = |time: &str| time.parse::<DateTime<Utc>>().unwrap();
        let schedule = Schedule::parse("0 30 0 * * *", zone).unwrap();
        let (before, after) = (at("2016-10-20T16:30:00Z"), at("2016-10-22T13:30:00Z"));
        for time in [
            "2016-10-20T17:00:00Z",
            "2016-10-21T15:59:59Z",
            "2016-10-21T16:00:00Z",
            "2016-10-21T16:00:01Z",
            "2016-10-22T00:00:00Z",
        ] {
            assert_eq!(schedule.next_after(at(time)), Some(after), "{time}");
            assert_eq!(schedule.latest_at(at(time)), Some(before), "{time}");
        }
        // And the others of that night are due at the end of the gap, as in any other.
        let schedule = Schedule::parse("0 30 1 * * *", zone).unwrap();
        let next = schedule.next_after(at("2016-10-21T12:00:00Z"));
        assert_eq!(next, Some(at("2016-10-21T16:00:00Z")));
    }

    #[test]
    fn a_tick_of_every_year_on_such_a_day_is_found_before_and_after() {
        let schedule = Schedule::parse("0 0 9 30 12 *", Tz::Pacific__Apia).unwrap();
        let at = |time: &str| time.parse::<DateTime<Utc>>().unwrap();
        let (before, after) = (at("2010-12-30T19:00:00Z"), at("2012-12-29T19:00:00Z"));
        for time in [
            "2011-12-29T20:00:00Z",
            "2011-12-30T09:30:00Z",
            "2011-12-31T20:00:00Z",
        ] {
            assert_eq!(schedule.latest_at(at(time)), Some(before), "{time}");
            assert_eq!(schedule.next_after(at(time)), Some(after), "{time}");
        }
    }

    #[test]
    fn every_wake_up_around_such_a_day_finds_the_tick_of_the_sequence() {
        for (zone, missing) in TABLE {
            let missing: NaiveDate = missing.parse().unwrap();
            let begin = missing.and_hms_opt(0, 0, 0).unwrap().and_utc() - TimeDelta::days(2);
            for pattern in [
                "0 30 9 * * *",
                "0 0 */6 * * *",
                "0 15 3,21 * * *",
                "0 0 23 * * *",
            ] {
                let schedule = Schedule::parse(pattern, *zone).unwrap();
                let mut last = schedule.latest_at(begin).unwrap();
                let mut wake = begin;
                while wake < begin + TimeDelta::days(4) {
                    wake += TimeDelta::minutes(7);
                    while let Some(next) = schedule.next_after(last).filter(|next| *next <= wake) {
                        last = next;
                    }
                    let found = schedule.latest_at(wake);
                    assert_eq!(found, Some(last), "{pattern:?} in {zone} at {wake}");
                }
            }
        }
    }
}
