//! One job on one replica: its facts, what it may ask of the nodes, and where its reports go.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::IANA_TZDB_VERSION;
use parking_lot::Mutex;
use redlock_core::{
    Claim, JobRecord, JobState, Redlock, RunRecord, Series, Slots, Tick, ledger::undone_before,
};
use tokio::{select, time::sleep};

use super::{SHORT_WAIT, ledger::lines};
use crate::{
    Missed, Outcome, Overlap, SetupError, SingletonJob, TickReport, Trigger,
    clock::{LONGEST_AHEAD, lag, to_instant, to_tick},
    job::{Condition, Fingerprint, JobId, JobSettings, Work, early, series::CANCELS},
    record::{ExpectationLooks, Journal, OwnRegistration, guarded},
    replica::{After, ClaimRequest, JobSignals, LOOK, Refusal, Replica, finish},
    schedule::Schedule,
};

/// One job on one replica, as it was added.
pub(crate) struct JobContext {
    pub(crate) replica: Arc<Replica>,
    pub(crate) id: JobId,
    pub(crate) schedule: Schedule,
    pub(crate) settings: JobSettings<Duration>,
    /// The slots of which each run has one, if a limited number of runs may overlap.
    pub(crate) slots: Option<Slots>,
    /// Stands for the schedule and the settings.
    pub(crate) fingerprint: Fingerprint,
    pub(super) work: Work,
    condition: Option<Condition>,
    /// Since when this replica has the job, by the nodes' clocks as far as they were known.
    pub(super) added: DateTime<Utc>,
    pub(crate) journal: Journal,
    pub(crate) looks: ExpectationLooks,
    pub(crate) requests: Requests,
    pub(crate) registration: OwnRegistration,
    pub(crate) ending: JobSignals,
}

/// The requests for runs of all replicas that this replica has seen.
#[derive(Default)]
pub(crate) struct Requests {
    newest: Mutex<Option<Tick>>,
    /// Those on which it has not begun to decide.
    undecided: Mutex<BTreeSet<DateTime<Utc>>>,
    /// Held while it is decided on one of them.
    pub(crate) turn: tokio::sync::Mutex<()>,
}

impl Requests {
    /// Adds the moment of a request.
    pub(crate) fn add(&self, moment: DateTime<Utc>) {
        self.undecided.lock().insert(moment);
    }

    /// Takes the first request out.
    pub(crate) fn first(&self) -> Option<DateTime<Utc>> {
        self.undecided.lock().pop_first()
    }

    /// Notes the request of this moment, and returns whether it was not seen before; the caller must ask in order.
    pub(crate) fn note_new(&self, moment: Tick) -> bool {
        let mut newest = self.newest.lock();
        let before = *newest;
        *newest = before.max(Some(moment));
        before < *newest
    }
}

impl JobContext {
    /// Checks the job, whose ticks count from now on.
    pub(super) fn new(replica: &Arc<Replica>, job: SingletonJob) -> Result<Self, SetupError> {
        let id = JobId::new(replica.namespace.clone(), &job.name)?;
        let schedule = job.schedule()?;
        let now = replica.nodes_now();
        if schedule.next_after(now).is_none() && schedule.latest_at(now).is_none() {
            return Err(SetupError::never_fires(&job.plan));
        }
        let redlock = &replica.claims.redlock;
        let settings = job.settings.in_force(&schedule, redlock)?;
        let slots = match settings.overlap {
            Overlap::UpTo(most) => Some(slots(redlock, &id, most)?),
            _ => None,
        };
        Ok(Self {
            replica: Arc::clone(replica),
            ending: replica.tasks.ending(),
            id,
            schedule,
            fingerprint: Fingerprint::of(
                &job.plan,
                &job.except,
                &settings,
                early(redlock),
                IANA_TZDB_VERSION,
            ),
            slots,
            settings,
            work: job.work,
            condition: job.condition,
            added: now,
            journal: Journal::default(),
            looks: ExpectationLooks::default(),
            requests: Requests::default(),
            registration: OwnRegistration::new(&job.plan, &job.except, &settings),
        })
    }

    /// Returns the time of day by the nodes' clocks; see [`Replica::nodes_now`].
    pub(crate) fn nodes_now(&self) -> DateTime<Utc> {
        self.replica.nodes_now()
    }

