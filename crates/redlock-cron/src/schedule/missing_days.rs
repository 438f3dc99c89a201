//! Local days that do not exist, because a zone crossed the date line.
//!
//! Samoa went from 29 to 31 December 2011.
//! croner ends its search where such a day would match, and says the same as where there is nothing more to find, so
//! that the search has to go on behind the day.
//! Such a day is stepped over: there is no instant at which its ticks would be due.

use chrono::{DateTime, Days, NaiveDate, NaiveTime, TimeDelta, TimeZone};
use chrono_tz::Tz;
use croner::Cron;

/// Returns the first instant after the next day from `time` on that does not exist.
pub(super) fn next_end(time: &DateTime<Tz>) -> Option<DateTime<Tz>> {
    let mut day = time.date_naive();
    for _ in 0..LONGEST_SEARCH {
        day = day.succ_opt()?;
        if !exists(day, &time.timezone()) {
            return end(day, &time.timezone());
        }
    }
    None
}

/// Returns the last second before the newest day before `time` that does not exist.
pub(super) fn previous_begin(time: &DateTime<Tz>) -> Option<DateTime<Tz>> {
    let mut day = time.date_naive();
    for _ in 0..LONGEST_SEARCH {
        day = day.pred_opt()?;
        if !exists(day, &time.timezone()) {
            return Some(end(day, &time.timezone())? - TimeDelta::seconds(1));
        }
    }
    None
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

fn end(day: NaiveDate, zone: &Tz) -> Option<DateTime<Tz>> {
    let next = day.checked_add_days(Days::new(1))?;
    zone.from_local_datetime(&next.and_time(NaiveTime::MIN))
        .earliest()
}

/// In days: as far as zone data is likely to know of such a day, and near enough to be searched at each wake-up.
const LONGEST_SEARCH: u32 = 10 * 366;

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
