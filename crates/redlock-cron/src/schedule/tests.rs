//! Random patterns against an independent reading of them, which tries each day and each minute; and how long a search takes.

use std::collections::BTreeSet;

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, Offset, TimeDelta, Timelike, Utc};
use chrono_tz::Tz;
use proptest::{prelude::*, sample::Index};

use super::pattern::STEPS;
use crate::Schedule;

const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
const MONTHS: [&str; 12] = [
    "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
];

/// Reads a value by its number or by its name in the table, which begins with the value `first`.
fn value(text: &str, names: &[&str], first: u32) -> u32 {
    let name = names.iter().position(|name| *name == text.to_uppercase());
    name.map_or_else(|| text.parse().unwrap(), |name| name as u32 + first)
}

/// Returns whether an item of a list has a value of a field, by counting up to it.
fn has(item: &str, wanted: u32, first: u32, last: u32, names: &[&str]) -> bool {
    let (range, step) = item.split_once('/').unwrap_or((item, ""));
    let (mut at, end) = match range.split_once('-') {
        _ if range == "*" || range == "?" => (first, last),
        Some((from, to)) => (value(from, names, first), value(to, names, first)),
        None if step.is_empty() => (value(range, names, first), value(range, names, first)),
        None => (value(range, names, first), last),
    };
    // A range to Sunday.
    let end = if end < at { end + 7 } else { end };
    while at <= end {
        if at == wanted {
            return true;
        }
        at += step.parse().unwrap_or(1);
    }
    false
}

fn has_any(list: &str, wanted: u32, first: u32, last: u32, names: &[&str]) -> bool {
    list.split(',')
        .any(|item| has(item, wanted, first, last, names))
}

fn is_workday(day: &NaiveDate) -> bool {
    day.weekday().number_from_monday() < 6
}

fn month_of(day: NaiveDate) -> Vec<NaiveDate> {
    let days = (1..=31).filter_map(|number| day.with_day(number));
    days.collect()
}

fn day_matches(fields: &[String], day: NaiveDate) -> bool {
    let month = month_of(day);
    let last = month.len() as u32;
    let is_day = fields[3]
        .split(',')
        .any(|item| match item.to_uppercase().as_str() {
            "L" => day.day() == last,
            "LW" => month.iter().rfind(|day| is_workday(day)) == Some(&day),
            item => match item.strip_suffix('W') {
                Some(near) => {
                    let near = near.parse::<u32>().unwrap();
                    let days = month.iter().filter(|day| is_workday(day));
                    // Friday is nearer to a Saturday, and Monday to a Sunday.
                    let nearest = days.min_by_key(|day| day.day().abs_diff(near));
                    near <= last && nearest == Some(&day)
                }
                None => has(item, day.day(), 1, 31, &[]),
            },
        });
    let of_week = day.weekday().num_days_from_sunday();
    let same: Vec<_> = month
        .iter()
        .filter(|other| other.weekday() == day.weekday())
        .collect();
    let is_weekday = fields[5].split(',').any(|item| {
        let item = item.to_uppercase();
        let is_named = |name: &str| value(name, &WEEKDAYS, 0) % 7 == of_week;
        if let Some(name) = item.strip_suffix("#L").or_else(|| item.strip_suffix('L')) {
            is_named(name) && same.last() == Some(&&day)
        } else if let Some((name, nth)) = item.split_once('#') {
            let nth: usize = nth.parse().unwrap();
            is_named(name) && same.get(nth - 1) == Some(&&day)
        } else {
            has(&item, of_week, 0, 7, &WEEKDAYS) || of_week == 0 && has(&item, 7, 0, 7, &WEEKDAYS)
        }
    });
    let year = fields.get(6).map_or("*", String::as_str);
    is_day
        && is_weekday
        && has_any(&fields[4], day.month(), 1, 12, &MONTHS)
        && has_any(year, day.year() as u32, 1, 4999, &[])
}

/// Returns the seconds, minutes and hours that match.
fn times(fields: &[String]) -> [Vec<u32>; 3] {
    let of = |field: usize, last| {
        let values = 0..=last;
        values
            .filter(|at| has_any(&fields[field], *at, 0, last, &[]))
            .collect()
    };
    [of(0, 59), of(1, 59), of(2, 23)]
}

