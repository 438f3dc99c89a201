//! What can happen in a world of named servers, and what follows from it.

use super::{
    NamedCheck, NamedMutation,
    informants::{hello, members},
    inquiry::Inquiries,
    number::Layout,
    state::{
        Answers, CLIENTS, Failover, Ids, Informant, Inquiry, Mark, MarkKind, Pair, Request,
        SERVERS, Session, State, other,
    },
    step::{Breach, Outcome, Reply, Step},
};
use crate::{explore::World, report::counted};

#[derive(Debug)]
pub(super) struct Rules {
    check: NamedCheck,
    layout: Layout,
    inquiries: Inquiries,
}

impl Rules {
    pub(super) fn new(check: NamedCheck) -> Self {
        Self {
            check,
            layout: Layout::new(&check),
            inquiries: Inquiries::new(check),
        }
    }

    fn steps_of_server(&self, state: &State, server: usize, tell: &mut impl FnMut(Step)) {
        let [own, other] = [server, 1 - server].map(|it| state.servers[it]);
        let have_mark = [own, other].iter().any(|it| it.mark.kind != MarkKind::None);
        if !self.check.world.is_plain && !own.is_master && other.is_master && have_mark {
            tell(Step::Replicate { to: server });
        }
        if state.restarts < self.check.world.restarts {
            tell(Step::Restart {
                server,
                keeps: true,
            });
            tell(Step::Restart {
                server,
                keeps: false,
            });
        }
    }

    fn steps_of_client(&self, state: &State, by: usize, tell: &mut impl FnMut(Step)) {
        let client = &state.clients[by];
        self.inquiry(state, by, tell);
        if self.check.world.has_slow_answers {
            self.slow_inquiry(state, by, tell);
        }
        if let Some(session) = client.session {
            if !self.check.world.is_plain {
                tell(Step::Leave { by });
            }
            if session.age <= self.check.world.freshness {
                let (pair, roll, age) = (session.pair, session.roll, 0);
                let (server, request) = (pair.server, Request { pair, roll, age });
                let reply = self.reply(state, by, request);
                tell(Step::Call { by, server, reply });
                if self.check.world.has_late_requests {
                    tell(Step::Send { by, server });
                }
            }
        }
        if let Some(request) = client.request {
            let reply = self.reply(state, by, request);
            let server = request.pair.server;
            tell(Step::Arrive { by, server, reply });
        }
    }

    /// Tells what a client can do whose informants answer at the same moment, or not at all.
    fn inquiry(&self, state: &State, by: usize, tell: &mut impl FnMut(Step)) {
        let url = self.check.url(by);
        let mut told: [Option<Outcome>; MOST_OUTCOMES] = [None; MOST_OUTCOMES];
        // Where more of them answer, there is more to decide by, and less that others do as well.
        for heard in (1..=url).rev().filter(|heard| heard & !url == 0) {
            let answers = self.answers(state, heard);
            let outcomes = self.inquiries.outcomes(state, by, answers, true);
            for outcome in outcomes.into_iter().flatten() {
                if told.contains(&Some(outcome)) {
                    continue;
                }
                if let Some(free) = told.iter_mut().find(|it| it.is_none()) {
                    *free = Some(outcome);
                }
                tell(Step::Inquire {
                    by,
                    answers,
                    outcome,
                });
            }
        }
    }

    /// Tells what a client can do whose informants answer one after the other.
    ///
    /// Answers that confirm nothing are left out, because an informant need not answer.
    fn slow_inquiry(&self, state: &State, by: usize, tell: &mut impl FnMut(Step)) {
        let session = state.clients[by].session;
        let hears_unsteady = session.is_some() || self.check.breaks(NamedMutation::BeginsUnsteady);
        let Some(inquiry) = state.inquiry else {
            if hears_unsteady {
                tell(Step::Ask { by });
            }
            self.steady(state, by, tell);
            return;
        };
        if usize::from(inquiry.by) != by {
            return;
        }
        let (answers, is_steady) = (inquiry.answers, inquiry.is_steady);
        if !is_steady && hears_unsteady {
            for from in members(self.check.url(by) & !answers.heard()) {
                let Some(pair) = self.check.named_by(&state.informants[from]) else {
                    continue;
                };
                if session.is_none_or(|session| session.pair == pair) {
                    tell(Step::Hear { by, from, pair });
                }
            }
        }
        let outcomes = self.inquiries.outcomes(state, by, answers, is_steady);
        for outcome in outcomes.into_iter().flatten() {
            tell(Step::Conclude {
                by,
                answers,
                outcome,
            });
        }
    }

