use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use redlock_proto::RunRecord;

use super::{Checker, Lease};
use crate::{Event, Moment, Violation};

/// What a checker knows of a job.
#[derive(Debug, Default)]
pub(super) struct Job {
    /// The ticks that were started, and when.
    started: BTreeMap<u64, Moment>,
    /// The ticks that nodes were asked to remember.
    committed: BTreeSet<u64>,
    /// The runs that nodes were asked to remember, by tick and token.
    runs: BTreeMap<(u64, u64), Run>,
    /// The ticks that a claimant reported as not won.
    not_started: BTreeSet<u64>,
    /// The newest tick that was started when nodes forget nothing any more.
    durable: Option<u64>,
}

/// What came of a run.
#[derive(Debug, Default)]
struct Run {
    is_started: bool,
    /// When a node remembered it first.
    kept: Option<Moment>,
    /// Nothing went wrong any more when it was claimed.
    is_settled: bool,
    /// How it ended, as nodes were told.
    outcomes: Vec<Arc<str>>,
}

impl Run {
    /// Returns whether it was told of both that it was not started, and that it was.
    fn is_false(&self) -> bool {
        let was_not = |outcome: &Arc<str>| **outcome == *RunRecord::UNSTARTED;
        match self.is_started {
            true => self.outcomes.iter().any(was_not),
            false => !self.outcomes.iter().all(was_not),
        }
    }
}

impl Checker {
    /// Judges an event about a job.
    pub(super) fn observe_job(&mut self, at: Moment, event: &Event) {
        let (is_mended, is_settled) = (self.is_mended, self.is_settled);
        let jobs = &mut self.jobs;
        let found = match *event {
            Event::Commits { job, tick, token } => {
                jobs.entry(job).or_default().commit(tick, token, is_settled);
                None
            }
            Event::Kept { job, tick, token } => {
                let state = jobs.entry(job).or_default();
                state.keep(at, tick, token);
                None
            }
            Event::Recorded {
                job,
                tick,
                token,
                ref outcome,
            } => jobs
                .entry(job)
                .or_default()
                .record(job, (tick, token), outcome),
            Event::LeftOpen { job, tick, token } => {
                jobs.entry(job).or_default().leave_open(job, tick, token)
            }
            Event::Started {
                job,
                tick,
                token,
                timely,
            } => {
                let found = jobs
                    .entry(job)
                    .or_default()
                    .start(at, job, (tick, token), is_mended);
                let untimely = (!timely).then_some(Violation::Untimely { job, tick });
                untimely
                    .into_iter()
                    .for_each(|untimely| self.report(at, untimely));
                found
            }
            Event::Passed {
                job,
                tick,
                watermark,
            } => jobs.entry(job).or_default().pass(job, tick, watermark),
            Event::NotStarted { job, tick } => {
                jobs.entry(job).or_default().refuse(tick);
                None
            }
            Event::Remembered { job, watermark } => {
                jobs.entry(job).or_default().remember(job, watermark)
            }
            Event::Follows {
                job,
                tick,
                settled,
                majority,
                ref remembered,
            } => follow(job, (tick, settled), majority, remembered),
            Event::CutShort {
                job,
                tick,
                token,
                ref outcome,
                settled,
            } => match tick <= settled {
                true => Some(Violation::Unreasoned { job, tick }),
                false => {
                    jobs.entry(job)
                        .or_default()
                        .tell_run(job, (tick, token), outcome.as_ref())
                }
            },
            Event::StatusRead { .. } => return self.read_status(at, event),
            _ => None,
        };
        if let Some(violation) = found {
            self.report(at, violation);
        }
    }

    /// Judges a report of what nodes remember of a job.
    fn read_status(&mut self, at: Moment, event: &Event) {
        let Event::StatusRead {
            job,
            since,
            ref known,
            majority,
            watermark,
            ref runs,
            is_free,
        } = *event
        else {
            return;
        };
        let state = self.jobs.entry(job).or_default();
        let known = state.known(known, majority);
        let of_watermark = state.tell_watermark(job, watermark, known);
        let of_runs = runs.iter().filter_map(|(tick, token, outcome)| {
            state.tell_run(job, (*tick, *token), outcome.as_ref())
        });
        let mut found: Vec<Violation> = of_watermark.into_iter().chain(of_runs).collect();
        let is_held = |lease: &Lease| {
            let is_believed = !lease.is_over && !lease.is_parked;
            lease.key == job && is_believed && lease.since < since && lease.until > at
        };
        let mut leases = self.leases.iter();
        if is_free && let Some((lease, _)) = leases.find(|(_, lease)| is_held(lease)) {
            let lease = *lease;
            found.push(Violation::FalselyFree { job, lease });
        }
        for violation in found {
            self.report(at, violation);
        }
    }
}

/// Returns a violation if a tick starts after a run that was cut short and is not settled.
///
/// The run before the tick is the newest one that a majority remembers.
/// There is no violation if a node knows that this run, or a later one, ended well.
fn follow(
    job: usize,
    (tick, settled): (u64, u64),
    majority: usize,
    remembered: &[Vec<(u64, u64, bool)>],
) -> Option<Violation> {
    let mut known: BTreeMap<(u64, u64), usize> = BTreeMap::new();
    let before = || remembered.iter().flatten().filter(|(of, ..)| *of < tick);
    for (of, token, _) in before() {
        *known.entry((*of, *token)).or_default() += 1;
    }
    let mut by_majority = known.into_iter().filter(|(_, nodes)| *nodes >= majority);
    let ((after, token), _) = by_majority.next_back()?;
    let is_better = |(of, with, was_cut_short): &(u64, u64, bool)| {
        !was_cut_short && (*of, *with) >= (after, token)
    };
    (after > settled && !before().any(is_better)).then_some(Violation::FollowsCutShort {
        job,
        tick,
        after,
    })
}

