//! The claim of a tick, which lets one replica start it, and no other.
//!
//! A lock on the job's name alone does not do: a job of five milliseconds has released it before a
//! replica whose clock is a second behind comes to the tick, takes the lock and runs the job again.
//! So the tick itself is claimed, by a protocol of the lock client's: see [`Redlock::claim`].
//! The nodes judge by their own clocks whether it is time, and a majority of them remembers the tick before its run
//! begins.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use redlock_core::{
    AcquireError, AcquireErrorKind, AcquireOptions, Claim, ClaimOptions, ClaimOutcome, JobRecord,
    LossReason, NodeReport, Note, Redlock, ResourceKey, RunRecord, Series, SlotGuard, Slots, Tick,
    Wait, Word,
};
use tokio::{
    select,
    sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit},
    time::{Instant, timeout},
};

use crate::{
    Outcome,
    clock::{SystemClock, WallClock, lag, to_instant, to_tick},
    record::{Measured, cut_short_outcomes},
};

/// Claims ticks for the jobs of one replica.
pub(crate) struct Claims {
    pub(crate) redlock: Redlock,
    /// The name of this replica on the nodes.
    // invariant: a word of the protocol's
    pub(crate) replica: String,
    pub(crate) clock: Arc<dyn WallClock>,
    /// A permit for each run that may go on at the same time; none without a limit.
    pub(crate) places: Option<Arc<Semaphore>>,
    /// A permit for each claim that may ask nodes at the same time.
    pub(crate) asking: Semaphore,
}

/// The request of a claim.
#[derive(Clone, Debug)]
pub(crate) struct ClaimRequest {
    pub(crate) job: ResourceKey,
    pub(crate) series: Series,
    pub(crate) attempt: u32,
    pub(crate) lock: ResourceKey,
    pub(crate) tick: DateTime<Utc>,
    pub(crate) early: Duration,
    pub(crate) start_within: Duration,
    pub(crate) ttl: Duration,
    pub(crate) wait: Duration,
    pub(crate) fingerprint: u64,
    pub(crate) after: After,
    /// The slots of which the run must have one besides its lock, if there are any.
    pub(crate) slots: Option<Slots>,
    /// How long to wait for a place among the runs of this replica, for a claim that a run follows.
    pub(crate) place_within: Option<Duration>,
}

/// The runs that a claim may follow.
#[derive(Clone, Copy, Debug)]
pub(crate) enum After {
    /// Any.
    Whatever,
    /// None that was cut short, but for those of ticks up to this one.
    Settled(Option<Tick>),
}

/// A tick that may be started here.
#[derive(Debug)]
pub(crate) struct WonClaim {
    pub(crate) claim: Claim,
    pub(crate) measured: Measured,
    /// The slot under which the run goes on, if it must have one.
    pub(crate) slot: Option<SlotGuard>,
    /// Held until the run has ended.
    pub(crate) _place: Option<OwnedSemaphorePermit>,
}

/// The reason why a tick is not started here.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) outcome: Outcome,
    pub(crate) detail: Option<String>,
    /// By how much it was too early or too late.
    pub(crate) off_by: Option<Duration>,
    /// The newest tick that was claimed, if it kept this one from being claimed.
    pub(crate) watermark: Option<Tick>,
    /// The run that was claimed instead.
    pub(crate) run: Option<RunRecord>,
    /// The tick of a run that was cut short and comes first.
    pub(crate) cut_short: Option<DateTime<Utc>>,
    /// Whether nodes that did not answer could still grant it.
    pub(crate) is_open: bool,
    /// If nodes were asked.
    pub(crate) measured: Option<Measured>,
}

impl Claims {
    /// Makes the claims of a caller that is no scheduler, under this name on the nodes.
    pub(crate) fn outside(redlock: &Redlock, name: String) -> Self {
        Self {
            redlock: redlock.clone(),
            replica: name,
            clock: Arc::new(SystemClock),
            places: None,
            asking: Semaphore::new(1),
        }
    }

    /// Claims a tick.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future releases the lock; it is possible that no replica can claim the tick after that.
    pub(crate) async fn claim(&self, ask: ClaimRequest) -> Result<WonClaim, Refusal> {
        let Some(tick) = to_tick(ask.tick) else {
            return Err(Refusal::new(
                Outcome::Refused,
                "the tick is beyond the range of ticks",
            ));
        };
        // Before the claim: a claim that waited here would keep other replicas from the tick.
        let place = self.place(ask.place_within).await?;
        let turn = self.turn(&ask).await?;
        let asked = Instant::now();
        let decided = self.decide(tick, ask).await;
        drop(turn);
        let measured = Measured {
            took: asked.elapsed(),
            ahead: self.ahead().await,
        };
        match decided {
            Ok((claim, slot)) => Ok(WonClaim {
                claim,
                measured,
                slot,
                _place: place,
            }),
            Err(refusal) => {
                let now = self.clock.now() - measured.ahead.unwrap_or_default();
                Err(Refusal {
                    measured: Some(measured),
                    ..refusal.unless_still_to_come(now)
                })
            }
        }
    }

