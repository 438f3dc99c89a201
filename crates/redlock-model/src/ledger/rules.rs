//! What replicas read and decide, as `redlock-proto` decides it, and what becomes of the world.

use redlock_proto::{
    Tick,
    ledger::{
        BackfillDecision, DoneTicks, Plan, PlanStep, RunEnd, RunsBefore, RunsOfTick, TickLine,
        has_ended_well, undecided, undone_before,
    },
};

use super::{
    LedgerCheck, LedgerMutation,
    LedgerRole::{self, Backfill, Request, Retry, Schedule},
    record::{ATTEMPTS, RANGE, REQUESTS, instant, number, place},
    state::{Actor, Fate, Phase, State},
    step::Broken,
};

#[derive(Debug)]
pub(super) struct Rules {
    pub(super) check: LedgerCheck,
}

/// What a look at the runs of a tick comes to.
pub(super) enum Look {
    /// A run goes on, or will be claimed.
    Wait,
    /// There will be no other run.
    NoOther,
    /// Another may follow this run.
    After(u8),
}

impl Rules {
    pub(super) const fn new(check: LedgerCheck) -> Self {
        Self { check }
    }

    pub(super) fn breaks(&self, mutation: LedgerMutation) -> bool {
        self.check.mutation == Some(mutation)
    }

    pub(super) fn role(&self, by: usize) -> LedgerRole {
        self.check.roles[by].expect("it has one")
    }

