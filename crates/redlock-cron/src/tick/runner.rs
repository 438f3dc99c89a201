//! One job on one replica: turns wake-ups into ticks to deal with, and reports those that were missed.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use redlock_core::{RunRecord, Series};

use super::{
    PATIENCE,
    attempts::Backoff,
    context::JobContext,
    ledger::{first_of_newest, runs_of},
    missed::{kept_off, not_skipped, promised_since},
    replica_order::Turns,
    retry::WithoutRun,
    ticks::{JobTicks, UndecidedTick},
};
use crate::{
    Missed, Outcome, Overlap, SetupError, SingletonJob, Trigger,
    clock::to_instant,
    replica::{Refusal, Replica},
};

/// One job on one replica: turns wake-ups into runs, and both into reports.
///
/// What becomes of one tick is in `lifecycle`.
pub(crate) struct JobRunner {
    pub(crate) job: JobContext,
    pub(crate) ticks: JobTicks,
    pub(crate) turns: Turns,
    pub(super) backoff: Backoff,
}

impl JobRunner {
    /// Checks the job, which counts ticks from now on.
    pub(crate) fn new(replica: &Arc<Replica>, job: SingletonJob) -> Result<Self, SetupError> {
        let job = JobContext::new(replica, job)?;
        Ok(Self {
            ticks: JobTicks::new(job.added, &job.schedule),
            job,
            turns: Turns::default(),
            backoff: Backoff::default(),
        })
    }

    /// Takes the place of the job `before`, of which nothing is started any more; its runs in flight go on.
    ///
    /// This job deals with the ticks on which `before` has not decided.
    pub(crate) fn take_over(&mut self, before: &Self) {
        self.ticks = JobTicks::taken_over(&before.ticks, &self.job);
        // Only now, because a task that learns of it forgets its tick. Both jobs may ask for a tick until then, and the
        // nodes grant it once.
        self.job.ending = self.job.replica.tasks.hand_over(&before.job.ending);
    }

    /// Returns the first tick that was not found yet.
    #[cfg(feature = "test-util")]
    pub(crate) fn next_tick(&self) -> Option<DateTime<Utc>> {
        self.ticks.progress.lock().next()
    }

    /// Returns whether this replica has yet to ask for a tick that is due at `instant` or was before, `now`.
    #[cfg(feature = "test-util")]
    pub(crate) fn is_asking(&self, instant: DateTime<Utc>, now: DateTime<Utc>) -> bool {
        // The longest time after a tick until it was asked for, and the nodes have answered.
        let longest = self.job.settings.spread + Duration::from_millis(100);
        let longest = TimeDelta::from_std(longest).unwrap_or(TimeDelta::zero());
        self.ticks.has_undecided(now - longest..=instant)
    }

    /// Sets the metric of the next tick; there is none once nothing is started any more.
    #[cfg(feature = "metrics")]
    pub(crate) fn measure_next(&self) {
        let (observer, job) = (&self.job.replica.observer, self.job.id.name());
        let next = self.ticks.progress.lock().next();
        observer.measure(|meter| meter.measure_next(job, next));
        // Checked last, so that a job that is removed meanwhile leaves no such tick in the metric.
        if self.job.ending.is_draining() {
            observer.measure(|meter| meter.measure_next(job, None));
        }
    }

    /// Begins the metric of the dead-man's switch, or ends what it says.
    #[cfg(feature = "metrics")]
    pub(crate) fn measure_not_overdue(&self) {
        if self.job.settings.expect_success_within.is_some() {
            let observer = &self.job.replica.observer;
            observer.measure(|meter| meter.measure_overdue(self.job.id.name(), false));
        }
    }

    /// Returns whether a wake-up now has anything to deal with.
    pub(crate) fn is_due(&self) -> bool {
        self.ticks.progress.lock().is_due(self.job.nodes_now())
    }

    /// Notes that the nodes' time is not the expected one.
    pub(crate) fn clock_was_set(&self) {
        let now = self.job.nodes_now();
        self.ticks
            .progress
            .lock()
            .set_right(now, &self.job.schedule);
    }

    /// Deals with a wake-up; what it starts goes on in a task.
    pub(crate) fn wake(self: &Arc<Self>) {
        let now = self.job.nodes_now();
        let Some((after, undecided)) = self.ticks.due(&self.job.schedule, now) else {
            return;
        };
        self.log_if_it_ended();
        let tasks = &self.job.replica.tasks;
        if let Missed::All { max } = self.job.settings.missed {
            return tasks.spawn(Arc::clone(self).add_due(after, undecided, max));
        }
        // The replica that claims the next tick reports the skipped ones; the nodes tell it which were claimed.
        for undecided in undecided {
            tasks.spawn(Arc::clone(self).tick(undecided, Trigger::Schedule));
        }
    }

