//! The world: clients, nodes, the network between them, and time.
//!
//! Whatever is random in it was drawn from the seed, and whatever happens follows from what happened before, so
//! that a seed tells everything about a world.
//!
//! | file | role |
//! |---|---|
//! | `agenda` | what will happen, in order of time |
//! | `link`, `wire`, `news` | connections, under the protocol's link: order, delays, holes, cuts, and what clients are told |
//! | `server`, `calls`, `failing` | nodes, and what they do with calls |
//! | `process`, `effects`, `callers`, `users`, `ticks`, `status` | clients, what they want done, and who uses them, in turn |
//! | `faults`, `repair` | what goes wrong, and the end, when nothing does any more |
//! | `shadow`, `owners`, `leftovers` | what must be true, written down a second time |

mod agenda;
mod callers;
mod calls;
mod effects;
mod failing;
mod faults;
mod leftovers;
mod link;
mod news;
mod owners;
mod process;
mod repair;
mod server;
mod shadow;
mod status;
mod ticks;
mod turns;
mod users;
mod waiter;
mod wire;

use std::{cmp::Reverse, collections::VecDeque, time::Duration};

use redlock_proto::{Client, ClientConfig};

use self::{
    agenda::{Agenda, Due},
    link::{Calls, Connection},
    owners::Owners,
    process::Process,
    repair::Phase,
    server::Server,
};
use crate::{
    Checker, Counters, Event, Moment, Plan, Violation,
    clock::Clock,
    fault::{self, Fault},
    random::Random,
    setup::{Birth, MS, Micros, SECOND, Setup},
    trace::Trace,
};

/// What came of a world.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The seed that it was made from.
    pub seed: u64,
    /// What happened in it.
    pub counters: Counters,
    /// What was wrong about that, and when it was seen.
    pub violations: Vec<(Moment, Violation)>,
    /// A number that is the same only if the same things happened at the same times.
    pub trace_hash: u64,
    /// What happened, line by line, if that was asked for.
    pub trace: Vec<String>,
}

