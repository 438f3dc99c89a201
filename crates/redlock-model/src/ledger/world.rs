//! What can happen in a world of one job.

use redlock_proto::ledger::{RunEnd, has_ended_well};

use super::{
    LedgerCheck, LedgerMutation,
    LedgerRole::{Backfill, Request, Retry, Schedule},
    record::{ATTEMPTS, KEPT, RANGE, REQUESTS, TICKS, instant},
    rules::{Look, Rules, begins, bit, holds, is_locked, remembered},
    state::{Actor, Phase, State},
    step::{Broken, Step},
};
use crate::{explore::World, report::counted};

impl World for Rules {
    type State = State;
    type Step = Step;
    type Breach = Broken;

    fn number(&self, state: &State) -> u128 {
        let mut state = *state;
        let mut rest = &mut state.actors[..];
        for alike in self.check.roles.chunk_by(|one, other| one == other) {
            let (actors, others) = rest.split_at_mut(alike.len());
            actors.sort_unstable();
            rest = others;
        }
        state.number()
    }

    fn state(&self, number: u128) -> State {
        State::of(number)
    }

    fn steps(&self, state: &State, mut tell: impl FnMut(Step)) {
        if usize::from(state.due) < TICKS {
            let tick = state.due + 1;
            tell(Step::Due { tick });
        }
        let asked = self.check.ranges.get(usize::from(state.backfills)).copied();
        if asked.flatten().is_some_and(|(_, last)| last <= state.due) {
            let moment = state.backfills + 1;
            tell(Step::AskBackfill { moment });
        }
        let is_refused =
            Self::waiting(state) >= REQUESTS && !self.breaks(LedgerMutation::RequestsUnlimited);
        if state.asked < self.check.requests && !is_refused {
            let id = state.asked + 1;
            tell(Step::AskRun { id });
        }
        let is_free = !is_locked(state);
        let newest = state.ticks.newest().0;
        for (by, role) in self.check.roles.iter().enumerate() {
            let Some(role) = role else { continue };
            let actor = state.actors[by];
            let tick = match role {
                Backfill if actor.goal > 0 => self.check.tick_of(actor.known, actor.goal),
                _ => None,
            };
            let tick = tick.unwrap_or(actor.goal);
            if state.cuts < self.check.cuts {
                let holds = holds(actor) || actor.phase == Phase::Counting;
                if holds || *role == Backfill && actor.phase != Phase::Idle {
                    tell(Step::Crash { by });
                }
                if actor.phase == Phase::Running {
                    tell(Step::Lose { by });
                }
            }
            match (actor.phase, role) {
                (Phase::Idle, Schedule) if is_free => {
                    (newest + 1..=state.due).for_each(|tick| tell(Step::ClaimTick { by, tick }));
                }
                (Phase::Idle, Retry) if newest > 0 => {
                    let tick = newest;
                    for late in [false, true] {
                        tell(Step::LookAtRuns { by, tick, late });
                    }
                }
                (Phase::Idle, Backfill) if actor.known < state.backfills => {
                    let moment = actor.known + 1;
                    tell(Step::Plan { by, moment });
                }
                (Phase::Idle, Request) => {
                    if actor.known < state.asked {
                        tell(Step::Hear { by });
                    }
                    let mut noted = (1..=state.asked).filter(|id| actor.bits & bit(*id) != 0);
                    let id = match self.breaks(LedgerMutation::NewestRequestFirst) {
                        true => noted.next_back(),
                        false => noted.next(),
                    };
                    if let Some(id) = id.filter(|_| is_free) {
                        tell(Step::ClaimRequest { by, id });
                    }
                }
                (Phase::Deciding, Backfill) => tell(Step::LookBefore { by, tick }),
                (Phase::Deciding, _) => {
                    if is_free || newest >= tick {
                        tell(Step::ClaimTick { by, tick });
                    }
                }
                (Phase::Settling, _) => {
                    let tick = actor.before;
                    for late in [false, true] {
                        tell(Step::LookAtRuns { by, tick, late });
                    }
                }
                (Phase::Next, _) if is_free => tell(Step::ClaimRun {
                    by,
                    tick: actor.before,
                    attempt: actor.attempt + 1,
                }),
                (Phase::GivesUp, _) if is_free => {
                    let tick = actor.before;
                    tell(Step::GiveUp { by, tick });
                }
                (Phase::Ready, _) if is_free => tell(Step::ClaimBackfilled { by, tick }),
                (Phase::Counting, _) => {
                    let moment = actor.known;
                    tell(Step::Count { by, moment });
                }
                (Phase::Won, _) => tell(Step::UseUp { by, tick }),
                (Phase::UsedUp, _) => tell(Step::Decide { by, tick }),
                (Phase::Running, _) => {
                    for well in [true, false] {
                        tell(Step::End { by, well });
                    }
                }
                (Phase::Idle | Phase::Next | Phase::GivesUp | Phase::Ready, _) => {}
            }
        }
    }

