//! A world of one job at a moment, and its number.

use redlock_proto::ledger::RunEnd;

use super::record::{Backfilled, Runs, TICKS};

/// The most replicas.
pub(super) const ACTORS: usize = 4;

#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct State {
    pub(super) ticks: Runs,
    pub(super) backfilled: Backfilled,
    /// The moment of the newest plan, and the ticks that it has as done, as bits and one more.
    pub(super) plan: (u8, u8),
    /// The newest request, and the newest that was decided on.
    pub(super) asked: u8,
    pub(super) decided: u8,
    /// The newest tick that is due.
    pub(super) due: u8,
    /// How many backfills were asked for.
    pub(super) backfills: u8,
    /// How often a run was lost, or a replica crashed.
    pub(super) cuts: u8,
    pub(super) fates: [Fate; TICKS],
    /// The ticks that ended well, as bits.
    pub(super) well: u8,
    /// The ticks that must be run again or given up, as bits.
    pub(super) owed: u8,
    pub(super) actors: [Actor; ACTORS],
}

/// What has become of a tick.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(super) enum Fate {
    #[default]
    Nothing,
    Claimed,
    /// It was reported as missed, or is older than the first claim of the job.
    Told,
}

/// A replica with one role.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) struct Actor {
    pub(super) phase: Phase,
    /// The tick, the number of a tick in its backfill, or the request that it deals with.
    pub(super) goal: u8,
    /// The tick whose runs it looks at or starts again; in a backfill also the tick that it has used up.
    pub(super) before: u8,
    /// The run of that tick after which another follows; once claimed, the run.
    pub(super) attempt: u8,
    /// The tick up to which runs are settled.
    pub(super) settled: u8,
    /// The newest backfill or request that it knows.
    pub(super) known: u8,
    /// The ticks of the backfill that are done, or the requests that it is to decide on, as bits.
    pub(super) bits: u8,
}

#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) enum Phase {
    #[default]
    Idle,
    /// It has a goal.
    Deciding,
    /// A run that was cut short comes first.
    Settling,
    /// It has found that a run of the tick may follow.
    Next,
    /// It has found that no other run of the tick may follow.
    GivesUp,
    /// It has claimed the plan of a backfill, and holds the lock of plans.
    Counting,
    /// It has found that a tick of a backfill may be claimed.
    Ready,
    /// It has claimed the tick in the backfill, and holds the job's lock.
    Won,
    /// No replica can claim the tick itself any more.
    UsedUp,
    /// Its run goes on.
    Running,
}

impl State {
    /// Returns a number that no other world has.
    pub(super) fn number(mut self) -> u128 {
        let mut digits = Digits {
            number: 0,
            scale: Some(1),
        };
        self.each(&mut digits);
        digits.number
    }

    /// Returns the world of such a number.
    pub(super) fn of(number: u128) -> Self {
        let mut state = Self::default();
        let scale = None;
        state.each(&mut Digits { number, scale });
        state
    }

    /// Writes or reads each part.
    fn each(&mut self, digits: &mut Digits) {
        let ends = self.ticks.0.iter_mut().flatten();
        ends.for_each(|end| digits.one_of(end, &ENDS));
        for line in &mut self.backfilled.0 {
            let (mut moment, mut number, end) = line.unwrap_or((0, 0, RunEnd::Open));
            let mut end = Some(end).filter(|_| moment > 0);
            digits.digit(&mut moment, 3);
            if moment > 0 {
                digits.digit(&mut number, 3);
                digits.one_of(&mut end, &ENDS);
            }
            *line = end.map(|end| (moment, number, end));
        }
        digits.digit(&mut self.plan.0, 3);
        digits.digit(&mut self.plan.1, 5);
        for value in [
            &mut self.asked,
            &mut self.decided,
            &mut self.due,
            &mut self.cuts,
        ] {
            digits.digit(value, 4);
        }
        digits.digit(&mut self.backfills, 3);
        let fates = &mut self.fates;
        fates
            .iter_mut()
            .for_each(|fate| digits.one_of(fate, &FATES));
        digits.digit(&mut self.well, 8);
        digits.digit(&mut self.owed, 8);
        for actor in &mut self.actors {
            digits.one_of(&mut actor.phase, &PHASES);
            for value in [
                &mut actor.goal,
                &mut actor.before,
                &mut actor.settled,
                &mut actor.known,
            ] {
                digits.digit(value, 4);
            }
            digits.digit(&mut actor.attempt, 3);
            digits.digit(&mut actor.bits, 8);
        }
    }
}

/// The digits of a number, each with a base of its own, the lowest first.
struct Digits {
    number: u128,
    /// The place of the next digit if they are written; `None` if they are read.
    scale: Option<u128>,
}

impl Digits {
    fn digit(&mut self, value: &mut u8, base: u8) {
        let base = u128::from(base);
        match &mut self.scale {
            Some(scale) => {
                self.number += u128::from(*value) * *scale;
                *scale *= base;
            }
            None => {
                *value = (self.number % base) as u8;
                self.number /= base;
            }
        }
    }

    fn one_of<T: Copy + PartialEq>(&mut self, value: &mut T, all: &[T]) {
        let place = all.iter().position(|one| one == value);
        let mut place = place.expect("all are in the list") as u8;
        self.digit(&mut place, all.len() as u8);
        *value = all[usize::from(place)];
    }
}

const ENDS: [Option<RunEnd>; 5] = [
    None,
    Some(RunEnd::Open),
    Some(RunEnd::CutShort),
    Some(RunEnd::Well),
    Some(RunEnd::Over),
];

const FATES: [Fate; 3] = [Fate::Nothing, Fate::Claimed, Fate::Told];

const PHASES: [Phase; 10] = [
    Phase::Idle,
    Phase::Deciding,
    Phase::Settling,
    Phase::Next,
    Phase::GivesUp,
    Phase::Counting,
    Phase::Ready,
    Phase::Won,
    Phase::UsedUp,
    Phase::Running,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_keeps_the_whole_world() {
        let runs = [Some(RunEnd::Over), None, Some(RunEnd::Well)];
        let actor = Actor {
            phase: Phase::Running,
            goal: 3,
            before: 3,
            attempt: 2,
            settled: 3,
            known: 3,
            bits: 7,
        };
        let state = State {
            ticks: Runs([runs; TICKS]),
            backfilled: Backfilled([
                Some((2, 2, RunEnd::Over)),
                Some((2, 1, RunEnd::CutShort)),
                Some((1, 2, RunEnd::Well)),
            ]),
            plan: (2, 4),
            asked: 3,
            decided: 3,
            due: 3,
            backfills: 2,
            cuts: 3,
            fates: [Fate::Told, Fate::Claimed, Fate::Nothing],
            well: 7,
            owed: 7,
            actors: [actor; ACTORS],
        };
        assert_eq!(State::of(state.number()), state);
        let other = State {
            backfilled: Backfilled([Some((1, 1, RunEnd::Open)), None, None]),
            actors: [Actor::default(), actor, Actor::default(), actor],
            ..state
        };
        assert_eq!(State::of(other.number()), other);
    }
}
