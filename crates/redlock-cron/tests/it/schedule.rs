//! Schedules beside what their patterns, their zones and the clocks there say.

use std::time::Duration;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use redlock_cron::{Schedule, chrono_tz::Tz};

/// Pattern, zone, an instant before a change of clocks, and the ticks in the 22 hours after it, in UTC.
///
/// A fixed time that a gap skips is due at the first instant after the gap, unless that is on a day that the pattern does not
/// match; one that occurs twice is due at its first pass.
/// A pattern that repeats within the hour goes on through both passes and skips the gap.
const CHANGES: &str = "\
# Berlin, forward on 29 March 2026 at 02:00 (01:00 UTC) to 03:00.
0 0 9 * * * | Europe/Berlin | 2026-03-28T12:00Z | 03-29T07:00Z
0 30 2 * * * | Europe/Berlin | 2026-03-28T12:00Z | 03-29T01:00Z
0 0 3 * * * | Europe/Berlin | 2026-03-28T12:00Z | 03-29T01:00Z
0 */30 0-3 * * * | Europe/Berlin | 2026-03-28T12:00Z | 03-28T23:00Z 03-28T23:30Z 03-29T00:00Z 03-29T00:30Z 03-29T01:00Z 03-29T01:30Z
# Berlin, back on 25 October 2026 at 03:00 (01:00 UTC) to 02:00.
0 0 9 * * * | Europe/Berlin | 2026-10-24T12:00Z | 10-25T08:00Z
0 30 2 * * * | Europe/Berlin | 2026-10-24T12:00Z | 10-25T00:30Z
0 */30 1-2 * * * | Europe/Berlin | 2026-10-24T12:00Z | 10-24T23:00Z 10-24T23:30Z 10-25T00:00Z 10-25T00:30Z 10-25T01:00Z 10-25T01:30Z
# Lists are fixed times, each of which is due once.
0 0 2,14 * * * | Europe/Berlin | 2026-03-28T12:00Z | 03-28T13:00Z 03-29T01:00Z
0 0,15,45 2 * * * | Europe/Berlin | 2026-03-28T12:00Z | 03-29T01:00Z
0 0 2,14 * * * | Europe/Berlin | 2026-10-24T12:30Z | 10-25T00:00Z
0 15,45 2 * * * | Europe/Berlin | 2026-10-24T12:30Z | 10-25T00:15Z 10-25T00:45Z
# Ranges of several values go by the clock.
0 0 2-3 * * * | Europe/Berlin | 2026-10-24T12:30Z | 10-25T00:00Z 10-25T01:00Z 10-25T02:00Z
# New York, forward on 8 March 2026 at 02:00 (07:00 UTC), back on 1 November at 02:00 (06:00 UTC).
0 15 2 * * * | America/New_York | 2026-03-07T20:00Z | 03-08T07:00Z
0 15 1 * * * | America/New_York | 2026-10-31T20:00Z | 11-01T05:15Z
0 0 0-2 * * * | America/New_York | 2026-10-31T20:00Z | 11-01T04:00Z 11-01T05:00Z 11-01T06:00Z 11-01T07:00Z
# Sydney, where the seasons are the other way round: back on 5 April 2026 at 03:00 (4 April, 16:00 UTC), forward on 4 October at 02:00 (3 October, 16:00 UTC).
0 30 2 * * * | Australia/Sydney | 2026-04-04T04:00Z | 04-04T15:30Z
0 30 2 * * * | Australia/Sydney | 2026-10-03T04:00Z | 10-03T16:00Z
0 0 9 * * * | Australia/Sydney | 2026-10-03T04:00Z | 10-03T22:00Z
# Lord Howe changes by half an hour: back on 5 April 2026 at 02:00 (+11:00) to 01:30, forward on 4 October at 02:00 (+10:30) to 02:30.
0 45 1 * * * | Australia/Lord_Howe | 2026-04-04T04:00Z | 04-04T14:45Z
0 15 2 * * * | Australia/Lord_Howe | 2026-10-03T04:00Z | 10-03T15:30Z
0 */15 1 * * * | Australia/Lord_Howe | 2026-04-04T04:00Z | 04-04T14:00Z 04-04T14:15Z 04-04T14:30Z 04-04T14:45Z 04-04T15:00Z 04-04T15:15Z
# Lord Howe's gap of half an hour, for a pattern that repeats.
0 */15 2 * * * | Australia/Lord_Howe | 2026-10-03T04:00Z | 10-03T15:30Z 10-03T15:45Z
0 0 9 * * * | Australia/Lord_Howe | 2026-10-03T04:00Z | 10-03T22:00Z
# New York at nine, on both days of a change.
0 0 9 * * * | America/New_York | 2026-03-07T20:00Z | 03-08T13:00Z
0 0 9 * * * | America/New_York | 2026-10-31T20:00Z | 11-01T14:00Z
# Sao Paulo changed at midnight, for the last time in this season: forward on 4 November 2018 at 00:00 (03:00 UTC), back on 17 February 2019 at 00:00 (02:00 UTC) to 23:00 of the day before.
0 0 0 * * * | America/Sao_Paulo | 2018-11-03T12:00Z | 11-04T03:00Z
0 30 0 * * * | America/Sao_Paulo | 2018-11-03T12:00Z | 11-04T03:00Z
0 */30 0-1 * * * | America/Sao_Paulo | 2018-11-03T12:00Z | 11-04T03:00Z 11-04T03:30Z
0 30 23 * * * | America/Sao_Paulo | 2019-02-16T12:00Z | 02-17T01:30Z
0 0 0 * * * | America/Sao_Paulo | 2019-02-16T12:00Z | 02-17T03:00Z
0 */30 23 * * * | America/Sao_Paulo | 2019-02-16T12:00Z | 02-17T01:00Z 02-17T01:30Z 02-17T02:00Z 02-17T02:30Z
# Kolkata never changes and is half an hour off.
0 0 9 * * * | Asia/Kolkata | 2026-03-28T12:00Z | 03-29T03:30Z
# Santiago goes forward at midnight on 6 September 2026 (04:00 UTC): the day starts at 01:00.
0 0 0 * * * | America/Santiago | 2026-09-05T12:00Z | 09-06T04:00Z";

