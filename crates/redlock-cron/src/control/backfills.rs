//! The course of a backfill: the ticks of a range, which replicas claim and run after they were due.
//!
//! Nodes cannot tell whether a tick was claimed that is older than what they remember, so a tick is not claimed under its
//! own instant.
//! A backfill is requested at a moment of the present, and its ticks are claimed as the moments after it: so a majority
//! has each of them for one replica.
//! A replica counts the ticks first, finds those that have ended well, and claims both; all replicas of the same schedule
//! go by it.
//! The runs of backfills push those of earlier ones out of the nodes' memory, so no replica could find them later.

use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use chrono::{DateTime, Datelike as _, NaiveDate, SubsecRound, TimeDelta, Utc};
use redlock_core::{
    JobRecord, JobState, RunRecord, Series, Tick,
    ledger::{self, BackfillDecision, DoneTicks, Plan, PlanStep, RunsBefore},
};
use tokio::time::sleep;

use super::{
    inspect::runs_of,
    moment::{EARLY, moment_of},
};
use crate::{
    MOST_BACKFILLED, Outcome, PastRun, Trigger,
    clock::{lag, to_instant, to_tick},
    job::{
        early,
        series::{BACKFILLED, BACKFILLS, PAUSES, REQUEST_LIFETIME},
    },
    record::{ALREADY_OK, BackfillEntry, USED_UP, end_of, is_cancelled, moment_of_tick},
    replica::{ClaimRequest, Refusal, WonClaim},
    schedule::Schedule,
    tick::{JobRunner, SHORT_WAIT, Start, lines_of_ticks, pause_at, unless_forbidden},
};

/// The ticks of a backfill, by their instants or by the days of their zone.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct BackfillRange {
    times: BackfillTimes,
    /// Whether the ticks that have ended well are run too.
    again: bool,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum BackfillTimes {
    /// Instants in whole seconds; both ends belong to it.
    // invariant: the first is not after the second, and both are between 1970 and the year 9999
    Instants(DateTime<Utc>, DateTime<Utc>),
    /// Days of the zone of the job's schedule, which only its replicas know.
    // invariant: 1 to MOST_DAYS, between 1970 and the year 9999
    Days(BTreeSet<NaiveDate>),
}

impl BackfillRange {
    /// Makes the range; says what is wrong with it otherwise.
    pub(super) fn new(from: DateTime<Utc>, to: DateTime<Utc>) -> Result<Self, &'static str> {
        if from > to {
            return Err("the range ends before it begins");
        }
        if to_tick(from).is_none() || to_tick(to).is_none() {
            return Err("the range must be between 1970 and the year 9999");
        }
        let whole = from + TimeDelta::milliseconds(999);
        let (from, to) = (whole.trunc_subsecs(0), to.trunc_subsecs(0));
        if from > to {
            return Err("the range has no whole second, and ticks are whole seconds");
        }
        let times = BackfillTimes::Instants(from, to);
        Ok(Self {
            times,
            again: false,
        })
    }

    /// Makes the range of some days; says what is wrong with them otherwise.
    pub(super) fn days(days: impl IntoIterator<Item = NaiveDate>) -> Result<Self, &'static str> {
        let days: BTreeSet<_> = days.into_iter().collect();
        let is_known = |day: &NaiveDate| (1970..=9999).contains(&day.year());
        if !days.iter().all(is_known) {
            return Err("the days must be between 1970 and the year 9999");
        }
        if !(1..=MOST_DAYS).contains(&days.len()) {
            return Err("a backfill has one to five days; a range of instants may have more");
        }
        Ok(Self {
            times: BackfillTimes::Days(days),
            again: false,
        })
    }

    /// Has the ticks that have ended well run too.
    pub(super) fn again(self) -> Self {
        Self {
            again: true,
            ..self
        }
    }

    /// Returns whether it is sure that it has times after `now`.
    pub(super) fn ends_after(&self, now: DateTime<Utc>) -> bool {
        match &self.times {
            BackfillTimes::Instants(_, to) => *to > now,
            // A day begins first in the zone that is farthest ahead.
            BackfillTimes::Days(days) => {
                let newest = (now + FARTHEST_AHEAD).date_naive();
                days.last().is_some_and(|last| *last > newest)
            }
        }
    }

    /// Returns how many ticks of a schedule are in it and were due at `now`, and these ticks unless there are too many.
    async fn ticks(&self, schedule: &Schedule, now: DateTime<Utc>) -> (u64, Vec<DateTime<Utc>>) {
        let mut ticks = Vec::new();
        let count = match &self.times {
            BackfillTimes::Instants(from, to) => {
                let (after, before) = (*from - MILLISECOND, *to + MILLISECOND);
                let count = schedule.count(after, before, MOST_COUNTED).await;
                if count <= MOST_BACKFILLED {
                    ticks = schedule.between(after, before, usize::MAX).await;
                }
                count
            }
            BackfillTimes::Days(days) => {
                for day in days {
                    ticks.extend(schedule.of_day(*day, now, MOST_COUNTED as usize).await);
                }
                ticks.len() as u64
            }
        };
        if count > MOST_BACKFILLED {
            ticks.clear();
        }
        (count, ticks)
    }

    /// Reads what [`Display`](fmt::Display) writes.
    pub(super) fn of(text: &str) -> Option<Self> {
        let (text, again) = match text.strip_suffix(AGAIN) {
            Some(text) => (text, true),
            None => (text, false),
        };
        let range = match text.split_once('/') {
            Some((from, to)) => Self::new(from.parse().ok()?, to.parse().ok()?).ok()?,
            None => {
                let days: Result<Vec<_>, _> = text.split(',').map(str::parse).collect();
                Self::days(days.ok()?).ok()?
            }
        };
        Some(Self { again, ..range })
    }
}

