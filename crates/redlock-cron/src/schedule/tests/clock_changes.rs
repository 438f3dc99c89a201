//! The ticks around changes of a zone's clocks.
//!
//! A fixed time that a gap skips is due at the first instant after the gap, unless that is on a day that the pattern
//! does not match; one that occurs twice is due at its first pass.
//! A pattern that repeats within the hour goes on through both passes and skips the gap.

use crate::Schedule;
use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;

/// Pattern, zone, and the ticks in the day around a change, in UTC.
type Row = (&'static str, Tz, &'static str, &'static [&'static str]);

const TABLE: &[Row] = &[
    // Berlin, forward on 29 March 2026 at 02:00 (01:00 UTC) to 03:00.
    (
        "0 0 9 * * *",
        Tz::Europe__Berlin,
        "2026-03-28T12:00:00Z",
        &["03-29T07:00:00Z"],
    ),
    (
        "0 30 2 * * *",
        Tz::Europe__Berlin,
        "2026-03-28T12:00:00Z",
        &["03-29T01:00:00Z"],
    ),
    (
        "0 0 3 * * *",
        Tz::Europe__Berlin,
        "2026-03-28T12:00:00Z",
        &["03-29T01:00:00Z"],
    ),
    (
        "0 */30 0-3 * * *",
        Tz::Europe__Berlin,
        "2026-03-28T12:00:00Z",
        &[
            "03-28T23:00:00Z",
            "03-28T23:30:00Z",
            "03-29T00:00:00Z",
            "03-29T00:30:00Z",
            "03-29T01:00:00Z",
            "03-29T01:30:00Z",
        ],
    ),
    // Berlin, back on 25 October 2026 at 03:00 (01:00 UTC) to 02:00.
    (
        "0 0 9 * * *",
        Tz::Europe__Berlin,
        "2026-10-24T12:00:00Z",
        &["10-25T08:00:00Z"],
    ),
    (
        "0 30 2 * * *",
        Tz::Europe__Berlin,
        "2026-10-24T12:00:00Z",
        &["10-25T00:30:00Z"],
    ),
    (
        "0 */30 1-2 * * *",
        Tz::Europe__Berlin,
        "2026-10-24T12:00:00Z",
        &[
            "10-24T23:00:00Z",
            "10-24T23:30:00Z",
            "10-25T00:00:00Z",
            "10-25T00:30:00Z",
            "10-25T01:00:00Z",
            "10-25T01:30:00Z",
        ],
    ),
    // Lists are fixed times, each of which is due once.
    (
        "0 0 2,14 * * *",
        Tz::Europe__Berlin,
        "2026-03-28T12:00:00Z",
        &["03-28T13:00:00Z", "03-29T01:00:00Z"],
    ),
    (
        "0 0,15,45 2 * * *",
        Tz::Europe__Berlin,
        "2026-03-28T12:00:00Z",
        &["03-29T01:00:00Z"],
    ),
    (
        "0 0 2,14 * * *",
        Tz::Europe__Berlin,
        "2026-10-24T12:30:00Z",
        &["10-25T00:00:00Z"],
    ),
    (
        "0 15,45 2 * * *",
        Tz::Europe__Berlin,
        "2026-10-24T12:30:00Z",
        &["10-25T00:15:00Z", "10-25T00:45:00Z"],
    ),
    // Ranges of several values go by the clock.
    (
        "0 0 2-3 * * *",
        Tz::Europe__Berlin,
        "2026-10-24T12:30:00Z",
        &["10-25T00:00:00Z", "10-25T01:00:00Z", "10-25T02:00:00Z"],
    ),
    // New York, forward on 8 March 2026 at 02:00 (07:00 UTC), back on 1 November at 02:00 (06:00 UTC).
    (
        "0 15 2 * * *",
        Tz::America__New_York,
        "2026-03-07T20:00:00Z",
        &["03-08T07:00:00Z"],
    ),
    (
        "0 15 1 * * *",
        Tz::America__New_York,
        "2026-10-31T20:00:00Z",
        &["11-01T05:15:00Z"],
    ),
    (
        "0 0 0-2 * * *",
        Tz::America__New_York,
        "2026-10-31T20:00:00Z",
        &[
            "11-01T04:00:00Z",
            "11-01T05:00:00Z",
            "11-01T06:00:00Z",
            "11-01T07:00:00Z",
        ],
    ),
    // Sydney, where the seasons are the other way round: back on 5 April 2026 at 03:00 (4 April, 16:00
    // UTC), forward on 4 October at 02:00 (3 October, 16:00 UTC).
    (
        "0 30 2 * * *",
        Tz::Australia__Sydney,
        "2026-04-04T04:00:00Z",
        &["04-04T15:30:00Z"],
    ),
    (
        "0 30 2 * * *",
        Tz::Australia__Sydney,
        "2026-10-03T04:00:00Z",
        &["10-03T16:00:00Z"],
    ),
    (
        "0 0 9 * * *",
        Tz::Australia__Sydney,
        "2026-10-03T04:00:00Z",
        &["10-03T22:00:00Z"],
    ),
    // Lord Howe changes by half an hour: back on 5 April 2026 at 02:00 (+11:00) to 01:30, forward on
    // 4 October at 02:00 (+10:30) to 02:30.
    (
        "0 45 1 * * *",
        Tz::Australia__Lord_Howe,
        "2026-04-04T04:00:00Z",
        &["04-04T14:45:00Z"],
    ),
    (
        "0 15 2 * * *",
        Tz::Australia__Lord_Howe,
        "2026-10-03T04:00:00Z",
        &["10-03T15:30:00Z"],
    ),
    (
        "0 */15 1 * * *",
        Tz::Australia__Lord_Howe,
        "2026-04-04T04:00:00Z",
        &[
            "04-04T14:00:00Z",
            "04-04T14:15:00Z",
            "04-04T14:30:00Z",
            "04-04T14:45:00Z",
            "04-04T15:00:00Z",
            "04-04T15:15:00Z",
        ],
    ),
    // Lord Howe's gap of half an hour, for a pattern that repeats.
    (
        "0 */15 2 * * *",
        Tz::Australia__Lord_Howe,
        "2026-10-03T04:00:00Z",
        &["10-03T15:30:00Z", "10-03T15:45:00Z"],
    ),
    (
        "0 0 9 * * *",
        Tz::Australia__Lord_Howe,
        "2026-10-03T04:00:00Z",
        &["10-03T22:00:00Z"],
    ),
    // New York at nine, on both days of a change.
    (
        "0 0 9 * * *",
        Tz::America__New_York,
        "2026-03-07T20:00:00Z",
        &["03-08T13:00:00Z"],
    ),
    (
        "0 0 9 * * *",
        Tz::America__New_York,
        "2026-10-31T20:00:00Z",
        &["11-01T14:00:00Z"],
    ),
    // Sao Paulo changed at midnight, for the last time in this season: forward on 4 November 2018 at 00:00
    // (03:00 UTC), back on 17 February 2019 at 00:00 (02:00 UTC) to 23:00 of the day before.
    (
        "0 0 0 * * *",
        Tz::America__Sao_Paulo,
        "2018-11-03T12:00:00Z",
        &["11-04T03:00:00Z"],
    ),
    (
        "0 30 0 * * *",
        Tz::America__Sao_Paulo,
        "2018-11-03T12:00:00Z",
        &["11-04T03:00:00Z"],
    ),
    (
        "0 */30 0-1 * * *",
        Tz::America__Sao_Paulo,
        "2018-11-03T12:00:00Z",
        &["11-04T03:00:00Z", "11-04T03:30:00Z"],
    ),
    (
        "0 30 23 * * *",
        Tz::America__Sao_Paulo,
        "2019-02-16T12:00:00Z",
        &["02-17T01:30:00Z"],
    ),
    (
        "0 0 0 * * *",
        Tz::America__Sao_Paulo,
        "2019-02-16T12:00:00Z",
        &["02-17T03:00:00Z"],
    ),
    (
        "0 */30 23 * * *",
        Tz::America__Sao_Paulo,
        "2019-02-16T12:00:00Z",
        &[
            "02-17T01:00:00Z",
            "02-17T01:30:00Z",
            "02-17T02:00:00Z",
            "02-17T02:30:00Z",
        ],
    ),
    // Kolkata never changes and is half an hour off.
    (
        "0 0 9 * * *",
        Tz::Asia__Kolkata,
        "2026-03-28T12:00:00Z",
        &["03-29T03:30:00Z"],
    ),
    // Santiago goes forward at midnight on 6 September 2026 (04:00 UTC): the day starts at 01:00.
    (
        "0 0 0 * * *",
        Tz::America__Santiago,
        "2026-09-05T12:00:00Z",
        &["09-06T04:00:00Z"],
    ),
];