    pub(super) fn backfilled<'a>(
        &'a self,
        state: &'a State,
    ) -> impl Iterator<Item = TickLine> + Clone + 'a {
        let lines = state.backfilled.0.iter().flatten();
        lines.filter_map(|(moment, number, end)| {
            Some(TickLine {
                tick: instant(self.check.tick_of(*moment, *number)?),
                attempt: 1,
                end: *end,
            })
        })
    }

    pub(super) fn lines<'a>(
        &'a self,
        state: &'a State,
    ) -> impl Iterator<Item = TickLine> + Clone + 'a {
        state.ticks.lines().chain(self.backfilled(state))
    }

    /// Returns the lines of backfills that a retry reads.
    fn heeded<'a>(&'a self, state: &'a State) -> impl Iterator<Item = TickLine> + 'a {
        let is_unseen = self.breaks(LedgerMutation::BackfillUnseen);
        self.backfilled(state).filter(move |_| !is_unseen)
    }

    pub(super) fn look(&self, state: &State, tick: u8) -> Look {
        let (newest, is_free) = (some(state.ticks.newest().0), !is_locked(state));
        let (runs, backfilled) = (state.ticks.lines(), self.heeded(state));
        match RunsOfTick::of(instant(tick), newest, is_free, runs, backfilled) {
            RunsOfTick::CutShort(attempt) if attempt <= ATTEMPTS => Look::After(attempt),
            RunsOfTick::Unclaimed | RunsOfTick::Open => Look::Wait,
            _ => Look::NoOther,
        }
    }

    pub(super) fn done(&self, state: &State, moment: u8) -> DoneTicks {
        let ticks = (1..=RANGE as u8).map_while(|number| self.check.tick_of(moment, number));
        DoneTicks::among(ticks.map(instant), &self.lines(state))
    }

    /// Returns how many requests were not decided on, of those that are remembered.
    pub(super) fn waiting(state: &State) -> usize {
        let asked = remembered(state).map(instant);
        undecided(asked, some(state.decided)).count()
    }

    /// Claims a tick, and reports those that are passed.
    pub(super) fn pass(next: &mut State, tick: u8, tells: bool) -> Option<Broken> {
        let last = next.ticks.newest().0;
        next.ticks.set(tick, 1, RunEnd::Open);
        for before in 1..tick {
            if next.owed & bit(before) != 0 {
                return Some(Broken::Passed {
                    cut_short: before,
                    by: tick,
                });
            }
            let fate = &mut next.fates[place(before)];
            // Before its first claim, the job owed nothing.
            if last == 0 || before > last && tells {
                if *fate == Fate::Told {
                    return Some(Broken::ToldTwice(before));
                }
                *fate = Fate::Told;
            }
            if *fate == Fate::Nothing {
                return Some(Broken::Untold(before));
            }
        }
        next.fates[place(tick)] = Fate::Claimed;
        next.owed |= bit(tick);
        None
    }

    /// Begins the run of a tick.
    pub(super) fn start(&self, next: &mut State, by: usize, tick: u8) -> Option<Broken> {
        next.actors[by].phase = Phase::Running;
        if next.well & bit(tick) != 0 {
            return Some(Broken::RunsAgain(tick));
        }
        let is_of_tick = |other: usize| other != by && self.running(next, other) == Some(tick);
        let is_twice = (0..next.actors.len()).any(is_of_tick);
        is_twice.then_some(Broken::RunsTwice(tick))
    }

    /// Returns the tick whose run goes on.
    pub(super) fn running(&self, state: &State, by: usize) -> Option<u8> {
        let actor = state.actors[by];
        if actor.phase != Phase::Running {
            return None;
        }
        match self.role(by) {
            _ if actor.before > 0 => Some(actor.before),
            Schedule | Retry => Some(actor.goal),
            Backfill => self.check.tick_of(actor.known, actor.goal),
            Request => None,
        }
    }

    /// Records the end of a run, and goes on to the next goal.
    pub(super) fn end(&self, next: &mut State, by: usize, end: RunEnd) {
        let actor = next.actors[by];
        match self.role(by) {
            _ if actor.before > 0 => {
                next.ticks.set(actor.before, actor.attempt, end);
                let phase = match actor.goal {
                    0 => Phase::Idle,
                    _ => Phase::Deciding,
                };
                next.actors[by] = Actor {
                    phase,
                    before: 0,
                    attempt: 0,
                    ..actor
                };
            }
            Backfill => {
                next.backfilled.set(actor.known, actor.goal, end);
                next.actors[by] = self.next_tick(actor);
            }
            Schedule => {
                next.ticks.set(actor.goal, 1, end);
                next.actors[by] = Actor::default();
            }
            Retry | Request => {
                next.actors[by] = Actor {
                    phase: Phase::Idle,
                    goal: 0,
                    ..actor
                };
            }
        }
    }

    /// Returns a replica that goes on to the next tick of its backfill.
    pub(super) fn next_tick(&self, actor: Actor) -> Actor {
        let (goal, known) = (actor.goal + 1, actor.known);
        match self.check.tick_of(known, goal) {
            Some(_) => Actor {
                phase: Phase::Deciding,
                goal,
                settled: 0,
                ..actor
            },
            None => Actor {
                known,
                ..Actor::default()
            },
        }
    }

    /// Decides under the lock on a tick that was claimed for a backfill.
    pub(super) fn decide(
        &self,
        next: &mut State,
        by: usize,
        tick: u8,
        is_used_up: bool,
    ) -> Option<Broken> {
        let actor = &mut next.actors[by];
        if std::mem::take(&mut actor.before) > 0 {
            next.ticks.set(tick, 1, RunEnd::Over);
            next.owed &= !bit(tick);
        }
        let runs = match DoneTicks(actor.bits.into()).has(actor.goal.into()) {
            true => RunsBefore::EndedWell,
            false => RunsBefore::Unknown,
        };
        let is_well = !self.breaks(LedgerMutation::BackfillByCountAlone)
            && has_ended_well(self.lines(next), instant(tick));
        match BackfillDecision::of(runs, is_used_up, Some(is_well)) {
            BackfillDecision::Start => return self.start(next, by, tick),
            BackfillDecision::AlreadyWell => self.end(next, by, RunEnd::Well),
            BackfillDecision::Unstarted => self.end(next, by, RunEnd::CutShort),
        }
        None
    }

    /// Claims a further run of a tick, or that there is none, and looks at the runs again under the lock.
    pub(super) fn claim_run(&self, next: &mut State, by: usize) -> Option<Broken> {
        let actor = next.actors[by];
        let (tick, attempt) = (actor.before, actor.attempt);
        let gives_up = actor.phase == Phase::GivesUp;
        let again = match actor.goal {
            0 => Actor::default(),
            _ => Actor {
                phase: Phase::Settling,
                attempt: 0,
                ..actor
            },
        };
        next.actors[by] = again;
        if next.ticks.newest() > (tick, attempt) {
            return None;
        }
        let (runs, backfilled) = (next.ticks.lines(), self.heeded(next));
        let of = instant(tick);
        let runs = match self.breaks(LedgerMutation::OwnLockMistaken) {
            true => RunsOfTick::of(of, Some(of), false, runs, backfilled),
            false => RunsOfTick::before_next(of, attempt, runs, backfilled),
        };
        let may_follow = matches!(runs, RunsOfTick::Open | RunsOfTick::CutShort(_))
            || self.breaks(LedgerMutation::RunsNotReadAgain);
        let claimed = attempt + 1;
        if !may_follow {
            next.ticks.set(tick, claimed, RunEnd::CutShort);
            None
        } else if gives_up {
            next.ticks.set(tick, claimed, RunEnd::Over);
            next.owed &= !bit(tick);
            None
        } else {
            next.ticks.set(tick, claimed, RunEnd::Open);
            next.actors[by] = Actor {
                attempt: claimed,
                ..actor
            };
            self.start(next, by, tick)
        }
    }

    /// Looks at the plan of a backfill.
    pub(super) fn plan(&self, next: &mut State, by: usize, moment: u8) {
        let (of, done) = next.plan;
        let plan = some(of).map(|moment| Plan {
            moment,
            done: done.checked_sub(1).map(|bits| DoneTicks(bits.into())),
        });
        let is_locked = next
            .actors
            .iter()
            .any(|actor| actor.phase == Phase::Counting);
        let idle = next.actors[by];
        let known = Actor {
            known: moment,
            ..idle
        };
        let (actor, plan) = match PlanStep::of(plan, instant(moment), is_locked) {
            PlanStep::Claim if is_locked => (idle, next.plan),
            PlanStep::Claim if self.breaks(LedgerMutation::CountedLate) => {
                (begins(moment, DoneTicks(0)), (moment, 1))
            }
            PlanStep::Claim => {
                let phase = Phase::Counting;
                (Actor { phase, ..known }, (moment, 0))
            }
            PlanStep::Leave => (known, next.plan),
            PlanStep::Wait => (idle, next.plan),
            PlanStep::Count => (begins(moment, self.done(next, moment)), next.plan),
            PlanStep::Go(done) => (begins(moment, done), next.plan),
        };
        next.actors[by] = actor;
        next.plan = plan;
    }

    /// Looks whether a tick of a backfill may be claimed.
    pub(super) fn look_before(&self, next: &mut State, by: usize, tick: u8) {
        let actor = next.actors[by];
        let (goal, known, settled) = (actor.goal, actor.known, some(actor.settled));
        let newest = next.ticks.lines().next();
        let undone = undone_before(newest, instant(tick), settled)
            .filter(|_| !self.breaks(LedgerMutation::CutShortPassed));
        next.actors[by] = if next.plan.0 > known {
            Actor {
                known,
                ..Actor::default()
            }
        } else if next.backfilled.has_passed(known, goal) {
            self.next_tick(actor)
        } else if let Some(before) = undone {
            Actor {
                phase: Phase::Settling,
                before: number(before),
                ..actor
            }
        } else {
            let phase = Phase::Ready;
            Actor { phase, ..actor }
        };
    }

    /// Sees to it that no replica starts a tick of a backfill as one that was due.
    pub(super) fn use_up(&self, next: &mut State, by: usize, tick: u8) -> Option<Broken> {
        let actor = &mut next.actors[by];
        actor.phase = Phase::UsedUp;
        if next.ticks.newest().0 >= tick || self.breaks(LedgerMutation::TickNotUsedUp) {
            return None;
        }
        let settled = some(actor.settled);
        let is_undone = next
            .ticks
            .lines()
            .next()
            .is_some_and(|line| line.is_undone(settled));
        if is_undone && !self.breaks(LedgerMutation::CutShortPassed) {
            return self.decide(next, by, tick, false);
        }
        actor.before = tick;
        Self::pass(next, tick, !self.breaks(LedgerMutation::MissedUntold))
    }

    /// Claims a tick that is due or was missed.
    pub(super) fn claim_tick(&self, next: &mut State, by: usize, tick: u8) -> Option<Broken> {
        let actor = next.actors[by];
        if next.ticks.newest().0 >= tick {
            next.actors[by] = Actor::default();
            return None;
        }
        let undone = next.ticks.lines().next().filter(|line| {
            let is_undone = line.is_undone(some(actor.settled));
            is_undone && !self.breaks(LedgerMutation::CutShortPassedOnTime)
        });
        if let Some(line) = undone {
            next.actors[by] = Actor {
                phase: Phase::Settling,
                goal: tick,
                before: number(line.tick),
                ..actor
            };
            return None;
        }
        next.actors[by] = Actor {
            goal: tick,
            ..Actor::default()
        };
        Self::pass(next, tick, true).or_else(|| self.start(next, by, tick))
    }
}

/// Returns a replica that begins with the first tick of a backfill.
pub(super) fn begins(moment: u8, done: DoneTicks) -> Actor {
    Actor {
        phase: Phase::Deciding,
        goal: 1,
        known: moment,
        bits: done.0 as u8,
        ..Actor::default()
    }
}

/// Returns whether it holds the lock of the job.
pub(super) fn holds(actor: Actor) -> bool {
    matches!(actor.phase, Phase::Won | Phase::UsedUp | Phase::Running)
}

pub(super) fn is_locked(state: &State) -> bool {
    state.actors.into_iter().any(holds)
}

/// Returns the requests that are remembered.
pub(super) fn remembered(state: &State) -> impl Iterator<Item = u8> + use<> {
    let asked = state.asked;
    (asked.saturating_sub(REQUESTS as u8) + 1..=asked).filter(|id| *id > 0)
}

pub(super) fn some(number: u8) -> Option<Tick> {
    (number > 0).then(|| instant(number))
}

/// Returns the bit of a tick or a request.
pub(super) fn bit(number: u8) -> u8 {
    1 << (number - 1)
}
