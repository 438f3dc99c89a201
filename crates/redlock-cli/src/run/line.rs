//! The lines between this process and the warden, one for each message.

use std::{fmt, io, str::FromStr};

use rustix::time::{ClockId, clock_gettime};

/// An order to the warden: until when the command may run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Until {
    /// When the group is asked to end, in milliseconds as [`since_start`] has them.
    pub(super) term: u64,
    /// When it is killed.
    pub(super) kill: u64,
}

impl Until {
    /// The time is over.
    pub(super) const OVER: Self = Self { term: 0, kill: 0 };
}

/// A message from the warden.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum News {
    /// It catches signals, and waits for an order.
    Ready,
    /// The command runs.
    Started,
    /// The command has ended with this exit code.
    Exited(u8),
    /// It could not be started.
    NotStarted { code: u8, reason: String },
    /// The group is asked to end, because its time is over.
    Stopping,
}

impl News {
    /// Says why the command could not be started.
    pub(super) fn not_started(error: &io::Error) -> Self {
        let (code, reason) = match error.kind() {
            io::ErrorKind::NotFound => (127, "there is no such command".to_owned()),
            _ => (126, format!("it cannot be run: {error}")),
        };
        Self::NotStarted { code, reason }
    }
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { term, kill } = self;
        writeln!(f, "until {term} {kill}")
    }
}

impl FromStr for Until {
    type Err = Garbled;

    fn from_str(line: &str) -> Result<Self, Garbled> {
        let times = line.strip_prefix("until ").ok_or(Garbled)?;
        let (term, kill) = times.split_once(' ').ok_or(Garbled)?;
        let number = |word: &str| word.parse().map_err(|_| Garbled);
        Ok(Self {
            term: number(term)?,
            kill: number(kill)?,
        })
    }
}

impl fmt::Display for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready => writeln!(f, "ready"),
            Self::Started => writeln!(f, "started"),
            Self::Exited(code) => writeln!(f, "exited {code}"),
            Self::NotStarted { code, reason } => writeln!(f, "not-started {code} {reason}"),
            Self::Stopping => writeln!(f, "stopping"),
        }
    }
}

impl FromStr for News {
    type Err = Garbled;

    fn from_str(line: &str) -> Result<Self, Garbled> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "ready" => Ok(Self::Ready),
            "started" => Ok(Self::Started),
            "exited" => rest.parse().map(Self::Exited).map_err(|_| Garbled),
            "not-started" => {
                let (code, reason) = rest.split_once(' ').ok_or(Garbled)?;
                let (code, reason) = (code.parse().map_err(|_| Garbled)?, reason.to_owned());
                Ok(Self::NotStarted { code, reason })
            }
            "stopping" => Ok(Self::Stopping),
            _ => Err(Garbled),
        }
    }
}

/// Returns the time since the machine was started, in milliseconds, as both processes read it.
pub(super) fn since_start() -> u64 {
    #[cfg(target_os = "linux")]
    let clock = ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let clock = ClockId::Monotonic;
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    seconds * 1_000 + u64::try_from(time.tv_nsec).unwrap_or_default() / 1_000_000
}

/// A line that is neither an order nor a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Garbled;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let until = Until { term: 12, kill: 34 };
        assert_eq!(until.to_string(), "until 12 34\n");
        assert_eq!("until 12 34".parse(), Ok(until));
        assert_eq!("until 12".parse::<Until>(), Err(Garbled));
        let reason = "no such file".to_owned();
        for news in [
            News::Ready,
            News::Started,
            News::Exited(255),
            News::NotStarted { code: 127, reason },
            News::Stopping,
        ] {
            assert_eq!(news.to_string().trim_end().parse(), Ok(news));
        }
        assert_eq!("exited 256".parse::<News>(), Err(Garbled));
    }
}
