//! A schedule in words.
//!
//! croner has the words for a pattern.
//! It reads a step as one through all values of its field, also where a range or a list bounds it, so that it says "every
//! 10 minutes" of `0-30/10`; so it is given the values instead, except of steps that are regular.

use std::fmt;

use chrono::SecondsFormat;
use croner::{Cron, CronComponent};

use super::calendar::{Kind, Schedule};

/// The schedule in English words.
impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Cron { cron, zone } => {
                write!(f, "{}, in the zone {}", pattern(cron), zone.name())
            }
            Kind::Every(seconds) => interval(*seconds, f),
            Kind::Once(at) => {
                let at = at.to_rfc3339_opts(SecondsFormat::Secs, true);
                write!(f, "Once, at {at}")
            }
        }
    }
}

fn pattern(cron: &Cron) -> String {
    let given = cron.as_str();
    let plain = plain(cron).and_then(|plain| Schedule::read(&plain).ok());
    let words = plain.as_ref().unwrap_or(cron).describe();
    let words = words.trim_end_matches('.').to_owned();
    let words = match words.strip_prefix("At every ") {
        Some(step) => format!("Every {step}"),
        None => words,
    };
    let words = match words.split_once(", in year every ") {
        Some((words, step)) => format!("{words}, every {step} years"),
        None => words,
    };
    // croner takes the last weekday of a month for its last day, in words only.
    if given.to_uppercase().contains("LW") {
        words.replace("the last day of the month", "the last weekday of the month")
    } else {
        words
    }
}

/// Returns the same pattern with the values of steps in their place; `None` if it has a name, such as `@daily`.
fn plain(cron: &Cron) -> Option<String> {
    let given: Vec<&str> = cron.as_str().split_whitespace().collect();
    let (&[second, minute, hour, day, month, weekday], year) = given.split_first_chunk()?;
    let parts = &cron.pattern;
    let mut fields = vec![
        values(second, &parts.seconds, 60),
        values(minute, &parts.minutes, 60),
        values(hour, &parts.hours, 24),
        day.to_owned(),
        // It says "in every 3 months" otherwise.
        values(month, &parts.months, 0),
        weekday.to_owned(),
    ];
    fields.extend(year.iter().map(|year| match step(year) {
        Some(1) => "*".to_owned(),
        // It has thousands of values, and croner says ", in year every 2" of it.
        Some(_) => (*year).to_owned(),
        None => values(year, &parts.years, 0),
    }));
    Some(fields.join(" "))
}

/// Returns the step of a field that is nothing but one through all of its values.
fn step(field: &str) -> Option<u16> {
    field.strip_prefix("*/")?.parse().ok()
}

/// Returns a field without a step, unless it is one through a whole `cycle`.
fn values(field: &str, values: &CronComponent, cycle: u16) -> String {
    let is_regular =
        step(field).is_some_and(|step| step > 1 && cycle.is_multiple_of(step) && cycle > step);
    if !field.contains('/') || is_regular {
        return field.to_owned();
    }
    let values: Vec<_> = values.values().iter().map(u16::to_string).collect();
    values.join(",")
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn words_say_what_the_pattern_means() {
        for (given, words) in [
            ("* * * * * *", "Every second"),
            ("0 0 2 * * *", "At 02:00"),
            ("30 15 4 29 2 *", "At 04:15:30, on day 29, in February"),
            ("*/5 * * * * *", "Every 5 seconds"),
            ("0 */15 * * * *", "Every 15 minutes"),
            ("0 0 */2 * * *", "At minute 0, of every 2 hours"),
            ("0 0 0 * * SUN", "At 00:00, on Sunday"),
            (
                "0 */15 9-17 * * MON-FRI",
                "Every 15 minutes, of hour 9-17, on Monday, Tuesday, Wednesday, Thursday, and Friday",
            ),
            (
                "0 0 0 13 * FRI",
                "At 00:00, on day 13 (if it is also Friday)",
            ),
            ("0 0 2 L * *", "At 02:00, on the last day of the month"),
            (
                "0 0 12 LW * *",
                "At 12:00, on the last weekday of the month",
            ),
            ("0 0 2 15W * *", "At 02:00, on the weekday nearest day 15"),
            (
                "0 0 2 * * FRI#2",
                "At 02:00, on the 2nd Friday of the month",
            ),
            (
                "0 0 2 * * FRIL",
                "At 02:00, on the last Friday of the month",
            ),
        ] {
            let schedule = Schedule::cron(given, "UTC").unwrap();
            let expected = format!("{words}, in the zone UTC");
            assert_eq!(schedule.to_string(), expected, "{given}");
        }
    }

    /// A page that says "every 10 minutes" of these would be wrong.
    #[test]
    fn a_step_that_is_bounded_is_told_by_its_values() {
        for (given, words) in [
            (
                "0 0-30/10 * * * *",
                "At minute 0, 10, 20, and 30 past every hour",
            ),
            (
                "0 */20,5 * * * *",
                "At minute 0, 5, 20, and 40 past every hour",
            ),
            ("0 0 0-12/4 * * *", "At minute 0, of hour 0, 4, 8, and 12"),
            ("*/25 0 0 * * *", "At 00:00, at second 0, 25, and 50"),
            ("1/20 * * * * *", "At second 1, 21, and 41"),
            (
                "0 0 0 1 1-6/2 *",
                "At 00:00, on day 1, in January, March, and May",
            ),
            ("0 0 0 1 */6 *", "At 00:00, on day 1, in January and July"),
            ("0 */1 * * * *", "Every minute"),
            (
                "0 0 0 1 1 * 2027-2031/2",
                "At 00:00, on day 1, in January, in year 2027, 2029, and 2031",
            ),
            (
                "0 0 0 1 1 * */2",
                "At 00:00, on day 1, in January, every 2 years",
            ),
            ("0 0 0 1 1 * */1", "At 00:00, on day 1, in January"),
        ] {
            let schedule = Schedule::cron(given, "UTC").unwrap();
            let expected = format!("{words}, in the zone UTC");
            assert_eq!(schedule.to_string(), expected, "{given}");
        }
    }

    #[test]
    fn intervals_are_told_in_their_largest_unit() {
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
}
