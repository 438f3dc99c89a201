//! The ticks that a wake-up finds.

use chrono::{DateTime, TimeDelta, Utc};

use crate::{
    clock::{LONGEST_AHEAD, lag},
    schedule::Schedule,
};

/// The progress of this replica with the ticks of a job.
#[derive(Debug)]
pub(crate) struct DueTicks {
    /// Ticks up to this instant are dealt with.
    until: DateTime<Utc>,
    /// The first tick after it, which is kept because jobs are woken up every second.
    // invariant: what the schedule says of `until`
    next: Option<DateTime<Utc>>,
    /// Ticks after this instant are found here.
    since: DateTime<Utc>,
}

/// How long before a tick is due wake-ups find it: they come every second, and each may be late by half a second.
///
/// So a tick is found at least half a second before it is due, wherever in a second that is by this replica's clock.
pub(crate) const LEAD: TimeDelta = TimeDelta::milliseconds(1_500);

impl DueTicks {
    /// Begins after `now`: ticks up to then are not this replica's business.
    pub(crate) fn from(now: DateTime<Utc>, schedule: &Schedule) -> Self {
        Self {
            until: now,
            next: schedule.next_after(now),
            since: now,
        }
    }

    /// Goes on after `until`, which may be earlier than before.
    fn go_on(&mut self, until: DateTime<Utc>, schedule: &Schedule) {
        *self = Self {
            since: self.since.min(until),
            ..Self::from(until, schedule)
        };
    }

    /// Returns since when wake-ups find ticks; the caller must find earlier ticks by other means.
    pub(crate) fn since(&self) -> DateTime<Utc> {
        self.since
    }

    /// Returns whether there is anything to deal with `now`, by the nodes' clocks.
    ///
    /// It does not compute the schedule.
    pub(crate) fn is_due(&self, now: DateTime<Utc>) -> bool {
        self.next.is_some_and(|next| next <= now + LEAD) || self.was_wrong(now)
    }

    /// Returns the first tick that was not found yet.
    pub(crate) fn next(&self) -> Option<DateTime<Utc>> {
        self.next
    }

    /// Returns whether no tick is left.
    pub(crate) fn has_ended(&self) -> bool {
        self.next.is_none()
    }

    /// Notes that the clock was wrong, and that it is `now` by the nodes' clocks: later ticks are found again.
    ///
    /// This replica may so ask twice for a tick that waits already; the nodes refuse the second claim.
    pub(crate) fn set_right(&mut self, now: DateTime<Utc>, schedule: &Schedule) {
        self.go_on(self.until.min(now + LEAD), schedule);
    }

    /// Returns the newest tick that is due `now` by the nodes' clocks and those that will be within [`LEAD`], in order, each
    /// of them once; and the instant after which the ticks before the first of them are due as well.
    ///
    /// Wake-ups may come late, in bursts, or without a tick; of ticks that have passed, only the newest is worth
    /// claiming, because the job would otherwise run for each second of a pause.
    pub(crate) fn due(
        &mut self,
        schedule: &Schedule,
        now: DateTime<Utc>,
    ) -> Option<(Vec<DateTime<Utc>>, DateTime<Utc>)> {
        if self.was_wrong(now) {
            // Nothing was started by it, and it could silence the job for years.
            self.go_on(now, schedule);
        }
        if !self.is_due(now) {
            return None;
        }
        let newest = schedule.latest_at(now).filter(|tick| *tick > self.until);
        let soon = std::iter::successors(schedule.next_after(now.max(self.until)), |tick| {
            schedule.next_after(*tick)
        });
        let soon = soon.take_while(|tick| *tick <= now + LEAD);
        let ticks: Vec<_> = newest.into_iter().chain(soon).collect();
        let (after, until) = (self.until, *ticks.last()?);
        self.go_on(until, schedule);
        Some((ticks, after))
    }

