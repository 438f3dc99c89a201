//! The course of a tick on this replica: from the wake-up to the claim.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use redlock_core::{JobState, ResourceKey, RunRecord, Tick};
use tokio::{select, time::sleep};

use super::{behind::Behind, execution::Start, random, runner::JobRunner, undecided::Undecided};
use crate::{
    Missed, Outcome, Overlap, Trigger,
    clock::{LONGEST_AHEAD, lag, to_tick},
    job::{early, is_made_up},
    replica::{After, ClaimRequest, LOOK, Refusal, Won},
};

/// The obstacle that keeps a tick from being claimed.
enum InTheWay {
    /// No run is known: other replicas ask for the tick, or too few nodes answered.
    Nothing,
    /// A run that was due or requested.
    Run,
    /// A run of a tick that was missed, or that is started again.
    MadeUp,
}

impl JobRunner {
    /// Claims the tick, runs the job if this replica won the claim, and reports.
    ///
    /// A task of its own waits for runs elsewhere, so that no later tick waits with it.
    pub(crate) async fn tick(self: Arc<Self>, undecided: Undecided, trigger: Trigger) {
        let tick = undecided.tick;
        match self.unless_draining(self.decide(undecided, trigger)).await {
            Ok(start) => {
                let is_lost = self.start(start).await.outcome == Outcome::Lost;
                if is_lost && self.settings.max_attempts() > 1 {
                    let pause = self.pause_after(Duration::ZERO);
                    let tasks = &self.replica.tasks;
                    tasks.spawn(Arc::clone(&self).resume(tick, pause));
                }
            }
            Err(refusal) if self.settings.max_attempts() == 1 => {
                drop(self.refused(tick, trigger, refusal));
            }
            Err(refusal) if refusal.outcome == Outcome::NotWinner => {
                let follow = Arc::clone(&self).follow(tick, trigger);
                self.replica.tasks.spawn(follow);
            }
            Err(refusal) => {
                let outcome = refusal.outcome;
                drop(self.refused(tick, trigger, refusal));
                if outcome.may_be_elsewhere() {
                    let look_after = Arc::clone(&self).look_after(tick);
                    self.replica.tasks.spawn(look_after);
                }
            }
        }
    }

