use std::fmt;

use redlock_cron::chrono::{DateTime, Utc};

/// What a replica says on its standard output.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Line {
    /// Its jobs are started.
    Ready,
    /// A job's work began.
    Began { job: String, tick: DateTime<Utc> },
    /// A job's work came to its end.
    Finished { job: String, tick: DateTime<Utc> },
    /// What became of a tick on this replica.
    Became {
        job: String,
        tick: DateTime<Utc>,
        outcome: String,
    },
    /// It has shut down, and this many runs had not finished.
    Ended { unfinished: usize },
}

impl Line {
    pub(crate) fn say(&self) {
        println!("{self}");
    }

    /// `None` is something else that was printed.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let words: Vec<_> = line.split(' ').collect();
        Some(match words[..] {
            ["ready"] => Self::Ready,
            ["began", job, tick] => Self::Began {
                job: job.to_owned(),
                tick: tick.parse().ok()?,
            },
            ["finished", job, tick] => Self::Finished {
                job: job.to_owned(),
                tick: tick.parse().ok()?,
            },
            ["became", job, tick, outcome] => Self::Became {
                job: job.to_owned(),
                tick: tick.parse().ok()?,
                outcome: outcome.to_owned(),
            },
            ["ended", unfinished] => Self::Ended {
                unfinished: unfinished.parse().ok()?,
            },
            _ => return None,
        })
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready => f.write_str("ready"),
            Self::Began { job, tick } => write!(f, "began {job} {}", second(tick)),
            Self::Finished { job, tick } => write!(f, "finished {job} {}", second(tick)),
            Self::Became { job, tick, outcome } => {
                write!(f, "became {job} {} {outcome}", second(tick))
            }
            Self::Ended { unfinished } => write!(f, "ended {unfinished}"),
        }
    }
}

fn second(tick: &DateTime<Utc>) -> impl fmt::Display + use<> {
    tick.format("%Y-%m-%dT%H:%M:%SZ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood() {
        let tick = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let job = || "report".to_owned();
        for line in [
            Line::Ready,
            Line::Began { job: job(), tick },
            Line::Finished { job: job(), tick },
            Line::Became {
                job: job(),
                tick,
                outcome: "lost".to_owned(),
            },
            Line::Ended { unfinished: 2 },
        ] {
            assert_eq!(Line::parse(&line.to_string()), Some(line));
        }
        assert_eq!(Line::parse("thread 'main' panicked"), None);
    }
}
