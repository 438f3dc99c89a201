//! A look at a job from outside of its service.

use redlock_core::{Redlock, RunRecord};

use crate::{
    JobMemory, PastRun, SetupError,
    clock::to_instant,
    job::{JobId, MOST_ATTEMPTS, Namespace},
    tick::is_paused_by,
};

/// Returns what the nodes remember of a job, without adding it to a scheduler.
///
/// `namespace` is that of the scheduler which runs it
/// ([`SingletonSchedulerBuilder::namespace`](crate::SingletonSchedulerBuilder::namespace)), and `name` its own.
/// For tools of operators: what only a replica knows, its schedule and what was skipped on it, is in its
/// [`JobStatus`](crate::JobStatus).
///
/// # Errors
///
/// The namespace or the name is not valid.
///
/// # Cancel safety
///
/// Dropping it has no effect.
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
    let id = JobId::new(Namespace::new(namespace)?, name)?;
    // A job's key is always valid, and then this is no error.
    let first = redlock.job_status(id.job_key()).await.ok();
    let nodes = first.as_ref().map(|reading| reading.reports().to_vec());
    let state = first.and_then(|reading| reading.state().cloned());
    let mut runs = further_runs(redlock, &id, MOST_ATTEMPTS).await;
    let (is_known, watermark, free_in) = match state {
        Some(state) => {
            add(&mut runs, state.runs, 1, false);
            (true, state.watermark, state.free_in)
        }
        None => (false, None, None),
    };
    newest_first(&mut runs);
    let pause = redlock.job_status(id.pause_key()).await.ok();
    let pause = pause.as_ref().and_then(|reading| reading.state());
    Ok(JobMemory {
        is_known,
        watermark: watermark.map(to_instant),
        free_in,
        paused: pause.map(is_paused_by),
        runs,
        nodes: nodes.unwrap_or_default(),
    })
}

/// Returns the runs that are remembered under keys of their own: attempts after the first, and those asked for.
pub(super) async fn further_runs(redlock: &Redlock, id: &JobId, attempts: u32) -> Vec<PastRun> {
    let mut runs = Vec::new();
    for attempt in 2..=attempts {
        let reading = redlock.job_status(id.attempt_key(attempt)).await.ok();
        if let Some(state) = reading.as_ref().and_then(|reading| reading.state()) {
            add(&mut runs, state.runs.clone(), attempt, false);
        }
    }
    let reading = redlock.job_status(id.manual_key()).await.ok();
    if let Some(state) = reading.as_ref().and_then(|reading| reading.state()) {
        add(&mut runs, state.runs.clone(), 1, true);
    }
    runs
}

pub(super) fn add(runs: &mut Vec<PastRun>, records: Vec<RunRecord>, attempt: u32, is_manual: bool) {
    runs.extend(records.into_iter().map(|record| PastRun {
        record,
        attempt,
        is_manual,
    }));
}

pub(super) fn newest_first(runs: &mut [PastRun]) {
    runs.sort_by_key(|run| std::cmp::Reverse((run.record.claimed_at, run.record.token)));
}