    /// Awaits a decision, and refuses the tick once a shutdown has begun or the job was removed.
    pub(crate) async fn unless_draining<T>(
        &self,
        deciding: impl Future<Output = Result<T, Refusal>>,
    ) -> Result<T, Refusal> {
        select! {
            biased;
            () = self.ending.draining() => Err(self.ended()),
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

    /// Decides whether the tick is to be started here.
    async fn decide(
        self: &Arc<Self>,
        undecided: Undecided,
        trigger: Trigger,
    ) -> Result<Start, Refusal> {
        let tick = undecided.tick;
        if trigger == Trigger::Schedule {
            let turn = self
                .turns
                .delay(&self.replica.claims.replica, self.settings.spread);
            self.until(tick, turn).await?;
        }
        let (mut tries, mut told, mut settled) = (0, false, None);
        loop {
            let trigger = self.by_age(tick, trigger);
            if !self.wants(tick) {
                match self.asked_again_in(tick) {
                    Some(pause) => sleep(pause).await,
                    None => return Err(Refusal::bare(Outcome::Declined)),
                }
                continue;
            }
            let claimed = match self.behind_run(tick).await {
                Behind::Skipped => {
                    let why = "it came while a run went on that has ended since";
                    return Err(Refusal::new(Outcome::Overlapping, why));
                }
                // A claim that waits for the lock could get it at the end of the run, which decides.
                Behind::Open if trigger == Trigger::CatchUp => {
                    Err(Refusal::bare(Outcome::Overlapping))
                }
                _ => self.claim(tick, trigger, settled).await,
            };
            let refusal = match claimed {
                Ok(won) => {
                    self.compare(won.claim.last());
                    self.turns
                        .won(won.claim.tick(), &self.replica.claims.replica);
                    self.tell_missed(won.claim.last(), tick).await;
                    return Ok(Start {
                        won: self
                            .unless_forbidden(won, 1, self.settings.catch_up_window)
                            .await?,
                        tick,
                        trigger,
                        attempt: 1,
                    });
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
            match self.again_in(tick, trigger, &refusal, tries).await {
                Some(pause) => {
                    if refusal.outcome == Outcome::NoQuorum && !std::mem::replace(&mut told, true) {
                        let (job, detail) = (&**self.id.name(), refusal.detail.as_deref());
                        tracing::warn!(target: crate::TARGET, job, %tick, detail, "no quorum; the claim is tried again");
                    }
                    sleep(pause).await;
                    tries += 1;
                }
                None => return Err(refusal),
            }
        }
    }

    /// Returns in how much time the job's condition is asked again about a tick that it declines, because a missed tick
    /// may be made up for.
    ///
    /// That is when the next tick is due, or after [`PATIENCE`] if that is sooner.
    /// So the next tick waits for this one for at most that time.
    fn asked_again_in(&self, tick: DateTime<Utc>) -> Option<Duration> {
        let may_be_missed = self.settings.missed != Missed::Skip;
        if !may_be_missed || !self.is_newest(tick) || !self.is_worth_waiting_for(tick) {
            return None;
        }
        // Those up to now were skipped.
        let next = self.schedule.next_after(tick.max(self.nodes_now()));
        let next_in = next.map(|next| lag(self.nodes_now(), next));
        Some(next_in.map_or(PATIENCE, |next_in| next_in.min(PATIENCE)))
    }

    /// Returns in how much time a tick that was refused is worth another try.
    async fn again_in(
        &self,
        tick: DateTime<Utc>,
        trigger: Trigger,
        refusal: &Refusal,
        tries: u32,
    ) -> Option<Duration> {
        match refusal.outcome {
            // It may be missed by now, and is worth a longer wait then.
            Outcome::NoPlace => self.is_worth_waiting_for(tick).then_some(Duration::ZERO),
            // Clocks may be set meanwhile.
            Outcome::TooEarly => refusal
                .off_by
                .filter(|left| *left <= LONGEST_AHEAD)
                .map(|left| left.min(LOOK)),
            Outcome::NoQuorum if !self.is_worth_waiting_for(tick) => None,
            // It may still start as one that is on time.
            Outcome::NoQuorum if self.is_fresh(tick) => Some(a_while(tries)),
            Outcome::NoQuorum => Some(PATIENCE),
            // Nodes that have not answered may still grant it.
            Outcome::Forgotten if refusal.is_open && self.is_fresh(tick) => Some(a_while(tries)),
            Outcome::Forgotten if refusal.is_open && trigger == Trigger::CatchUp => {
                self.is_worth_waiting_for(tick).then_some(PATIENCE)
            }
            // What was missed has been waiting already.
            Outcome::Overlapping if trigger == Trigger::CatchUp => {
                self.is_worth_waiting_for(tick).then_some(SHORT_WAIT)
            }
            // On a busy machine, replicas that all ask for the tick may be in each other's way for as long.
            Outcome::Overlapping => {
                let pause = a_while(tries);
                match self.in_the_way().await {
                    InTheWay::Run if self.settings.overlap != Overlap::Allow => None,
                    // No tick that is due is lost to a run that the scheduler makes up for another.
                    InTheWay::MadeUp if self.is_worth_waiting_for(tick) => Some(pause),
                    _ => (self.is_fresh(tick) && self.stands_for_itself(tick)).then_some(pause),
                }
            }
            _ => None,
        }
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

    /// Asks the nodes what keeps a tick from being claimed.
    async fn in_the_way(&self) -> InTheWay {
        let claims = &self.replica.claims;
        let Some(first) = claims.read(self.id.job_key()).await else {
            return InTheWay::Nothing;
        };
        let has_slots = self.slots.is_some();
        if first.free_in == Some(Duration::ZERO) && !has_slots {
            return InTheWay::Nothing;
        }
        if has_slots && first.runs.iter().any(RunRecord::is_open) {
            return InTheWay::Run;
        }
        let newest = |state: JobState| state.runs.into_iter().next();
        let first = newest(first);
        for attempt in 2..=self.settings.max_attempts() {
            let run = claims.read(self.id.attempt_key(attempt)).await;
            let tick = first.as_ref().map(|run| run.tick);
            // It goes on, or has ended since the lock was looked at.
            if tick.is_some() && run.and_then(newest).map(|run| run.tick) == tick {
                return InTheWay::MadeUp;
            }
        }
        if let Some(run) = first
            && run.is_open()
        {
            return if is_made_up(run.fingerprint) {
                InTheWay::MadeUp
            } else {
                InTheWay::Run
            };
        }
        let manual = claims.read(self.id.manual_key()).await;
        if manual.and_then(newest).is_some_and(|run| run.is_open()) {
            InTheWay::Run
        } else {
            InTheWay::Nothing
        }
    }

    async fn claim(
        &self,
        tick: DateTime<Utc>,
        trigger: Trigger,
        settled: Option<Tick>,
    ) -> Result<Won, Refusal> {
        let claims = &self.replica.claims;
        let after = match self.settings.overlap {
            // The newest is the one that matters.
            Overlap::CancelOther => After::Whatever,
            _ if self.settings.max_attempts() == 1 => After::Whatever,
            _ => After::Settled(settled),
        };
        let fingerprint = match trigger {
            Trigger::CatchUp => self.fingerprint.of_made_up(),
            _ => self.fingerprint.number(),
        };
        let late = lag(tick, self.nodes_now());
        let left = |limit: Duration| limit.saturating_sub(late).max(SHORT_WAIT);
        let place_within = match trigger {
            Trigger::CatchUp => left(self.settings.catch_up_window),
            _ => left(self.settings.start_within),
        };
        let ask = |wait| ClaimRequest {
            start_within: self.settings.catch_up_window,
            after,
            fingerprint,
            place_within: Some(place_within),
            ..self.ask(self.id.job_key(), tick, wait)
        };
        let left = left(self.settings.start_within);
        match self.settings.overlap {
            _ if trigger == Trigger::CatchUp => claims.claim(ask(SHORT_WAIT)).await,
            Overlap::Skip | Overlap::Allow | Overlap::UpTo(_) => {
                claims.claim(ask(SHORT_WAIT)).await
            }
            Overlap::Wait => claims.claim(ask(left)).await,
            Overlap::CancelOther => {
                let first = ClaimRequest {
                    place_within: Some(self.patience_for_a_place(left)),
                    ..ask(SHORT_WAIT)
                };
                match claims.claim(first).await {
                    Err(refusal) if self.is_in_its_own_way(&refusal) => {
                        let cancel = self.ask(self.id.cancel_key(), tick, SHORT_WAIT);
                        self.cancel_others(cancel).await;
                        claims.claim(ask(left)).await
                    }
                    decided => decided,
                }
            }
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

    /// Returns the request of a tick on the job's terms.
    pub(crate) fn ask(
        &self,
        job: ResourceKey,
        tick: DateTime<Utc>,
        wait: Duration,
    ) -> ClaimRequest {
        let lock = match self.settings.overlap {
            Overlap::Allow | Overlap::UpTo(_) => self.id.tick_key(tick),
            _ => self.id.job_key(),
        };
        ClaimRequest {
            job,
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

    /// Asks the run that goes on to end: claims a tick or a moment of the key for that.
    ///
    /// The claim makes the nodes remember the request; for a tick, the claim of one replica is enough.
    pub(crate) async fn cancel_others(&self, ask: ClaimRequest) {
        let tick = ask.tick;
        let ask = ClaimRequest {
            lock: self.id.cancel_key(),
            place_within: None,
            ..ask
        };
        match self.replica.claims.claim(ask).await {
            Ok(won) => self.finish(won.claim, "asked", Duration::ZERO).await,
            Err(refusal) if refusal.outcome == Outcome::NotWinner => {}
            Err(refusal) => {
                let (outcome, detail) = (refusal.outcome, refusal.detail.as_deref());
                tracing::warn!(target: crate::TARGET, job = &**self.id.name(), %tick, %outcome, detail, "not cancelled");
            }
        }
    }
}

/// Returns the backoff of a claim after `tries` retries, with a random part.
///
/// It begins at a quarter of a second and doubles with each of the first retries.
/// So replicas that all ask for many ticks at once do not overload the nodes.
fn a_while(tries: u32) -> Duration {
    let least = SHORT_WAIT / 4 * (1 << tries.min(4));
    least + random::up_to(least)
}

/// How long a claim waits for a run that goes on, where it is not to wait for its end.
///
/// Long enough to settle among replicas that ask at once, and short enough that a tick does not queue
/// up behind a run that overruns.
pub(crate) const SHORT_WAIT: Duration = Duration::from_secs(1);

/// How long to wait before a majority is looked for again.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
