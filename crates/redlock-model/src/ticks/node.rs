//! What nodes do, as `redlock-proto` decides it.

use std::time::Duration;

use redlock_proto::{
    JobEntry, JobVerb, LockMode, MarkState, NodeTime, NodeVerb, Reply, Request, Series, Store,
    Tick, Verb, Window,
};

use super::state::Node;
use crate::store::{self, Decided, FOREVER, KEY, NOON, owner};

/// What a node is asked.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) enum Ask {
    /// A claim of a tick by a claimant, which may come so many steps early.
    Claim { by: u8, tick: u8, early: u8 },
    /// A commit of a tick by a claimant.
    Commit { by: u8, tick: u8 },
    /// To forget this run.
    Withdraw { by: u8, tick: u8 },
    /// To vote from now on, with a horizon if there is one.
    Open { horizon: Option<u8> },
}

/// Nodes, and what they did whenever they were asked the same in the same state.
#[derive(Debug, Default)]
pub(super) struct Nodes(Decided<(Node, Ask), (Node, bool)>);

impl Nodes {
    /// What becomes of a node, and whether it did what it was asked.
    pub(super) fn ask(&self, node: Node, ask: Ask) -> (Node, bool) {
        self.0.ask((node, ask), || self.decide(node, ask))
    }

    fn decide(&self, node: Node, ask: Ask) -> (Node, bool) {
        let now = time(node.shown());
        let mut store = self.store(node, now);
        let request = match ask {
            Ask::Claim { by, tick, early } => job(JobVerb::Claim {
                lock: KEY.into(),
                owner: Box::new(owner(by)),
                ttl: FOREVER,
                proposal: 1,
                series: Series::TICKS,
                tick: instant(tick),
                attempt: 1,
                window: Window::new(STEP * early.into(), Window::LONGEST),
            }),
            Ask::Commit { by, tick } => job(JobVerb::Commit {
                lock: KEY.into(),
                owner: Box::new(owner(by)),
                ttl: FOREVER,
                entry: entry((by, tick)),
            }),
            Ask::Withdraw { by, tick } => job(JobVerb::Withdraw {
                entry: entry((by, tick)),
                ttl: FOREVER,
            }),
            Ask::Open { horizon } => {
                let since = self.sit_out(&mut store, now);
                Request::Node(NodeVerb::Open {
                    floor: 0,
                    since,
                    horizon: horizon.map(time),
                })
            }
        };
        let reply = self.0.call(&mut store, request, now);
        let done = matches!(reply, Some(Reply::Claimed { .. } | Reply::Done));
        (self.read(&mut store, node, now), done)
    }

    /// A store that knows what the node knows.
    fn store(&self, node: Node, now: NodeTime) -> Store {
        let mut store = if node.is_quarantined || node.horizon > 0 {
            Store::new("run".into())
        } else {
            Store::vouched_for("run".into())
        };
        let mut ask = |request: Request| {
            store.call(&self.0.keyspace, &[request], now);
        };
        ask(Request::Node(NodeVerb::Look));
        for run in node.runs.into_iter().rev().filter(|(by, _)| *by > 0) {
            let by = run.0;
            ask(acquire(by));
            ask(job(JobVerb::Commit {
                lock: KEY.into(),
                owner: Box::new(owner(by)),
                ttl: FOREVER,
                entry: entry(run),
            }));
            ask(lock(by, Verb::Release { ttl: FOREVER }));
        }
        if node.lock > 0 {
            ask(acquire(node.lock));
        }
        if node.horizon > 0 {
            let since = self.sit_out(&mut store, now);
            let open = NodeVerb::Open {
                floor: 0,
                since,
                horizon: Some(time(node.horizon - 1)),
            };
            store.call(&self.0.keyspace, &[Request::Node(open)], now);
        }
        store
    }

    /// The quarantine passes, whose end clocks are read after; returns its beginning.
    fn sit_out(&self, store: &mut Store, now: NodeTime) -> NodeTime {
        let quarantine = self.0.keyspace.quarantine();
        let mut waited = Duration::ZERO;
        loop {
            let micros = u64::try_from(waited.as_micros()).unwrap_or_default();
            let at = NodeTime::from_micros(now.as_micros() + micros);
            let standing = store.call(&self.0.keyspace, &[], at).standing;
            match standing.map(|standing| standing.state) {
                Some(MarkState::Quarantined { .. }) => waited += quarantine.step(),
                Some(MarkState::Aged { since }) => return since,
                _ => return now,
            }
        }
    }

    /// What a store knows, of a node that was like this.
    fn read(&self, store: &mut Store, node: Node, now: NodeTime) -> Node {
        let holder = store.holder(&KEY.into(), now);
        let lock = (1..=MOST).find(|by| holder == Some(owner(*by)));
        let mut runs = [(0, 0); 2];
        for (place, run) in runs.iter_mut().zip(store.runs(&JOB.into())) {
            let by = u8::try_from(run.token).unwrap_or_default();
            *place = (by, step_of(run.tick.as_millis()));
        }
        let horizon = store.horizon(&self.0.keyspace);
        let standing = store.call(&self.0.keyspace, &[], now).standing;
        Node {
            lock: lock.unwrap_or(0),
            runs,
            is_quarantined: standing.is_none_or(|standing| standing.state != MarkState::Voting),
            horizon: horizon.map_or(0, |horizon| 1 + step_of(horizon.as_millis())),
            ..node
        }
    }
}

impl Node {
    /// What its clock shows.
    pub(super) const fn shown(self) -> u8 {
        if self.is_astray { 0 } else { self.clock }
    }
}

fn job(verb: JobVerb) -> Request {
    let job = JOB.into();
    Request::Job { verb, job }
}

fn lock(by: u8, verb: Verb) -> Request {
    store::lock(owner(by), LockMode::Exclusive, verb)
}

fn acquire(by: u8) -> Request {
    lock(by, store::acquire(1, None, None))
}

fn entry((by, tick): (u8, u8)) -> JobEntry {
    JobEntry {
        series: Series::TICKS,
        tick: instant(tick),
        attempt: 1,
        token: by.into(),
        text: "run".into(),
    }
}

fn instant(tick: u8) -> Tick {
    Tick::from_millis(time(tick).as_millis()).expect("it is this century")
}

fn time(step: u8) -> NodeTime {
    let step = STEP * step.into();
    NodeTime::from_micros(NOON.as_micros() + u64::try_from(step.as_micros()).unwrap_or_default())
}

fn step_of(millis: u64) -> u8 {
    let since = Duration::from_millis(millis.saturating_sub(NOON.as_millis()));
    u8::try_from(since.as_secs() / STEP.as_secs()).unwrap_or(u8::MAX)
}

const MOST: u8 = 3;
const JOB: &str = "{model}:job:a";

/// What a step of a clock is, and between two ticks.
const STEP: Duration = Duration::from_secs(1_000);
