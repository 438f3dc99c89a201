//! Ticks that no replica started when they were due.
//!
//! The nodes remember the newest tick that was claimed, and the end of its run.
//! The ticks after that end were missed.
//! For a tick that came while the run went on, the overlap policy decides.
//! A tick that waited for the end of the run was missed if no replica started it then.

use std::{
    ops::RangeInclusive,
    sync::{Arc, MutexGuard, PoisonError},
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use redlock_core::{RunRecord, RunState};
use tokio::time::sleep;

use super::{course::PATIENCE, runner::JobRunner, undecided::Undecided};
use crate::{
    Missed, Outcome, Overlap, Trigger,
    clock::{lag, to_instant},
    job::is_made_up,
    replica::Refusal,
};

impl JobRunner {
    /// Resumes the last tick and makes up for missed ticks, before the first wake-up.
    pub(crate) async fn begin(self: Arc<Self>) {
        let last = match self.unless_draining(self.newest_run()).await {
            Ok(last) if last.is_some() || self.schedule.is_once() => last,
            // Nothing is known of the job: it was never deployed before.
            _ => {
                let begins = self.backlog.open();
                return self.work_off(begins).await;
            }
        };
        self.compare(last.as_ref());
        if self.settings.overlap == Overlap::Skip {
            self.find_open(last.as_ref()).await;
        }
        if let Some(last) = &last
            && self.settings.max_attempts() > 1
        {
            let resume = Arc::clone(&self).resume(to_instant(last.tick), Duration::ZERO);
            self.replica.tasks.spawn(resume);
        }
        self.replica.look_at_clocks().await;
        let now = self.nodes_now();
        let window = TimeDelta::from_std(self.settings.catch_up_window).unwrap_or(TimeDelta::MAX);
        let oldest = now
            .checked_sub_signed(window)
            .unwrap_or(DateTime::<Utc>::MIN_UTC);
        let until = now + TimeDelta::seconds(1);
        let promised = last.as_ref().map(|last| self.promised_since(last));
        let since = promised.map_or(oldest, |since| since.max(oldest));
        match self.settings.missed {
            Missed::Skip => {}
            Missed::Latest => self.make_up_for_latest(since, until).await,
            Missed::All { max } => {
                // Wake-ups find those that come later, and add them.
                let until = until.min(self.found_since() + TimeDelta::milliseconds(1));
                let missed = self.not_skipped(since, until, max).await;
                let begins = self.backlog.add(missed, max) | self.backlog.open();
                self.work_off(begins).await;
            }
        }
    }

    /// Deals with the newest tick between these that was missed; once more if it was skipped, in a run on request that has
    /// ended since.
    async fn make_up_for_latest(self: &Arc<Self>, since: DateTime<Utc>, until: DateTime<Utc>) {
        let mut dealt_with = None;
        while let Some(newest) = self.not_skipped(since, until, 1).await.pop()
            && Some(newest) != dealt_with
            // A wake-up finds it.
            && newest <= self.found_since()
        {
            // Those after it were skipped, and do not take its place.
            let present = self.nodes_now().max(until);
            let later = self.not_skipped(newest, present, 1).await;
            let end = if later.is_empty() { present } else { until };
            let skipped = self.schedule.latest_before(end);
            *self.stands_for() = skipped.map(|skipped| newest..=skipped);
            self.deal_with(newest).await;
            dealt_with = Some(newest);
        }
    }

    /// Returns the newest run that the nodes remember.
    async fn newest_run(&self) -> Result<Option<RunRecord>, Refusal> {
        loop {
            if let Some(state) = self.replica.claims.read(self.id.job_key()).await {
                return Ok(state.runs.into_iter().next());
            }
            sleep(PATIENCE).await;
        }
    }

    /// Deals with the ticks in the backlog, if `begins` is set: else another task does, or there are none.
    pub(crate) async fn work_off(self: Arc<Self>, begins: bool) {
        if !begins {
            return;
        }
        while !self.ending.is_draining()
            && let Some(tick) = self.backlog.oldest()
        {
            self.deal_with(tick).await;
            self.backlog.remove(tick);
        }
        if self.ending.is_draining() {
            self.tell_of_rest();
        }
    }

    /// Reports the ticks that still wait for their turn, when nothing is started any more.
    fn tell_of_rest(&self) {
        let rest = self.backlog.take();
        let Some((first, last)) = rest.first().zip(rest.last()) else {
            return;
        };
        let more = (first < last).then_some((*last, rest.len() as u64));
        let trigger = self.by_age(*first, Trigger::Schedule);
        self.report_several(*first, more, trigger, self.ended());
    }

    /// Deals with a tick that is due or was missed.
    pub(crate) async fn deal_with(self: &Arc<Self>, tick: DateTime<Utc>) {
        let trigger = self.by_age(tick, Trigger::Schedule);
        let undecided = Undecided::new(&self.undecided, tick);
        Arc::clone(self).tick(undecided, trigger).await;
    }

    /// Returns the trigger of a tick that is started now: unless missed ticks are skipped, a late tick is a missed one.
    pub(crate) fn by_age(&self, tick: DateTime<Utc>, trigger: Trigger) -> Trigger {
        let is_missed = self.settings.missed != Missed::Skip && !self.is_fresh(tick);
        match trigger {
            Trigger::Schedule if is_missed => Trigger::CatchUp,
            _ => trigger,
        }
    }

    /// Returns whether the tick may be started as one that was not missed.
    pub(crate) fn is_fresh(&self, tick: DateTime<Utc>) -> bool {
        lag(tick, self.nodes_now()) <= self.settings.start_within
    }

    /// Returns whether it makes sense to try again to claim a tick for which there was no majority.
    pub(crate) fn is_worth_waiting_for(&self, tick: DateTime<Utc>) -> bool {
        let in_time = lag(tick, self.nodes_now()) < self.settings.catch_up_window;
        match self.settings.missed {
            // The newer one stands for it.
            Missed::Skip | Missed::Latest => in_time && self.is_newest(tick),
            Missed::All { .. } => in_time,
        }
    }

    /// Returns whether no later tick takes its place.
    pub(crate) fn stands_for_itself(&self, tick: DateTime<Utc>) -> bool {
        let each_counts = matches!(self.settings.missed, Missed::All { .. });
        each_counts || self.settings.overlap == Overlap::Wait || self.is_newest(tick)
    }

    /// Returns whether no later tick is due that takes its place.
    pub(crate) fn is_newest(&self, tick: DateTime<Utc>) -> bool {
        let due = self.schedule.latest_at(self.nodes_now());
        due.is_none_or(|due| due <= tick || self.is_for_skipped(tick, due))
    }

    /// Returns whether the tick is the newest that was missed, and those after it up to `due` were skipped, or are being.
    fn is_for_skipped(&self, tick: DateTime<Utc>, due: DateTime<Utc>) -> bool {
        let range = self.stands_for();
        let range = range.as_ref().filter(|range| *range.start() == tick);
        range.is_some_and(|range| due <= *range.end() || self.may_be_kept_off(due))
    }

    fn stands_for(&self) -> MutexGuard<'_, Option<RangeInclusive<DateTime<Utc>>>> {
        // Nothing panics while the lock is held.
        let range = self.stands_for.lock();
        range.unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports the ticks that were missed between the run before a claim and the claim's own tick.
    pub(crate) async fn tell_missed(
        self: &Arc<Self>,
        last: Option<&RunRecord>,
        tick: DateTime<Utc>,
    ) {
        let Some(last) = last else { return };
        let since = self.promised_since(last);
        let missed = self.not_skipped(since, tick, MOST_TOLD).await;
        if missed.len() == MOST_TOLD {
            let (this, before) = (Arc::clone(self), missed[0]);
            // It may take a while to count them, and the run is to start.
            let told = async move { this.tell_of_many(since, before, tick).await };
            self.replica.tasks.spawn(told);
        }
        for missed in missed {
            self.refused(missed, Trigger::Schedule, not_started(tick));
        }
    }

    /// Reports all ticks after one instant and before another at once, without those that came in a run on request.
    async fn tell_of_many(&self, since: DateTime<Utc>, before: DateTime<Utc>, tick: DateTime<Utc>) {
        let mut during = self.runs_on_request(since, before).await;
        during.sort_by_key(|range| *range.start());
        let (mut told, mut ticks, mut after) = (None, 0, since);
        for range in during.into_iter().chain([before..=before]) {
            let end = before.min(*range.start());
            let (first, last) = (
                self.schedule.next_after(after),
                self.schedule.latest_before(end),
            );
            if let Some((first, last)) = first.zip(last).filter(|(first, last)| first <= last) {
                let most = MOST_COUNTED.saturating_sub(ticks);
                ticks += self.schedule.count(after, end, most).await;
                told = Some((told.map_or(first, |(first, _)| first), last));
            }
            after = after.max(*range.end());
        }
        let Some((first, last)) = told else { return };
        let more = (first < last).then_some((last, ticks));
        self.report_several(first, more, Trigger::Schedule, not_started(tick));
    }

    /// Returns since when ticks of this replica's schedule count as missed if no replica has started them.
    ///
    /// If `last` was claimed under another schedule, this schedule promised no tick before this replica had the job: a
    /// time before that was never due, even if it matches the pattern.
    /// The one instant of a job that runs once is always promised, because the application has named it.
    fn promised_since(&self, last: &RunRecord) -> DateTime<Utc> {
        let covered = self.covered(last);
        if self.schedule.is_once() || self.fingerprint.is_same_schedule(last.fingerprint) {
            covered
        } else {
            covered.max(self.added)
        }
    }

    /// Returns the ticks after one instant and before another that did not come during a run on request, in order; of
    /// more than `most`, the newest.
    ///
    /// A run on request keeps ticks off like the run of a tick, and the nodes remember it under a key of its own.
    async fn not_skipped(
        &self,
        after: DateTime<Utc>,
        before: DateTime<Utc>,
        most: usize,
    ) -> Vec<DateTime<Utc>> {
        let during = self.runs_on_request(after, before).await;
        self.schedule
            .between_without(after, before, most, &during)
            .await
    }

    /// Returns when runs on request went on, if they keep ticks off and a tick came after `after` and before `before`.
    async fn runs_on_request(
        &self,
        after: DateTime<Utc>,
        before: DateTime<Utc>,
    ) -> Vec<RangeInclusive<DateTime<Utc>>> {
        let skips = !matches!(self.settings.overlap, Overlap::Allow | Overlap::UpTo(_));
        // Most of the time there is no tick.
        if skips
            && self.schedule.latest_before(before) > Some(after)
            && let Some(state) = self.replica.claims.read(self.id.manual_key()).await
        {
            let runs = state.runs.iter();
            return runs
                .map(|run| to_instant(run.tick)..=self.covered(run))
                .collect();
        }
        Vec::new()
    }

    /// Returns up to when ticks were claimed, or came while a run went on that they did not wait for.
    ///
    /// It counts from the tick, not from when its run was claimed: of ticks that are made up for long after, the
    /// first does not stand for the others.
    pub(crate) fn covered(&self, last: &RunRecord) -> DateTime<Utc> {
        let tick = to_instant(last.tick);
        let RunState::Ended { took, .. } = &last.state else {
            return tick;
        };
        let took = match self.settings.overlap {
            // It began long after its tick, and those that came then wait for its end, whatever the policy is.
            _ if is_made_up(last.fingerprint) => Duration::ZERO,
            Overlap::Wait if matches!(self.settings.missed, Missed::All { .. }) => Duration::ZERO,
            // Those that came later than this could still be waiting when it ended.
            Overlap::Wait => took.saturating_sub(self.settings.start_within),
            _ => *took,
        };
        let took = TimeDelta::from_std(took).ok();
        took.and_then(|took| tick.checked_add_signed(took))
            .unwrap_or(tick)
    }
}

fn not_started(tick: DateTime<Utc>) -> Refusal {
    let why = format!("nobody had started it when {tick} was claimed");
    Refusal::new(Outcome::Missed, why)
}

/// How many missed ticks have reports of their own: after a pause of hours, a job of every second has missed thousands.
const MOST_TOLD: usize = 100;

/// The most ticks that are counted for one report: after a year, a job of every second has missed thirty million.
const MOST_COUNTED: u64 = 1_000_000;