fn utc(time: &str) -> DateTime<Utc> {
    time.parse().unwrap()
}

fn ticks_of(pattern: &str, zone: &str, from: DateTime<Utc>) -> impl Iterator<Item = DateTime<Utc>> {
    let schedule = Schedule::cron(pattern, zone).unwrap();
    let mut last = from;
    std::iter::from_fn(move || {
        let next = schedule.next_after(last)?;
        assert!(next > last, "{next} is not after {last}");
        last = next;
        Some(next)
    })
}

#[test]
fn ticks_around_a_change_are_those_of_the_table() {
    for row in CHANGES.lines().filter(|row| !row.starts_with('#')) {
        let [pattern, zone, from, expected] = *row.split(" | ").collect::<Vec<_>>() else {
            panic!("{row}");
        };
        let (year, from) = (&from[..4], utc(&from.replace('Z', ":00Z")));
        let until = from + TimeDelta::hours(22);
        let ticks = ticks_of(pattern, zone, from).take_while(|tick| *tick < until);
        let expected = expected.split(' ');
        let expected = expected.map(|tick| utc(&format!("{year}-{}", tick.replace('Z', ":00Z"))));
        assert_eq!(
            ticks.collect::<Vec<_>>(),
            expected.collect::<Vec<_>>(),
            "{row}"
        );
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
            let ticks = ticks_of(pattern, "Europe/Berlin", utc("2026-01-01T00:00:00Z"));
            ticks.take(365).collect::<Vec<_>>()
        };
        for other in others {
            assert_eq!(of_year(other), of_year(single), "{other:?}");
        }
    }
}

/// Zones with the day that does not exist there.
const MISSING_DAYS: &[(Tz, &str)] = &[
    (Tz::Pacific__Apia, "2011-12-30"),
    (Tz::Pacific__Fakaofo, "2011-12-30"),
    (Tz::Pacific__Kwajalein, "1993-08-21"),
    (Tz::Pacific__Kiritimati, "1994-12-31"),
];

fn days(pattern: &str, zone: Tz, from: DateTime<Utc>, count: usize) -> Vec<NaiveDate> {
    let ticks = ticks_of(pattern, zone.name(), from).take(count);
    ticks
        .map(|tick| tick.with_timezone(&zone).date_naive())
        .collect()
}