    /// Waits for a place among the runs of this replica.
    pub(crate) async fn place(
        &self,
        within: Option<Duration>,
    ) -> Result<Option<OwnedSemaphorePermit>, Refusal> {
        let Some((within, places)) = within.zip(self.places.as_ref()) else {
            return Ok(None);
        };
        match timeout(within, Arc::clone(places).acquire_owned()).await {
            Ok(Ok(place)) => Ok(Some(place)),
            _ => Err(Refusal::new(
                Outcome::NoPlace,
                "as many runs went on here as may go on at the same time",
            )),
        }
    }

    /// Waits until few enough other claims of this replica ask nodes.
    ///
    /// A claim that waits for the end of a run does not count: it asks seldom, and would keep others waiting.
    async fn turn(&self, ask: &ClaimRequest) -> Result<Option<SemaphorePermit<'_>>, Refusal> {
        let Some(within) = ask.place_within.filter(|_| ask.wait <= BRIEF) else {
            return Ok(None);
        };
        match timeout(within, self.asking.acquire()).await {
            Ok(Ok(turn)) => Ok(Some(turn)),
            _ => {
                let is_late = lag(ask.tick, self.clock.now()) >= ask.start_within;
                let outcome = if is_late {
                    Outcome::TooLate
                } else {
                    Outcome::NoPlace
                };
                Err(Refusal::new(
                    outcome,
                    "more ticks were due on this replica than it can claim",
                ))
            }
        }
    }

    async fn decide(
        &self,
        tick: Tick,
        ask: ClaimRequest,
    ) -> Result<(Claim, Option<SlotGuard>), Refusal> {
        let slot = self.slot(tick, &ask).await?;
        Ok((self.ask(tick, ask).await?, slot))
    }

    /// Acquires one of the slots, if the run must have one.
    ///
    /// This comes before the claim, because no replica would run a tick that was claimed without a free slot.
    async fn slot(&self, tick: Tick, ask: &ClaimRequest) -> Result<Option<SlotGuard>, Refusal> {
        let Some(slots) = &ask.slots else {
            return Ok(None);
        };
        let options = AcquireOptions::new()
            .ttl(ask.ttl)
            .wait(Wait::UpTo(ask.wait));
        let refusal = match slots.acquire_with(options).await {
            Ok(slot) => return Ok(Some(slot)),
            Err(error) => Refusal::by(&error),
        };
        if refusal.outcome == Outcome::Overlapping {
            let record = self.record(ask.job.clone()).await;
            let newest = record
                .as_ref()
                .and_then(|it| it.of(ask.series).runs.first());
            if let Some(run) = newest.filter(|run| run.tick >= tick) {
                return Err(Refusal {
                    run: Some(run.clone()),
                    ..Refusal::bare(Outcome::NotWinner)
                });
            }
        }
        Err(refusal)
    }

    async fn ask(&self, tick: Tick, ask: ClaimRequest) -> Result<Claim, Refusal> {
        let options = ClaimOptions::new(&*self.replica)
            .series(ask.series)
            .attempt(u8::try_from(ask.attempt).unwrap_or(u8::MAX))
            .lock(ask.lock)
            .early(ask.early)
            .start_within(ask.start_within)
            .ttl(ask.ttl)
            .wait(Wait::UpTo(ask.wait))
            .fingerprint(ask.fingerprint);
        let options = match ask.after {
            After::Whatever => options,
            After::Settled(settled) => options.not_after_cut_short(cut_short_outcomes(), settled),
        };
        let outcome = self.redlock.claim(ask.job, tick, options).await;
        match outcome.map_err(|error| Refusal::by(&error))? {
            ClaimOutcome::Won(claim) => Ok(*claim),
            other => Err(Refusal::of(other)),
        }
    }

    /// Returns by how much this replica's clock is ahead of the nodes', if a majority of theirs agree.
    pub(crate) async fn ahead(&self) -> Option<TimeDelta> {
        let theirs = self.redlock.node_time().await?;
        Some(self.clock.now() - DateTime::<Utc>::from(theirs))
    }

    /// Returns what a majority of the nodes remembers of a job; `None` if too few answered.
    pub(crate) async fn record(&self, job: ResourceKey) -> Option<JobRecord> {
        self.redlock.job_status(job).await.ok()?.record().cloned()
    }
}

impl WonClaim {
    /// Resolves when the run may not go on, because its lease or its slot is lost.
    pub(crate) async fn lost(&self) -> LossReason {
        let slot = async {
            match &self.slot {
                Some(slot) => slot.guard().lease().lost().await,
                None => std::future::pending().await,
            }
        };
        select! {
            biased;
            reason = self.claim.lease().lost() => reason,
            reason = slot => reason,
        }
    }
}

