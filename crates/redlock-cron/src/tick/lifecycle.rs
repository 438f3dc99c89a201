//! The course of a tick on this replica: from the wake-up to the claim, its run, and further runs if it was cut short.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use futures_util::future::{BoxFuture, FutureExt};
use redlock_core::RunRecord;
use tokio::time::sleep;

use super::{
    claim::Claimant,
    execution::Start,
    pause::unless_forbidden,
    retry::{RetryLook, TickRetry, Unclaimed, WithoutRun},
    run_before_start::TickRelation,
    runner::JobRunner,
    ticks::UndecidedTick,
};
use crate::{Missed, Outcome, Trigger, clock::to_tick, replica::Refusal};

impl JobRunner {
    /// Claims the tick, runs the job if this replica won the claim, and reports.
    ///
    /// A task of its own waits for runs elsewhere, so that no later tick waits with it.
    pub(crate) async fn tick(self: Arc<Self>, undecided: UndecidedTick, trigger: Trigger) {
        let tick = undecided.tick;
        let decided = self.decide(undecided, trigger);
        let without_run = match self.job.unless_draining(decided).await {
            Ok(start) => match self.loses(start).await {
                true => WithoutRun::ReportLast,
                false => return,
            },
            Err(refusal) if self.job.settings.max_attempts() == 1 => {
                return drop(self.job.refused(tick, trigger, refusal));
            }
            Err(refusal) if refusal.outcome == Outcome::NotWinner => WithoutRun::Report(trigger),
            Err(refusal) => {
                let outcome = refusal.outcome;
                drop(self.job.refused(tick, trigger, refusal));
                // If a later tick is due, the replica that claims it deals with this one.
                if !outcome.may_be_elsewhere() || !self.ticks.is_newest(&self.job, tick) {
                    return;
                }
                WithoutRun::ReportLastOrLog
            }
        };
        let pause = self.job.pause_after(Duration::ZERO);
        let follow = Arc::clone(&self).follow(tick, pause, without_run);
        self.job.replica.tasks.spawn(follow);
    }

    /// Runs the tick that was claimed; returns whether the run has lost its lease, and the tick may be started again.
    async fn loses(&self, start: Start) -> bool {
        let is_lost = start.run(&self.job).await.outcome == Outcome::Lost;
        is_lost && self.job.settings.max_attempts() > 1
    }

    /// Decides whether the tick is to be started here.
    async fn decide(
        self: &Arc<Self>,
        undecided: UndecidedTick,
        trigger: Trigger,
    ) -> Result<Start, Refusal> {
        let tick = undecided.tick;
        if trigger == Trigger::Schedule {
            let turn = self
                .turns
                .delay(&self.job.replica.claims.replica, self.job.settings.spread);
            self.job.until(tick, turn).await?;
        }
        let claimant = Claimant {
            job: &self.job,
            ticks: &self.ticks,
            tick,
        };
        let (mut tries, mut was_logged, mut settled) = (0, false, None);
        loop {
            let trigger = self.job.by_age(tick, trigger);
            if !self.job.wants(tick) {
                match claimant.asked_again_in() {
                    Some(pause) => sleep(pause).await,
                    None => return Err(Refusal::bare(Outcome::Declined)),
                }
                continue;
            }
            let claimed = match self.ticks.open_run.relation(&self.job, tick).await {
                TickRelation::Skipped => {
                    let why = "it came while a run went on that has ended since";
                    return Err(Refusal::new(Outcome::Overlapping, why));
                }
                // A claim that waits for the lock could get it at the end of the run, which decides.
                TickRelation::Open if trigger == Trigger::CatchUp => {
                    Err(Refusal::bare(Outcome::Overlapping))
                }
                _ => claimant.claim(trigger, settled).await,
            };
            let refusal = match claimed {
                Ok(won) => {
                    self.compare(won.claim.last());
                    self.turns
                        .won(won.claim.tick(), &self.job.replica.claims.replica);
                    self.report_missed(won.claim.last(), tick).await;
                    let limit = self.job.settings.catch_up_window;
                    let won = unless_forbidden(&self.job, won, 1, limit).await?;
                    return Ok(Start::first(won, tick, trigger));
                }
                Err(refusal) => refusal,
            };
            self.compare(refusal.run.as_ref());
            if let Some(before) = refusal.cut_short
                && self.settle(before).await
            {
                settled = to_tick(before);
                continue;
            }
            match claimant.again_in(trigger, &refusal, tries).await {
                Some(pause) => {
                    if refusal.outcome == Outcome::NoQuorum
                        && !std::mem::replace(&mut was_logged, true)
                    {
                        let (job, detail) = (&**self.job.id.name(), refusal.detail.as_deref());
                        tracing::warn!(target: crate::TARGET, job, tick = tick.to_string(), detail, "no quorum; the claim is tried again");
                    }
                    sleep(pause).await;
                    tries += 1;
                }
                None => return Err(refusal),
            }
        }
    }

