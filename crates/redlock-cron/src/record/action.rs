use std::{fmt, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use redlock_core::{Note, Printable, RunRecord};

use super::outcome::end_of;
use crate::clock::{to_instant, written};

/// An action of an operator on a job: the operator's name and reason, and the end of a pause.
///
/// The nodes remember the name and the reason together, their first 200 bytes.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use redlock_cron::{Action, chrono::TimeDelta};
///
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// let until = redlock_cron::chrono::Utc::now() + TimeDelta::hours(2);
/// let action = Action::by("alice").reason("the ledger moves to another server").until(until);
/// redlock_cron::pause_with(&redlock, "billing", "close-day", &action).await?;
///
/// let job = redlock_cron::inspect(&redlock, "billing", "close-day").await?;
/// let pause = job.pause().ok_or("it is paused")?;
/// assert_eq!((pause.by(), pause.reason()), (Some("alice"), Some("the ledger moves to another server")));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "an action does nothing until it is passed to a call"]
pub struct Action {
    by: Option<String>,
    reason: Option<String>,
    pub(crate) until: Option<DateTime<Utc>>,
}

impl Action {
    /// Describes an action of this person or program, whose name may be of any form, such as `alice` or `deploy-7`.
    pub fn by(name: impl Into<String>) -> Self {
        Self {
            by: Some(name.into()),
            ..Self::default()
        }
    }

    /// Sets the reason.
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Sets when a pause ends by itself, by the nodes' clocks; without it, [`resume`](crate::resume()) ends it.
    pub fn until(mut self, until: DateTime<Utc>) -> Self {
        self.until = Some(until);
        self
    }

    /// Returns the line that the nodes remember.
    pub(crate) fn to_note(&self) -> Option<String> {
        let by = self.by.as_deref().unwrap_or_default().trim();
        let by = by.replace(DIVIDER, " ");
        match (by.is_empty(), &self.reason) {
            (true, None) => None,
            (false, None) => Some(by),
            (_, Some(reason)) => Some(format!("{by}{DIVIDER}{reason}")),
        }
    }
}

/// A pause of a job, as the nodes remember it.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// redlock_cron::pause(&redlock, "billing", "close-day").await?;
/// let job = redlock_cron::inspect(&redlock, "billing", "close-day").await?;
/// let pause = job.pause().ok_or("it is paused")?;
/// println!("since {} by {:?}: {:?}, until {:?}", pause.since(), pause.by(), pause.reason(), pause.until());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct JobPause {
    since: DateTime<Utc>,
    pub(crate) until: Option<DateTime<Utc>>,
    note: Option<Note>,
}

impl JobPause {
    pub(crate) fn of(record: &RunRecord) -> Self {
        let since = to_instant(record.tick);
        let lasts = end_of(record).map(|(_, lasts)| lasts);
        let lasts = lasts.filter(|lasts| *lasts > Duration::ZERO);
        let lasts = lasts.and_then(|lasts| TimeDelta::from_std(lasts).ok());
        Self {
            since,
            until: lasts.and_then(|lasts| since.checked_add_signed(lasts)),
            note: record.note.clone(),
        }
    }

    /// Returns the moment of its beginning, by the nodes' clocks.
    pub fn since(&self) -> DateTime<Utc> {
        self.since
    }

    /// Returns the time at which it ends by itself, by the nodes' clocks.
    pub fn until(&self) -> Option<DateTime<Utc>> {
        self.until
    }

    /// Returns the name of the person or program that paused the job, if that was said.
    pub fn by(&self) -> Option<&str> {
        operator_of(self.note.as_ref()?.as_str()).0
    }

    /// Returns the reason, if that was said.
    pub fn reason(&self) -> Option<&str> {
        operator_of(self.note.as_ref()?.as_str()).1
    }
}

/// One line: the beginning, the operator, the end and the reason.
impl fmt::Display for JobPause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "paused since {}", written(self.since))?;
        if let Some(by) = self.by() {
            write!(f, " by {}", Printable::new(by))?;
        }
        if let Some(until) = self.until {
            write!(f, ", until {}", written(until))?;
        }
        match self.reason() {
            Some(reason) => write!(f, ": {}", Printable::new(reason)),
            None => Ok(()),
        }
    }
}

/// Returns the name and the reason in a note, as far as they were said.
pub(crate) fn operator_of(note: &str) -> (Option<&str>, Option<&str>) {
    let (by, reason) = match note.split_once(DIVIDER) {
        Some((by, reason)) => (by, Some(reason)),
        None => (note, None),
    };
    (Some(by).filter(|by| !by.is_empty()), reason)
}

/// Between the name and the reason.
const DIVIDER: &str = ": ";