/// A word on the nodes, in the form of ISO 8601.
impl fmt::Display for BackfillRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.times {
            BackfillTimes::Instants(from, to) => {
                let form = "%Y-%m-%dT%H:%M:%SZ";
                write!(f, "{}/{}", from.format(form), to.format(form))?;
            }
            BackfillTimes::Days(days) => {
                let days: Vec<_> = days.iter().map(ToString::to_string).collect();
                f.write_str(&days.join(","))?;
            }
        }
        f.write_str(if self.again { AGAIN } else { "" })
    }
}

/// The ticks of a backfill in which this replica has a part, and those among them that had ended well.
type BackfillPlan = (Vec<DateTime<Utc>>, DoneTicks);

/// Reads the plan of a backfill; a word that is not its own names no tick.
fn plan_of(record: &RunRecord) -> Plan {
    let done = |word: &str| {
        let bits = word.strip_prefix(COUNTED);
        let bits = bits.and_then(|bits| u128::from_str_radix(bits, 16).ok());
        DoneTicks(bits.unwrap_or(0))
    };
    Plan {
        moment: record.tick,
        done: end_of(record).map(|(word, _)| done(word)),
    }
}

impl JobRunner {
    /// Claims and runs the ticks of a backfill that was requested at this moment, each if no other replica has.
    pub(super) async fn backfill(self: Arc<Self>, moment: DateTime<Utc>, range: BackfillRange) {
        let planned = self.job.unless_draining(self.plan(moment, &range)).await;
        let (ticks, done) = match planned {
            Ok(plan) => plan,
            Err(refusal) => return drop(self.job.refused(moment, Trigger::Backfill, refusal)),
        };
        for (number, tick) in (1..).zip(&ticks) {
            let runs = match range.again {
                true => RunsBefore::DoNotMatter,
                false if done.has(number) => RunsBefore::EndedWell,
                false => RunsBefore::Unknown,
            };
            let decided = self.decide_backfilled(moment, number, &ticks, runs);
            match self.job.unless_draining(decided).await {
                Ok(Some(start)) => drop(start.run(&self.job).await),
                Ok(None) => {}
                Err(refusal) => return self.left(&ticks, *tick, refusal),
            }
        }
    }

    /// Reports why this replica leaves a backfill at a tick: if no replica can claim that any more, the ticks after it get no
    /// claim either.
    fn left(&self, ticks: &[DateTime<Utc>], tick: DateTime<Utc>, refusal: Refusal) {
        let rest = ticks.iter().filter(|other| **other >= tick);
        let more = ticks.last().filter(|_| is_final(&refusal));
        let more = more.map(|last| (*last, rest.count() as u64));
        let more = more.filter(|(_, ticks)| *ticks > 1);
        self.job
            .report_several(tick, more, Trigger::Backfill, refusal);
    }

