//! The decisions about the ticks of a job above their claims: which run comes next, and which must not.
//!
//! Each function takes lines of the job's record and returns a decision; its caller reads the lines and makes the claims.
//! The job adapter runs them over what a majority of the nodes remembers, and the model in every order of reads and claims.

use crate::Tick;

/// The end of a run, as far as these decisions tell ends apart.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a caller must handle every end of a run"
)]
pub enum RunEnd {
    /// No end is recorded: the run goes on, or its replica crashed.
    Open,
    /// The run did not end by itself, or was claimed and never began.
    CutShort,
    /// The run ended well, or was not started because one before it had.
    Well,
    /// The run ended by itself in another way, or says that there will be no other.
    Over,
}

/// A line of a job's record: one run of a tick.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a caller must know every part of it"
)]
pub struct TickLine {
    /// The tick; for a run of a backfill, the scheduled one.
    pub tick: Tick,
    /// The number of the tick's run.
    pub attempt: u8,
    /// The end of the run.
    pub end: RunEnd,
}

impl TickLine {
    /// Returns whether the run may have to be started again before a later tick is claimed.
    ///
    /// That is so if it goes on or was cut short, unless its tick is up to `settled`: the runs of these are dealt with.
    pub fn is_undone(self, settled: Option<Tick>) -> bool {
        let did_not_end = matches!(self.end, RunEnd::Open | RunEnd::CutShort);
        did_not_end && settled < Some(self.tick)
    }
}

/// Returns whether one of these runs is of the tick and ended well.
pub fn has_ended_well(lines: impl IntoIterator<Item = TickLine>, tick: Tick) -> bool {
    let mut lines = lines.into_iter();
    lines.any(|line| (line.tick, line.end) == (tick, RunEnd::Well))
}

/// Returns the newest tick that was claimed if its run must be settled before `tick` is run in a backfill.
pub fn undone_before(newest: Option<TickLine>, tick: Tick, settled: Option<Tick>) -> Option<Tick> {
    let before = newest.filter(|line| line.tick < tick && line.is_undone(settled));
    before.map(|line| line.tick)
}

/// The state of the runs of a tick, from which a retry decides.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a caller must handle every state of the runs"
)]
pub enum RunsOfTick {
    /// No replica has claimed the tick or a later one.
    Unclaimed,
    /// A later tick was claimed, so this one has no other run.
    Passed,
    /// The last run goes on, or is not known: the node that had heard of it was told to forget it.
    Open,
    /// The last run was cut short, and has this number: another may follow.
    CutShort(u8),
    /// The last run ended by itself.
    Ended,
    /// The last run was cut short, and a backfill has run the tick well.
    MadeGood,
}

impl RunsOfTick {
    /// Returns the state of a tick's runs.
    ///
    /// `newest` is the newest tick that was claimed, and `is_free` whether no replica holds the job's lock.
    /// `runs` are lines of the series of ticks, the newest first, and `backfilled` those of backfills.
    pub fn of(
        tick: Tick,
        newest: Option<Tick>,
        is_free: bool,
        runs: impl IntoIterator<Item = TickLine>,
        backfilled: impl IntoIterator<Item = TickLine>,
    ) -> Self {
        if newest < Some(tick) {
            return Self::Unclaimed;
        }
        if newest > Some(tick) {
            return Self::Passed;
        }
        Self::up_to(tick, u8::MAX, is_free, runs, backfilled)
    }

    /// Returns the state of a tick's runs up to the `attempt`-th, for the replica that has claimed the next one.
    ///
    /// It holds the lock, so none of these runs goes on.
    pub fn before_next(
        tick: Tick,
        attempt: u8,
        runs: impl IntoIterator<Item = TickLine>,
        backfilled: impl IntoIterator<Item = TickLine>,
    ) -> Self {
        Self::up_to(tick, attempt, true, runs, backfilled)
    }