#[test]
fn ticks_around_a_change_are_those_of_the_table() {
    for (pattern, zone, from, expected) in TABLE {
        let schedule = Schedule::parse(pattern, *zone).unwrap();
        let from: DateTime<Utc> = from.parse().unwrap();
        let until = from + TimeDelta::hours(22);
        let ticks: Vec<_> = ticks(&schedule, from)
            .take_while(|tick| *tick < until)
            .collect();
        let expected: Vec<DateTime<Utc>> = expected
            .iter()
            .map(|tick| format!("{}-{tick}", from.format("%Y")).parse().unwrap())
            .collect();
        assert_eq!(ticks, expected, "{pattern:?} in {zone}");
    }
}

/// A replica that wakes up late, or for nothing, must name the tick that the others name.
#[test]
fn every_wake_up_around_a_change_finds_the_tick_of_the_sequence() {
    for (pattern, zone, from, _) in TABLE {
        let schedule = Schedule::parse(pattern, *zone).unwrap();
        let from: DateTime<Utc> = from.parse().unwrap();
        let start = from - TimeDelta::days(2);
        let end = from + TimeDelta::hours(22);
        let sequence: Vec<_> = ticks(&schedule, start)
            .take_while(|tick| *tick < end)
            .collect();
        let mut wake = from;
        while wake < end {
            let expected = sequence.iter().rev().find(|tick| **tick <= wake).copied();
            assert_eq!(
                schedule.latest_at(wake),
                expected,
                "{pattern:?} in {zone} at {wake}"
            );
            wake += TimeDelta::milliseconds(97_531);
        }
    }
}

