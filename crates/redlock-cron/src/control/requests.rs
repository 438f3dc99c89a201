//! Requests for runs that are made on the nodes, for whichever replica can start them.
//!
//! A request is a claimed moment, which a majority of the nodes remembers under a key of the job.
//! Its run is a claim of that moment under another key and under the job's lock, like that of a tick: so one replica
//! starts it, and it is among the job's runs.
//! A request that the overlap policy skips is claimed under another lock and recorded as overlapping, so no replica
//! starts it later, and the asker learns of it.
//! The moment's window ends with the request, by the nodes' clocks.
//!
//! A request for a backfill has the range of its ticks in place of the name of a replica; `backfills` has its course.
//!
//! Replicas do not read the requests of each job again and again: a request also claims a moment of the scheduler's
//! namespace, the *bell*, which each replica reads every two seconds: a number that stands for the job is in place of a
//! configuration.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use futures_util::future::join_all;
use redlock_core::{JobState, ResourceKey, RunRecord, Series, Tick, ledger::undecided};
use tokio::time::sleep;

use super::{
    ControlError,
    backfills::{BACKFILL_LIFETIME, BackfillRange},
    moment::{CONFIRMED_WITHIN, EARLY, moment_of, moment_under},
};
use crate::{
    Outcome, Overlap, Trigger,
    clock::{lag, to_instant},
    job::{
        JobId,
        series::{REQUEST_LIFETIME, REQUESTED, REQUESTS},
    },
    record::is_unstarted,
    replica::{ClaimRequest, Claims, Refusal, finish},
    tick::{JobRunner, SHORT_WAIT, Start, random_up_to},
};

/// Makes the nodes remember a request for a run of the job or for a backfill, and returns its moment.
pub(super) async fn request(
    claims: &Claims,
    id: &JobId,
    ttl: Duration,
    request: RequestKind,
) -> Result<DateTime<Utc>, ControlError> {
    if request == RequestKind::Run {
        let waiting = waiting(claims, id).await;
        if waiting >= MOST_WAITING {
            return Err(ControlError::too_many_requests(id.name(), waiting));
        }
    }
    let moment = claim_moment(claims, id, Some(REQUESTS), ttl, request).await;
    let moment = moment.map_err(|refusal| unconfirmed(id, refusal))?;
    // The bell comes last: a replica that hears it finds the request.
    for _ in 0..MOST_RINGS {
        match claim_moment(claims, id, None, ttl, request).await {
            Ok(_) => return Ok(moment),
            // Others ring at the same time, for other jobs.
            Err(refusal) if refusal.outcome == Outcome::NotWinner => {
                sleep(random_up_to(SHORT_WAIT / 4)).await;
            }
            Err(refusal) => return Err(unconfirmed(id, refusal)),
        }
    }
    let why = "too many others ask for runs at the same time";
    Err(unconfirmed(id, Refusal::new(Outcome::NotWinner, why)))
}

/// Returns how many requests for runs are known on which no replica has decided, and which are not too old.
///
/// Nodes remember a hundred, so these are never pushed out before they are decided.
async fn waiting(claims: &Claims, id: &JobId) -> usize {
    let Some(record) = claims.record(id.job_key()).await else {
        // The claim fails for the same reason, and says it.
        return 0;
    };
    let (asked, decided) = (record.of(REQUESTS), record.of(REQUESTED));
    let now = claims.clock.now() - claims.ahead().await.unwrap_or_default();
    let may_start = |run: &&RunRecord| {
        let is_new = lag(to_instant(run.tick), now) <= REQUEST_LIFETIME;
        is_new && RequestKind::of(run) == Some(RequestKind::Run)
    };
    let asked = asked.runs.iter().filter(may_start).map(|run| run.tick);
    undecided(asked, decided.watermark).count()
}

fn unconfirmed(id: &JobId, refusal: Refusal) -> ControlError {
    let why = refusal.why();
    let message = format!("no majority has confirmed the request; it may be started or not: {why}");
    ControlError::unconfirmed(id.name(), message)
}

