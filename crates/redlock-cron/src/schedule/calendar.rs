use std::{
    collections::BTreeSet,
    ops::{Range, RangeInclusive},
    sync::Arc,
    time::Duration,
};

use chrono::{DateTime, NaiveDate, TimeDelta, TimeZone as _, Utc};
use chrono_tz::Tz;

use super::{
    pattern::{BEGIN, END, Pattern},
    walk,
};
use crate::SetupError;

/// The instants at which a job is due: the times of a zone that match a pattern, the multiples of an interval, or one
/// instant.
///
/// Replicas with the same pattern, zone and zone data compute the same ticks.
/// A schedule needs no scheduler and no node, so that a program can try a pattern before a job has it.
/// No text takes long to read and no tick takes long to find, so a service can try the patterns of its users in its
/// async tasks.
/// Printed, it is the schedule in English words.
///
/// # Examples
///
/// ```
/// use redlock_cron::Schedule;
///
/// let schedule = Schedule::cron("0 30 2 * * SUN", "Europe/Berlin")?;
/// assert_eq!(schedule.to_string(), "At 02:30, on Sunday, in the zone Europe/Berlin");
///
/// // Clocks go forward from two to three in the first of these nights.
/// let from = "2026-03-28T00:00:00Z".parse().unwrap();
/// let ticks: Vec<_> = schedule.ticks_after(from).take(2).map(|tick| tick.to_rfc3339()).collect();
/// assert_eq!(ticks, ["2026-03-29T03:00:00+02:00", "2026-04-05T02:30:00+02:00"]);
/// # Ok::<(), redlock_cron::SetupError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Schedule(
    pub(super) ScheduleKind,
    /// The days that are left out, in the schedule's zone.
    pub(super) Arc<BTreeSet<NaiveDate>>,
);

#[derive(Clone, Debug)]
pub(super) enum ScheduleKind {
    Cron {
        pattern: Arc<Pattern>,
        zone: Tz,
    },
    /// The multiples of this number of seconds since the Unix epoch.
    Every(
        // invariant: 1 to LONGEST_INTERVAL
        i64,
    ),
    Once(
        // invariant: whole seconds
        DateTime<Utc>,
    ),
}

impl Schedule {
    pub(crate) fn parse(pattern: &str, zone: Tz) -> Result<Self, SetupError> {
        let pattern = Pattern::read(pattern);
        let pattern = pattern.map_err(|error| SetupError::misuse("pattern", error))?;
        let pattern = Arc::new(pattern);
        Ok(Self(ScheduleKind::Cron { pattern, zone }, Arc::default()))
    }

    /// Makes the schedule of the multiples of `interval` since the Unix epoch, as
    /// [`SingletonJob::every`](crate::SingletonJob::every) does.
    ///
    /// # Errors
    ///
    /// The interval is not in whole seconds, or not from a second to 365 days.
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_cron::Schedule;
    /// use std::time::Duration;
    ///
    /// let schedule = Schedule::every(Duration::from_secs(300))?;
    /// assert_eq!(schedule.to_string(), "Every 5 minutes");
    /// # Ok::<(), redlock_cron::SetupError>(())
    /// ```
    pub fn every(interval: Duration) -> Result<Self, SetupError> {
        let seconds = i64::try_from(interval.as_secs()).unwrap_or(i64::MAX);
        if interval.subsec_nanos() == 0 && (1..=LONGEST_INTERVAL).contains(&seconds) {
            return Ok(Self(ScheduleKind::Every(seconds), Arc::default()));
        }
        let right = format!("it must be whole seconds, 1 to {LONGEST_INTERVAL}");
        let message = format!("{interval:?} is not valid; {right}");
        Err(SetupError::misuse("interval", message))
    }