    /// Tells which answers of one moment a client may act on later.
    fn steady(&self, state: &State, by: usize, tell: &mut impl FnMut(Step)) {
        let url = self.check.url(by);
        let all = self.answers(state, url);
        let session = state.clients[by].session;
        if session.is_none() {
            tell(Step::HearSteady { by, answers: all });
        }
        for code in all.named.into_iter().filter(|code| *code > 0) {
            let is_its = session.is_none_or(|session| session.pair.code() == code);
            let mut answers = all;
            for other in &mut answers.named {
                *other = if *other == code { code } else { 0 };
            }
            let is_told = session.is_none() && answers == all;
            if is_its && !is_told && answers.heard().count_ones() > url.count_ones() / 2 {
                tell(Step::HearSteady { by, answers });
            }
        }
    }

    /// Returns what these informants answer; one that names no server is as one that does not answer.
    fn answers(&self, state: &State, heard: u8) -> Answers {
        let mut answers = Answers::default();
        for place in members(heard) {
            let pair = self.check.named_by(&state.informants[place]);
            answers.named[place] = pair.map_or(0, Pair::code);
        }
        answers
    }

    /// A client acts on the answers of an inquiry that it began `age` steps of the clocks ago.
    fn conclude(&self, state: &mut State, by: usize, age: u8, outcome: Outcome) {
        let session = &mut state.clients[by].session;
        match outcome {
            Outcome::Counts { pair, roll } | Outcome::Lists { pair, roll } => {
                *session = Some(Session { pair, roll, age });
            }
            Outcome::Relists { pair, roll } => {
                let server = &mut state.servers[usize::from(pair.server)];
                if server.is_master {
                    if self.check.breaks(NamedMutation::RelistsInPlace) {
                        server.mark.roll = roll;
                    } else {
                        server.mark = Mark::default();
                    }
                    *session = Some(Session { pair, roll, age });
                }
            }
            Outcome::Confirms { roll } | Outcome::Extends { roll } => {
                let Some(session) = session else { return };
                let server = &mut state.servers[usize::from(session.pair.server)];
                if matches!(outcome, Outcome::Extends { .. }) {
                    if !server.is_master {
                        return;
                    }
                    server.mark.roll = roll;
                }
                session.age = session.age.min(age);
                session.roll = roll;
            }
            Outcome::Adopts { roll } => {
                let Some(session) = session else { return };
                session.roll = roll;
            }
            Outcome::Follows { server } => {
                let (pair, roll) = (Pair { server, epoch: 0 }, Ids::default());
                *session = Some(Session { pair, roll, age });
            }
            Outcome::Closes => *session = None,
        }
    }

    /// Returns what a server would do with a request.
    fn reply(&self, state: &State, by: usize, request: Request) -> Reply {
        self.check.execute(&mut state.clone(), by, request)
    }

    /// All clocks go on.
    fn tick(&self, state: &mut State) {
        let (ttl, freshness) = (self.check.world.ttl, self.check.world.freshness);
        for client in &mut state.clients {
            client.lease = client.lease.saturating_sub(1);
            if let Some(session) = &mut client.session {
                session.age = (session.age + 1).min(freshness + 1);
            }
            if let Some(request) = &mut client.request {
                request.age = (request.age + 1).min(ttl);
            }
        }
        if let Some(inquiry) = &mut state.inquiry {
            inquiry.age += 1;
        }
        state.inquiry = state.inquiry.filter(|it| it.age <= freshness);
        for server in &mut state.servers {
            if server.mark.kind == MarkKind::Quarantined {
                server.mark.age = (server.mark.age + 1).min(self.check.quarantine());
            }
            server.ttl = server.ttl.saturating_sub(1);
            server.key = server.key.filter(|_| server.ttl > 0);
        }
    }

    /// An informant comes back with another id.
    fn renew(state: &mut State, informant: usize, server: u8) {
        state.renew_id(informant);
        let own = &mut state.informants[informant];
        *own = Informant {
            server,
            was_reset: own.was_reset,
            ..Informant::default()
        };
    }
}

impl World for Rules {
    type State = State;
    type Step = Step;
    type Breach = Breach;

    fn number(&self, state: &State) -> u128 {
        self.layout.number(state)
    }

    fn state(&self, number: u128) -> State {
        self.layout.state(number)
    }

    fn steps(&self, state: &State, mut tell: impl FnMut(Step)) {
        tell(Step::Tick);
        for informant in 0..self.check.world.informants {
            self.check.steps_of_informant(state, informant, &mut tell);
        }
        for server in 0..SERVERS {
            self.steps_of_server(state, server, &mut tell);
        }
        for by in 0..CLIENTS {
            self.steps_of_client(state, by, &mut tell);
        }
    }