impl Refusal {
    pub(crate) fn bare(outcome: Outcome) -> Self {
        Self {
            outcome,
            detail: None,
            off_by: None,
            watermark: None,
            run: None,
            cut_short: None,
            is_open: false,
            measured: None,
        }
    }

    pub(crate) fn new(outcome: Outcome, detail: impl Into<String>) -> Self {
        Self {
            detail: Some(detail.into()),
            ..Self::bare(outcome)
        }
    }

    /// Returns the reason in words for people.
    pub(crate) fn why(self) -> String {
        self.detail.unwrap_or_else(|| self.outcome.to_string())
    }

    /// Tells a tick that was claimed from one before which the nodes' clocks are `now`, although it was claimed.
    fn unless_still_to_come(self, now: DateTime<Utc>) -> Self {
        let until = self.watermark.map(to_instant);
        match until.filter(|until| lag(now, *until) > FAR_AHEAD) {
            Some(until) if self.outcome == Outcome::NotWinner => Self {
                watermark: self.watermark,
                ..Self::still_to_come(until)
            },
            _ => self,
        }
    }

    /// Makes the refusal of what comes before a claim that is still to come.
    pub(crate) fn still_to_come(until: DateTime<Utc>) -> Self {
        let until = until.format("%Y-%m-%d %H:%M:%SZ");
        let why = format!(
            "the nodes' clocks were ahead: they remember a claim of {until}, and allow none before it"
        );
        Self::new(Outcome::ClockWasAhead, why)
    }

    fn of(outcome: ClaimOutcome) -> Self {
        match outcome {
            ClaimOutcome::AlreadyClaimed { watermark, run } => Self {
                watermark: Some(watermark),
                run,
                ..Self::bare(Outcome::NotWinner)
            },
            ClaimOutcome::TooEarly { by } => Self {
                off_by: Some(by),
                ..Self::new(
                    Outcome::TooEarly,
                    format!("by the nodes' clocks, it may be started in {by:?}"),
                )
            },
            ClaimOutcome::TooLate { by } => Self {
                off_by: Some(by),
                ..Self::new(
                    Outcome::TooLate,
                    format!("by the nodes' clocks, it was too late {by:?} ago"),
                )
            },
            ClaimOutcome::Forgotten { for_good, reports } => Self {
                is_open: !for_good,
                ..Self::new(Outcome::Forgotten, lines(&reports))
            },
            // It is as if that run went on.
            ClaimOutcome::CutShort { run } => Self {
                cut_short: Some(to_instant(run.tick)),
                ..Self::new(
                    Outcome::Overlapping,
                    format!(
                        "the run of {} was cut short and comes first",
                        to_instant(run.tick)
                    ),
                )
            },
            ClaimOutcome::Unconfirmed { reports } => {
                Self::new(Outcome::Unconfirmed, lines(&reports))
            }
            other => Self::new(Outcome::Refused, format!("{other:?}")),
        }
    }

    /// Makes the refusal of a tick for an error of the lock client.
    fn by(error: &AcquireError) -> Self {
        let outcome = match error.kind() {
            AcquireErrorKind::Contended => return Self::bare(Outcome::Overlapping),
            AcquireErrorKind::NoQuorum
            | AcquireErrorKind::Quarantined
            | AcquireErrorKind::Expired
            | AcquireErrorKind::Overloaded => Outcome::NoQuorum,
            _ => Outcome::Refused,
        };
        Self::new(outcome, error.to_string())
    }
}

/// How many claims of a replica ask nodes at the same time: enough for thousands of ticks a second, and few enough for
/// each to be answered in time.
pub(crate) const MOST_CLAIMS: usize = 256;

/// How far ahead a claimed tick is by the nodes' clocks only if these were wrong: replicas claim ticks a moment early.
const FAR_AHEAD: Duration = Duration::from_secs(10);

/// The longest wait of a claim that counts among these.
const BRIEF: Duration = Duration::from_secs(1);

/// Records the outcome of a claim that no run has followed, and releases its lock.
pub(crate) async fn finish(job: &str, claim: Claim, outcome: &str) {
    finish_noted(job, claim, outcome, Duration::ZERO, None).await;
}

/// Records the outcome of a claim, with a note for people, and releases its lock.
pub(crate) async fn finish_noted(
    job: &str,
    claim: Claim,
    outcome: &str,
    took: Duration,
    note: Option<&str>,
) {
    let Some(outcome) = Word::new(outcome) else {
        return;
    };
    let claim = claim.with_note(note.and_then(Note::new));
    if let Err(error) = claim.finish(outcome, took).await {
        // The run is over, and its lease ends by itself.
        tracing::debug!(target: crate::TARGET, job, error = error.to_string(), "release");
    }
}

/// Returns what each node said, in lines.
pub(crate) fn lines(reports: &[NodeReport]) -> String {
    let lines: Vec<_> = reports.iter().map(ToString::to_string).collect();
    lines.join("\n")
}
