use std::{collections::VecDeque, time::Duration};

use redlock_proto::{Client, ClientConfig, FanOut};

use super::{
    World,
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
    Checker, Counters, Plan,
    clock::Clock,
    fault,
    random::Random,
    setup::{Birth, MS, Micros, SECOND, Setup},
    trace::Trace,
};

impl World {
    pub(super) fn new(seed: u64, plan: Plan, readable: bool) -> Self {
        let mut random = Random::new(seed.wrapping_mul(0x9e6c_63d0_876a_68ef) ^ 0x2545_f491);
        // Worlds without anything odd are as they are whatever there is that is odd.
        let mut odd = Random::new(seed.wrapping_mul(0xd6e8_feb8_6659_fd93) ^ 0x1b56_c4e9);
        let mut setup = Setup::draw(plan, &mut random, &mut odd);
        // Of its own, so that worlds in which all nodes are asked are as they are without it.
        let mut wide = Random::new(seed.wrapping_mul(0x8f3d_91b7_46e5_a2c1) ^ 0x6c07_8965);
        let kinds = [FanOut::All, FanOut::Majority, FanOut::Adaptive];
        setup.fan_outs = [wide.pick(&kinds), wide.pick(&kinds)];
        if plan == Plan::OneGone {
            setup.fan_outs[0] = FanOut::Majority;
        }
        setup.most_unsent = wide.pick(&[1, 4, 1024]);
        let mut faults = fault::draw(&setup, &mut random.fork(), &mut odd);
        faults.sort_by_key(|(at, _)| *at);
        let stray = random.index(setup.nodes);
        let servers = (0..setup.servers()).map(|node| {
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
            let birth = if node < setup.nodes {
                setup.birth
            } else {
                Birth::Unknown
            };
            Server::new(node, setup.keys.len(), clock, birth)
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
            Process::new(client, setup.locks(), clock, Clock::new(wall_rate, skew))
        });
        let processes = processes.collect();
        let stepped = vec![0; setup.servers()];
        let forgot = vec![None; setup.servers()];
        let recent = vec![VecDeque::new(); setup.series.len()];
        let links = (0..setup.clients * setup.nodes).map(|link| {
            let machine = redlock_proto::Link::new(setup.link, random.fork());
            Connection::new(machine, link % setup.nodes)
        });
        let links = links.collect();
        let callers = random.pick(&[1, 1, 2, 4]);
        let mut checker = Checker::new(setup.rules());
        for set in setup.keys.len()..setup.locks() {
            checker.add_set(set, setup.keys_of(set));
        }
        let naming = Naming::new(&setup);
        Self {
            now: 0,
            checker,
            setup,
            random,
            agenda: Agenda::default(),
            servers,
            processes,
            links,
            calls: Calls::default(),
            owners: Owners::default(),
            gifts: Gifts::default(),
            naming,
            faults,
            phase: Phase::Faulty,
            stepped,
            recent,
            forgot,
            settled: None,
            singles_rest_at: None,
            loner: None,
            behind: 0,
            callers,
            next_lease: 1,
            next_waiter: 1,
            counters: Counters::default(),
            trace: Trace::new(readable),
        }
    }

    pub(super) fn begin(&mut self) {
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
        self.begin_naming();
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
                "{} nodes, {} clients, {} keys, max_ttl {} µs, node_timeout {} µs, rates {} ppm, skew {} µs, nodes {:?}, trust {}, {:?}, {:?}, {:?}",
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
                setup.fan_outs,
            ) + &setup.jobs.map_or(String::new(), |jobs| format!(", {jobs:?}"))
                + &setup.named.map_or(String::new(), |named| format!(", {named:?}"))
        });
    }

    /// A client connects, and its users begin.
    pub(super) fn begin_client(&mut self, client: usize) {
        for node in 0..self.setup.nodes {
            let link = self.link(client, node);
            let at = self.now + self.random.below(3 * MS);
            self.wake_link(link, at);
        }
        for key in 0..self.setup.locks() {
            for _ in 0..self.callers {
                self.rest(client, key);
            }
        }
        self.set_timer(client);
    }
}

/// Returns what a client is told about the world.
pub(super) fn config(setup: &Setup, client: usize) -> ClientConfig {
    ClientConfig {
        quorum: setup.quorum,
        keyspace: setup.space_of(client).clone(),
        retry: setup.retry,
        node_timeout: Duration::from_micros(setup.node_timeout),
        inspect_every: ClientConfig::INSPECT_EVERY,
        fan_out: setup.fan_outs[client % 2],
        most_unsent: setup.most_unsent,
    }
}

/// Returns by how many millionths a clock is fast: the most, the least, or something between.
fn draw_rate(random: &mut Random, most: u64) -> i64 {
    let between = random.below(2 * most + 1).cast_signed() - most.cast_signed();
    random.pick(&[most.cast_signed(), -most.cast_signed(), between])
}

/// Returns a clock that changes its rate on the way, if clocks do in this world.
fn changing(clock: Clock, setup: &Setup, odd: &mut Random) -> Clock {
    match setup.odd.stretch {
        Some(stretch) => {
            let otherwise = draw_rate(odd, setup.rate);
            clock.changing(otherwise, odd.between(stretch / 2, stretch))
        }
        None => clock,
    }
}

/// What wall clocks showed when the world began, in microseconds: a day in 2026.
pub(super) const EPOCH: Micros = 1_780_000_000 * SECOND;