/// Nuuk goes forward at 23:00 on Saturday, 28 March 2026 (29 March, 01:00 UTC), so its gap ends at midnight.
#[test]
fn a_time_in_a_gap_that_ends_at_midnight_is_due_then_and_keeps_its_day() {
    for (pattern, expected) in [
        (
            "0 30 23 * * SAT",
            ["2026-03-21", "2026-03-28", "2026-04-04"],
        ),
        ("0 0 23 * * *", ["2026-03-27", "2026-03-28", "2026-03-29"]),
        (
            "0 30 23 28,29 3 *",
            ["2025-03-29", "2026-03-28", "2026-03-29"],
        ),
        // Midnight matches too, so it is one tick of the day that clocks show.
        ("0 0 0,23 * * *", ["2026-03-28", "2026-03-29", "2026-03-29"]),
        // Goes by the clock, which has no such time.
        (
            "0 */30 23 * * SAT",
            ["2026-03-21", "2026-04-04", "2026-04-04"],
        ),
    ] {
        let schedule = Schedule::parse(pattern, Tz::America__Nuuk).unwrap();
        let end: DateTime<Utc> = "2026-03-29T01:00:00Z".parse().unwrap();
        let next = if schedule.latest_at(end) == Some(end) {
            end
        } else {
            schedule.next_after(end).unwrap()
        };
        let last = schedule.latest_before(next).unwrap();
        let found = [last, next, schedule.next_after(next).unwrap()];
        let days = found.map(|tick| schedule.day_of(tick).to_string());
        assert_eq!(days, expected, "{pattern:?}");
        assert_eq!(next == end, !pattern.contains('/'), "{pattern:?}");
    }
}

#[test]
fn the_set_of_times_decides_and_not_how_a_single_time_is_written() {
    for (single, others) in [
        (
            "0 0 2 * * *",
            &[
                "0 0/60 2 * * *",
                "0 */60 2 * * *",
                "0 */90 2 * * *",
                "0 0 2/24 * * *",
                "0 0 2-3/5 * * *",
                "0-0 0-0/1 2-2 * * *",
                "*/60 0,0 2 * * *",
            ][..],
        ),
        ("0 57 2 * * *", &["0 57-57/7 2 * * *"]),
    ] {
        let of_year = |pattern| {
            let schedule = Schedule::parse(pattern, Tz::Europe__Berlin).unwrap();
            let from = "2026-01-01T00:00:00Z".parse().unwrap();
            ticks(&schedule, from).take(365).collect::<Vec<_>>()
        };
        for other in others {
            assert_eq!(of_year(other), of_year(single), "{other:?}");
        }
    }
}

fn ticks(schedule: &Schedule, from: DateTime<Utc>) -> impl Iterator<Item = DateTime<Utc>> {
    std::iter::successors(schedule.next_after(from), |tick| {
        let next = schedule.next_after(*tick)?;
        assert!(next > *tick, "{next} is not after {tick}");
        Some(next)
    })
}
