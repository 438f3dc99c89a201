//! The world: clients, nodes, the network between them, and time.
//!
//! All random choices are drawn from the seed, and each event follows from those before.
//! So a seed determines a world completely.
//!
//! | file | role |
//! |---|---|
//! | `begin` | what a seed makes of a plan |
//! | `agenda` | what will happen, in order of time |
//! | `link`, `wire`, `news`, `said` | connections, under the protocol's link: order, delays, holes, cuts, and what clients are told |
//! | `naming` | informants that name the servers of nodes, and the sessions of clients that follow them |
//! | `server`, `calls`, `failing` | nodes, and what they do with calls |
//! | `process`, `effects`, `sends`, `callers`, `asks` | clients, and what they want done |
//! | `users`, `turns`, `upgrades`, `ticks`, `status` | the users of clients, which take turns |
//! | `faults`, `repair` | the faults, and the time after the last one |
//! | `shadow`, `owners`, `leftovers`, `vain` | a second record of what must be true |

mod agenda;
mod asks;
mod begin;
mod callers;
mod calls;
mod effects;
mod failing;
mod faults;
mod gifts;
mod leftovers;
mod link;
mod naming;
mod needless_loss;
mod news;
mod owners;
mod process;
mod repair;
mod said;
mod sends;
mod server;
mod shadow;
mod status;
mod ticks;
mod turns;
mod upgrades;
mod users;
mod waiter;
mod wire;

use std::{cmp::Reverse, collections::VecDeque, time::Duration};

use self::{
    agenda::{Agenda, Due},
    gifts::Gifts,
    link::{Calls, Connection},
    naming::Naming,
    owners::Owners,
    process::Process,
    repair::Phase,
    server::Server,
};
use crate::{
    Checker, Counters, Event, Moment, Plan, Violation,
    fault::Fault,
    random::Random,
    setup::{Micros, Setup},
    trace::Trace,
};

/// The report of a world.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The seed of the world.
    pub seed: u64,
    /// The counts of its events.
    pub counters: Counters,
    /// The violations, and the times at which they were seen.
    pub violations: Vec<(Moment, Violation)>,
    /// A number that is the same only if the same events happened at the same times.
    pub trace_hash: u64,
    /// The events, line by line, if they were requested.
    pub trace: Vec<String>,
}

/// Runs the world of a seed and a plan, up to its end or to the first violation.
///
/// With `readable`, the report has a line for each event.
pub fn run(seed: u64, plan: Plan, readable: bool) -> Report {
    let mut world = World::new(seed, plan, readable);
    world.begin();
    while let Some((at, due)) = world.agenda.next() {
        world.now = at;
        world.counters.events += 1;
        world.trace.mix(at);
        world.trace.mix(due.code());
        if matches!(due, Due::End) {
            world.end();
            break;
        }
        world.step(due);
        if world.counters.events > MOST_EVENTS {
            let at = Moment::from_micros(at);
            world.checker.report(at, Violation::Endless);
        }
        if world.must_stop() {
            break;
        }
    }
    world.report(seed)
}

#[derive(Debug)]
struct World {
    now: Micros,
    setup: Setup,
    random: Random,
    agenda: Agenda,
    servers: Vec<Server>,
    processes: Vec<Process>,
    /// By client, then by node.
    links: Vec<Connection>,
    calls: Calls,
    owners: Owners,
    gifts: Gifts,
    naming: Naming,
    faults: Vec<(Micros, Fault)>,
    phase: Phase,
    /// By how much each node's clock was set forward in all.
    stepped: Vec<i64>,
    /// The ticks of each job that were claimed lately.
    recent: Vec<VecDeque<u64>>,
    /// When each node lost data last.
    forgot: Vec<Option<Micros>>,
    /// When what was broken had mended.
    settled: Option<Micros>,
    /// The time from which no caller asks for a single key, so that callers of several keys have their turn.
    singles_rest_at: Option<Micros>,
    /// The client that shares nothing and waits for long after the last fault.
    ///
    /// The other clients must let it have what they share.
    loner: Option<usize>,
    /// By how much longer nodes may keep keys because a clock was set back.
    behind: Micros,
    checker: Checker,
    /// How many callers of each process want each key.
    callers: usize,
    next_lease: u64,
    next_waiter: u64,
    counters: Counters,
    trace: Trace,
}

