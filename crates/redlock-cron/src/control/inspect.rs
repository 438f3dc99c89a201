//! A look at a job: what the nodes remember of it.

use std::{cmp::Reverse, time::Duration};

use chrono::{DateTime, Utc};
use futures_util::future::join_all;
use redlock_core::{JobReading, NodeReport, Redlock};

use crate::{
    Backfill, JobMemory, JobStatus, Overlap, PastRun, SetupError,
    clock::{SystemClock, WallClock as _},
    job::{JobId, JobNamespace, MOST_RUNS},
    record::keys_of_ticks,
    tick::{JobRunner, pause_at},
};

/// Returns what the nodes remember of a job, without adding it to a scheduler.
///
/// `namespace` is that of the scheduler which runs the job
/// ([`SingletonSchedulerBuilder::namespace`](crate::SingletonSchedulerBuilder::namespace)), and `name` is the job's
/// name.
/// This is for operators' tools.
/// Only a replica knows the schedule and the ticks that it skipped: they are in its [`JobStatus`](crate::JobStatus).
///
/// # Errors
///
/// The namespace or the name is not valid.
///
/// # Cancel safety
///
/// Dropping the future has no effect.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use redlock_core::Redlock;
///
/// let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
/// let job = redlock_cron::inspect(&redlock, "billing", "close-day").await?;
/// assert!(job.is_known() && job.runs().is_empty());
/// # Ok(())
/// # }
/// ```
pub async fn inspect(
    redlock: &Redlock,
    namespace: &str,
    name: &str,
) -> Result<JobMemory, SetupError> {
    let id = JobId::new(JobNamespace::new(namespace)?, name)?;
    Ok(read(redlock, &id, AT_ONCE, None).await)
}

/// Reads all keys of a job at once, so that an outage costs one time limit.
///
/// If `have_one_lock` is `None`, the tokens of the runs show whether they have one lock.
///
/// Pauses, runs on request, backfills and each attempt after the first have keys of their own.
pub(super) async fn read(
    redlock: &Redlock,
    id: &JobId,
    attempts: u32,
    have_one_lock: Option<bool>,
) -> JobMemory {
    let further = (2..=attempts).map(|attempt| (attempt, false, id.attempt_key(attempt)));
    let others = [
        (1, true, id.manual_key()),
        (1, true, id.requested_key()),
        (1, false, id.job_key()),
    ];
    let read_one = async |(attempt, is_manual, key)| {
        let reading = redlock.job_status(key).await.ok();
        (attempt, is_manual, reading)
    };
    let runs = join_all(others.into_iter().chain(further).map(read_one));
    let pause = redlock.job_status(id.pause_key());
    let plans = redlock.job_status(id.backfill_key(0));
    let (mut read, pause, plans) = tokio::join!(runs, pause, plans);
    // Runs that a shutdown ended use up no attempt, so there may be more.
    let mut known = attempts;
    while let (2..=MOST_RUNS, Some((.., Some(last)))) = (known, read.last())
        && last.state().is_some_and(|state| state.watermark.is_some())
    {
        let most = (known + AT_ONCE).min(MOST_RUNS + 1);
        let further = (known + 1..=most).map(|attempt| (attempt, false, id.attempt_key(attempt)));
        read.extend(join_all(further.map(read_one)).await);
        known = most;
    }
    // A job's keys are always valid, and then this is no error.
    let (pause, plans) = (pause.ok(), plans.ok());
    let backfills = plans.as_ref().and_then(JobReading::state);
    if backfills.is_some_and(|plans| plans.watermark.is_some()) {
        let backfilled = keys_of_ticks(id).map(|key| (1, true, key));
        read.extend(join_all(backfilled.map(read_one)).await);
    }
    let now = redlock.node_time().await.map(DateTime::<Utc>::from);
    let now = now.unwrap_or_else(|| SystemClock.now());
    let pauses = pause.as_ref().and_then(JobReading::state);
    let going_on = pauses.and_then(|state| pause_at(state, now));
    let readings = read.iter().filter_map(|(.., reading)| reading.as_ref());
    let mut memory = JobMemory {
        is_known: pauses.is_some() && backfills.is_some(),
        state: None,
        is_paused: pauses.map(|_| going_on.is_some()),
        pause: going_on,
        running: None,
        runs: Vec::new(),
        backfill: None,
        nodes: reports(pause.iter().chain(&plans).chain(readings)),
    };
    for (attempt, is_manual, reading) in read {
        let state = reading.as_ref().and_then(JobReading::state);
        memory.is_known &= state.is_some();
        let records = state.map(|state| state.runs.clone()).unwrap_or_default();
        memory
            .runs
            .extend(records.into_iter().map(|record| PastRun {
                record,
                attempt,
                is_manual,
            }));
        let is_own_key = attempt == 1 && !is_manual;
        if is_own_key {
            memory.state = state.cloned();
        }
    }
    memory.backfill = backfills.and_then(|plans| Backfill::newest(plans, &memory.runs));
    newest_first(&mut memory.runs, have_one_lock);
    memory.find_running(redlock, id).await;
    memory
}

