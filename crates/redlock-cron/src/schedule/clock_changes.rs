//! The ticks around changes of a zone's clocks.
//!
//! A fixed time that a gap skips is due at the first instant after the gap, unless that is on a day that the pattern
//! does not match; one that occurs twice is due at its first pass.
//! A pattern that repeats within the hour goes on through both passes and skips the gap.

use super::calendar::Schedule;
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
fn a_time_in_a_gap_that_ends_at_midnight_is_not_due_on_a_day_that_the_pattern_does_not_match() {
    for (pattern, expected) in [
        ("0 30 23 * * SAT", "2026-04-05T00:30:00Z"),
        ("0 30 23 * * SAT,SUN", "2026-03-29T01:00:00Z"),
        ("0 30 23 * * *", "2026-03-29T01:00:00Z"),
    ] {
        let schedule = Schedule::parse(pattern, Tz::America__Nuuk).unwrap();
        let next = schedule.next_after("2026-03-28T12:00:00Z".parse().unwrap());
        assert_eq!(next, Some(expected.parse().unwrap()), "{pattern:?}");
    }
}

fn ticks(schedule: &Schedule, from: DateTime<Utc>) -> impl Iterator<Item = DateTime<Utc>> {
    std::iter::successors(schedule.next_after(from), |tick| {
        let next = schedule.next_after(*tick)?;
        assert!(next > *tick, "{next} is not after {tick}");
        Some(next)
    })
}
