//! The schedule of a job as the application gave it, with its zone.

use std::{fmt, time::Duration};

use chrono::{DateTime, Utc};
use chrono_tz::{IANA_TZDB_VERSION, Tz};

use super::{calendar::Schedule, pattern::Pattern};
use crate::SetupError;

/// The schedule of a job as the application gave it.
#[derive(Clone, Debug)]
pub(crate) enum ScheduleSource {
    Cron { pattern: String, zone: Zone },
    Every(Duration),
    Once(DateTime<Utc>),
}

impl ScheduleSource {
    pub(crate) fn schedule(&self) -> Result<Schedule, SetupError> {
        match self {
            Self::Cron { pattern, zone } => Schedule::parse(pattern, zone.look_up()?),
            Self::Every(interval) => Schedule::every(*interval),
            Self::Once(instant) => Ok(Schedule::once(*instant)),
        }
    }

    /// Returns the numbers of a pattern's times, however it is spelled; none if this is no valid pattern.
    pub(crate) fn numbers_of_pattern(&self) -> Vec<u64> {
        match self {
            Self::Cron { pattern, .. } => {
                Pattern::read(pattern).map_or_else(|_| Vec::new(), |pattern| pattern.numbers())
            }
            Self::Every(_) | Self::Once(_) => Vec::new(),
        }
    }
}

/// The pattern and the zone with the version of its data, the interval, or the instant.
impl fmt::Display for ScheduleSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cron { pattern, zone } => {
                write!(f, "{pattern:?} in {zone} of {IANA_TZDB_VERSION}")
            }
            Self::Every(interval) => write!(f, "every {interval:?}"),
            Self::Once(instant) => write!(f, "once, at {instant}"),
        }
    }
}

/// The time zone of a cron pattern: an IANA zone, as [`Tz`] or by its name.
///
/// An offset such as `+01:00` is not a zone, because it does not say when clocks change.
///
/// The scheduler looks a name up when the job is added, so that it reports an unknown name together with the other
/// mistakes in the job.
///
/// # Examples
///
/// ```
/// use redlock_cron::Zone;
///
/// let zone: Zone = chrono_tz::Europe::Berlin.into();
/// let from_config: Zone = "Australia/Lord_Howe".into();
/// ```
#[derive(Clone, Debug)]
pub struct Zone(ZoneSource);

#[derive(Clone, Debug)]
enum ZoneSource {
    Zone(Tz),
    Name(String),
}

impl Zone {
    pub(crate) fn look_up(&self) -> Result<Tz, SetupError> {
        match &self.0 {
            ZoneSource::Zone(zone) => Ok(*zone),
            ZoneSource::Name(name) => name.parse().map_err(|_| {
                let right = "it must be the IANA name of a zone, such as `Europe/Berlin` or `UTC`";
                SetupError::misuse("zone", format!("{name:?} is not a known zone; {right}"))
            }),
        }
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            ZoneSource::Zone(zone) => f.write_str(zone.name()),
            ZoneSource::Name(name) => f.write_str(name),
        }
    }
}

impl From<Tz> for Zone {
    fn from(zone: Tz) -> Self {
        Self(ZoneSource::Zone(zone))
    }
}

impl From<&str> for Zone {
    fn from(name: &str) -> Self {
        Self(ZoneSource::Name(name.to_owned()))
    }
}

impl From<String> for Zone {
    fn from(name: String) -> Self {
        Self(ZoneSource::Name(name))
    }
}