    /// Finds the ticks of the range and those of them that have ended well, and claims the beginning of the backfill unless
    /// another replica has.
    ///
    /// Returns no tick if there are too many, or if this replica has no part in the backfill.
    async fn plan(
        &self,
        moment: DateTime<Utc>,
        range: &BackfillRange,
    ) -> Result<BackfillPlan, Refusal> {
        let job = &self.job;
        let (count, ticks) = range.ticks(&job.schedule, moment).await;
        let number = BackfillEntry::Plan(count).number(job.fingerprint);
        let Some(own) = to_tick(moment) else {
            return Ok(BackfillPlan::default());
        };
        loop {
            // Read before the plan, so that a plan without a count has no replica that still counts.
            let lock = job.replica.claims.record(job.id.lock_of(BACKFILLS)).await;
            let free_in = lock.map(|lock| lock.of(BACKFILLS).free_in);
            let is_locked = free_in.is_some_and(|free_in| free_in != Some(Duration::ZERO));
            let begun = job.read(BACKFILLS).await;
            let newest = begun.as_ref().and_then(|plans| plans.runs.first());
            let step = PlanStep::of(newest.map(plan_of), own, is_locked);
            if let Some(newest) = newest
                && newest.tick == own
                && newest.fingerprint != number
            {
                self.log_other_schedule(moment, newest);
                return Ok(BackfillPlan::default());
            }
            match step {
                PlanStep::Claim => {}
                PlanStep::Leave => return Ok(BackfillPlan::default()),
                PlanStep::Go(done) => return Ok((ticks, done)),
                PlanStep::Count => {
                    let done = self.done(&ticks).await;
                    return Ok((ticks, done));
                }
                PlanStep::Wait => {
                    sleep(SHORT_WAIT).await;
                    continue;
                }
            }
            // It expired before this replica had the job.
            if begun.is_some() && lag(moment, job.nodes_now()) > REQUEST_LIFETIME {
                return Ok(BackfillPlan::default());
            }
            let terms = (number, job.settings.ttl);
            let ask = ClaimRequest {
                start_within: REQUEST_LIFETIME,
                ..moment_of(&job.id, BACKFILLS, terms, SHORT_WAIT, moment)
            };
            match job.replica.claims.claim(ask).await {
                Ok(won) => {
                    let done = self.done(&ticks).await;
                    let word = match count {
                        ..=MOST_BACKFILLED => format!("{COUNTED}{:x}", done.0),
                        _ => "too-many".to_owned(),
                    };
                    job.finish(won.claim, &word).await;
                    return Ok((ticks, done));
                }
                Err(refusal) if is_final(&refusal) => return Err(refusal),
                Err(_) => sleep(SHORT_WAIT).await,
            }
        }
    }

    /// Returns which of these ticks are known to have ended well.
    async fn done(&self, ticks: &[DateTime<Utc>]) -> DoneTicks {
        let lines = lines_of_ticks(&self.job.record_at_last(SHORT_WAIT).await);
        let ticks = ticks.iter().filter_map(|tick| to_tick(*tick));
        DoneTicks::among(ticks, &lines.iter().copied())
    }