    /// Adds the ticks that are due to the backlog.
    async fn add_due(
        self: Arc<Self>,
        after: DateTime<Utc>,
        undecided: Vec<UndecidedTick>,
        max: usize,
    ) {
        let turn = self.ticks.backlog.turn.lock().await;
        for (number, undecided) in undecided.into_iter().enumerate() {
            let tick = undecided.tick;
            let until = self.job.until(tick, Duration::ZERO);
            if let Err(refusal) = self.job.unless_draining(until).await {
                self.job.refused(tick, Trigger::Schedule, refusal);
                continue;
            }
            let mut ticks = match number {
                0 => self.job.schedule.between(after, tick, max).await,
                _ => Vec::new(),
            };
            // A tick that came while a run went on here was not missed.
            if self.skips(tick) {
                let refusal = Refusal::bare(Outcome::Overlapping);
                self.job.refused(tick, Trigger::Schedule, refusal);
            } else {
                ticks.push(tick);
            }
            if self.ticks.backlog.add(ticks, max) {
                let work = Arc::clone(&self).work_off(true);
                self.job.replica.tasks.spawn(work);
            }
        }
        drop(turn);
    }

    /// Returns whether the tick is to be skipped because a run goes on here that was due or asked for.
    ///
    /// A run that makes up for another tick is the scheduler's own doing, and the tick waits for its turn.
    fn skips(&self, tick: DateTime<Utc>) -> bool {
        self.job.settings.overlap == Overlap::Skip
            && self
                .job
                .replica
                .tasks
                .is_running_in_time(self.job.id.name())
            && self.job.is_fresh(tick)
    }

    /// Logs it if no tick is left, unless the scheduler ends.
    pub(crate) fn log_if_it_ended(&self) {
        if !self.job.ending.is_draining() && self.ticks.progress.lock().has_ended() {
            let job = &**self.job.id.name();
            if self.job.schedule.is_once() {
                tracing::debug!(target: crate::TARGET, job, "its one instant has come");
                return;
            }
            tracing::warn!(
                target: crate::TARGET, job,
                "its schedule has ended: no later tick is left, and it is not started any more"
            );
        }
    }

    /// Resumes the last tick and makes up for missed ticks, before the first wake-up.
    pub(crate) async fn begin(self: Arc<Self>) {
        let first_reading = async { Ok(self.job.record_at_last(PATIENCE).await) };
        let record = self.job.unless_draining(first_reading).await.ok();
        let last = record
            .as_ref()
            .and_then(|record| first_of_newest(record.of(Series::TICKS)));
        let record = match record.as_ref() {
            Some(record) if last.is_some() || self.job.schedule.is_once() => record,
            // Nothing is known of the job: it was never deployed before.
            _ => {
                let begins = self.ticks.backlog.open();
                return self.work_off(begins).await;
            }
        };
        self.compare(last);
        if self.job.settings.overlap == Overlap::Skip {
            self.ticks.open_run.find(record);
        }
        if let Some(last) = last
            && self.job.settings.max_attempts() > 1
        {
            let tick = to_instant(last.tick);
            let follow = Arc::clone(&self).follow(tick, Duration::ZERO, WithoutRun::ReportLast);
            self.job.replica.tasks.spawn(follow);
        }
        self.job.replica.look_at_clocks().await;
        let now = self.job.nodes_now();
        let window =
            TimeDelta::from_std(self.job.settings.catch_up_window).unwrap_or(TimeDelta::MAX);
        let oldest = now
            .checked_sub_signed(window)
            .unwrap_or(DateTime::<Utc>::MIN_UTC);
        let until = now + TimeDelta::seconds(1);
        let promised = last.map(|last| promised_since(&self.job, last));
        let since = promised.map_or(oldest, |since| since.max(oldest));
        match self.job.settings.missed {
            Missed::Skip => {}
            Missed::Latest => self.make_up_for_latest(since, until).await,
            Missed::All { max } => {
                // Wake-ups find those that come later, and add them.
                let until =
                    until.min(self.ticks.progress.lock().since() + TimeDelta::milliseconds(1));
                let missed = not_skipped(&self.job, since, until, max).await;
                let begins = self.ticks.backlog.add(missed, max) | self.ticks.backlog.open();
                self.work_off(begins).await;
            }
        }
    }