    /// Sees to it that a run which was cut short is started again, if it may be; returns whether a later tick may be
    /// claimed now.
    pub(crate) async fn settle(self: &Arc<Self>, tick: DateTime<Utc>) -> bool {
        match self.retry(tick).settle().await {
            RetryLook::Again(start) => {
                let this = Arc::clone(self);
                let run = async move {
                    if this.loses(*start).await {
                        let pause = this.job.pause_after(Duration::ZERO);
                        this.follow(tick, pause, WithoutRun::ReportLast).await;
                    }
                };
                self.job.replica.tasks.spawn(run);
                false
            }
            RetryLook::Over(refusal) => {
                self.report_or_log(tick, *refusal);
                true
            }
            RetryLook::Unclaimed | RetryLook::Open => false,
        }
    }

    /// Returns the retry of a tick of which one run is known.
    pub(crate) fn retry(&self, tick: DateTime<Utc>) -> TickRetry<'_> {
        TickRetry {
            job: &self.job,
            ticks: &self.ticks,
            backoff: &self.backoff,
            tick,
            attempt: 1,
        }
    }

    /// Starts a tick again for as long as its runs are cut short, here or on another replica; the first look at them is after
    /// `pause`.
    pub(super) async fn follow(
        self: Arc<Self>,
        tick: DateTime<Utc>,
        mut pause: Duration,
        mut without_run: WithoutRun,
    ) {
        loop {
            let unclaimed = match without_run {
                WithoutRun::Report(_) => Unclaimed::Tell,
                WithoutRun::ReportLast | WithoutRun::ReportLastOrLog => Unclaimed::Wait,
            };
            let retry = self.retry(tick).wait(pause, unclaimed);
            let refusal = match self.job.unless_draining(retry).await {
                Ok(start) => {
                    if !self.loses(start).await {
                        return;
                    }
                    // What became of the tick here was reported.
                    without_run = WithoutRun::ReportLast;
                    pause = self.job.pause_after(Duration::ZERO);
                    continue;
                }
                Err(refusal) => refusal,
            };
            return match without_run {
                // It was taken for claimed because a few nodes had heard of a claim that no majority confirmed.
                WithoutRun::Report(_) if refusal.is_open => self.ask_again(tick).await,
                WithoutRun::Report(trigger) => drop(self.job.refused(tick, trigger, refusal)),
                WithoutRun::ReportLast => self.report_if_given_up(tick, refusal),
                WithoutRun::ReportLastOrLog => self.report_or_log(tick, refusal),
            };
        }
    }

    /// Deals with a tick once more, in its order among others.
    fn ask_again(self: Arc<Self>, tick: DateTime<Utc>) -> BoxFuture<'static, ()> {
        match self.job.settings.missed {
            Missed::All { max } => {
                let begins = self.ticks.backlog.add([tick], max);
                self.work_off(begins).boxed()
            }
            _ => async move { self.deal_with(tick).await }.boxed(),
        }
    }

    /// Reports that this replica has given a tick up, or that the nodes may have forgotten a further run of it.
    fn report_if_given_up(&self, tick: DateTime<Utc>, refusal: Refusal) {
        if is_last_word(&refusal) {
            self.job.refused(tick, Trigger::Retry, refusal);
        }
    }

    fn report_or_log(&self, tick: DateTime<Utc>, refusal: Refusal) {
        if is_last_word(&refusal) {
            self.report_if_given_up(tick, refusal);
        } else if let Some(why) = refusal.detail {
            tracing::warn!(target: crate::TARGET, job = &**self.job.id.name(), tick = tick.to_string(), why, "not started again");
        }
    }

    /// Warns if a run was claimed under another configuration.
    pub(super) fn compare(&self, run: Option<&RunRecord>) {
        let Some(run) = run else { return };
        self.turns.won(run.tick, run.replica.as_str());
        if self.job.journal.differs(run, self.job.fingerprint) {
            tracing::warn!(
                target: crate::TARGET, job = &**self.job.id.name(),
                replica = %run.replica,
                tick = run.tick.to_string(),
                "a replica has another schedule or other policies for this job; \
                 after a deployment this is to be expected once"
            );
        }
    }
}

/// Returns whether no report of another replica says that the tick gets no further run.
fn is_last_word(refusal: &Refusal) -> bool {
    matches!(refusal.outcome, Outcome::GivenUp | Outcome::Forgotten)
}