/// Returns the times of a day, in order or backwards.
fn on(
    day: NaiveDate,
    times: &[Vec<u32>; 3],
    backwards: bool,
) -> impl Iterator<Item = DateTime<Utc>> + use<> {
    let [seconds, minutes, hours] = times.clone().map(|mut values| {
        if backwards {
            values.reverse();
        }
        values
    });
    let hours = hours.into_iter().flat_map(move |hour| {
        minutes
            .clone()
            .into_iter()
            .map(move |minute| (hour, minute))
    });
    let times = hours.flat_map(move |(hour, minute)| {
        seconds
            .clone()
            .into_iter()
            .map(move |second| (hour, minute, second))
    });
    times.filter_map(move |(hour, minute, second)| {
        Some(day.and_hms_opt(hour, minute, second)?.and_utc())
    })
}

/// Writes a value as a number or, if it has one, by its name.
fn word(value: u32, names: &'static [&'static str], first: u32, by_name: bool) -> String {
    let name = names.get((value.wrapping_sub(first)) as usize);
    match name.filter(|_| by_name) {
        Some(name) if value.is_multiple_of(2) => name.to_lowercase(),
        Some(name) => (*name).to_owned(),
        None => value.to_string(),
    }
}

fn item(first: u32, last: u32, names: &'static [&'static str]) -> BoxedStrategy<String> {
    let value = (first..=last, any::<bool>());
    let value = value.prop_map(move |(value, by_name)| word(value, names, first, by_name));
    let range = (first..=last, first..=last, any::<bool>());
    let range = range.prop_map(move |(one, other, by_name)| {
        let (low, high) = (one.min(other), one.max(other));
        let last = word(high, names, first, by_name);
        format!("{}-{last}", word(low, names, first, by_name))
    });
    let range = range.boxed();
    let step = 1..=(last + 5).min(99);
    prop_oneof![
        3 => value.clone(),
        1 => range.clone(),
        1 => step.clone().prop_map(|step| format!("*/{step}")),
        1 => (value, step.clone()).prop_map(|(value, step)| format!("{value}/{step}")),
        1 => (range, step).prop_map(|(range, step)| format!("{range}/{step}")),
    ]
    .boxed()
}

fn list(item: BoxedStrategy<String>) -> BoxedStrategy<String> {
    let list = prop::collection::vec(item, 1..4).prop_map(|items| items.join(","));
    prop_oneof![1 => Just("*".to_owned()), 2 => list].boxed()
}

fn days() -> BoxedStrategy<String> {
    let near = (1..=31_u32).prop_map(|day| format!("{day}W"));
    let special = prop_oneof![Just("L".to_owned()), Just("lw".to_owned()), near];
    prop_oneof![3 => list(item(1, 31, &[])), 1 => list(prop_oneof![item(1, 31, &[]), special].boxed()), 1 => Just("?".to_owned())].boxed()
}

fn weekdays() -> BoxedStrategy<String> {
    let special = (
        0..=7_u32,
        any::<bool>(),
        prop::sample::select(vec!["L", "#L", "#1", "#2", "#3", "#4", "#5"]),
    );
    let special = special.prop_map(|(day, by_name, end)| word(day, &WEEKDAYS, 0, by_name) + end);
    let plain = item(0, 7, &WEEKDAYS);
    prop_oneof![2 => Just("*".to_owned()), 1 => list(plain.clone()), 2 => list(prop_oneof![plain, special].boxed()), 1 => Just("?".to_owned())].boxed()
}

fn fields() -> impl Strategy<Value = Vec<String>> {
    let time = (
        list(item(0, 59, &[])),
        list(item(0, 59, &[])),
        list(item(0, 23, &[])),
    );
    let year = prop_oneof![3 => Just(None), 1 => list(item(2020, 2035, &[])).prop_map(Some)];
    let day = (days(), list(item(1, 12, &MONTHS)), weekdays(), year);
    let fields = (time, day).prop_map(|((second, minute, hour), (day, month, weekday, year))| {
        let fields = [second, minute, hour, day, month, weekday];
        fields.into_iter().chain(year).collect()
    });
    // Such a step in a year would begin at another than the year 1 here.
    fields.prop_filter("a step of years", |fields: &Vec<String>| {
        fields.get(6).is_none_or(|year| !year.contains("*/"))
    })
}

