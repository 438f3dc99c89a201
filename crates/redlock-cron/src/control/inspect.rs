//! A look at a job: what the nodes remember of it.

use std::{cmp::Reverse, time::Duration};

use chrono::{DateTime, Utc};
use futures_util::future::join_all;
use redlock_core::{JobReading, JobRecord, NodeReport, Redlock, Series};

use crate::{
    Backfill, JobMemory, JobRegistration, JobStatus, Overlap, PastRun, SetupError,
    clock::{SystemClock, WallClock as _},
    job::{
        JobId, JobNamespace,
        series::{BACKFILLED, BACKFILLS, KNOWN, MANUAL, PAUSES, REQUESTED},
    },
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
    Ok(read(redlock, &id, None).await)
}

/// Reads the record of a job.
///
/// If `have_one_lock` is `None`, the tokens of the runs show whether they have one lock.
pub(super) async fn read(redlock: &Redlock, id: &JobId, have_one_lock: Option<bool>) -> JobMemory {
    // A job's key is always valid.
    let reading = redlock.job_status(id.job_key()).await.ok();
    let now = redlock.node_time().await.map(DateTime::<Utc>::from);
    let now = now.unwrap_or_else(|| SystemClock.now());
    let nodes = reading.as_ref().map(JobReading::reports);
    let nodes = nodes.map_or_else(Vec::new, <[NodeReport]>::to_vec);
    let record = reading.as_ref().and_then(JobReading::record).cloned();
    let pauses = record.as_ref().map(|record| record.of(PAUSES));
    let runs = record
        .as_ref()
        .map_or_else(Vec::new, |record| runs_of(record, have_one_lock));
    let registrations = record.as_ref().map(|record| record.of(KNOWN));
    let plans = record.as_ref().map(|record| record.of(BACKFILLS));
    let mut memory = JobMemory {
        is_known: record.is_some(),
        registration: registrations.and_then(|state| JobRegistration::newest(state, now)),
        now,
        pause: pauses.and_then(|pauses| pause_at(pauses, now)),
        running: None,
        backfill: plans.and_then(|plans| Backfill::newest(plans, &runs)),
        runs,
        nodes,
        record,
        have_own_locks: false,
    };
    memory.find_running(redlock, id).await;
    memory
}

/// Returns the runs of a record in the order of [`newest_first`].
pub(super) fn runs_of(record: &JobRecord, have_one_lock: Option<bool>) -> Vec<PastRun> {
    let started = |series| [Series::TICKS, MANUAL, REQUESTED, BACKFILLED].contains(&series);
    let runs = record.runs(started).cloned();
    let mut runs: Vec<_> = runs.map(|record| PastRun { record }).collect();
    newest_first(&mut runs, have_one_lock);
    runs
}

/// Sorts runs, the newest first: by their tokens if they have one lock, and by their ticks if each has its own.
///
/// The tokens of different locks have no order.
/// The time of a claim is not used, because it is by the clock of the replica that claimed.
pub(crate) fn newest_first(runs: &mut [PastRun], have_one_lock: Option<bool>) {
    let by_tick = |run: &PastRun| (run.record.tick, run.record.attempt, run.record.token);
    if have_one_lock.unwrap_or_else(|| may_have_one_lock(runs)) {
        runs.sort_by_key(|run| Reverse(run.record.token));
    } else {
        runs.sort_by_key(|run| Reverse(by_tick(run)));
    }
}

/// Returns whether the tokens of the runs of a series grow with their ticks, as they do under one lock.
fn may_have_one_lock(runs: &[PastRun]) -> bool {
    let series = |run: &PastRun| run.record.series;
    let is_in_order = |(a, b): (&PastRun, &PastRun)| {
        let (a_is_older, is_lower) = (
            (a.record.tick, a.record.attempt) < (b.record.tick, b.record.attempt),
            a.record.token < b.record.token,
        );
        series(a) != series(b) || !a_is_older || is_lower
    };
    let runs: Vec<_> = runs.iter().filter(|run| !run.was_skipped()).collect();
    let pairs = runs.iter().flat_map(|a| runs.iter().map(move |b| (*a, *b)));
    pairs.into_iter().all(is_in_order)
}

impl JobMemory {
    /// Finds the run that goes on, by the lock that it holds: its job's, or that of its tick if runs may overlap.
    async fn find_running(&mut self, redlock: &Redlock, id: &JobId) {
        if self.free_in() != Some(Duration::ZERO) {
            let newest = self.runs.iter().find(|run| !run.had_no_lock());
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
        read(redlock, id, Some(self.has_shared_lock())).await
    }

    pub(super) fn has_shared_lock(&self) -> bool {
        !matches!(self.job.settings.overlap, Overlap::Allow | Overlap::UpTo(_))
    }

    /// Returns what a majority of the nodes remembers, and what this replica has seen.
    pub(crate) async fn status(&self) -> JobStatus {
        let claims = &self.job.replica.claims;
        let shared_lock = self.has_shared_lock();
        let mut memory = self.memory().await;
        memory.have_own_locks = !shared_lock;
        JobStatus {
            memory,
            next_tick: self.job.schedule.next_after(self.job.nodes_now()),
            skipped: self.job.journal.skipped(),
            others: self.job.journal.others(),
            clock_offset: claims.ahead().await,
        }
    }
}