/// Sorts runs, the newest first: by their tokens if they have one lock, and by their ticks if each has its own.
///
/// The tokens of different locks have no order.
/// The time of a claim is not used, because it is by the clock of the replica that claimed.
pub(crate) fn newest_first(runs: &mut [PastRun], have_one_lock: Option<bool>) {
    let by_tick = |run: &PastRun| (run.record.tick, run.attempt, run.record.token);
    if have_one_lock.unwrap_or_else(|| may_have_one_lock(runs)) {
        runs.sort_by_key(|run| Reverse(run.record.token));
    } else {
        runs.sort_by_key(|run| Reverse(by_tick(run)));
    }
}

/// Returns whether the tokens of runs under one key grow with their ticks, as they do under one lock.
fn may_have_one_lock(runs: &[PastRun]) -> bool {
    let key = |run: &PastRun| (run.attempt, run.is_manual);
    let is_in_order = |(a, b): (&PastRun, &PastRun)| {
        let (a_is_older, is_lower) = (
            a.record.tick < b.record.tick,
            a.record.token < b.record.token,
        );
        key(a) != key(b) || !a_is_older || is_lower
    };
    let runs: Vec<_> = runs.iter().filter(|run| !run.was_skipped()).collect();
    let pairs = runs.iter().flat_map(|a| runs.iter().map(move |b| (*a, *b)));
    pairs.into_iter().all(is_in_order)
}

impl JobMemory {
    /// Finds the run that goes on, by the lock that it holds: its job's, or that of its tick if runs may overlap.
    async fn find_running(&mut self, redlock: &Redlock, id: &JobId) {
        if self.free_in() != Some(Duration::ZERO) {
            let newest = self.runs.iter().find(|run| !run.was_skipped());
            self.running = newest.filter(|run| run.is_open()).cloned();
            return;
        }
        let open = self.runs.iter().filter(|run| run.is_open());
        let locks = open.map(async |run| {
            let lock = redlock.job_status(id.tick_key(run.tick())).await.ok();
            let state = lock.as_ref().and_then(JobReading::state);
            (run, state.map(|state| state.free_in))
        });
        for (run, free_in) in join_all(locks).await {
            self.is_known &= free_in.is_some();
            if self.running.is_none() && free_in.is_some_and(|left| left != Some(Duration::ZERO)) {
                self.running = Some(run.clone());
            }
        }
    }
}

impl JobRunner {
    /// Returns what a majority of the nodes remembers.
    pub(super) async fn memory(&self) -> JobMemory {
        let (redlock, id) = (&self.job.replica.claims.redlock, &self.job.id);
        let attempts = self.job.settings.max_attempts();
        read(redlock, id, attempts, Some(self.has_shared_lock())).await
    }

    fn has_shared_lock(&self) -> bool {
        !matches!(self.job.settings.overlap, Overlap::Allow | Overlap::UpTo(_))
    }

    /// Returns what a majority of the nodes remembers, and what this replica has seen.
    pub(crate) async fn status(&self) -> JobStatus {
        let claims = &self.job.replica.claims;
        let shared_lock = self.has_shared_lock();
        let mut memory = self.memory().await;
        if let Some(state) = &mut memory.state
            && !shared_lock
        {
            state.free_in = None;
        }
        JobStatus {
            memory,
            next_tick: self.job.schedule.next_after(self.job.nodes_now()),
            skipped: self.job.journal.skipped(),
            others: self.job.journal.others(),
            clock_offset: claims.ahead().await,
        }
    }
}

/// How many keys of runs after the first are read at once.
const AT_ONCE: u32 = 10;

/// Returns the node reports of the first reading that too few nodes answered, which tell why; else of the last reading.
fn reports<'a>(readings: impl Iterator<Item = &'a JobReading> + Clone) -> Vec<NodeReport> {
    let mut unanswered = readings.clone().filter(|reading| reading.state().is_none());
    let told = unanswered.next().or_else(|| readings.last());
    told.map_or_else(Vec::new, |reading| reading.reports().to_vec())
}