    /// Returns the first tick after `time`; `None` if no tick is left.
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_cron::Schedule;
    ///
    /// let schedule = Schedule::cron("0 0 9 * * MON-FRI", "Asia/Kolkata")?;
    /// let friday_noon = "2026-11-20T12:00:00Z".parse().unwrap();
    /// let monday = schedule.next_after(friday_noon).unwrap();
    /// assert_eq!(monday.to_rfc3339(), "2026-11-23T03:30:00+00:00");
    /// # Ok::<(), redlock_cron::SetupError>(())
    /// ```
    pub fn next_after(&self, time: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let mut time = time;
        loop {
            let tick = self.next_of_all(time)?;
            let Some(day) = self.day_left_out(tick) else {
                return Some(tick);
            };
            // Its other ticks are passed over at once.
            let end = day.succ_opt().and_then(|next| self.begin_of(next));
            time = end.map_or(tick, |end| (end - SECOND).max(tick));
        }
    }

    fn next_of_all(&self, time: DateTime<Utc>) -> Option<DateTime<Utc>> {
        match &self.0 {
            ScheduleKind::Cron { pattern, zone } => {
                let from = time.timestamp().saturating_add(1).max(YEARS.start);
                let next = (from < YEARS.end).then(|| walk::first_from(pattern, *zone, from));
                DateTime::from_timestamp(next??, 0)
            }
            ScheduleKind::Every(interval) => {
                let earlier = time.timestamp().div_euclid(*interval);
                DateTime::from_timestamp((earlier + 1).checked_mul(*interval)?, 0)
            }
            ScheduleKind::Once(at) => (*at > time).then_some(*at),
        }
    }

    /// Returns the newest tick at or before `time`.
    pub(crate) fn latest_at(&self, time: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let mut time = time;
        loop {
            let tick = self.latest_of_all(time)?;
            let Some(day) = self.day_left_out(tick) else {
                return Some(tick);
            };
            let earlier = tick - SECOND;
            let begin = self.begin_of(day);
            time = begin.map_or(earlier, |begin| (begin - SECOND).min(earlier));
        }
    }

    fn latest_of_all(&self, time: DateTime<Utc>) -> Option<DateTime<Utc>> {
        match &self.0 {
            ScheduleKind::Cron { pattern, zone } => {
                let end = time.timestamp().saturating_add(1).min(YEARS.end);
                let latest = (end > YEARS.start).then(|| walk::last_before(pattern, *zone, end));
                DateTime::from_timestamp(latest??, 0)
            }
            ScheduleKind::Every(interval) => {
                let earlier = time.timestamp().div_euclid(*interval);
                DateTime::from_timestamp(earlier * *interval, 0)
            }
            ScheduleKind::Once(at) => (*at <= time).then_some(*at),
        }
    }

    /// Leaves all ticks of these days out, such as holidays; a day is one of the schedule's [zone](Self::zone).
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_cron::{Schedule, chrono::NaiveDate};
    ///
    /// let christmas = NaiveDate::from_ymd_opt(2026, 12, 25).ok_or("no such day")?;
    /// let schedule = Schedule::cron("0 0 9 * * MON-FRI", "Europe/Berlin")?.except([christmas]);
    /// let thursday_noon = "2026-12-24T12:00:00Z".parse()?;
    /// let monday = schedule.next_after(thursday_noon).ok_or("no tick")?;
    /// assert_eq!(monday.to_rfc3339(), "2026-12-28T08:00:00+00:00");
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn except(mut self, days: impl IntoIterator<Item = NaiveDate>) -> Self {
        Arc::make_mut(&mut self.1).extend(days);
        self
    }

    /// Returns the day of a tick if it is left out.
    fn day_left_out(&self, tick: DateTime<Utc>) -> Option<NaiveDate> {
        if self.1.is_empty() {
            return None;
        }
        let day = self.day_of(tick);
        self.1.contains(&day).then_some(day)
    }

    /// Returns the first instant of a day in the schedule's zone, which need not be midnight.
    fn begin_of(&self, day: NaiveDate) -> Option<DateTime<Utc>> {
        let zone = self.zone();
        let mut times = (0..24).filter_map(|hour| day.and_hms_opt(hour, 0, 0));
        let first = times.find_map(|time| zone.from_local_datetime(&time).earliest());
        first.map(|first| first.with_timezone(&Utc))
    }

