//! Times on the page: what a reader sees, and from what the script counts on.

use std::{fmt::Display, time::Duration};

use redlock_core::Rounded;
use redlock_cron::chrono::{DateTime, SecondsFormat, Utc};

use super::html::Html;

/// What a time is shown as, once the script is there; until then as the server says it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shown {
    /// An instant of a day, in the zone of the reader.
    At,
    /// How much time is left until then.
    Left,
    /// How much time has passed since then.
    Since,
}

impl Html {
    /// Adds a moment, in milliseconds since 1970.
    ///
    /// `now` is when the server looked, for the words that stand there until the script counts.
    pub(super) fn moment(&mut self, at_ms: f64, shown: Shown, now: u64) {
        let Some(at) = instant(at_ms) else { return };
        let (class, words, digits) = match shown {
            Shown::At => ("at", date(at, now), SecondsFormat::Secs),
            Shown::Left => ("left", span(at_ms - as_ms(now)), SecondsFormat::AutoSi),
            Shown::Since => ("since", span(as_ms(now) - at_ms), SecondsFormat::Secs),
        };
        let written = at.to_rfc3339_opts(digits, true);
        self.leaf("time", &[("class", &class), ("datetime", &written)], words);
    }

    /// Adds the same, or other words if there is no moment.
    pub(super) fn moment_or(&mut self, words: &str, at_ms: Option<f64>, shown: Shown, now: u64) {
        match at_ms {
            Some(at_ms) => self.moment(at_ms, shown, now),
            None => self.text(words),
        }
    }

    /// Adds a moment of RFC 3339; what is none is shown as it is.
    pub(super) fn written(&mut self, at: &str, shown: Shown, now: u64) {
        match parsed(at) {
            Some(at) => self.moment(at, shown, now),
            None => self.text(at),
        }
    }
}

/// Returns the milliseconds since 1970 of a moment of RFC 3339.
pub(super) fn parsed(at: &str) -> Option<f64> {
    let at = DateTime::parse_from_rfc3339(at).ok()?;
    u64::try_from(at.timestamp_millis()).ok().map(as_ms)
}

/// Returns a span of milliseconds for people, such as `8.2 s`.
pub(super) fn span(ms: f64) -> String {
    let time = Duration::try_from_secs_f64(ms.max(0.0) / 1_000.0);
    Rounded(time.unwrap_or_default()).to_string()
}

/// Returns a span for people, or a dash if there is none.
pub(super) fn span_or_dash(ms: Option<f64>) -> impl Display {
    ms.map_or_else(|| "–".to_owned(), span)
}

/// Returns milliseconds to calculate with.
#[expect(clippy::cast_precision_loss, reason = "no time here is that long")]
pub(super) const fn as_ms(ms: u64) -> f64 {
    ms as f64
}

fn instant(ms: f64) -> Option<DateTime<Utc>> {
    let since = Duration::try_from_secs_f64(ms / 1_000.0).ok()?;
    let since = i64::try_from(since.as_millis()).ok()?;
    DateTime::from_timestamp_millis(since)
}

/// Returns the time of day in UTC, with the day unless that is today.
fn date(at: DateTime<Utc>, now: u64) -> String {
    let today = instant(as_ms(now)).map(|now| now.date_naive());
    let form = match today == Some(at.date_naive()) {
        true => "%H:%M:%S UTC",
        false => "%Y-%m-%d %H:%M UTC",
    };
    at.format(form).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: u64 = 1_795_953_600_000;

    #[test]
    fn a_moment_is_readable_without_a_script_and_exact_for_it() {
        let shown = |at: f64, shown| {
            let mut html = Html::default();
            html.moment(at, shown, NOON);
            html.into_string()
        };
        let noon = as_ms(NOON);
        assert_eq!(
            shown(noon + 8_250.0, Shown::Left),
            "<time class=\"left\" datetime=\"2026-11-29T12:00:08.250Z\">8.2 s</time>"
        );
        assert!(shown(noon - 60_000.0, Shown::Since).ends_with(">1 min</time>"));
        assert!(shown(noon, Shown::At).ends_with(">12:00:00 UTC</time>"));
        assert!(shown(noon - 86_400_000.0, Shown::At).ends_with(">2026-11-28 12:00 UTC</time>"));
        // Nothing of it is a moment.
        assert_eq!(shown(f64::NAN, Shown::At), "");
        assert_eq!(shown(-1.0, Shown::Since), "");
    }
}