/// Zones whose clocks change in all ways.
const ZONES: [Tz; 10] = [
    Tz::Europe__Berlin,
    Tz::America__New_York,
    Tz::Australia__Lord_Howe,
    Tz::America__Sao_Paulo,
    Tz::America__St_Johns,
    Tz::America__Nuuk,
    Tz::Africa__Casablanca,
    Tz::Antarctica__Casey,
    Tz::Antarctica__Troll,
    Tz::Pacific__Apia,
];

/// Returns the first minute after a change of a zone's clocks from 1990 to 2029, near a half day of these.
fn change_near(zone: Tz, half_day: i32) -> DateTime<Utc> {
    let begin: DateTime<Utc> = "1990-01-01T00:00:00Z".parse().unwrap();
    let at = |half_days: i32| begin + TimeDelta::hours(12) * half_days;
    let offset = |half_days| at(half_days).with_timezone(&zone).offset().fix();
    let mut near = (half_day..HALF_DAYS).chain(0..half_day);
    let before = at(near.find(|from| offset(*from) != offset(from + 1)).unwrap());
    let old = before.with_timezone(&zone).offset().fix();
    let mut minutes = (1..).map(|minutes| before + TimeDelta::minutes(minutes));
    let is_new = |time: &DateTime<Utc>| time.with_timezone(&zone).offset().fix() != old;
    minutes.find(is_new).unwrap()
}

/// Writes a list of hours, each of which is that many from `hour`, and has a kind: most are single times.
fn hours(hour: u32, list: &[(u32, u32, u8)]) -> String {
    let items = list.iter().map(|(after, more, kind)| {
        let first = (hour + 22 + after) % 24;
        let last = (first + more).min(23);
        match kind {
            0 => "*".to_owned(),
            1 => "*/3".to_owned(),
            2 => format!("{first}-{last}"),
            3 => format!("{first}/24"),
            4 => format!("{first}-{last}/4"),
            _ => first.to_string(),
        }
    });
    items.collect::<Vec<_>>().join(",")
}

const HALF_DAYS: i32 = 40 * 730;