impl Job {
    /// Records that nodes are asked to remember a run.
    pub(super) fn commit(&mut self, tick: u64, token: u64, is_settled: bool) {
        self.committed.insert(tick);
        let run = self.runs.entry((tick, token)).or_default();
        run.is_settled = is_settled;
    }

    /// Records that a node remembers a run.
    pub(super) fn keep(&mut self, at: Moment, tick: u64, token: u64) {
        let run = self.runs.entry((tick, token)).or_default();
        run.kept.get_or_insert(at);
    }

    /// Records that a claimant has not won a tick.
    pub(super) fn refuse(&mut self, tick: u64) {
        self.not_started.insert(tick);
    }

    /// Returns a violation if nodes were asked to remember a tick that was neither started nor reported as not won.
    pub(super) fn lost(&self, job: usize) -> Option<Violation> {
        let is_lost =
            |tick: &&u64| !self.started.contains_key(tick) && !self.not_started.contains(tick);
        let tick = *self.committed.iter().find(is_lost)?;
        Some(Violation::TickLost { job, tick })
    }

    /// Returns a violation if a majority does not know the outcome of a run at the end.
    ///
    /// A run that was claimed before all faults had ended may have lost its claimant, and is no violation.
    pub(super) fn leave_open(&self, job: usize, tick: u64, token: u64) -> Option<Violation> {
        let run = self.runs.get(&(tick, token))?;
        run.is_settled.then_some(Violation::TickLost { job, tick })
    }

    /// Returns a violation if a tick that no node can have forgotten is newer than the watermark of a majority.
    pub(super) fn remember(&self, job: usize, watermark: u64) -> Option<Violation> {
        let tick = self.durable.filter(|tick| *tick > watermark)?;
        Some(Violation::NotRemembered { job, tick })
    }

    /// Judges the start of a tick.
    pub(super) fn start(
        &mut self,
        at: Moment,
        job: usize,
        (tick, token): (u64, u64),
        is_durable: bool,
    ) -> Option<Violation> {
        if is_durable {
            self.durable = self.durable.max(Some(tick));
        }
        let run = self.runs.entry((tick, token)).or_default();
        run.is_started = true;
        let kept = run.kept;
        if run.is_false() {
            return Some(Violation::FalseRecord { job, tick });
        }
        let newest = self.started.last_key_value().map(|(tick, at)| (*tick, *at));
        if self.started.contains_key(&tick) {
            return Some(Violation::StartedAgain { job, tick });
        }
        self.started.insert(tick, at);
        let (after, _) = newest.filter(|(newest, _)| *newest > tick)?;
        // Every later one must have been started when a node remembered this one already.
        let mut later = self.started.range(tick + 1..);
        if later.any(|(_, started)| kept.is_none_or(|kept| kept > *started)) {
            return Some(Violation::Overtaken { job, tick, after });
        }
        Some(Violation::StartedAfter { job, tick, after })
    }

    /// Judges the outcome of a run that nodes are told.
    pub(super) fn record(
        &mut self,
        job: usize,
        (tick, token): (u64, u64),
        outcome: &Arc<str>,
    ) -> Option<Violation> {
        let run = self.runs.entry((tick, token)).or_default();
        run.outcomes.push(Arc::clone(outcome));
        run.is_false()
            .then_some(Violation::FalseRecord { job, tick })
    }

    /// Judges the answer to a replica that a tick, or a later one, was claimed before.
    pub(super) fn pass(&self, job: usize, tick: u64, watermark: u64) -> Option<Violation> {
        let is_known = watermark >= tick && self.committed.contains(&watermark);
        (!is_known).then_some(Violation::NeverClaimed { job, watermark })
    }

    /// Returns up to which tick a majority knew a job, by the runs that each node remembered when it was asked for.
    ///
    /// A run that nodes have been told to forget counts on none of them: it may be all that one of them knew.
    pub(super) fn known(&self, remembered: &[Vec<(u64, u64)>], majority: usize) -> u64 {
        let newest = |runs: &Vec<(u64, u64)>| {
            let mut kept = runs.iter().filter(|run| !self.was_withdrawn(**run));
            kept.next().map_or(0, |(tick, _)| *tick)
        };
        let mut watermarks: Vec<u64> = remembered.iter().map(newest).collect();
        watermarks.sort_unstable();
        watermarks[remembered.len() - majority]
    }

    /// Judges a watermark that a client reports; `known` is the one that a majority had when the client asked.
    pub(super) fn tell_watermark(
        &self,
        job: usize,
        watermark: u64,
        known: u64,
    ) -> Option<Violation> {
        if watermark > 0 && !self.committed.contains(&watermark) {
            return Some(Violation::NeverClaimed { job, watermark });
        }
        (watermark < known).then_some(Violation::StatusBehind {
            job,
            watermark,
            known,
        })
    }

    /// Returns whether nodes were told that a run was not started.
    ///
    /// Another run may have its tick after that.
    fn was_withdrawn(&self, run: (u64, u64)) -> bool {
        let run = self.runs.get(&run);
        run.is_some_and(|run| !run.is_started && !run.outcomes.is_empty())
    }

    /// Judges a run that a client reports, with its outcome if it has ended.
    pub(super) fn tell_run(
        &self,
        job: usize,
        (tick, token): (u64, u64),
        outcome: Option<&Arc<str>>,
    ) -> Option<Violation> {
        let Some(run) = self.runs.get(&(tick, token)) else {
            let watermark = tick;
            return Some(Violation::NeverClaimed { job, watermark });
        };
        let outcome = outcome?;
        (!run.outcomes.contains(outcome)).then_some(Violation::FalseRecord { job, tick })
    }
}