    fn up_to(
        tick: Tick,
        attempt: u8,
        is_free: bool,
        runs: impl IntoIterator<Item = TickLine>,
        backfilled: impl IntoIterator<Item = TickLine>,
    ) -> Self {
        let is_it = |line: &TickLine| line.tick == tick && line.attempt <= attempt;
        let Some(run) = runs.into_iter().find(is_it) else {
            return Self::Open;
        };
        match run.end {
            // Its replica holds the lock for as long as it lives.
            RunEnd::Open if !is_free => Self::Open,
            RunEnd::Well | RunEnd::Over => Self::Ended,
            RunEnd::Open | RunEnd::CutShort => {
                if has_ended_well(backfilled, tick) {
                    Self::MadeGood
                } else {
                    Self::CutShort(run.attempt)
                }
            }
        }
    }
}

/// The ticks of a backfill that had ended well before its first claim, by their numbers from 1 on: a bit each.
///
/// Each claim of a backfill may push an older run out of the record, so these are found before the first.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "the number is all there is, and the nodes keep it"
)]
pub struct DoneTicks(pub u128);

impl DoneTicks {
    /// Finds them among the runs in the record.
    pub fn among(
        ticks: impl IntoIterator<Item = Tick>,
        lines: &(impl Iterator<Item = TickLine> + Clone),
    ) -> Self {
        let bits = (0..u128::BITS).zip(ticks);
        let done = bits.filter(|(_, tick)| has_ended_well(lines.clone(), *tick));
        Self(done.fold(0, |all, (bit, _)| all | 1 << bit))
    }

    /// Returns whether the tick with this number is among them.
    pub const fn has(self, number: u64) -> bool {
        number > 0 && number <= u128::BITS as u64 && self.0 >> (number - 1) & 1 == 1
    }
}

/// The newest plan of a job's backfills: its moment, and the ticks that had ended well, once its replica has found them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a caller must know every part of it"
)]
pub struct Plan {
    /// The moment at which the backfill was requested.
    pub moment: Tick,
    /// The ticks that had ended well; `None` until its replica has recorded them.
    pub done: Option<DoneTicks>,
}

/// The next step of a replica toward the plan of a backfill.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a caller must handle every step")]
pub enum PlanStep {
    /// Claim the plan.
    Claim,
    /// Leave the backfill alone: a later one was begun.
    Leave,
    /// Wait: the replica that has the plan looks for the ticks that had ended well.
    Wait,
    /// Look for them, because that replica crashed.
    Count,
    /// Go by these.
    Go(DoneTicks),
}

impl PlanStep {
    /// Returns the step for the backfill of this moment; `is_locked` is whether a replica holds the lock of plans.
    pub fn of(newest: Option<Plan>, moment: Tick, is_locked: bool) -> Self {
        let Some(plan) = newest.filter(|plan| plan.moment >= moment) else {
            return Self::Claim;
        };
        match plan.done {
            _ if plan.moment > moment => Self::Leave,
            Some(done) => Self::Go(done),
            None if is_locked => Self::Wait,
            None => Self::Count,
        }
    }
}

/// The runs of a tick before its backfill, as far as they were known before the first claim of the backfill.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a caller must handle every case")]
pub enum RunsBefore {
    /// The tick is to run again.
    DoNotMatter,
    /// One has ended well.
    EndedWell,
    /// None is known that has.
    Unknown,
}

/// The decision on a tick that a replica has claimed for a backfill.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a caller must handle every decision"
)]
pub enum BackfillDecision {
    /// Start it.
    Start,
    /// A run of it has ended well: do not start it.
    AlreadyWell,
    /// It could run twice: do not start it.
    Unstarted,
}

impl BackfillDecision {
    /// Returns the decision under the lock of the tick's run.
    ///
    /// `is_used_up` is whether no replica can claim the tick itself any more.
    /// `has_ended_well` is what the record says now; `None` if it says nothing, and a part of it is not known.
    pub fn of(before: RunsBefore, is_used_up: bool, has_ended_well: Option<bool>) -> Self {
        let is_well = match before {
            RunsBefore::DoNotMatter => false,
            RunsBefore::EndedWell => true,
            RunsBefore::Unknown => has_ended_well == Some(true),
        };
        if is_well {
            Self::AlreadyWell
        } else if is_used_up && has_ended_well.is_some() {
            Self::Start
        } else {
            Self::Unstarted
        }
    }
}

