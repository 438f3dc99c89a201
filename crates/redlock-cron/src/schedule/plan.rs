use std::{fmt, time::Duration};

use chrono::{DateTime, Utc};
use chrono_tz::IANA_TZDB_VERSION;

use super::calendar::Schedule;
use crate::{SetupError, Zone};

/// The schedule of a job as the application gave it.
#[derive(Clone, Debug)]
pub(crate) enum Plan {
    Cron { pattern: String, zone: Zone },
    Every(Duration),
    Once(DateTime<Utc>),
}

impl Plan {
    pub(crate) fn schedule(&self) -> Result<Schedule, SetupError> {
        match self {
            Self::Cron { pattern, zone } => Schedule::parse(pattern, zone.look_up()?),
            Self::Every(interval) => Schedule::every(*interval),
            Self::Once(instant) => Ok(Schedule::once(*instant)),
        }
    }
}

/// The pattern and the zone with the version of its data, the interval, or the instant.
impl fmt::Display for Plan {
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
