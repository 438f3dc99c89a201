//! Tests of what a pattern may say, and of what it means.

use chrono::NaiveDate;
use chrono_tz::Tz;

use crate::{Schedule, schedule::pattern::STEPS};

fn ticks(pattern: &str, count: usize) -> Vec<String> {
    let schedule = Schedule::parse(pattern, Tz::UTC).unwrap();
    let ticks = schedule.ticks_after("2026-11-21T12:00:00Z".parse().unwrap());
    let ticks = ticks.map(|tick| tick.format("%Y-%m-%d %H:%M:%S").to_string());
    ticks.take(count).collect()
}

fn refusal(pattern: &str) -> String {
    let error = Schedule::parse(pattern, Tz::UTC);
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

/// More months than patterns have.
pub(super) const MOST_STEPS: u64 = 100_000;

/// Returns how many steps `search` takes.
pub(super) fn steps<T>(search: impl FnOnce() -> T) -> u64 {
    STEPS.set(0);
    search();
    STEPS.get()
}

#[test]
fn no_search_is_longer_than_the_years_of_patterns() {
    for pattern in [
        "0 0 0 30 2 *",
        "0 0 0 31 2,4,6,9,11 *",
        "* * * 1-28 * MON#5",
        "0 0 0 1 1 * 4999",
        "0 0 0 1 1 * 1",
        "* * * * * * 4000-4999/7",
        // Each is in the gap, as long as the zone's rules are those of today.
        "0 */30 2 25-31 3 SUNL",
        "* * 2 29 3 SUN",
        "0,1,2,3 0,1,2,3,4,5,6,7,8,9 2 29 2 MON",
    ] {
        let schedule = Schedule::parse(pattern, Tz::Europe__Berlin).unwrap();
        for year in [-10_000, 2026, 4999, 10_000] {
            let time = NaiveDate::from_ymd_opt(year, 3, 14).unwrap();
            let time = time.and_hms_opt(1, 59, 26).unwrap().and_utc();
            let next = steps(|| schedule.next_after(time));
            let latest = steps(|| schedule.latest_at(time));
            assert!(
                next.max(latest) < MOST_STEPS,
                "{pattern:?} in {year}: {next}, {latest}"
            );
        }
        assert!(
            steps(|| schedule.shortest_gap()) < 2 * MOST_STEPS,
            "{pattern:?}"
        );
    }
}