    fn apply(&self, state: &State, step: Step) -> (State, Option<Breach>) {
        let mut next = *state;
        match step {
            Step::Tick => self.tick(&mut next),
            Step::Elect {
                leader,
                voters,
                epoch,
                promotes,
                ..
            } => {
                members(voters).for_each(|it| next.informants[it].seen = epoch);
                if promotes {
                    self.check.promote(&mut next, leader, epoch);
                } else {
                    next.informants[leader].failover = Failover::Elected(epoch);
                }
            }
            Step::Promote { leader } => {
                if let Failover::Elected(epoch) = state.informants[leader].failover {
                    self.check.promote(&mut next, leader, epoch);
                }
            }
            Step::Abandon { leader } => next.informants[leader].failover = Failover::None,
            Step::End { leader } => {
                let informant = &mut next.informants[leader];
                informant.server = other(informant.server);
                informant.failover = Failover::None;
            }
            Step::Hello {
                to, server, epoch, ..
            } => {
                hello(&mut next.informants[to], server, epoch);
            }
            Step::Demote { server, .. } => {
                let server = &mut next.servers[usize::from(server)];
                server.is_master = false;
                server.mark.estrange();
            }
            Step::Lose { informant } => {
                next.lost += 1;
                Self::renew(&mut next, informant, 0);
            }
            Step::Replace { informant, server } => {
                next.replaced += 1;
                Self::renew(&mut next, informant, server);
            }
            Step::Reset { informant } => next.informants[informant].was_reset = true,
            Step::Replicate { to } => {
                next.servers[to].mark = state.servers[1 - to].mark;
                next.servers[to].mark.estrange();
            }
            Step::Restart { server, keeps } => {
                next.restarts += 1;
                let server = &mut next.servers[server];
                server.key = None;
                server.mark.estrange();
                if !keeps {
                    server.mark = Mark::default();
                }
            }
            Step::Inquire { by, outcome, .. } => self.conclude(&mut next, by, 0, outcome),
            Step::Ask { by } => next.inquiry = Some(Inquiry::of(by)),
            Step::Hear { from, pair, .. } => {
                if let Some(inquiry) = &mut next.inquiry {
                    inquiry.answers.named[from] = pair.code();
                }
            }
            Step::HearSteady { by, answers } => {
                next.inquiry = Some(Inquiry {
                    answers,
                    is_steady: true,
                    ..Inquiry::of(by)
                });
            }
            Step::Conclude { by, outcome, .. } => {
                if let Some(inquiry) = next.inquiry.take() {
                    self.conclude(&mut next, by, inquiry.age, outcome);
                }
            }
            Step::Leave { by } => {
                next.clients[by].session = None;
                next.inquiry = next.inquiry.filter(|it| usize::from(it.by) != by);
            }
            Step::Call { by, .. } | Step::Send { by, .. } => {
                if let Some(Session { pair, roll, .. }) = state.clients[by].session {
                    let request = Request { pair, roll, age: 0 };
                    if matches!(step, Step::Call { .. }) {
                        self.check.execute(&mut next, by, request);
                    } else {
                        next.clients[by].request = Some(request);
                    }
                }
            }
            Step::Arrive { by, .. } => {
                if let Some(request) = next.clients[by].request.take() {
                    self.check.execute(&mut next, by, request);
                }
            }
        }
        forget_what_does_not_matter(&mut next);
        let breach = next.clients.iter().all(|client| client.lease > 0);
        (next, breach.then_some(Breach))
    }
}

/// Makes states equal that nothing can tell apart.
fn forget_what_does_not_matter(state: &mut State) {
    for server in &mut state.servers {
        if server.mark.kind == MarkKind::None {
            server.mark = Mark::default();
        }
        if !server.is_master {
            server.key = None;
        }
        if server.key.is_none() {
            server.ttl = 0;
        }
    }
    state.forget_former();
}

/// The most outcomes that the answers of one moment have for one client.
const MOST_OUTCOMES: usize = 32;

counted! {
    NamedCheck by of;
    pub struct NamedCounts {
        /// How many of the steps gave a client a lease.
        granted: Step::Call { reply: Reply::Granted, .. } | Step::Arrive { reply: Reply::Granted, .. },
        /// How many of the steps began a quarantine.
        quarantines: Step::Call { reply: Reply::Begins, .. } | Step::Arrive { reply: Reply::Begins, .. },
        /// How many of the steps replaced a roll.
        relisted: Step::Inquire { outcome: Outcome::Relists { .. }, .. }
            | Step::Conclude { outcome: Outcome::Relists { .. }, .. },
        /// How many of the steps let informants join a roll.
        extended: Step::Inquire { outcome: Outcome::Extends { .. }, .. }
            | Step::Conclude { outcome: Outcome::Extends { .. }, .. },
    }
}
