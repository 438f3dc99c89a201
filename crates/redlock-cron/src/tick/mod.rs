//! The ticks of a job on this replica: found due, claimed, run, and if need be made up for or started again.
//!
//! [`JobRunner`] has the job's facts (`JobContext`) and the state of its ticks (`JobTicks`).
//! Of each tick, it makes a `Claimant`, a [`Start`] that becomes an `Execution`, and a `TickRetry`: each reads the
//! former two, and none of them knows the runner.

mod attempts;
mod claim;
mod context;
mod due_ticks;
mod execution;
mod ledger;
mod lifecycle;
mod missed;
mod pause;
mod replica_order;
mod retry;
mod run_before_start;
mod runner;
mod ticks;

use std::time::Duration;

use uuid::Uuid;

pub(crate) use self::{
    execution::Start,
    ledger::lines_of_ticks,
    pause::{PAUSED, RESUMED, pause_at, unless_forbidden},
    runner::JobRunner,
};

/// How long a claim waits for a run that goes on, where it is not to wait for its end.
///
/// Long enough to settle among replicas that ask at once, and short enough that a tick does not queue
/// up behind a run that overruns.
pub(crate) const SHORT_WAIT: Duration = Duration::from_secs(1);

/// How long to wait before a majority is looked for again.
const PATIENCE: Duration = Duration::from_secs(5);

/// Returns a random time, in whole milliseconds.
pub(crate) fn random_up_to(longest: Duration) -> Duration {
    let millis = longest.as_millis();
    let random = Uuid::new_v4().as_u128() % (millis + 1);
    Duration::from_millis(u64::try_from(random).unwrap_or(0))
}