    /// Deals with the newest tick between these that was missed; once more if it was skipped, in a run on request that has
    /// ended since.
    async fn make_up_for_latest(self: &Arc<Self>, since: DateTime<Utc>, until: DateTime<Utc>) {
        let mut dealt_with = None;
        while let Some(newest) = not_skipped(&self.job, since, until, 1).await.pop()
            && Some(newest) != dealt_with
            // A wake-up finds it.
            && newest <= self.ticks.progress.lock().since()
        {
            // Those after it were skipped, and do not take its place.
            let present = self.job.nodes_now().max(until);
            let later = not_skipped(&self.job, newest, present, 1).await;
            let end = if later.is_empty() { present } else { until };
            let skipped = self.job.schedule.latest_before(end);
            self.ticks.make_up_for(newest, skipped);
            self.deal_with(newest).await;
            dealt_with = Some(newest);
        }
    }

    /// Deals with the ticks in the backlog, if `begins` is set: else another task does, or there are none.
    pub(crate) async fn work_off(self: Arc<Self>, begins: bool) {
        if !begins {
            return;
        }
        while !self.job.ending.is_draining()
            && let Some(tick) = self.ticks.backlog.oldest()
        {
            self.deal_with(tick).await;
            self.ticks.backlog.remove(tick);
        }
        if self.job.ending.is_draining() {
            self.report_rest();
        }
    }

    /// Reports the ticks that still wait for their turn, when nothing is started any more.
    fn report_rest(&self) {
        let rest = self.ticks.backlog.take();
        let Some((first, last)) = rest.first().zip(rest.last()) else {
            return;
        };
        let more = (first < last).then_some((*last, rest.len() as u64));
        let trigger = self.job.by_age(*first, Trigger::Schedule);
        self.job
            .report_several(*first, more, trigger, self.job.ended());
    }

    /// Deals with a tick that is due or was missed.
    pub(crate) async fn deal_with(self: &Arc<Self>, tick: DateTime<Utc>) {
        let trigger = self.job.by_age(tick, Trigger::Schedule);
        let undecided = self.ticks.undecided(tick);
        Arc::clone(self).tick(undecided, trigger).await;
    }

    /// Reports the ticks that were missed between the run before a claim and the claim's own tick.
    pub(crate) async fn report_missed(
        self: &Arc<Self>,
        last: Option<&RunRecord>,
        tick: DateTime<Utc>,
    ) {
        let Some(last) = last else { return };
        let record = match last.attempt {
            1 => None,
            // The ticks that came during the first run of that tick were skipped then.
            _ => self.job.record().await,
        };
        let mut runs = record
            .iter()
            .flat_map(|it| runs_of(it, to_instant(last.tick)));
        let last = runs.next_back().unwrap_or(last);
        let since = promised_since(&self.job, last);
        let missed = not_skipped(&self.job, since, tick, MOST_REPORTED).await;
        if missed.len() == MOST_REPORTED {
            let (this, before) = (Arc::clone(self), missed[0]);
            // It may take a while to count them, and the run is to start.
            let report = async move { this.report_many(since, before, tick).await };
            self.job.replica.tasks.spawn(report);
        }
        for missed in missed {
            self.job
                .refused(missed, Trigger::Schedule, not_started(tick));
        }
    }

    /// Reports all ticks after one instant and before another at once, without those that a run kept off.
    async fn report_many(&self, since: DateTime<Utc>, before: DateTime<Utc>, tick: DateTime<Utc>) {
        let mut during = kept_off(&self.job, since, before).await;
        during.sort_by_key(|range| *range.start());
        let (mut range_of_all, mut ticks, mut after) = (None, 0, since);
        for range in during.into_iter().chain([before..=before]) {
            let end = before.min(*range.start());
            let (first, last) = (
                self.job.schedule.next_after(after),
                self.job.schedule.latest_before(end),
            );
            if let Some((first, last)) = first.zip(last).filter(|(first, last)| first <= last) {
                let most = MOST_COUNTED.saturating_sub(ticks);
                ticks += self.job.schedule.count(after, end, most).await;
                range_of_all = Some((range_of_all.map_or(first, |(first, _)| first), last));
            }
            after = after.max(*range.end());
        }
        let Some((first, last)) = range_of_all else {
            return;
        };
        let more = (first < last).then_some((last, ticks));
        self.job
            .report_several(first, more, Trigger::Schedule, not_started(tick));
    }
}

fn not_started(tick: DateTime<Utc>) -> Refusal {
    let why = format!("nobody had started it when {tick} was claimed");
    Refusal::new(Outcome::Missed, why)
}

/// How many missed ticks have reports of their own: after a pause of hours, a job of every second has missed thousands.
const MOST_REPORTED: usize = 100;

/// The most ticks that are counted for one report: after a year, a job of every second has missed thirty million.
const MOST_COUNTED: u64 = 1_000_000;
