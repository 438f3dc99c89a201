//! A schedule in words.

use std::{collections::BTreeSet, fmt};

use chrono::Month;

use super::{
    calendar::{Schedule, ScheduleKind},
    pattern::{Days, Item, Pattern, Set},
};
use crate::clock::written;

/// The schedule in English words.
impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            ScheduleKind::Cron { pattern, zone } => {
                let words = [
                    Some(time(pattern)),
                    day(&pattern.days),
                    month(pattern.months),
                    year(&pattern.years),
                ];
                let words: Vec<_> = words.into_iter().flatten().collect();
                write!(f, "{}, in the zone {}", words.join(", "), zone.name())?;
            }
            ScheduleKind::Every(seconds) => interval(*seconds, f)?,
            ScheduleKind::Once(at) => write!(f, "Once, at {}", written(*at))?,
        }
        match self.1.len() {
            0 => Ok(()),
            1 => f.write_str(", except on 1 day"),
            days => write!(f, ", except on {days} days"),
        }
    }
}

fn time(pattern: &Pattern) -> String {
    let (seconds, minutes, hours) = (pattern.seconds, pattern.minutes, pattern.hours);
    let second = match (step(seconds, 60), seconds.only()) {
        (_, Some(0)) => None,
        (Some(1), _) => Some("every second".to_owned()),
        (Some(step), _) => Some(format!("every {step} seconds")),
        (None, _) => Some(format!("at second {}", numbers(seconds.values()))),
    };
    if let (Some(hour), Some(minute)) = (hours.only(), minutes.only()) {
        let time = match seconds.only() {
            None | Some(0) => format!("at {hour:02}:{minute:02}"),
            Some(second) => format!("at {hour:02}:{minute:02}:{second:02}"),
        };
        let second = second.filter(|_| seconds.only().is_none());
        return sentence([Some(time), second]);
    }
    let minute = match step(minutes, 60) {
        Some(1) if second.is_some() => None,
        Some(1) => Some("every minute".to_owned()),
        Some(step) => Some(format!("every {step} minutes")),
        None if step(hours, 24) == Some(1) => {
            let minutes = numbers(minutes.values());
            Some(format!("at minute {minutes} past every hour"))
        }
        None => Some(format!("at minute {}", numbers(minutes.values()))),
    };
    let hour = match step(hours, 24) {
        Some(1) => None,
        Some(step) => Some(format!("of every {step} hours")),
        None => Some(format!("of hour {}", numbers(hours.values()))),
    };
    sentence([second, minute, hour])
}

fn day(days: &Days) -> Option<String> {
    let numbers = (!days.days.is_empty()).then(|| format!("day {}", numbers(days.days.values())));
    let near = days.near.values();
    let near = near.map(|day| format!("the weekday nearest day {day}"));
    let last = days
        .has_last
        .then(|| "the last day of the month".to_owned());
    let last_workday = days.has_last_workday;
    let last_workday = last_workday.then(|| "the last weekday of the month".to_owned());
    let numbers = numbers
        .into_iter()
        .chain(last)
        .chain(near)
        .chain(last_workday);

    let last = days.last.values().map(name);
    let last = last.map(|day| format!("the last {day} of the month"));
    let nth = days.nth.iter().zip(["", "1st", "2nd", "3rd", "4th", "5th"]);
    let nth = nth.flat_map(|(days, nth)| days.values().map(move |day| (nth, name(day))));
    let nth = nth.map(|(nth, day)| format!("the {nth} {day} of the month"));
    let weekdays: Vec<_> = last
        .chain(nth)
        .chain(days.weekdays.values().map(name))
        .collect();

    let numbers = (days.days != (1..=31).collect()).then(|| list(numbers.collect()));
    let also = if weekdays.len() == 1 { "" } else { "one of: " };
    let weekdays = (days.weekdays != (0..7).collect()).then(|| list(weekdays));
    match (numbers, weekdays) {
        (None, None) => None,
        (Some(days), None) | (None, Some(days)) => Some(format!("on {days}")),
        (Some(numbers), Some(days)) => Some(format!("on {numbers} (if it is also {also}{days})")),
    }
}

fn month(months: Set) -> Option<String> {
    let names = months
        .values()
        .flat_map(u8::try_from)
        .flat_map(Month::try_from);
    let names = names.map(|month| month.name().to_owned()).collect();
    (months != (1..=12).collect()).then(|| format!("in {}", list(names)))
}

fn year(years: &[Item]) -> Option<String> {
    match years {
        [
            Item {
                first: 1,
                step: 1,
                last: 4_999..,
            },
        ] => None,
        // It has thousands of values.
        [
            Item {
                first,
                step,
                last: 4_999..,
            },
        ] => Some(match first {
            1 => format!("every {step} years"),
            first => format!("every {step} years from {first}"),
        }),
        _ => {
            let years: BTreeSet<_> = years.iter().flat_map(|item| item.values()).collect();
            let years = numbers(years.into_iter().map(u32::from));
            Some(format!("in year {years}"))
        }
    }
}

/// Returns the step of values that are all multiples of it from 0 through a whole cycle.
fn step(values: Set, cycle: u32) -> Option<u32> {
    let step = values.values().nth(1)?;
    let multiples = (0..cycle).step_by(step as usize).collect();
    (cycle.is_multiple_of(step) && values == multiples).then_some(step)
}

/// Joins the parts of a phrase, which begins with a capital.
fn sentence<const N: usize>(parts: [Option<String>; N]) -> String {
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    let text = parts.join(", ");
    let (first, rest) = text.split_at(1);
    first.to_uppercase() + rest
}

/// Returns values in words, with runs of three or more as ranges.
fn numbers(values: impl Iterator<Item = u32>) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for value in values {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == value => *last = value,
            _ => runs.push((value, value)),
        }
    }
    let text = runs
        .into_iter()
        .flat_map(|(first, last)| match last - first {
            0 => vec![first.to_string()],
            1 => vec![first.to_string(), last.to_string()],
            _ => vec![format!("{first}-{last}")],
        });
    list(text.collect())
}

fn list(mut items: Vec<String>) -> String {
    match items.pop() {
        None => String::new(),
        Some(last) => match &*items {
            [] => last,
            [first] => format!("{first} and {last}"),
            several => format!("{}, and {last}", several.join(", ")),
        },
    }
}

/// Returns the name of a weekday, of which Sunday is 0.
fn name(day: u32) -> String {
    WEEKDAYS[day as usize % 7].to_owned()
}

/// Writes an interval in the largest unit that it is whole in.
fn interval(seconds: i64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let units = [(86_400, "day"), (3_600, "hour"), (60, "minute")];
    let whole = units.into_iter().find(|(unit, _)| seconds % unit == 0);
    let (unit, name) = whole.unwrap_or((1, "second"));
    match seconds / unit {
        1 => write!(f, "Every {name}"),
        units => write!(f, "Every {units} {name}s"),
    }
}

const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];