/// Returns the requests on which no replica has decided: those after the newest that was.
///
/// A replica decides on them in order, because nodes grant no moment before another.
pub fn undecided(
    asked: impl IntoIterator<Item = Tick>,
    decided: Option<Tick>,
) -> impl Iterator<Item = Tick> {
    let asked = asked.into_iter();
    asked.filter(move |moment| Some(*moment) > decided)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tick(number: u64) -> Tick {
        Tick::from_millis(number).expect("it is small")
    }

    fn line(number: u64, end: RunEnd) -> TickLine {
        TickLine {
            tick: tick(number),
            attempt: 1,
            end,
        }
    }

    #[test]
    fn a_run_that_did_not_end_by_itself_is_undone_until_it_is_settled() {
        for (end, is_undone) in [
            (RunEnd::Open, true),
            (RunEnd::CutShort, true),
            (RunEnd::Well, false),
            (RunEnd::Over, false),
        ] {
            let newest = line(2, end);
            assert_eq!(newest.is_undone(None), is_undone);
            assert_eq!(newest.is_undone(Some(tick(1))), is_undone);
            assert!(!newest.is_undone(Some(tick(2))));
            let before = is_undone.then(|| tick(2));
            assert_eq!(undone_before(Some(newest), tick(3), None), before);
            assert_eq!(undone_before(Some(newest), tick(2), None), None);
        }
    }

    #[test]
    fn a_run_without_an_end_is_cut_short_for_the_replica_that_holds_the_lock() {
        let runs = || {
            [2, 1].map(|attempt| TickLine {
                attempt,
                ..line(2, RunEnd::Open)
            })
        };
        let of = |newest, is_free| RunsOfTick::of(tick(2), Some(tick(newest)), is_free, runs(), []);
        assert_eq!(of(2, false), RunsOfTick::Open);
        assert_eq!(of(2, true), RunsOfTick::CutShort(2));
        assert_eq!(
            [of(1, true), of(3, true)],
            [RunsOfTick::Unclaimed, RunsOfTick::Passed]
        );
        let before_next = |attempt, well| {
            RunsOfTick::before_next(tick(2), attempt, runs(), [line(well, RunEnd::Well)])
        };
        assert_eq!(before_next(1, 1), RunsOfTick::CutShort(1));
        assert_eq!(before_next(1, 2), RunsOfTick::MadeGood);
        assert_eq!(before_next(0, 2), RunsOfTick::Open);
    }

    #[test]
    fn done_ticks_are_found_by_their_numbers() {
        let lines = [line(3, RunEnd::Well), line(5, RunEnd::Over)];
        let ticks = [1, 3, 5].map(tick);
        let done = DoneTicks::among(ticks, &lines.into_iter());
        let has = [0, 1, 2, 3, 128, 129].map(|number| done.has(number));
        assert_eq!(has, [false, false, true, false, false, false]);
        assert!(DoneTicks(u128::MAX).has(128));
    }

    #[test]
    fn a_tick_of_a_backfill_starts_only_if_it_is_used_up_and_the_record_is_known() {
        use BackfillDecision::{AlreadyWell, Start, Unstarted};
        use RunsBefore::{DoNotMatter, EndedWell, Unknown};
        for (before, is_used_up, is_well, decision) in [
            (Unknown, true, Some(false), Start),
            (Unknown, true, Some(true), AlreadyWell),
            (Unknown, true, None, Unstarted),
            (Unknown, false, Some(false), Unstarted),
            (EndedWell, false, None, AlreadyWell),
            (DoNotMatter, true, Some(true), Start),
            (DoNotMatter, true, None, Unstarted),
        ] {
            assert_eq!(BackfillDecision::of(before, is_used_up, is_well), decision);
        }
    }
}
