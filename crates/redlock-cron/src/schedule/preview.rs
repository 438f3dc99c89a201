//! A look at a schedule without a job.

use std::sync::Arc;

use chrono::{DateTime, SubsecRound, Utc};
use chrono_tz::Tz;

use super::calendar::{Schedule, ScheduleKind};
use crate::{SetupError, Zone};

impl Schedule {
    /// Makes the schedule of a pattern in a zone, as [`SingletonJob::cron`](crate::SingletonJob::cron) reads both.
    ///
    /// # Errors
    ///
    /// The pattern is not valid, or the zone is not known.
    /// A pattern that matches no instant, such as 30 February, is no error here; its schedule has no ticks.
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_cron::Schedule;
    ///
    /// assert!(Schedule::cron("0 0 2 * * *", chrono_tz::Europe::Berlin).is_ok());
    /// let error = Schedule::cron("0 0 25 * * *", "Europe/Berlin").unwrap_err();
    /// assert_eq!(error.field(), "pattern");
    /// ```
    pub fn cron(pattern: &str, zone: impl Into<Zone>) -> Result<Self, SetupError> {
        Self::parse(pattern, zone.into().look_up()?)
    }

    /// Makes the schedule of one instant; a fraction of a second is dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_cron::Schedule;
    ///
    /// let schedule = Schedule::once("2026-12-24T18:00:00Z".parse().unwrap());
    /// assert_eq!(schedule.to_string(), "Once, at 2026-12-24T18:00:00Z");
    /// ```
    pub fn once(instant: DateTime<Utc>) -> Self {
        Self(ScheduleKind::Once(instant.trunc_subsecs(0)), Arc::default())
    }

    /// Returns the ticks after `time`, in the schedule's [zone](Self::zone) and in order.
    ///
    /// Most schedules have no last tick, so take as many ticks as you need.
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_cron::Schedule;
    ///
    /// let schedule = Schedule::cron("0 0 2 L * *", "UTC")?;
    /// let from = "2027-01-10T00:00:00Z".parse().unwrap();
    /// let days: Vec<_> = schedule.ticks_after(from).take(3).map(|tick| tick.date_naive().to_string()).collect();
    /// assert_eq!(days, ["2027-01-31", "2027-02-28", "2027-03-31"]);
    /// # Ok::<(), redlock_cron::SetupError>(())
    /// ```
    pub fn ticks_after(&self, time: DateTime<Utc>) -> impl Iterator<Item = DateTime<Tz>> + '_ {
        let ticks = std::iter::successors(self.next_after(time), |tick| self.next_after(*tick));
        ticks.map(|tick| tick.with_timezone(&self.zone()))
    }

    /// Returns the zone of the pattern; UTC if the schedule has no pattern.
    pub fn zone(&self) -> Tz {
        match &self.0 {
            ScheduleKind::Cron { zone, .. } => *zone,
            ScheduleKind::Every(_) | ScheduleKind::Once(_) => Tz::UTC,
        }
    }

    /// Returns whether it has one tick and no other, whatever its pattern says.
    pub(crate) fn is_once(&self) -> bool {
        matches!(self.0, ScheduleKind::Once(_))
    }
}