async fn claim_moment(
    claims: &Claims,
    id: &JobId,
    series: Option<Series>,
    ttl: Duration,
    request: RequestKind,
) -> Result<DateTime<Utc>, Refusal> {
    let ask = |now: DateTime<Utc>| {
        let moment = match request {
            RequestKind::Run => now,
            // The moments after it are those of its ticks.
            RequestKind::Backfill => (now + WHOLE).trunc_subsecs(0),
        };
        let terms = (request.number(), ttl);
        match series {
            Some(series) => moment_of(id, series, terms, CONFIRMED_WITHIN, moment),
            None => moment_under(id.namespace().bell_key(), (id.number(), ttl), moment),
        }
    };
    let ahead = claims.ahead().await.unwrap_or_default();
    let (won, _) = claims.claim_now(None, ahead, ask).await?;
    let moment = to_instant(won.claim.tick());
    finish(id.name(), won.claim, "asked").await;
    Ok(moment)
}

/// Lets the jobs look for requests for which the bell of their namespace was rung after the moment `found`.
///
/// Returns the newest moment of the bell; `None` if it was never rung, or too few nodes have answered all that was asked.
pub(crate) async fn answer_bell(
    claims: &Claims,
    key: ResourceKey,
    found: Option<Tick>,
    jobs: &[Arc<JobRunner>],
) -> Option<Tick> {
    let record = claims.record(key).await?;
    let bell = record.of(Series::TICKS);
    let rung = bell.watermark?;
    let new: Vec<_> = bell
        .runs
        .iter()
        .filter(|rung| Some(rung.tick) > found)
        .collect();
    // Those before them may be forgotten.
    let is_whole = new.len() < bell.runs.len() || bell.runs.len() < JobState::MOST;
    let is_meant = |job: &&Arc<JobRunner>| {
        let number = job.job.id.number();
        !is_whole || new.iter().any(|rung| rung.fingerprint == number)
    };
    let meant: Vec<_> = jobs.iter().filter(is_meant).collect();
    for some in meant.chunks(AT_ONCE) {
        let looks = join_all(some.iter().map(|job| job.look_for_requests())).await;
        if looks.contains(&false) {
            return None;
        }
    }
    Some(rung)
}

impl JobRunner {
    /// Begins to deal with requests that this replica has not seen; returns whether a majority has told of them.
    async fn look_for_requests(self: &Arc<Self>) -> bool {
        let Some(state) = self.job.read(REQUESTS).await else {
            return false;
        };
        for run in state.runs.iter().rev() {
            let moment = to_instant(run.tick);
            let age = lag(moment, self.job.nodes_now());
            match RequestKind::of(run) {
                Some(RequestKind::Run)
                    if age <= REQUEST_LIFETIME && self.job.requests.note_new(run.tick) =>
                {
                    self.job.requests.add(moment);
                    let task = Arc::clone(self).run_on_request();
                    self.job.replica.tasks.spawn(task);
                }
                Some(RequestKind::Backfill)
                    if age <= BACKFILL_LIFETIME && self.job.requests.note_new(run.tick) =>
                {
                    if let Some(range) = BackfillRange::of(run.replica.as_str()) {
                        let task = Arc::clone(self).backfill(moment, range);
                        self.job.replica.tasks.spawn(task);
                    }
                }
                _ => {}
            }
        }
        true
    }

    /// Runs the job as it was requested first among the requests that are not decided, if no other replica does.
    ///
    /// Tasks come to their turns in any order, and nodes grant no moment before another.
    async fn run_on_request(self: Arc<Self>) {
        let turn = self.job.requests.turn.lock().await;
        let Some(moment) = self.job.requests.first() else {
            return;
        };
        let decided = self.job.unless_draining(self.decide_request(moment)).await;
        drop(turn);
        match decided {
            Ok(start) => drop(start.run(&self.job).await),
            Err(refusal) => drop(self.job.refused(moment, Trigger::Manual, refusal)),
        }
    }

