//! The record of a job: its series of lines.

use redlock_proto::{
    Tick,
    ledger::{RunEnd, TickLine},
};

/// How many ticks there are.
pub(super) const TICKS: usize = 3;

/// How many runs a tick has before it is given up.
pub(super) const ATTEMPTS: u8 = 2;

/// The runs of a tick, the last of which says that the tick is given up.
const RUNS: usize = ATTEMPTS as usize + 1;

/// How many ticks a backfill has at most.
pub(super) const RANGE: usize = 2;

/// How many lines the series of backfills keeps.
pub(super) const KEPT: usize = RANGE + 1;

/// How many lines the series of requests keeps.
pub(super) const REQUESTS: usize = 2;

/// The series of ticks: the end of each run that was claimed, by its tick and its number.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Runs(pub(super) [[Option<RunEnd>; RUNS]; TICKS]);

impl Runs {
    /// Returns the newest tick that was claimed and the number of its newest run, or zeros.
    pub(super) fn newest(&self) -> (u8, u8) {
        let newest = self.lines().next();
        newest.map_or((0, 0), |line| (number(line.tick), line.attempt))
    }

    pub(super) fn set(&mut self, tick: u8, attempt: u8, end: RunEnd) {
        self.0[place(tick)][place(attempt)] = Some(end);
    }

    /// Returns the lines, the newest first.
    pub(super) fn lines(&self) -> impl Iterator<Item = TickLine> + Clone + '_ {
        let ticks = (1..=TICKS as u8).zip(&self.0).rev();
        ticks.flat_map(|(tick, runs)| {
            let runs = (1..=RUNS as u8).zip(runs).rev();
            runs.filter_map(move |(attempt, end)| {
                end.map(|end| TickLine {
                    tick: instant(tick),
                    attempt,
                    end,
                })
            })
        })
    }
}

/// The runs of backfills, the newest first: the moment of the backfill, the number of the tick in it, and the end.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Backfilled(pub(super) [Option<(u8, u8, RunEnd)>; KEPT]);

impl Backfilled {
    /// Returns whether this tick of a backfill was claimed, or a later one.
    pub(super) fn has_passed(&self, moment: u8, number: u8) -> bool {
        self.0[0].is_some_and(|(of, with, _)| (of, with) >= (moment, number))
    }

    /// Adds the newest line, which pushes the oldest out.
    pub(super) fn claim(&mut self, moment: u8, number: u8, kept: usize) {
        self.0.rotate_right(1);
        self.0[0] = Some((moment, number, RunEnd::Open));
        self.0[kept..].fill(None);
    }

    /// Records the end of a run that is still remembered.
    pub(super) fn set(&mut self, moment: u8, number: u8, end: RunEnd) {
        for line in self.0.iter_mut().flatten() {
            if (line.0, line.1) == (moment, number) {
                line.2 = end;
            }
        }
    }
}

/// Returns the instant of a tick or of a moment.
pub(super) fn instant(number: u8) -> Tick {
    Tick::from_millis(number.into()).expect("it is small")
}

/// Returns the number of an instant.
pub(super) fn number(tick: Tick) -> u8 {
    u8::try_from(tick.as_millis()).expect("it was made from one")
}

/// Returns the place of what is counted from 1 on.
pub(super) fn place(number: u8) -> usize {
    usize::from(number) - 1
}
