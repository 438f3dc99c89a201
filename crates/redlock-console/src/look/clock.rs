//! The clocks that measurements are taken by, on which no deadline of a lease rests, and times for people.

#![expect(
    clippy::disallowed_methods,
    reason = "what is measured here is shown, and nothing depends on it"
)]

use std::time::{Duration, Instant, SystemTime};

use redlock_cron::chrono::DateTime;
use redlock_proto::Rounded;

/// Returns the present moment, to measure from.
pub fn now() -> Instant {
    Instant::now()
}

/// Returns what this machine's wall clock shows, as the time since 1970.
pub fn wall() -> Duration {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default()
}

/// Returns a time with as many digits as a person needs, such as `0.4 ms`, `12 s` or `3 h 5 min`.
pub fn rounded(time: Duration) -> String {
    Rounded(time).to_string()
}

/// Returns how long a key lasts, in words; for ever if it does not expire.
pub fn lasting(left: Option<Duration>) -> String {
    match left {
        Some(left) => format!("for {}", rounded(left)),
        None => "for ever".to_owned(),
    }
}

/// Returns a moment, given as the time since 1970, for people: the time of day in UTC, with the day unless that is today.
pub fn moment(since_1970: Duration) -> String {
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
pub fn millis(time: Duration) -> f64 {
    time.as_micros() as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_told_with_its_day_unless_that_is_today() {
        let now = Duration::from_secs(1_795_392_000);
        let hour = Duration::from_secs(3_600);
        assert_eq!(at(now, now + hour), "00:00:00Z");
        assert_eq!(at(now - hour, now), "2026-11-22 23:00:00Z");
    }
}
