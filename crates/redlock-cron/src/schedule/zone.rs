use std::fmt;

use chrono_tz::Tz;

use crate::SetupError;

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
pub struct Zone(Given);

#[derive(Clone, Debug)]
enum Given {
    Zone(Tz),
    Name(String),
}

impl Zone {
    pub(crate) fn look_up(&self) -> Result<Tz, SetupError> {
        match &self.0 {
            Given::Zone(zone) => Ok(*zone),
            Given::Name(name) => name.parse().map_err(|_| {
                let right = "it must be the IANA name of a zone, such as `Europe/Berlin` or `UTC`";
                SetupError::misuse("zone", format!("{name:?} is not a known zone; {right}"))
            }),
        }
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Given::Zone(zone) => f.write_str(zone.name()),
            Given::Name(name) => f.write_str(name),
        }
    }
}

impl From<Tz> for Zone {
    fn from(zone: Tz) -> Self {
        Self(Given::Zone(zone))
    }
}

impl From<&str> for Zone {
    fn from(name: &str) -> Self {
        Self(Given::Name(name.to_owned()))
    }
}

impl From<String> for Zone {
    fn from(name: String) -> Self {
        Self(Given::Name(name))
    }
}
