//! The pause of a job, which a majority of the nodes remembers, and what else forbids a claimed run to start.
//!
//! In the records of a pause and of its end, the [`Switch`] stands in place of a configuration.

use std::time::Duration;

use chrono::{DateTime, Utc};
use redlock_core::{JobState, RunRecord};
use tokio::time::sleep;

use super::{SHORT_WAIT, context::JobContext, ledger::is_started_again};
use crate::{
    Outcome,
    clock::{lag, to_instant},
    job::series::PAUSES,
    record::{JobPause, is_unstarted},
    replica::{Refusal, WonClaim},
};

/// Returns whether the number of a record lets replicas start the job again.
///
/// A number that this version does not know is a pause of some kind, because a later one wrote it for a reason.
fn is_resumed(number: u64) -> bool {
    [RESUMED, RESUMED_EARLIER].contains(&number)
}

/// Keeps the claim of a tick's `attempt`-th run, unless a pause or a further run forbids it to start.
///
/// If too few nodes answer, the claim is given up once its tick is older than `limit`.
pub(crate) async fn unless_forbidden(
    job: &JobContext,
    won: WonClaim,
    attempt: u32,
    limit: Duration,
) -> Result<WonClaim, Refusal> {
    let tick = to_instant(won.claim.tick());
    let mut looks = 0;
    let (word, refusal) = loop {
        looks += 1;
        match job.record().await {
            Some(record) if is_started_again(&record, tick, attempt) => {
                break (RunRecord::UNSTARTED, Refusal::bare(Outcome::NotWinner));
            }
            Some(record) if pause_at(record.of(PAUSES), job.nodes_now()).is_some() => {
                break (Outcome::Paused.as_str(), Refusal::bare(Outcome::Paused));
            }
            Some(_) => return Ok(won),
            None => {}
        }
        let is_late = looks >= PAUSE_LOOKS && lag(tick, job.nodes_now()) > limit;
        if is_late || !won.claim.lease().is_held() {
            let why = "too few nodes said whether the job is paused or the tick was started again";
            break (RunRecord::UNSTARTED, Refusal::new(Outcome::NoQuorum, why));
        }
        sleep(SHORT_WAIT).await;
    };
    job.finish(won.claim, word).await;
    Err(Refusal {
        measured: Some(won.measured),
        ..refusal
    })
}

/// Returns the pause of the job that goes on `now`, as the nodes remember it.
pub(crate) fn pause_at(state: &JobState, now: DateTime<Utc>) -> Option<JobPause> {
    let last = state.runs.iter().find(|run| !is_unstarted(run))?;
    let pause = JobPause::of(last);
    let goes_on = pause.until.is_none_or(|until| now < until);
    (!is_resumed(last.fingerprint) && goes_on).then_some(pause)
}

/// How often a majority is asked whether the job is paused, at the least, before a run is given up.
const PAUSE_LOOKS: u32 = 3;

/// The numbers of the records: the highest byte is the format, which no fingerprint has, and the lowest the switch.
pub(crate) const PAUSED: u64 = 2 << 56 | 1;
pub(crate) const RESUMED: u64 = 2 << 56 | 2;

/// Versions without a format wrote the switch alone.
const RESUMED_EARLIER: u64 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_so_is_what_earlier_versions_wrote() {
        assert_eq!(
            [PAUSED, RESUMED],
            [0x0200_0000_0000_0001, 0x0200_0000_0000_0002]
        );
        assert_eq!(
            [1, PAUSED, 0x0300_0000_0000_0007].map(is_resumed),
            [false; 3]
        );
        assert_eq!([2, RESUMED].map(is_resumed), [true; 2]);
    }
}