impl World {
    fn step(&mut self, due: Due) {
        if let Some(client) = due.client(self.setup.nodes)
            && self.processes[client].stands_still()
        {
            self.processes[client].inbox.push(due);
            return;
        }
        match due {
            Due::Arrive { link, conn } => self.on_arrival(link, conn),
            Due::ArriveLate { call, serial } => self.on_late_arrival(call, serial),
            Due::Answer { link, conn } => self.on_answer(link, conn),
            Due::Lost { link, conn } => self.on_lost(link, conn),
            Due::Link { link, life } => self.on_link_timer(link, life),
            Due::News { link, life } => self.on_news(link, life),
            Due::Listens { client, node, life } => self.on_listens(client, node, life),
            Due::Gift {
                client,
                life,
                message,
            } => self.on_gift(client, life, message),
            Due::Naming { message } => self.on_naming(message),
            Due::Told { link, message } | Due::Watch { link, message } => {
                self.on_told(link, message);
            }
            Due::Timer { client, life } => self.on_timer(client, life),
            Due::Act { client, key, stamp } => self.on_act(client, key, stamp),
            Due::Come { client, key, life } => self.on_come(client, key, life),
            Due::Caller { client, waiter } => self.on_caller(client, waiter),
            Due::Wake { client, life } => self.on_wake(client, life),
            Due::Begin { client, life } => self.on_successor(client, life),
            Due::Restart { node } => self.on_restart(node),
            Due::Right { node } => self.on_right(node),
            Due::Fault { index } => self.on_fault(index),
            Due::Bless => self.on_bless(),
            Due::Repair => self.on_repair(),
            Due::Settle => self.on_settled(),
            Due::Close { last } => self.on_close(last),
            Due::End => {}
        }
    }

    /// A client's own timer is due.
    fn on_timer(&mut self, client: usize, life: u32) {
        let process = &mut self.processes[client];
        if process.life != life || process.timer_at > self.now {
            return;
        }
        process.timer_at = Micros::MAX;
        self.tell_backlogs(client);
        let process = &mut self.processes[client];
        let now = process.now(self.now);
        process.client.on_timer(now);
        self.settle(client);
    }

    /// A client that stood still goes on: with what has come, then with its timers, then with its users.
    fn on_wake(&mut self, client: usize, life: u32) {
        let process = &mut self.processes[client];
        if process.life != life || !process.is_alive || process.is_paused(self.now) {
            return;
        }
        let Some(length) = process.wake(self.now) else {
            return;
        };
        let length = Duration::from_micros(length);
        let mut inbox = std::mem::take(&mut process.inbox);
        self.observe(&Event::StoodStill { client, length });
        // A machine that was suspended finds its timers due before it has read what came over its connections.
        if self.setup.odd.suspends {
            inbox.sort_by_key(|due| Reverse(due.rank()));
        } else {
            inbox.sort_by_key(|due| due.rank());
        }
        let slices = self.setup.slices.filter(|_| self.phase.is_faulty());
        let most = slices.map_or(usize::MAX, |slices| slices.events);
        let left = inbox.split_off(most.min(inbox.len()));
        for due in inbox.drain(..) {
            self.step(due);
        }
        if let Some(slices) = slices
            && !left.is_empty()
        {
            self.processes[client].inbox.extend(left);
            self.pause(client, slices.off);
            return;
        }
        // It may stand still again by now.
        let later = &mut self.processes[client].inbox;
        if later.is_empty() {
            *later = inbox;
        }
    }

    /// Makes a client's timer due when it wants it to be.
    fn set_timer(&mut self, client: usize) {
        let process = &mut self.processes[client];
        let Some(next) = process.client.next_timer() else {
            return;
        };
        if process.timer_at < Micros::MAX && next >= process.timer_for {
            return;
        }
        let at = process.when(next).max(self.now);
        process.timer_for = next;
        if at < process.timer_at {
            process.timer_at = at;
            let life = process.life;
            self.agenda.add(at, Due::Timer { client, life });
        }
    }

    const fn link(&self, client: usize, node: usize) -> usize {
        client * self.setup.nodes + node
    }

    fn observe(&mut self, event: &Event) {
        if let Event::Forgot { node } = *event {
            self.forgot[node] = Some(self.now);
        }
        self.checker.observe(Moment::from_micros(self.now), event);
    }

    /// Returns whether something was wrong that nothing excuses.
    fn must_stop(&self) -> bool {
        let plan = self.setup.plan;
        let found = self.checker.found().iter();
        found
            .rev()
            .take(4)
            .any(|(_, violation)| !plan.excuses(violation))
    }

    fn report(mut self, seed: u64) -> Report {
        let mut violations = self.checker.finish(Moment::from_micros(self.now));
        let plan = self.setup.plan;
        let has = |name| violations.iter().any(|(_, found)| found.name() == name);
        self.counters.ticks_again += u64::from(has("StartedAgain"));
        self.counters.overlaps += u64::from(has("Overlap"));
        let before = violations.len();
        violations.retain(|(_, violation)| !plan.excuses(violation));
        self.counters.excused += u64::from(before > violations.len());
        self.counters.seeds = 1;
        let (trace_hash, trace) = self.trace.into_parts();
        Report {
            seed,
            counters: self.counters,
            violations,
            trace_hash,
            trace,
        }
    }
}

/// Five hundred times as many as there usually are: while one client stands still for minutes, the others look after a node
/// whose clock is wrong all the time.
const MOST_EVENTS: u64 = 3_000_000;