    /// Claims a tick of a backfill; returns `None` if another replica has it, or if it need not be started.
    async fn decide_backfilled(
        self: &Arc<Self>,
        moment: DateTime<Utc>,
        number: u64,
        ticks: &[DateTime<Utc>],
        runs: RunsBefore,
    ) -> Result<Option<Start>, Refusal> {
        let job = &self.job;
        let own = moment_of_tick(moment, number);
        let tick = tick_of(ticks, number).expect("it is one of the ticks");
        let (mut settled, mut waited_for) = (None, None);
        let won = loop {
            if lag(moment, job.nodes_now()) > BACKFILL_LIFETIME {
                let why = "the backfill was requested too long ago";
                return Err(Refusal::new(Outcome::TooLate, why));
            }
            let Some(record) = job.record().await else {
                sleep(SHORT_WAIT).await;
                continue;
            };
            let (plans, claimed) = (record.of(BACKFILLS), record.of(BACKFILLED));
            if plans.watermark > to_tick(moment) {
                let is_cancelled = plans.runs.first().is_some_and(is_cancelled);
                return Err(match is_cancelled {
                    true => Refusal::new(Outcome::Cancelled, "an operator has ended the backfill"),
                    false => {
                        let why = "another backfill of the job was begun";
                        Refusal::new(Outcome::NotWinner, why)
                    }
                });
            }
            if let Some(other) = other_tick(claimed, moment, ticks) {
                self.log_other_schedule(moment, other);
                let why = "the schedule of another replica has other ticks";
                return Err(Refusal::new(Outcome::NotWinner, why));
            }
            if claimed.watermark >= to_tick(own) {
                return Ok(None);
            }
            // A tick that is due goes first, and one that is to be made up for is not claimed twice.
            if self.ticks.are_undecided(job) {
                sleep(BETWEEN_TICKS).await;
                continue;
            }
            // The same for one that would come during the run.
            if let Some(pause) = self.wait_before_a_run(&record, &mut waited_for) {
                sleep(pause).await;
                continue;
            }
            // A claim in a pause would use the tick up.
            let is_paused = pause_at(record.of(PAUSES), job.nodes_now()).is_some();
            if !job.wants(tick) || is_paused {
                sleep(SHORT_WAIT).await;
                continue;
            }
            // A run that goes on may be cut short, and comes first then: a claim of a later tick would end its attempts.
            if let Some(before) = job.undone_before(&record, tick, settled) {
                if self.settle(before).await {
                    settled = to_tick(before);
                } else {
                    sleep(SHORT_WAIT).await;
                    continue;
                }
            }
            let ask = ClaimRequest {
                tick: own,
                early: EARLY,
                start_within: BACKFILL_LIFETIME,
                fingerprint: BackfillEntry::Run(tick).number(job.fingerprint),
                ..job.ask(BACKFILLED, tick, SHORT_WAIT)
            };
            match job.replica.claims.claim(ask).await {
                Ok(won) => break won,
                Err(refusal) if is_final(&refusal) => return Err(refusal),
                Err(_) => sleep(SHORT_WAIT).await,
            }
        };
        self.start_backfilled(won, tick, runs, settled).await
    }

    /// Returns for how long a tick of the backfill must wait, because a run goes on, or because the next tick is due before its
    /// own run ends, if that takes as long as the last one and the last one of a backfill.
    ///
    /// Nothing waits for a second tick after the one in `waited_for`, because runs may always take that long.
    fn wait_before_a_run(
        &self,
        record: &JobRecord,
        waited_for: &mut Option<DateTime<Utc>>,
    ) -> Option<Duration> {
        if !self.has_shared_lock() {
            return None;
        }
        if record.of(Series::TICKS).free_in != Some(Duration::ZERO) {
            return Some(SHORT_WAIT);
        }
        let now = self.job.nodes_now();
        let due = self.job.schedule.next_after(now)?;
        let left = lag(now, due);
        let was_started = |run: &&PastRun| run.why_not_started().is_none();
        let runs = runs_of(record, Some(true));
        let mut runs = runs.iter().filter(was_started);
        let backfilled = runs.clone().find(|run| run.is_backfill());
        let longest = runs.next().into_iter().chain(backfilled);
        let longest = longest.filter_map(PastRun::took).max()?;
        if longest <= left || waited_for.is_some_and(|before| before != due) {
            return None;
        }
        *waited_for = Some(due);
        Some(left.clamp(BETWEEN_TICKS, LONGEST_WAIT))
    }

    /// Decides whether a tick that was claimed for a backfill is started.
    async fn start_backfilled(
        self: &Arc<Self>,
        won: WonClaim,
        tick: DateTime<Utc>,
        runs: RunsBefore,
        settled: Option<Tick>,
    ) -> Result<Option<Start>, Refusal> {
        let job = &self.job;
        let won = match unless_forbidden(job, won, 1, BACKFILL_LIFETIME).await {
            Ok(won) => won,
            // What the nodes remember of the tick says so, and the next one is asked for.
            Err(refusal) => {
                job.refused(tick, Trigger::Backfill, refusal);
                return Ok(None);
            }
        };
        let use_up = self.use_up(tick, settled).await;
        // Under the lock of the tick's run, so that no run of the tick ends after this.
        let lines = job.record().await.as_ref().map(lines_of_ticks);
        let has_ended_well = lines
            .map(|lines| to_tick(tick).is_some_and(|tick| ledger::has_ended_well(lines, tick)));
        let word = match BackfillDecision::of(runs, use_up, has_ended_well) {
            BackfillDecision::AlreadyWell => Some(ALREADY_OK),
            BackfillDecision::Unstarted => Some(RunRecord::UNSTARTED),
            BackfillDecision::Start => None,
        };
        if let Some(word) = word {
            job.finish(won.claim, word).await;
            return Ok(None);
        }
        Ok(Some(Start::first(won, tick, Trigger::Backfill)))
    }

