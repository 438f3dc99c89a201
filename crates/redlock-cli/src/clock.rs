//! The clocks that measurements are taken by, on which no deadline of a lease rests, and times for people.

#![expect(
    clippy::disallowed_methods,
    reason = "what is measured here is shown, and nothing depends on it"
)]

use std::time::{Duration, Instant, SystemTime};

use redlock_cron::chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use redlock_proto::Rounded;

/// Returns the present moment, to measure from.
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Returns what this machine's wall clock shows, as the time since 1970.
pub(crate) fn wall() -> Duration {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default()
}

/// Reads a duration as the library does.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let parsed = humantime_serde::re::humantime::parse_duration(text);
    parsed.map_err(|error| format!("not a time such as 30s: {error}"))
}

/// Reads an instant, in the form of RFC 3339; a date alone is the begin of its day in UTC.
pub(crate) fn instant(text: &str) -> Result<DateTime<Utc>, String> {
    if let Ok(day) = text.parse::<NaiveDate>() {
        return Ok(day.and_time(NaiveTime::MIN).and_utc());
    }
    let parsed = text.parse::<DateTime<Utc>>();
    parsed.map_err(|error| {
        format!("neither an instant like 2026-11-01T02:00:00Z nor a date like 2026-11-01: {error}")
    })
}

/// Reads a day, such as `2026-11-28`.
pub(crate) fn day(text: &str) -> Result<NaiveDate, String> {
    let parsed = text.parse::<NaiveDate>();
    parsed.map_err(|error| format!("not a date like 2026-11-28: {error}"))
}

/// Returns a time with as many digits as a person needs, such as `0.4 ms`, `12 s` or `3 h 5 min`.
pub(crate) fn rounded(time: Duration) -> String {
    Rounded(time).to_string()
}

/// Returns how long a key lasts, in words; for ever if it does not expire.
pub(crate) fn lasting(left: Option<Duration>) -> String {
    match left {
        Some(left) => format!("for {}", rounded(left)),
        None => "for ever".to_owned(),
    }
}

/// Returns a moment, given as the time since 1970, for people: the time of day in UTC, with the day unless that is today.
pub(crate) fn moment(since_1970: Duration) -> String {
    at(since_1970, wall())
}

fn at(since_1970: Duration, now: Duration) -> String {
    let date = |time: Duration| {
        let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
        DateTime::from_timestamp(seconds, 0).unwrap_or_default()
    };
    let (then, now) = (date(since_1970), date(now));
    let form = if then.date_naive() == now.date_naive() {
        "%H:%M:%SZ"
    } else {
        "%Y-%m-%d %H:%M:%SZ"
    };
    then.format(form).to_string()
}

/// Returns a time in milliseconds, to the microsecond.
#[expect(clippy::cast_precision_loss, reason = "no time here is that long")]
pub(crate) fn millis(time: Duration) -> f64 {
    time.as_micros() as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_alone_is_the_begin_of_its_day() {
        let midnight = instant("2026-11-28T00:00:00Z");
        assert_eq!(instant("2026-11-28"), midnight);
        assert_eq!(instant("2026-11-28T01:00:00+01:00"), midnight);
        for bad in ["2026-11-31", "28.11.2026", "2026-11-28 noon", ""] {
            let why = instant(bad).unwrap_err();
            assert!(why.contains("a date like 2026-11-01"), "{bad:?}: {why}");
        }
    }

    #[test]
    fn a_moment_is_told_with_its_day_unless_that_is_today() {
        let now = Duration::from_secs(1_795_392_000);
        let hour = Duration::from_secs(3_600);
        assert_eq!(at(now, now + hour), "00:00:00Z");
        assert_eq!(at(now - hour, now), "2026-11-22 23:00:00Z");
    }
}