    /// Returns the day for which a tick is due, in the schedule's zone.
    pub(crate) fn day_of(&self, tick: DateTime<Utc>) -> NaiveDate {
        let local = tick.with_timezone(&self.zone());
        match &self.0 {
            ScheduleKind::Cron { pattern, .. } => walk::day_of(pattern, local),
            ScheduleKind::Every(_) | ScheduleKind::Once(_) => local.date_naive(),
        }
    }

    /// Returns what each step of the pattern that does not mean what it says does instead.
    pub(crate) fn doubts(&self) -> &[String] {
        match &self.0 {
            ScheduleKind::Cron { pattern, .. } => &pattern.doubts,
            ScheduleKind::Every(_) | ScheduleKind::Once(_) => &[],
        }
    }

    /// Returns the ticks of a day of the schedule's zone up to `until`, in order; of more than `most`, the newest.
    pub(crate) async fn of_day(
        &self,
        day: NaiveDate,
        until: DateTime<Utc>,
        most: usize,
    ) -> Vec<DateTime<Utc>> {
        let end = day.succ_opt().and_then(|next| self.begin_of(next));
        let Some((begin, end)) = self.begin_of(day).zip(end) else {
            return Vec::new();
        };
        // A tick whose time is in a gap before midnight is due after the gap.
        let before = (end + LONGEST_GAP).min(until + SECOND);
        let mut ticks = self.between(begin - SECOND, before, most).await;
        ticks.retain(|tick| *tick <= until && self.day_of(*tick) == day);
        ticks
    }

    /// Returns how many ticks there are after one instant and before another, if it is fewer than `most`; `most`
    /// otherwise.
    pub(crate) async fn count(
        &self,
        after: DateTime<Utc>,
        before: DateTime<Utc>,
        most: u64,
    ) -> u64 {
        if let ScheduleKind::Every(interval) = &self.0
            && self.1.is_empty()
        {
            let number = |time: DateTime<Utc>| time.timestamp().div_euclid(*interval);
            let ticks = number(before - TimeDelta::milliseconds(1)) - number(after);
            return u64::try_from(ticks).unwrap_or(0).min(most);
        }
        let (mut ticks, mut time) = (0, before);
        while ticks < most
            && let Some(tick) = self.latest_before(time).filter(|tick| *tick > after)
        {
            (ticks, time) = (ticks + 1, tick);
            if ticks.is_multiple_of(BETWEEN_PAUSES) {
                tokio::task::yield_now().await;
            }
        }
        ticks
    }

    /// Returns the ticks after one instant and before another, in order; of more than `most`, the newest.
    pub(crate) async fn between(
        &self,
        after: DateTime<Utc>,
        before: DateTime<Utc>,
        most: usize,
    ) -> Vec<DateTime<Utc>> {
        self.between_without(after, before, most, &[]).await
    }

    /// Returns the ticks after one instant and before another that are in none of some ranges, in order; of more than
    /// `most`, the newest.
    pub(crate) async fn between_without(
        &self,
        after: DateTime<Utc>,
        before: DateTime<Utc>,
        most: usize,
        without: &[RangeInclusive<DateTime<Utc>>],
    ) -> Vec<DateTime<Utc>> {
        let (mut ticks, mut time) = (Vec::new(), before);
        while ticks.len() < most
            && let Some(tick) = self.latest_before(time).filter(|tick| *tick > after)
        {
            // All that are in it are passed over at once.
            if let Some(range) = without.iter().find(|range| range.contains(&tick)) {
                time = *range.start();
                continue;
            }
            ticks.push(tick);
            time = tick;
            if (ticks.len() as u64).is_multiple_of(BETWEEN_PAUSES) {
                tokio::task::yield_now().await;
            }
        }
        ticks.reverse();
        ticks
    }

    /// Returns the newest tick before `time`, which is a whole second.
    pub(crate) fn latest_before(&self, time: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.latest_at(time.checked_sub_signed(TimeDelta::milliseconds(1))?)
    }