    /// Claims the run that was requested at this moment, unless it is too late or the overlap policy skips it.
    async fn decide_request(&self, moment: DateTime<Utc>) -> Result<Start, Refusal> {
        let job = &self.job;
        let mut last = Refusal::new(Outcome::TooLate, "it was requested too long ago");
        let (mut has_cancelled, mut overlapped) = (false, false);
        loop {
            let late = lag(moment, job.nodes_now());
            let left = REQUEST_LIFETIME.saturating_sub(late);
            if left.is_zero() || last.outcome == Outcome::TooLate && overlapped {
                return Err(if overlapped {
                    self.skip(moment, last).await
                } else {
                    last
                });
            }
            if !job.wants(moment) {
                last = Refusal::bare(Outcome::Declined);
                sleep(SHORT_WAIT).await;
                continue;
            }
            let waits = job.settings.overlap == Overlap::Wait || has_cancelled;
            let wait = if waits { left } else { SHORT_WAIT };
            let cancels = job.settings.overlap == Overlap::CancelOther && !has_cancelled;
            let place_within = if cancels {
                job.patience_for_a_place(left)
            } else {
                left
            };
            let ask = ClaimRequest {
                place_within: Some(place_within),
                ..self.requested(moment, wait)
            };
            last = match job.replica.claims.claim(ask).await {
                Ok(won) => return Ok(Start::first(won, moment, Trigger::Manual)),
                Err(refusal) => refusal,
            };
            overlapped |= last.outcome == Outcome::Overlapping;
            match (last.outcome, job.settings.overlap) {
                (Outcome::NotWinner, _) => return Err(last),
                (Outcome::TooLate, _) if !overlapped => return Err(last),
                (Outcome::Forgotten, _) if !last.is_open => return Err(last),
                (Outcome::Overlapping | Outcome::NoPlace, Overlap::CancelOther)
                    if job.is_in_its_own_way(&last) =>
                {
                    if !std::mem::replace(&mut has_cancelled, true) {
                        let cancel = self.requested(moment, SHORT_WAIT);
                        job.cancel_others(cancel).await;
                    }
                }
                (Outcome::TooLate, _) | (Outcome::Overlapping, Overlap::Wait) => {}
                // Replicas that all ask for it may be in each other's way.
                (Outcome::Overlapping, _) if self.runs_beside(moment).await => {
                    return Err(self.skip(moment, last).await);
                }
                _ => sleep(SHORT_WAIT).await,
            }
        }
    }

    /// Returns the request of a claim of this moment on the job's terms.
    fn requested(&self, moment: DateTime<Utc>, wait: Duration) -> ClaimRequest {
        ClaimRequest {
            early: EARLY,
            start_within: REQUEST_LIFETIME,
            ..self.job.ask(REQUESTED, moment, wait)
        }
    }

    /// Returns whether the nodes know of a run that goes on, but for one of this moment.
    async fn runs_beside(&self, moment: DateTime<Utc>) -> bool {
        let memory = self.memory().await;
        memory.running().is_some_and(|run| run.tick() != moment)
    }

    /// Makes the nodes remember that the request of this moment was skipped; returns why it is not started here.
    async fn skip(&self, moment: DateTime<Utc>, refusal: Refusal) -> Refusal {
        let job = &self.job;
        let ask = ClaimRequest {
            lock: job.id.tick_key(moment),
            slots: None,
            place_within: None,
            start_within: 2 * REQUEST_LIFETIME,
            ..self.requested(moment, SHORT_WAIT)
        };
        match job.replica.claims.claim(ask).await {
            Ok(won) => {
                let word = Outcome::Overlapping.as_str();
                job.finish(won.claim, word).await;
                Refusal {
                    measured: refusal.measured,
                    ..Refusal::new(Outcome::Overlapping, "a run of the job went on")
                }
            }
            Err(other) if other.outcome == Outcome::NotWinner => other,
            Err(_) => refusal,
        }
    }
}

/// What is requested of all replicas.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum RequestKind {
    /// A run.
    Run,
    /// The ticks of a range, which stands in place of the replica's name.
    Backfill,
}

impl RequestKind {
    /// Returns the number for a record in place of a configuration.
    const fn number(self) -> u64 {
        match self {
            Self::Run => FORMAT << 56 | 1,
            Self::Backfill => FORMAT << 56 | 2,
        }
    }

    /// Reads the record of a request; `None` for another record, or for one of a later version.
    fn of(record: &RunRecord) -> Option<Self> {
        let all = [Self::Run, Self::Backfill];
        let is_it = |request: &Self| record.fingerprint == request.number();
        all.into_iter()
            .find(is_it)
            .filter(|_| !is_unstarted(record))
    }
}

/// Not the format of fingerprints, pauses, dead-man's switches or backfills.
const FORMAT: u64 = 5;

/// A millisecond less than a second.
const WHOLE: TimeDelta = TimeDelta::milliseconds(999);

/// The most requests for runs of a job that wait: fewer than nodes remember, because some may be made at the same moment.
const MOST_WAITING: usize = 32;

/// How often it is tried to ring the bell while others do.
const MOST_RINGS: u32 = 20;

/// How many jobs look for requests at the same time.
const AT_ONCE: usize = 16;
