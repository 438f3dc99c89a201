//! Local days that do not exist, because a zone crossed the date line, and gaps of several hours.
//!
//! Samoa went from 29 to 31 December 2011, and the station Casey put its clocks forward by three hours four times.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use chrono_tz::Tz;

use crate::Schedule;

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
fn a_fixed_time_in_a_gap_of_three_hours_is_due_after_it() {
    let at = |time: &str| time.parse::<DateTime<Utc>>().unwrap();
    for time in [
        "0 0", "10 0", "30 0", "0 1", "30 1", "59 2", "0,30 0,1", "0 3",
    ] {
        let pattern = format!("0 {time} * * *");
        let schedule = Schedule::parse(&pattern, Tz::Antarctica__Casey).unwrap();
        let end = at("2016-10-21T16:00:00Z");
        let (before, after) = (at("2016-10-21T15:59:59Z"), at("2016-10-21T16:00:01Z"));
        for before in [before, at("2016-10-21T15:00:00Z")] {
            assert_eq!(schedule.next_after(before), Some(end), "{time}");
        }
        assert_eq!(schedule.latest_at(after), Some(end), "{time}");
        assert!(schedule.latest_at(before) < Some(before), "{time}");
        assert!(schedule.next_after(end) > Some(after), "{time}");
    }
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