    /// Returns the shortest time between two of the next ticks; `None` if there are not two.
    ///
    /// It is a sample, from a fixed instant on, so that all replicas find the same.
    pub(crate) fn shortest_gap(&self) -> Option<Duration> {
        let first = self.next_after(SAMPLED_FROM)?;
        let ticks = std::iter::successors(Some(first), |tick| self.next_after(*tick));
        let ticks: Vec<_> = ticks.take(SAMPLES).collect();
        let gaps = ticks.windows(2).map(|pair| pair[1] - pair[0]);
        gaps.min()?.to_std().ok()
    }
}

const SECOND: TimeDelta = TimeDelta::seconds(1);

/// The longest time that clocks go forward at once, but for a zone that leaves a whole day out.
const LONGEST_GAP: TimeDelta = TimeDelta::hours(2);

/// The years of patterns, in seconds since the Unix epoch.
const YEARS: Range<i64> = BEGIN.and_utc().timestamp()..END.and_utc().timestamp();

/// The number of ticks that are found before other tasks have their turn.
const BETWEEN_PAUSES: u64 = 500;

/// A year.
const LONGEST_INTERVAL: i64 = 365 * 24 * 60 * 60;

/// A winter day on which no clock changes.
const SAMPLED_FROM: DateTime<Utc> = DateTime::from_timestamp(1_767_225_600, 0).expect("in range");
const SAMPLES: usize = 50;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SetupErrorKind;

    fn utc(time: &str) -> DateTime<Utc> {
        time.parse().unwrap()
    }

    #[test]
    fn fractions_of_a_second_are_not_part_of_a_tick() {
        let schedule = Schedule::parse("*/2 * * * * *", Tz::UTC).unwrap();
        let (before, tick) = (utc("2026-11-21T12:00:01.999Z"), utc("2026-11-21T12:00:02Z"));
        assert_eq!(schedule.next_after(before), Some(tick));
        for wake in [
            "2026-11-21T12:00:02Z",
            "2026-11-21T12:00:02.001Z",
            "2026-11-21T12:00:03.9Z",
        ] {
            assert_eq!(schedule.latest_at(utc(wake)), Some(tick), "{wake}");
        }
    }

    #[test]
    fn days_that_are_left_out_have_no_tick_in_either_direction_and_cost_no_time() {
        let day = |day| NaiveDate::from_ymd_opt(2026, 10, day).unwrap();
        // Clocks go back on the 25th.
        let each_second = Schedule::parse("* * * * * *", Tz::Europe__Berlin).unwrap();
        let each_second = each_second.except([day(25), day(26), day(28)]);
        let (last, first) = (utc("2026-10-24T21:59:59Z"), utc("2026-10-26T23:00:00Z"));
        assert_eq!(each_second.next_after(last), Some(first));
        assert_eq!(each_second.latest_before(first), Some(last));
        assert_eq!(
            each_second.latest_at(utc("2026-10-25T12:00:00Z")),
            Some(last)
        );
        let hourly = Schedule::every(Duration::from_secs(3_600))
            .unwrap()
            .except([day(25)]);
        let ticks: Vec<_> = hourly
            .ticks_after(utc("2026-10-24T22:00:00Z"))
            .take(2)
            .collect();
        assert_eq!(
            ticks,
            [utc("2026-10-24T23:00:00Z"), utc("2026-10-26T00:00:00Z")]
        );
        assert_eq!(hourly.to_string(), "Every hour, except on 1 day");
        let once = Schedule::once(utc("2026-10-25T12:00:00Z")).except([day(25)]);
        assert_eq!(once.next_after(last), None);
    }

    #[tokio::test]
    async fn ticks_of_days_that_are_left_out_are_not_counted() {
        let days = (1..=30).filter_map(|day| NaiveDate::from_ymd_opt(2026, 11, day));
        let hourly = Schedule::every(Duration::from_secs(3_600))
            .unwrap()
            .except(days);
        let (from, to) = (utc("2026-10-31T22:00:00Z"), utc("2026-12-01T01:30:00Z"));
        assert_eq!(hourly.count(from, to, 1_000).await, 3);
        let ticks = hourly.between(from, to, 9).await;
        assert_eq!(ticks.len(), 3);
    }

    #[test]
    fn a_pattern_that_is_not_valid_says_what_would_be() {
        for bad in [
            "",
            "* * * * *",
            "0 0 25 * * *",
            "a b c d e f",
            "0 0 2 * * * * *",
        ] {
            let error = Schedule::parse(bad, Tz::UTC).unwrap_err();
            assert_eq!(
                (error.kind(), error.field()),
                (SetupErrorKind::Misuse, "pattern")
            );
            let text = error.to_string();
            assert!(
                text.contains(&format!("{bad:?}")) && text.contains("day of week"),
                "{text}"
            );
        }
    }

    #[test]
    fn intervals_are_counted_from_the_epoch_and_not_from_a_start() {
        let schedule = Schedule::every(Duration::from_secs(420)).unwrap();
        let tick = DateTime::from_timestamp(4_300_000 * 420, 0).unwrap();
        for (asked, latest, next) in [(-1, -420, 0), (0, 0, 420), (419_999, 0, 420)] {
            let at = |seconds| Some(tick + TimeDelta::seconds(seconds));
            let asked = tick + TimeDelta::milliseconds(asked);
            assert_eq!(schedule.latest_at(asked), at(latest), "{asked}");
            assert_eq!(schedule.next_after(asked), at(next), "{asked}");
        }
        assert_eq!(schedule.shortest_gap(), Some(Duration::from_secs(420)));
    }

    #[test]
    fn intervals_are_whole_seconds() {
        for bad in [0, 500, 1_500, 366 * 86_400_000] {
            let error = Schedule::every(Duration::from_millis(bad)).unwrap_err();
            assert_eq!(error.field(), "interval", "{bad}");
        }
        assert!(Schedule::every(Duration::MAX).is_err());
    }

    #[test]
    fn patterns_of_the_scheduler_s_documentation_are_read() {
        let schedule = Schedule::parse("1/10 * * * * *", Tz::UTC).unwrap();
        let next = schedule.next_after(utc("2026-11-21T12:00:02Z"));
        assert_eq!(next, Some(utc("2026-11-21T12:00:11Z")));
    }

    #[test]
    fn a_day_must_match_both_day_fields() {
        // Friday the 13th, not every Friday and every 13th.
        let schedule = Schedule::parse("0 0 0 13 * FRI", Tz::UTC).unwrap();
        let next = schedule.next_after(utc("2026-11-21T12:00:00Z"));
        assert_eq!(next, Some(utc("2027-08-13T00:00:00Z")));
    }

    #[test]
    fn the_ends_of_time_have_no_tick_beyond_them() {
        let ends = (DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC);
        for zone in [Tz::UTC, Tz::Pacific__Kiritimati, Tz::America__New_York] {
            for pattern in ["* * * * * *", "0 0 2 * * *", "0 0 0 29 2 *"] {
                let schedule = Schedule::parse(pattern, zone).unwrap();
                let (next, latest) = (schedule.next_after(ends.1), schedule.latest_at(ends.0));
                assert_eq!((next, latest), (None, None), "{pattern:?} in {zone}");
                assert!(
                    schedule.next_after(ends.0).is_some(),
                    "{pattern:?} in {zone}"
                );
                assert!(
                    schedule.latest_at(ends.1).is_some(),
                    "{pattern:?} in {zone}"
                );
            }
        }
    }

    #[test]
    fn a_schedule_that_is_over_has_no_next_tick() {
        for over in ["0 0 0 30 2 *", "0 0 0 1 1 * 2020"] {
            let schedule = Schedule::parse(over, Tz::UTC).unwrap();
            assert_eq!(
                schedule.next_after(utc("2026-11-21T12:00:00Z")),
                None,
                "{over}"
            );
        }
    }
}
