use std::{fmt, time::Duration};

/// A length of time in a text for people, with as many digits as they need, such as `0.4 ms`, `12 s` or `3 h 5 min`.
///
/// ```
/// use redlock_proto::Rounded;
/// use std::time::Duration;
///
/// assert_eq!(Rounded(Duration::from_millis(11_674)).to_string(), "11 s");
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "it is one length of time")]
pub struct Rounded(
    /// The length.
    pub Duration,
);

impl fmt::Display for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = self.0;
        let seconds = time.as_secs();
        let ms = time.as_secs_f64() * 1_000.0;
        match (seconds, seconds / 60, seconds / 3_600) {
            _ if time.is_zero() => f.write_str("0 s"),
            (0, ..) if ms < 10.0 => write!(f, "{ms:.1} ms"),
            (0, ..) => write!(f, "{ms:.0} ms"),
            (1..10, ..) if time.subsec_millis() >= 50 => {
                write!(f, "{:.1} s", time.as_secs_f64())
            }
            (1..60, ..) => write!(f, "{seconds} s"),
            (_, minutes @ 1..60, _) => two(f, (minutes, "min"), (seconds % 60, "s")),
            (_, minutes, hours @ 1..48) => two(f, (hours, "h"), (minutes % 60, "min")),
            (.., hours) => two(f, (hours / 24, "d"), (hours % 24, "h")),
        }
    }
}

fn two(
    f: &mut fmt::Formatter<'_>,
    (many, large): (u64, &str),
    (few, small): (u64, &str),
) -> fmt::Result {
    match few {
        0 => write!(f, "{many} {large}"),
        few => write!(f, "{many} {large} {few} {small}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_for_people() {
        for (millis, text) in [
            (0.25, "0.2 ms"),
            (12.4, "12 ms"),
            (999.0, "999 ms"),
            (1_000.0, "1 s"),
            (2_345.0, "2.3 s"),
            (59_000.0, "59 s"),
            (61_000.0, "1 min 1 s"),
            (3_600_000.0, "1 h"),
            (90_000_000.0, "25 h"),
            (180_000_000.0, "2 d 2 h"),
        ] {
            let time = Duration::from_secs_f64(millis / 1_000.0);
            assert_eq!(Rounded(time).to_string(), text);
        }
    }
}