#[test]
fn a_day_that_does_not_exist_is_stepped_over() {
    for (zone, missing) in MISSING_DAYS {
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

fn ticks(pattern: &str, count: usize) -> Vec<String> {
    let ticks = ticks_of(pattern, "UTC", utc("2026-11-21T12:00:00Z"));
    let ticks = ticks.map(|tick| tick.format("%Y-%m-%d %H:%M:%S").to_string());
    ticks.take(count).collect()
}

fn refusal(pattern: &str) -> String {
    let error = Schedule::cron(pattern, "UTC");
    let error = error.expect_err(pattern);
    assert_eq!(error.field(), "pattern");
    error.to_string()
}

/// As a configuration writes it that joins an empty list.
#[test]
fn an_empty_item_of_a_list_is_refused_and_not_searched_for() {
    let names = [
        "second",
        "minute",
        "hour",
        "day of month",
        "month",
        "day of week",
        "year",
    ];
    for (index, name) in names.into_iter().enumerate() {
        for list in [",", "5,", ",5", "5,,6", ",,"] {
            let mut fields = ["0", "0", "2", "*", "*", "*", "*"];
            fields[index] = list;
            let error = refusal(&fields.join(" "));
            let expected = format!("{name}: an item of the list {list:?} is empty");
            assert!(error.contains(&expected), "{error}");
        }
    }
}

#[test]
fn what_a_field_does_not_understand_is_refused_with_the_field_and_the_character() {
    for (pattern, expected) in [
        // What follows was dropped without a word.
        ("0 0 2 15W20 * *", "day of month: 'W' in \"15W20\""),
        ("0 0 2 * * FRI#2L", "day of week: '#' in \"FRI#2L\""),
        ("0 0 2 * * 5,L", "day of week: a value is missing in \"L\""),
        ("0 0 2 * * L", "day of week: a value is missing in \"L\""),
        ("0 0 2 * * LW", "day of week: 'L' in \"LW\""),
        ("0 0 2 * TUE MAR", "month: 'T' in \"TUE\""),
        ("0 0 2 * * MAR", "day of week: 'M' in \"MAR\""),
        ("MON 0 2 * * *", "second: 'M' in \"MON\""),
        ("0 0 2 MON * *", "day of month: 'M' in \"MON\""),
        ("0 0 2 * * 1-5#2", "day of week: '-' in \"1-5#2\""),
        ("0 0 2 * * SUNMON", "day of week: 'S' in \"SUNMON\""),
        // And what was refused before.
        ("0 0 2 L-3 * *", "day of month: 'L' in \"L-3\""),
        ("0 0 2 * * FRI#0", "day of week: 0 in \"FRI#0\" is out"),
        ("0 0 2 * * FRI#6", "day of week: 6 in \"FRI#6\" is out"),
        ("0 0 2 * * FRI#99999", "day of week: 99999 in"),
        ("0 0 2 0 * *", "day of month: 0 in \"0\" is out of range"),
        ("0 0 24 * * *", "hour: 24 in \"24\" is out of range"),
        ("0 0 2 * 13 *", "month: 13 in"),
        ("0 0 2 * * 8", "day of week: 8 in"),
        ("0 0 2 * * * 5000", "year: 5000 in"),
        ("0 0 22-2 * * *", "hour: the range \"22-2\" does not go up"),
        ("0 0 2- * * *", "hour: a value is missing in \"2-\""),
        ("0 0 -2 * * *", "hour: a value is missing in \"-2\""),
        ("0 /10 * * * *", "minute: a value is missing in \"/10\""),
        ("0 */ * * * *", "minute: a value is missing in \"*/\""),
        ("0 */0 * * * *", "minute: the step of \"*/0\" is 0"),
        ("0 1/2/3 * * * *", "minute: '/' in \"1/2/3\""),
        ("0 1-2-3 * * * *", "minute: '-' in \"1-2-3\""),
        ("0 +1 * * * *", "minute: '+' in \"+1\""),
        ("0 ? * * * *", "minute: '?' in \"?\""),
        ("0 1\u{202e} * * * *", "minute: '\\u{202e}' in"),
        ("0 0 2 **", "it has 4 fields"),
        ("@midnight", "it has 1 fields"),
    ] {
        let error = refusal(pattern);
        assert!(error.contains(expected), "{pattern}: {error}");
    }
}

#[test]
fn a_pattern_that_is_long_is_refused_before_it_is_read() {
    let years = vec!["*/1"; 2_500].join(",");
    let error = refusal(&format!("0 0 0 * * * {years}"));
    assert!(error.len() < 300 && error.contains("1024"), "{error}");
}

#[test]
fn last_days_and_workdays_stand_beside_others_in_a_list() {
    // The last day of February 2027 is a Sunday, and its last workday the 26th.
    assert_eq!(
        ticks("0 0 2 5,L,LW 2 * 2027", 4),
        [
            "2027-02-05 02:00:00",
            "2027-02-26 02:00:00",
            "2027-02-28 02:00:00"
        ]
    );
    assert_eq!(
        ticks("0 0 2 ? 2 FRIL,MON#2,1#1 2027", 4),
        [
            "2027-02-01 02:00:00",
            "2027-02-08 02:00:00",
            "2027-02-26 02:00:00"
        ]
    );
    // The first is a Saturday and the last of May a Monday, in a month that begins with a Saturday.
    assert_eq!(
        ticks("0 0 2 1W,31w 5 * 2027", 3),
        ["2027-05-03 02:00:00", "2027-05-31 02:00:00"]
    );
}

#[test]
fn names_are_those_of_their_field_in_any_case() {
    for (one, other) in [
        ("0 0 2 * jan-Mar Mon-fri", "0 0 2 * 1-3 1-5"),
        ("0 0 2 * * FRI-SUN", "0 0 2 * * 5-7"),
        ("0 0 2 * * SUN-TUE", "0 0 2 * * 0-2"),
        ("0 0 2 * * SUN-SUN", "0 0 2 * * 7"),
        ("0 0 2 ? * ?", "0 0 2 * * *"),
        ("@DAILY", "0 0 0 * * *"),
        (" @hourly ", "0 0 * * * *"),
        ("@weekly", "0 0 0 * * 0"),
        ("@monthly", "0 0 0 1 * *"),
        ("@yearly", "0 0 0 1 1 *"),
        ("@annually", "0 0 0 1 1 *"),
    ] {
        assert_eq!(ticks(one, 20), ticks(other, 20), "{one:?} and {other:?}");
    }
}

/// Patterns, and their words.
const WORDS: &str = "\
* * * * * * => Every second
0 0 2 * * * => At 02:00
30 15 4 29 2 * => At 04:15:30, on day 29, in February
*/5 * * * * * => Every 5 seconds
0 */15 * * * * => Every 15 minutes
0 0 */2 * * * => At minute 0, of every 2 hours
0 0 0 * * SUN => At 00:00, on Sunday
0 */15 9-17 * * MON-FRI => Every 15 minutes, of hour 9-17, on Monday, Tuesday, Wednesday, Thursday, and Friday
0 0 0 13 * FRI => At 00:00, on day 13 (if it is also Friday)
0 0 2 L * * => At 02:00, on the last day of the month
0 0 12 LW * * => At 12:00, on the last weekday of the month
0 0 2 15W * * => At 02:00, on the weekday nearest day 15
0 0 2 L,LW,1-3 * * => At 02:00, on day 1-3, the last day of the month, and the last weekday of the month
0 0 2 ? * ? => At 02:00
@hourly => At minute 0 past every hour
0 0 2,14 * * * => At minute 0, of hour 2 and 14
*/5 30 * * * * => Every 5 seconds, at minute 30 past every hour
0 0 2 * * MON#1,SUNL => At 02:00, on the last Sunday of the month and the 1st Monday of the month
0 0 2 13 * 1,5 => At 02:00, on day 13 (if it is also one of: Monday and Friday)
0 0 2 * * FRI#2 => At 02:00, on the 2nd Friday of the month
0 0 2 * * FRIL => At 02:00, on the last Friday of the month
# A page that says \"every 10 minutes\" of these would be wrong.
0 0-30/10 * * * * => At minute 0, 10, 20, and 30 past every hour
0 */20,5 * * * * => At minute 0, 5, 20, and 40 past every hour
0 0 0-12/4 * * * => At minute 0, of hour 0, 4, 8, and 12
*/25 0 0 * * * => At 00:00, at second 0, 25, and 50
1/20 * * * * * => At second 1, 21, and 41
0 0 0 1 1-6/2 * => At 00:00, on day 1, in January, March, and May
0 0 0 1 */6 * => At 00:00, on day 1, in January and July
0 */1 * * * * => Every minute
0 0 0 1 1 * 2027-2031/2 => At 00:00, on day 1, in January, in year 2027, 2029, and 2031
0 0 0 1 1 * */2 => At 00:00, on day 1, in January, every 2 years
0 0 0 1 1 * */1 => At 00:00, on day 1, in January";

#[test]
fn words_say_what_the_pattern_means() {
    for row in WORDS.lines().filter(|row| !row.starts_with('#')) {
        let (pattern, words) = row.split_once(" => ").unwrap();
        let schedule = Schedule::cron(pattern, "UTC").unwrap();
        assert_eq!(schedule.to_string(), format!("{words}, in the zone UTC"));
    }
}

#[test]
fn intervals_are_described_in_their_largest_unit() {
    for (seconds, words) in [
        (1, "Every second"),
        (90, "Every 90 seconds"),
        (60, "Every minute"),
        (7_200, "Every 2 hours"),
        (86_400, "Every day"),
        (90_000, "Every 25 hours"),
    ] {
        let schedule = Schedule::every(Duration::from_secs(seconds)).unwrap();
        assert_eq!(schedule.to_string(), words);
    }
}