/// Runs the world that a seed makes of a plan, up to its end or to the first thing that is wrong.
///
/// With `readable`, the report says line by line what happened.
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
    faults: Vec<(Micros, Fault)>,
    phase: Phase,
    /// By how much each node's clock was set forward in all.
    stepped: Vec<i64>,
    /// The ticks of each job that somebody has claimed lately.
    recent: Vec<VecDeque<u64>>,
    /// When each node lost data last.
    forgot: Vec<Option<Micros>>,
    /// When what was broken had mended.
    settled: Option<Micros>,
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
    fn new(seed: u64, plan: Plan, readable: bool) -> Self {
        let mut random = Random::new(seed.wrapping_mul(0x9e6c_63d0_876a_68ef) ^ 0x2545_f491);
        // Worlds without anything odd are as they are whatever there is that is odd.
        let mut odd = Random::new(seed.wrapping_mul(0xd6e8_feb8_6659_fd93) ^ 0x1b56_c4e9);
        let setup = Setup::draw(plan, &mut random, &mut odd);
        let mut faults = fault::draw(&setup, &mut random.fork(), &mut odd);
        faults.sort_by_key(|(at, _)| *at);
        let stray = random.index(setup.nodes);
        let servers = (0..setup.nodes).map(|node| {
            let mut ahead = EPOCH + random.below(setup.spread + 1);
            if setup.stray && node == stray {
                ahead += 3_600 * SECOND;
            }
            let rate = draw_rate(&mut random, setup.rate);
            let clock = Clock::new(rate, ahead.cast_signed());
            let clock = match setup.odd.nap {
                // No rate keeps clocks together for so long, and it is as wrong one way as the other.
                Some(_) => clock.changing(-rate, odd.between(30 * MS, 2 * SECOND)),
                None => changing(clock, &setup, &mut odd),
            };
            Server::new(node, setup.keys.len(), clock, setup.birth)
        });
        let servers = servers.collect();
        let processes = (0..setup.clients).map(|client| {
            let rate = draw_rate(&mut random, setup.rate);
            let origin = random.below(1_000 * SECOND).cast_signed();
            let skew = EPOCH + random.below(setup.skew + 1) + setup.ahead(client);
            let skew = skew.cast_signed();
            let client = Client::new(config(&setup, client), random.fork());
            let clock = changing(Clock::new(rate, origin), &setup, &mut odd);
            let wall_rate = match setup.jobs {
                Some(_) => draw_rate(&mut random, setup.rate),
                // Only the order of tokens rests on it.
                None => 0,
            };
            Process::new(client, setup.keys.len(), clock, Clock::new(wall_rate, skew))
        });
        let processes = processes.collect();
        let stepped = vec![0; setup.nodes];
        let forgot = vec![None; setup.nodes];
        let recent = vec![VecDeque::new(); setup.job_keys.len()];
        let links = (0..setup.clients * setup.nodes).map(|link| {
            let machine = redlock_proto::Link::new(setup.link, random.fork());
            Connection::new(machine, link % setup.nodes)
        });
        let links = links.collect();
        let callers = random.pick(&[1, 1, 2, 4]);
        Self {
            now: 0,
            checker: Checker::new(setup.rules()),
            setup,
            random,
            agenda: Agenda::default(),
            servers,
            processes,
            links,
            calls: Calls::default(),
            owners: Owners::default(),
            faults,
            phase: Phase::Faulty,
            stepped,
            recent,
            forgot,
            settled: None,
            behind: 0,
            callers,
            next_lease: 1,
            next_waiter: 1,
            counters: Counters::default(),
            trace: Trace::new(readable),
        }
    }

    fn begin(&mut self) {
        self.tell_setup();
        for index in 0..self.faults.len() {
            let (at, _) = self.faults[index];
            self.agenda.add(at, Due::Fault { index });
        }
        for client in 0..self.setup.clients {
            if self.setup.is_stranger(client) {
                // Nodes know by then what the others were told.
                self.processes[client].is_alive = false;
                let at = self.random.between(300 * MS, 600 * MS);
                let life = self.processes[client].life;
                self.agenda.add(at, Due::Begin { client, life });
            } else {
                self.begin_client(client);
            }
        }
        if self.setup.birth == Birth::Blessed {
            self.agenda.add(250 * MS, Due::Bless);
        }
        let nap = self.setup.odd.nap.map_or(0, |nap| nap.until - nap.from);
        self.agenda.add(self.setup.horizon + nap, Due::Repair);
    }

    /// The first line of what can be read.
    fn tell_setup(&mut self) {
        let setup = &self.setup;
        self.trace.line(0, || {
            format!(
                "{} nodes, {} clients, {} keys, max_ttl {} µs, node_timeout {} µs, rates {} ppm, skew {} µs, nodes {:?}, trust {}, {:?}, {:?}",
                setup.nodes,
                setup.clients,
                setup.keys.len(),
                setup.max_ttl,
                setup.node_timeout,
                setup.rate,
                setup.skew,
                setup.birth,
                setup.trust,
                setup.net,
                setup.odd,
            ) + &setup.jobs.map_or(String::new(), |jobs| format!(", {jobs:?}"))
        });
    }

    /// A client connects, and its users begin.
    fn begin_client(&mut self, client: usize) {
        for node in 0..self.setup.nodes {
            let link = self.link(client, node);
            let at = self.now + self.random.below(3 * MS);
            self.wake_link(link, at);
        }
        for key in 0..self.setup.keys.len() {
            for _ in 0..self.callers {
                self.rest(client, key);
            }
        }
        self.set_timer(client);
    }

    fn step(&mut self, due: Due) {
        if let Some(client) = due.client(self.setup.nodes)
            && self.processes[client].is_paused(self.now)
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
        for due in inbox.drain(..) {
            self.step(due);
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

    /// Whether something was wrong that nothing excuses.
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

/// What a client is told about the world.
fn config(setup: &Setup, client: usize) -> ClientConfig {
    ClientConfig {
        quorum: setup.quorum,
        keyspace: setup.space_of(client).clone(),
        retry: setup.retry,
        node_timeout: Duration::from_micros(setup.node_timeout),
    }
}

/// By how many millionths a clock is fast: the most, the least, or something between.
fn draw_rate(random: &mut Random, most: u64) -> i64 {
    let between = random.below(2 * most + 1).cast_signed() - most.cast_signed();
    random.pick(&[most.cast_signed(), -most.cast_signed(), between])
}

/// A clock that changes its rate on the way, if clocks do in this world.
fn changing(clock: Clock, setup: &Setup, odd: &mut Random) -> Clock {
    match setup.odd.stretch {
        Some(stretch) => {
            let otherwise = draw_rate(odd, setup.rate);
            clock.changing(otherwise, odd.between(stretch / 2, stretch))
        }
        None => clock,
    }
}

/// A hundred times as many as there usually are.
const MOST_EVENTS: u64 = 600_000;

/// What wall clocks showed when the world began, in microseconds: a day in 2026.
const EPOCH: Micros = 1_780_000_000 * SECOND;
