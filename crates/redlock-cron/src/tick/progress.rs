//! Which tick a wake-up is about.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::{
    clock::{LONGEST_AHEAD, lag},
    schedule::Schedule,
};

/// How far this replica has come with the ticks of a job.
#[derive(Debug)]
pub(crate) struct Progress {
    /// Ticks up to this instant are dealt with.
    until: DateTime<Utc>,
    /// What the clock showed at the last wake-up, after which the next one was looked for.
    woken: DateTime<Utc>,
}

/// What a wake-up has to deal with.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Due {
    /// The newest tick that is due, and those that will be within [`LEAD`], in order; at least one.
    pub(crate) ticks: Vec<DateTime<Utc>>,
    /// Those after this and before the first of them are due as well.
    pub(crate) after: DateTime<Utc>,
}

/// A wake-up comes so long before its tick, because it may be late by half a second.
pub(crate) const LEAD: TimeDelta = TimeDelta::seconds(1);

impl Progress {
    /// Ticks at or before `now` are not this replica's business.
    pub(crate) fn from(now: DateTime<Utc>) -> Self {
        Self {
            until: now,
            woken: now,
        }
    }

    /// By how much the clock was set back since the last wake-up, as far as can be told when it shows `now`.
    pub(crate) fn set_back_by(&self, now: DateTime<Utc>) -> Duration {
        lag(now, self.woken)
    }

    /// The clock was wrong, and it is `now` by the nodes' clocks: ticks to come are not dealt with.
    ///
    /// Of those that are waited for already, the claim of the second to come here says so.
    pub(crate) fn set_right(&mut self, now: DateTime<Utc>) {
        self.until = self.until.min(now + LEAD);
    }

    /// What is due `now` by the nodes' clocks, or soon, once: what was returned is dealt with.
    ///
    /// Wake-ups may come late, in bursts, or without a tick; of ticks that have passed, only the newest is worth
    /// claiming, because the job would otherwise run for each second of a pause.
    pub(crate) fn due(
        &mut self,
        schedule: &Schedule,
        own: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Option<Due> {
        self.woken = own;
        // Of a clock that was ahead by less, the nodes were waited for.
        if lag(now, self.until) > LONGEST_AHEAD {
            // It was wrong, nothing was started by it, and it could silence the job for years.
            self.until = now;
            return None;
        }
        let newest = schedule.latest_at(now).filter(|tick| *tick > self.until);
        let soon = std::iter::successors(schedule.next_after(now.max(self.until)), |tick| {
            schedule.next_after(*tick)
        });
        let soon = soon.take_while(|tick| *tick <= now + LEAD);
        let ticks: Vec<_> = newest.into_iter().chain(soon).collect();
        let after = std::mem::replace(&mut self.until, *ticks.last()?);
        Some(Due { ticks, after })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono_tz::Tz;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000 + second, 0).unwrap()
    }

    /// The first tick that is due, and how many are before it.
    fn due(progress: &mut Progress, wake: i64) -> Option<(DateTime<Utc>, i64)> {
        let schedule = Schedule::parse("*/10 * * * * *", Tz::UTC).unwrap();
        let due = progress.due(&schedule, at(wake), at(wake))?;
        let others = (due.ticks[0] - due.after - TimeDelta::milliseconds(1)).num_seconds() / 10;
        Some((due.ticks[0], others))
    }

    #[test]
    fn a_tick_is_due_once_however_often_it_wakes_up() {
        let mut progress = Progress::from(at(5));
        assert_eq!(due(&mut progress, 7), None);
        assert_eq!(due(&mut progress, 10), Some((at(10), 0)));
        assert_eq!(due(&mut progress, 10), None);
        assert_eq!(due(&mut progress, 18), None);
        assert_eq!(due(&mut progress, 23), Some((at(20), 0)));
    }

    #[test]
    fn what_is_due_within_the_lead_is_dealt_with_before_and_no_more_than_once() {
        let schedule = Schedule::parse("* * * * * *", Tz::UTC).unwrap();
        let mut progress = Progress::from(at(5));
        let mut due = |millis: i64| {
            let now = at(0) + TimeDelta::milliseconds(millis);
            progress.due(&schedule, now, now).map(|due| due.ticks)
        };
        assert_eq!(due(5_100), Some(vec![at(6)]));
        assert_eq!(due(5_900), None);
        assert_eq!(due(6_000), Some(vec![at(7)]));
        assert_eq!(due(9_300), Some(vec![at(9), at(10)]));
    }

    #[test]
    fn ticks_before_the_job_was_added_are_not_due() {
        let mut progress = Progress::from(at(11));
        assert_eq!(due(&mut progress, 12), None);
        let mut progress = Progress::from(at(10));
        assert_eq!(due(&mut progress, 12), None);
    }

    #[test]
    fn after_a_pause_the_newest_is_due_and_so_are_the_others() {
        let mut progress = Progress::from(at(5));
        assert_eq!(due(&mut progress, 45), Some((at(40), 3)));
        assert_eq!(due(&mut progress, 86_405), Some((at(86_400), 8_635)));
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_bring_ticks_back() {
        let mut progress = Progress::from(at(5));
        assert_eq!(due(&mut progress, 1_000), Some((at(1_000), 99)));
        assert_eq!(due(&mut progress, 990), None);
        assert_eq!(due(&mut progress, 1_000), None);
        assert_eq!(due(&mut progress, 1_010), Some((at(1_010), 0)));
    }

    #[test]
    fn a_clock_that_was_minutes_ahead_does_not_use_up_what_the_nodes_refused() {
        let mut progress = Progress::from(at(5));
        assert!(due(&mut progress, 1_860).is_some());
        assert_eq!(due(&mut progress, 65), None);
        assert_eq!(due(&mut progress, 70), Some((at(70), 0)));
    }

    #[test]
    fn a_clock_that_was_ahead_until_the_nodes_were_asked_does_not_pass_over_what_is_to_come() {
        let mut progress = Progress::from(at(5));
        assert_eq!(due(&mut progress, 31), Some((at(30), 2)));
        progress.set_right(at(11));
        assert_eq!(due(&mut progress, 12), None);
        assert_eq!(due(&mut progress, 20), Some((at(20), 0)));
    }

    #[test]
    fn a_clock_that_was_years_ahead_does_not_silence_the_job() {
        let mut progress = Progress::from(at(5));
        assert!(due(&mut progress, 100_000_000).is_some());
        assert_eq!(due(&mut progress, 100), None);
        assert_eq!(due(&mut progress, 110), Some((at(110), 0)));
    }
}
