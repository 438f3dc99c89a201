//! Times as a user types them, and as output has them.

use std::time::Duration;

pub(crate) use redlock_console::look::clock::{lasting, millis, moment, now, rounded, wall};
use redlock_cron::chrono::{DateTime, NaiveDate, NaiveTime, Utc};

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
}