    /// Returns whether the clock was ahead by more than the nodes are waited for.
    fn was_wrong(&self, now: DateTime<Utc>) -> bool {
        lag(now, self.until) > LONGEST_AHEAD
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono_tz::Tz;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000 + second, 0).unwrap()
    }

    /// Due every ten seconds.
    fn schedule() -> Schedule {
        Schedule::parse("*/10 * * * * *", Tz::UTC).unwrap()
    }

    /// Ticks of that count from this second on.
    fn from(second: i64) -> DueTicks {
        DueTicks::from(at(second), &schedule())
    }

    /// Returns the first tick that is due, and how many are before it.
    fn due(progress: &mut DueTicks, wake: i64) -> Option<(DateTime<Utc>, i64)> {
        let (ticks, after) = progress.due(&schedule(), at(wake))?;
        let others = (ticks[0] - after - TimeDelta::milliseconds(1)).num_seconds() / 10;
        Some((ticks[0], others))
    }

    #[test]
    fn a_tick_is_due_once_however_often_it_wakes_up() {
        let mut progress = from(5);
        assert_eq!(due(&mut progress, 7), None);
        assert_eq!(due(&mut progress, 10), Some((at(10), 0)));
        assert_eq!(due(&mut progress, 10), None);
        assert_eq!(due(&mut progress, 18), None);
        assert_eq!(due(&mut progress, 23), Some((at(20), 0)));
    }

    #[test]
    fn what_is_due_within_the_lead_is_dealt_with_before_and_no_more_than_once() {
        let schedule = Schedule::parse("* * * * * *", Tz::UTC).unwrap();
        let mut progress = DueTicks::from(at(5), &schedule);
        let mut due = |millis: i64| {
            let now = at(0) + TimeDelta::milliseconds(millis);
            progress.due(&schedule, now).map(|(ticks, _)| ticks)
        };
        assert_eq!(due(5_100), Some(vec![at(6)]));
        assert_eq!(due(5_400), None);
        assert_eq!(due(5_500), Some(vec![at(7)]));
        assert_eq!(due(9_300), Some(vec![at(9), at(10)]));
    }

    #[test]
    fn ticks_before_the_job_was_added_are_not_due() {
        let mut progress = from(11);
        assert_eq!(due(&mut progress, 12), None);
        let mut progress = from(10);
        assert_eq!(due(&mut progress, 12), None);
    }

    #[test]
    fn after_a_pause_the_newest_is_due_and_so_are_the_others() {
        let mut progress = from(5);
        assert_eq!(due(&mut progress, 45), Some((at(40), 3)));
        assert_eq!(due(&mut progress, 86_405), Some((at(86_400), 8_635)));
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_bring_ticks_back() {
        let mut progress = from(5);
        assert_eq!(due(&mut progress, 1_000), Some((at(1_000), 99)));
        assert_eq!(due(&mut progress, 990), None);
        assert_eq!(due(&mut progress, 1_000), None);
        assert_eq!(due(&mut progress, 1_010), Some((at(1_010), 0)));
    }

    #[test]
    fn a_clock_that_was_minutes_ahead_does_not_use_up_what_the_nodes_refused() {
        let mut progress = from(5);
        assert!(due(&mut progress, 1_860).is_some());
        assert_eq!(due(&mut progress, 65), None);
        assert_eq!(due(&mut progress, 70), Some((at(70), 0)));
    }

    #[test]
    fn a_clock_that_was_ahead_until_the_nodes_were_asked_does_not_pass_over_what_is_to_come() {
        let mut progress = from(5);
        assert_eq!(due(&mut progress, 31), Some((at(30), 2)));
        progress.set_right(at(11), &schedule());
        assert_eq!(due(&mut progress, 12), None);
        assert_eq!(due(&mut progress, 20), Some((at(20), 0)));
    }

    #[test]
    fn a_clock_that_was_years_ahead_does_not_silence_the_job() {
        let mut progress = from(5);
        assert!(due(&mut progress, 100_000_000).is_some());
        assert_eq!(due(&mut progress, 100), None);
        assert_eq!(due(&mut progress, 110), Some((at(110), 0)));
    }

    /// The scheduler looks at its jobs every half second and a little more, and wakes them up at the first look after
    /// each second by the machine's clock, of which the nodes' clocks know nothing.
    #[test]
    fn each_tick_is_found_half_a_second_before_it_is_due_wherever_in_a_second_wake_ups_come() {
        let schedule = Schedule::parse("* * * * * *", Tz::UTC).unwrap();
        for phase in (0..500).step_by(25) {
            for ahead in (-1_000..1_000).step_by(50) {
                let begin = at(5) + TimeDelta::milliseconds(phase);
                let mut progress = DueTicks::from(begin, &schedule);
                let (mut woken, mut found) = (begin.timestamp(), Vec::new());
                for look in 1..400 {
                    let look = begin + TimeDelta::milliseconds(502 * look);
                    if look.timestamp() == woken {
                        continue;
                    }
                    woken = look.timestamp();
                    let now = look - TimeDelta::milliseconds(ahead);
                    for tick in progress
                        .due(&schedule, now)
                        .map_or(vec![], |(ticks, _)| ticks)
                    {
                        found.push((tick, tick - now));
                    }
                }
                for (pair, lead) in found.windows(2).map(|two| (two, two[1].1)).skip(2) {
                    assert_eq!(pair[1].0 - pair[0].0, TimeDelta::seconds(1), "{found:?}");
                    assert!(lead.num_milliseconds() >= 490, "{phase} {ahead}: {lead}");
                }
            }
        }
    }

    #[test]
    fn the_next_tick_is_that_of_the_zone_on_both_sides_of_a_change_of_its_clocks() {
        let schedule = Schedule::parse("0 0 9 * * *", Tz::Europe__Berlin).unwrap();
        let utc = |time: &str| time.parse::<DateTime<Utc>>().unwrap();
        let mut wake = utc("2026-10-23T12:00:00Z");
        let mut progress = DueTicks::from(wake, &schedule);
        let mut ticks = Vec::new();
        while ticks.len() < 3 {
            wake += TimeDelta::seconds(1);
            ticks.extend(
                progress
                    .due(&schedule, wake)
                    .map_or(vec![], |(ticks, _)| ticks),
            );
        }
        let expected = [
            "2026-10-24T07:00:00Z",
            "2026-10-25T08:00:00Z",
            "2026-10-26T08:00:00Z",
        ];
        assert_eq!(ticks, expected.map(utc));
    }

    #[test]
    fn a_schedule_that_is_over_has_ended_with_its_last_tick() {
        let schedule = Schedule::parse("0 0 8 15 1 * 2027", Tz::UTC).unwrap();
        let last: DateTime<Utc> = "2027-01-15T08:00:00Z".parse().unwrap();
        let mut progress = DueTicks::from(last - TimeDelta::days(1), &schedule);
        assert!(!progress.has_ended() && !progress.is_due(last - TimeDelta::days(1)));
        assert_eq!(progress.due(&schedule, last).unwrap().0, [last]);
        assert!(progress.has_ended() && !progress.is_due(last + TimeDelta::days(400)));
    }
}