    /// Sees to it that no replica starts the tick as one that was due or missed; returns whether that is sure.
    async fn use_up(self: &Arc<Self>, tick: DateTime<Utc>, settled: Option<Tick>) -> bool {
        let job = &self.job;
        let Some(state) = job.read(Series::TICKS).await else {
            return false;
        };
        if state.watermark >= to_tick(tick) {
            return true;
        }
        let ask = ClaimRequest {
            // The lock of the job is held for this claim's own run.
            lock: job.id.lock_of(BACKFILLS),
            early: early(&job.replica.claims.redlock),
            start_within: Duration::MAX,
            after: job.after(settled),
            slots: None,
            place_within: None,
            ..job.ask(Series::TICKS, tick, SHORT_WAIT)
        };
        match job.replica.claims.claim(ask).await {
            Ok(won) => {
                // Those before it can no longer be claimed, and the next claim does not see them.
                self.report_missed(won.claim.last(), tick).await;
                job.finish(won.claim, USED_UP).await;
                true
            }
            Err(refusal) => match refusal.outcome {
                // Then none can claim it any more.
                Outcome::NotWinner | Outcome::TooLate => true,
                Outcome::Forgotten => !refusal.is_open,
                _ => false,
            },
        }
    }

    fn log_other_schedule(&self, moment: DateTime<Utc>, record: &RunRecord) {
        tracing::warn!(
            target: crate::TARGET, job = &**self.job.id.name(), backfill = moment.to_string(), replica = %record.replica,
            "a replica with another schedule has begun this backfill, which is left to it"
        );
    }
}

/// Returns the tick with this number; the first has the number 1.
fn tick_of(ticks: &[DateTime<Utc>], number: u64) -> Option<DateTime<Utc>> {
    let place = usize::try_from(number.checked_sub(1)?).ok()?;
    ticks.get(place).copied()
}

/// Returns the newest record of a backfill's ticks if it is about a tick that this replica's schedule does not have there.
fn other_tick<'a>(
    claimed: &'a JobState,
    moment: DateTime<Utc>,
    ticks: &[DateTime<Utc>],
) -> Option<&'a RunRecord> {
    let newest = claimed.runs.first()?;
    let number = (to_instant(newest.tick) - moment).num_milliseconds();
    let number = u64::try_from(number).ok().filter(|number| *number > 0)?;
    let is_same = match BackfillEntry::of(newest) {
        Some(BackfillEntry::Run(tick)) => tick_of(ticks, number) == Some(tick),
        _ => false,
    };
    (!is_same).then_some(newest)
}

/// Returns whether no later claim of the same moment can be won.
fn is_final(refusal: &Refusal) -> bool {
    match refusal.outcome {
        Outcome::TooLate | Outcome::Refused => true,
        Outcome::Forgotten => !refusal.is_open,
        _ => false,
    }
}

/// The time within which replicas claim the ticks of a [backfill](crate::request_backfill), by the nodes' clocks: a day.
pub const BACKFILL_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// How long to wait for ticks that are due: no fraction of a second, because each look could find the ticks of a second.
const BETWEEN_TICKS: Duration = Duration::from_millis(230);

/// How often it is looked at whether a backfill goes on that waits for a tick.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// The end of the word for a range whose ticks run again.
const AGAIN: &str = "/again";

/// The beginning of the outcome of a plan, before the ticks that had ended well.
const COUNTED: &str = "counted-";

const _: () = assert!(MOST_BACKFILLED <= u128::BITS as u64);
// A run that ends well while a later backfill is counted must still be remembered when that one claims its tick.
const _: () = assert!(MOST_BACKFILLED < JobState::MOST as u64);

/// The most ticks that are counted to say how many are too many.
const MOST_COUNTED: u64 = 100_000;

/// As many as fit into a word on the nodes.
const MOST_DAYS: usize = 5;

/// By how much the time of a zone may be ahead of UTC.
const FARTHEST_AHEAD: TimeDelta = TimeDelta::hours(14);

const MILLISECOND: TimeDelta = TimeDelta::milliseconds(1);