    fn apply(&self, state: &State, step: Step) -> (State, Option<Broken>) {
        let mut next = *state;
        let broken = match step {
            Step::Due { tick } => {
                next.due = tick;
                None
            }
            Step::AskBackfill { moment } => {
                next.backfills = moment;
                // It cannot heed what the record has forgotten.
                for tick in 1..=TICKS as u8 {
                    if !has_ended_well(self.lines(state), instant(tick)) {
                        next.well &= !bit(tick);
                    }
                }
                None
            }
            Step::AskRun { id } => {
                next.asked = id;
                None
            }
            Step::Crash { by } => {
                next.cuts += 1;
                next.actors[by] = Actor::default();
                None
            }
            Step::Lose { by } => {
                next.cuts += 1;
                self.end(&mut next, by, RunEnd::CutShort);
                None
            }
            Step::End { by, well } => {
                let tick = self.running(state, by);
                let is_backfill = self.role(by) == Backfill && state.actors[by].before == 0;
                let end = match well {
                    true => RunEnd::Well,
                    false => RunEnd::Over,
                };
                self.end(&mut next, by, end);
                if let Some(tick) = tick {
                    next.well |= bit(tick) * u8::from(well);
                    // A run of a backfill that fails leaves the tick to its retries.
                    if well || !is_backfill {
                        next.owed &= !bit(tick);
                    }
                }
                None
            }
            Step::ClaimTick { by, tick } => self.claim_tick(&mut next, by, tick),
            Step::LookAtRuns { by, tick, late } => {
                let actor = state.actors[by];
                next.actors[by] = match self.look(state, tick) {
                    Look::NoOther if actor.goal > 0 => Actor {
                        phase: Phase::Deciding,
                        before: 0,
                        settled: tick,
                        ..actor
                    },
                    Look::Wait | Look::NoOther => actor,
                    Look::After(attempt) => Actor {
                        phase: match late || attempt >= ATTEMPTS {
                            true => Phase::GivesUp,
                            false => Phase::Next,
                        },
                        before: tick,
                        attempt,
                        ..actor
                    },
                };
                None
            }
            Step::ClaimRun { by, .. } | Step::GiveUp { by, .. } => self.claim_run(&mut next, by),
            Step::Plan { by, moment } => {
                self.plan(&mut next, by, moment);
                None
            }
            Step::Count { by, moment } => {
                let done = self.done(state, moment);
                next.plan.1 = 1 + begins(moment, done).bits;
                next.actors[by] = begins(moment, done);
                None
            }
            Step::LookBefore { by, tick } => {
                self.look_before(&mut next, by, tick);
                None
            }
            Step::ClaimBackfilled { by, .. } => {
                let actor = &mut next.actors[by];
                if state.backfilled.has_passed(actor.known, actor.goal) {
                    actor.phase = Phase::Deciding;
                } else {
                    actor.phase = Phase::Won;
                    let kept = match self.breaks(LedgerMutation::NoLineToSpare) {
                        true => RANGE,
                        false => KEPT,
                    };
                    next.backfilled.claim(actor.known, actor.goal, kept);
                }
                None
            }
            Step::UseUp { by, tick } => self.use_up(&mut next, by, tick),
            Step::Decide { by, tick } => self.decide(&mut next, by, tick, true),
            Step::Hear { by } => {
                let actor = &mut next.actors[by];
                let new = remembered(state).filter(|id| *id > actor.known);
                actor.bits |= new.fold(0, |bits, id| bits | bit(id));
                actor.known = state.asked;
                None
            }
            Step::ClaimRequest { by, id } => {
                let actor = &mut next.actors[by];
                actor.bits &= !bit(id);
                if state.decided >= id {
                    None
                } else {
                    actor.phase = Phase::Running;
                    actor.goal = id;
                    next.decided = id;
                    let lost = state.decided + 1;
                    (lost < id).then_some(Broken::RequestLost(lost))
                }
            }
        };
        (next, broken)
    }
}

counted! {
    LedgerCheck by of;
    pub struct LedgerCounts {
        /// How many of the steps ended a run by itself.
        ended: Step::End { .. },
        /// How many of the steps claimed a further run of a tick.
        again: Step::ClaimRun { .. },
        /// How many of the steps decided on a tick of a backfill.
        backfilled: Step::Decide { .. },
        /// How many of the steps claimed a requested run.
        requested: Step::ClaimRequest { .. },
    }
}