/// Returns the ticks of a pattern of whole minutes between two instants, with their days, by a look at each minute.
fn by_the_minute(
    fields: &[String],
    zone: Tz,
    from: DateTime<Utc>,
    until: DateTime<Utc>,
) -> Vec<(DateTime<Utc>, NaiveDate)> {
    let several = |field: usize, last| {
        let items = fields[field].split(',');
        let mut counts =
            items.map(|item| (0..=last).filter(|at| has(item, *at, 0, last, &[])).count());
        counts.any(|count| count > 1)
    };
    let repeats = several(0, 59) || several(1, 59) || several(2, 23);
    let times = on(NaiveDate::default(), &times(fields), false);
    let times: BTreeSet<_> = times.map(|time| time.time()).collect();
    let days = (-3..=3).map(|day| (from + TimeDelta::days(day)).date_naive());
    let days: BTreeSet<_> = days.filter(|day| day_matches(fields, *day)).collect();
    let matches =
        |local: &NaiveDateTime| times.contains(&local.time()) && days.contains(&local.date());
    let (mut ticks, mut seen) = (Vec::new(), BTreeSet::new());
    let mut at = from - TimeDelta::hours(6);
    let mut before = at.with_timezone(&zone).naive_local();
    while at < until {
        at += TimeDelta::minutes(1);
        let local = at.with_timezone(&zone).naive_local();
        let mut next = before + TimeDelta::minutes(1);
        let mut in_gap = None;
        while next < local {
            let day = next.date();
            let is_there = day == before.date() || day == local.date();
            in_gap = in_gap.max(Some(day).filter(|_| !repeats && is_there && matches(&next)));
            next += TimeDelta::minutes(1);
        }
        let is_due = matches(&local) && (repeats || !seen.contains(&local));
        let day = if is_due { Some(local.date()) } else { in_gap };
        ticks.extend(day.filter(|_| at > from).map(|day| (at, day)));
        seen.insert(local);
        before = local;
    }
    ticks
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_random_pattern_is_due_at_the_times_that_match_each_of_its_fields(
        fields in fields(),
        days in 0..14_000_i64,
        second in 0..86_400_i64,
    ) {
        let schedule = Schedule::parse(&fields.join(" "), Tz::UTC).unwrap();
        let begin = "2000-01-01T00:00:00Z".parse::<DateTime<Utc>>().unwrap();
        let from = begin + TimeDelta::days(days) + TimeDelta::seconds(second);
        let times = times(&fields);
        let next = (0..800).map(|days| from.date_naive() + TimeDelta::days(days));
        let next = next.filter(|day| day_matches(&fields, *day));
        let next = next.flat_map(|day| on(day, &times, false)).find(|tick| *tick > from);
        let last = (0..800).map(|days| from.date_naive() - TimeDelta::days(days));
        let last = last.filter(|day| day_matches(&fields, *day));
        let last = last.flat_map(|day| on(day, &times, true)).find(|tick| *tick <= from);
        let near = |tick: &DateTime<Utc>| (*tick - from).num_days().abs() < 799;
        prop_assert_eq!(schedule.next_after(from).filter(near), next.filter(near));
        prop_assert_eq!(schedule.latest_at(from).filter(near), last.filter(near));
    }

    #[test]
    fn a_random_pattern_around_a_change_of_clocks_is_due_as_a_look_at_each_minute_says(
        minute in prop_oneof![list(item(0, 59, &[])), list((0..60_u32).prop_map(|minute| minute.to_string()).boxed())],
        hour in prop::collection::vec((0..6_u32, 0..4_u32, 0..16_u8), 1..4),
        second in prop_oneof![Just("0"), Just("*/60"), Just("0-0")],
        day in prop_oneof![3 => Just("* * *"), 1 => Just("* * SAT"), 1 => Just("LW,1-28/3 * ?")],
        zone in prop::sample::select(&ZONES[..]),
        half_day in 0..HALF_DAYS,
    ) {
        let change = change_near(zone, half_day);
        let hour = hours((change - TimeDelta::minutes(1)).with_timezone(&zone).hour(), &hour);
        let pattern = format!("{second} {minute} {hour} {day}");
        let fields: Vec<_> = pattern.split(' ').map(str::to_owned).collect();
        let schedule = Schedule::parse(&pattern, zone).unwrap();
        let (from, until) = (change - TimeDelta::hours(6), change + TimeDelta::hours(24));
        let expected = by_the_minute(&fields, zone, from, until);
        let ticks = schedule.ticks_after(from).take_while(|tick| *tick <= until);
        let ticks = ticks.map(|tick| tick.with_timezone(&Utc));
        let ticks: Vec<_> = ticks.map(|tick| (tick, schedule.day_of(tick))).collect();
        prop_assert_eq!(&ticks, &expected);
        let mut end = until;
        for (tick, _) in ticks.iter().rev() {
            prop_assert_eq!(schedule.latest_at(end), Some(*tick));
            end = *tick - TimeDelta::seconds(1);
        }
    }
}

/// Returns a text that is a pattern, or nearly so.
fn texts() -> impl Strategy<Value = String> {
    let near = (
        fields(),
        any::<Index>(),
        prop_oneof![".", "[ ,/#*?LW0-9A-Z-]"],
    );
    let near = near.prop_map(|(fields, at, insert)| {
        let mut text = fields.join(" ");
        let at = at.index(text.len());
        text.replace_range(at..=at, &insert);
        text
    });
    let loose = "[0-9SUNMONJLW*,/#?-]{1,6}( [0-9SUNMONJLW*,/#?-]{1,6}){5,6}";
    prop_oneof![Just(()).prop_flat_map(|()| ".{0,60}"), loose, near]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_text_makes_the_parser_panic_or_search_without_end(text in texts(), second: u32) {
        let schedule = match Schedule::parse(&text, Tz::Europe__Berlin) {
            Ok(schedule) => schedule,
            Err(error) => {
                prop_assert!(error.to_string().chars().all(|c| !c.is_control()));
                return Ok(());
            }
        };
        let time = DateTime::from_timestamp(second.into(), 0).unwrap();
        let next = steps(|| schedule.next_after(time));
        let latest = steps(|| schedule.latest_at(time));
        prop_assert!(next.max(latest) < MOST_STEPS, "{next}, {latest}");
        prop_assert!(schedule.to_string().contains("in the zone"));
    }
}

/// More months than patterns have.
const MOST_STEPS: u64 = 100_000;

/// Returns how many steps `search` takes.
fn steps<T>(search: impl FnOnce() -> T) -> u64 {
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