    /// Returns the time of day, as this replica has it.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.replica.clock.now()
    }

    /// Returns what a majority of the nodes remembers of the job; `None` if too few answered.
    pub(crate) async fn record(&self) -> Option<JobRecord> {
        self.replica.claims.record(self.id.job_key()).await
    }

    /// Returns the same once a majority has answered; it is asked again after each `pause`.
    pub(crate) async fn record_at_last(&self, pause: Duration) -> JobRecord {
        loop {
            if let Some(record) = self.record().await {
                return record;
            }
            sleep(pause).await;
        }
    }

    /// Returns what a majority of the nodes remembers of a series of the job; `None` if too few answered.
    pub(crate) async fn read(&self, series: Series) -> Option<JobState> {
        Some(self.record().await?.of(series).clone())
    }

    /// Returns which runs a claim of the job may follow; `settled` is the tick of the last run that was cut short and is dealt
    /// with.
    pub(crate) fn after(&self, settled: Option<Tick>) -> After {
        match self.settings.overlap {
            // The newest is the one that matters.
            Overlap::CancelOther => After::Whatever,
            _ if self.settings.max_attempts() == 1 => After::Whatever,
            _ => After::Settled(settled),
        }
    }

    /// Returns the newest tick that was claimed if it is before this one, and its run goes on or was cut short, and may be
    /// started again.
    pub(crate) fn undone_before(
        &self,
        record: &JobRecord,
        tick: DateTime<Utc>,
        settled: Option<Tick>,
    ) -> Option<DateTime<Utc>> {
        let After::Settled(settled) = self.after(settled) else {
            return None;
        };
        let newest = lines(record, Series::TICKS).next();
        undone_before(newest, to_tick(tick)?, settled).map(to_instant)
    }

    /// Returns whether the tick may be started as one that was not missed.
    pub(crate) fn is_fresh(&self, tick: DateTime<Utc>) -> bool {
        lag(tick, self.nodes_now()) <= self.settings.start_within
    }

    /// Returns the trigger of a tick that is started now: unless missed ticks are skipped, a late tick is a missed one.
    pub(crate) fn by_age(&self, tick: DateTime<Utc>, trigger: Trigger) -> Trigger {
        let is_missed = self.settings.missed != Missed::Skip && !self.is_fresh(tick);
        match trigger {
            Trigger::Schedule if is_missed => Trigger::CatchUp,
            _ => trigger,
        }
    }

    /// Returns whether the job's condition lets this replica ask for a tick.
    pub(crate) fn wants(&self, tick: DateTime<Utc>) -> bool {
        let Some(condition) = &self.condition else {
            return true;
        };
        guarded(|| condition(tick)).unwrap_or_else(|_| {
            let job = &**self.id.name();
            tracing::error!(target: crate::TARGET, job, tick = tick.to_string(), "the job's condition panicked");
            false
        })
    }

    /// Awaits a decision, and refuses the tick once a shutdown has begun or the job was removed.
    pub(crate) async fn unless_draining<T>(
        &self,
        deciding: impl Future<Output = Result<T, Refusal>>,
    ) -> Result<T, Refusal> {
        select! {
            biased;
            () = self.ending.draining.cancelled() => Err(self.ended()),
            decided = deciding => decided,
        }
    }

    /// Returns the refusal that says why nothing is started any more.
    pub(crate) fn ended(&self) -> Refusal {
        Refusal::bare(if self.replica.tasks.is_draining() {
            Outcome::Draining
        } else {
            Outcome::Removed
        })
    }

    /// Waits until the nodes' clocks are `turn` after the tick.
    ///
    /// The replica reads them again every second, because any clock may be set meanwhile.
    /// A tick that turns out to be far off is refused: the replica finds it again when it is due.
    pub(crate) async fn until(&self, tick: DateTime<Utc>, turn: Duration) -> Result<(), Refusal> {
        let turn = TimeDelta::from_std(turn).unwrap_or(TimeDelta::zero());
        loop {
            self.replica.look_at_clocks().await;
            let left = lag(self.nodes_now(), tick + turn);
            if left > LONGEST_AHEAD + self.settings.spread {
                let why = format!("by the nodes' clocks, it is due in {left:?}");
                return Err(Refusal::new(Outcome::TooEarly, why));
            }
            sleep(left.min(LOOK)).await;
            if left <= LOOK {
                return Ok(());
            }
        }
    }

    /// Returns the request of a tick on the job's terms.
    pub(crate) fn ask(&self, series: Series, tick: DateTime<Utc>, wait: Duration) -> ClaimRequest {
        let lock = match self.settings.overlap {
            Overlap::Allow | Overlap::UpTo(_) => self.id.tick_key(tick),
            _ => self.id.job_key(),
        };
        ClaimRequest {
            job: self.id.job_key(),
            series,
            attempt: 1,
            lock,
            tick,
            early: early(&self.replica.claims.redlock),
            start_within: self.settings.start_within,
            ttl: self.settings.ttl,
            wait,
            fingerprint: self.fingerprint.number(),
            after: After::Whatever,
            slots: self.slots.clone(),
            place_within: Some(wait),
        }
    }

    /// Returns how long to wait for a place that a run of the job itself may have, because that run is to be cancelled.
    pub(crate) fn patience_for_a_place(&self, left: Duration) -> Duration {
        if self.replica.tasks.is_running(self.id.name()) {
            SHORT_WAIT
        } else {
            left
        }
    }

    /// Returns whether a run of the job kept this claim from its lock or its place.
    pub(crate) fn is_in_its_own_way(&self, refusal: &Refusal) -> bool {
        match refusal.outcome {
            Outcome::Overlapping => true,
            Outcome::NoPlace => self.replica.tasks.is_running(self.id.name()),
            _ => false,
        }
    }

    /// Asks the run that goes on to end: claims a tick or a moment of the key for that.
    ///
    /// The claim makes the nodes remember the request; for a tick, the claim of one replica is enough.
    pub(crate) async fn cancel_others(&self, ask: ClaimRequest) {
        let tick = ask.tick;
        let ask = ClaimRequest {
            series: CANCELS,
            lock: self.id.lock_of(CANCELS),
            place_within: None,
            ..ask
        };
        match self.replica.claims.claim(ask).await {
            Ok(won) => self.finish(won.claim, "asked").await,
            Err(refusal) if refusal.outcome == Outcome::NotWinner => {}
            Err(refusal) => {
                let (outcome, detail) = (refusal.outcome, refusal.detail.as_deref());
                tracing::warn!(target: crate::TARGET, job = &**self.id.name(), tick = tick.to_string(), %outcome, detail, "not cancelled");
            }
        }
    }

    /// Returns how long to wait for the next look at a run that began `since` ago, as far as this replica knows.
    pub(crate) fn pause_after(&self, since: Duration) -> Duration {
        let longest = (since / 20).clamp(LEAST_PAUSE, LONGEST_PAUSE);
        (self.settings.ttl / 3).min(longest)
    }

    /// Records the outcome of a claim that no run has followed, and releases its lock.
    pub(crate) async fn finish(&self, claim: Claim, outcome: &str) {
        finish(self.id.name(), claim, outcome).await;
    }

    pub(crate) fn refused(
        &self,
        tick: DateTime<Utc>,
        trigger: Trigger,
        refusal: Refusal,
    ) -> TickReport {
        self.report_several(tick, None, trigger, refusal)
    }

    /// Reports why a tick is not started here; `more` is the last tick of several, and their number.
    pub(crate) fn report_several(
        &self,
        tick: DateTime<Utc>,
        more: Option<(DateTime<Utc>, u64)>,
        trigger: Trigger,
        refusal: Refusal,
    ) -> TickReport {
        let claimed = |run: RunRecord| format!("claimed by {}", run.replica);
        let detail = refusal.detail.or_else(|| refusal.run.map(claimed));
        let report = self.report(TickReport {
            job: Arc::clone(self.id.name()),
            tick,
            more,
            trigger,
            attempt: 1,
            tries: 0,
            outcome: refusal.outcome,
            lag: lag(tick, self.replica.clock.now()),
            took: None,
            measured: refusal.measured,
            detail,
        });
        #[cfg(feature = "test-util")]
        self.replica.observer.over(&report);
        report
    }

    pub(crate) fn report(&self, report: TickReport) -> TickReport {
        self.replica.observer.tell(&report);
        self.journal.note(&report);
        report
    }

    /// Refuses a job that was run under another configuration, at most `within` ago.
    pub(crate) async fn check_agreement(&self, within: Duration) -> Result<(), SetupError> {
        let Some(state) = self.read(Series::TICKS).await else {
            let job = &**self.id.name();
            tracing::warn!(target: crate::TARGET, job, "too few nodes said whether other replicas agree on it");
            return Ok(());
        };
        let is_other = |run: &&RunRecord| {
            let age = lag(to_instant(run.tick), self.nodes_now());
            !self.fingerprint.is_same(run.fingerprint) && age <= within
        };
        match state.runs.iter().find(is_other) {
            Some(run) => {
                let tick = to_instant(run.tick).to_string();
                Err(SetupError::disagreement(run, &tick, within))
            }
            None => Ok(()),
        }
    }

    /// Logs each step of its pattern that does not mean what it says, such as one of 25 minutes.
    pub(crate) fn log_doubts(&self) {
        for doubt in self.schedule.doubts() {
            let job = &**self.id.name();
            tracing::warn!(target: crate::TARGET, job, doubt, "its pattern has a step that does not mean what it says");
        }
    }
}

fn slots(redlock: &Redlock, id: &JobId, most: usize) -> Result<Slots, SetupError> {
    // A run has its own slot, even if the task that asks for the run holds another one.
    let outside = redlock.clone().outside_scopes();
    let slots = outside.slots(id.slots_key(), most);
    slots.map_err(|error| SetupError::misuse("overlap", error.to_string()))
}

/// How often it is looked at whether a run goes on elsewhere, at the least: in its first twenty seconds, so that another
/// attempt comes soon after a shutdown, and when it has gone on for long.
const LEAST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
