//! Requests, as a step asks for them in a world as it is by then.

use std::time::Duration;

use redlock_core::node::{NodeTime, Request};
use redlock_proto::{JobEntry, JobVerb, Lock, NodeVerb, Series, Tick, Verb, Window};

use super::World;
use crate::differential::{
    cast::{self, PREFIXES},
    step::{Ask, Number, Since, When},
};

impl World<'_> {
    pub(super) fn request(&self, keyspace: usize, ask: &Ask) -> Request {
        let (verb, keys, owner) = match *ask {
            Ask::Acquire {
                keys,
                owner,
                ttl,
                proposal,
                block,
                wish,
                line,
            } => {
                let proposal = self.number(keyspace, proposal);
                let acquire = Verb::Acquire {
                    ttl,
                    proposal,
                    block,
                    wish,
                    line: line.map(|place| cast::in_line(place, owner)),
                };
                (acquire, keys, owner)
            }
            Ask::Extend {
                keys,
                owner,
                ttl,
                write_back,
            } => {
                let write_back = write_back.map(|counter| self.number(keyspace, counter));
                (Verb::Extend { ttl, write_back }, keys, owner)
            }
            Ask::Heal {
                keys,
                owner,
                ttl,
                counter,
            } => {
                let counter = self.number(keyspace, counter);
                let heal = Verb::Heal { ttl, counter };
                (heal, keys, owner)
            }
            Ask::Release { keys, owner } => {
                let ttl = Duration::from_secs(1);
                (Verb::Release { ttl }, keys, owner)
            }
            Ask::Tombstone { keys, owner, ttl } => (Verb::Tombstone { ttl }, keys, owner),
            Ask::Claim { .. }
            | Ask::Commit { .. }
            | Ask::Record { .. }
            | Ask::Withdraw { .. }
            | Ask::Read { .. } => return self.job_request(keyspace, ask),
            Ask::Tick => return Request::Node(NodeVerb::Look),
            Ask::Sign { client } => return Request::Node(NodeVerb::Sign { client }),
            Ask::Inspect => return Request::Node(NodeVerb::Inspect),
            Ask::Survey => return Request::Node(NodeVerb::Survey),
            Ask::Open {
                floor,
                since,
                horizon,
            } => {
                let horizon = horizon.map(|offset| self.now.saturating_add_signed(1_000 * offset));
                return Request::Node(NodeVerb::Open {
                    floor: self.number(keyspace, floor),
                    since: self.since(keyspace, since),
                    horizon: horizon.map(NodeTime::from_micros),
                });
            }
        };
        Request::Lock {
            verb,
            lock: Lock {
                mode: keys.mode,
                keys: cast::keys(keys),
                owner: cast::owner(owner),
            }
            .into(),
        }
    }

    fn job_request(&self, keyspace: usize, ask: &Ask) -> Request {
        let (verb, job) = match *ask {
            Ask::Claim {
                job,
                key,
                owner,
                ttl,
                proposal,
                tick,
                early,
                start_within,
            } => {
                let claim = JobVerb::Claim {
                    lock: cast::key(key),
                    owner: Box::new(cast::owner(owner)),
                    ttl,
                    proposal: self.number(keyspace, proposal),
                    series: cast::series(ttl),
                    tick: self.tick(keyspace, job, tick),
                    attempt: cast::attempt(ttl),
                    window: Window::new(early, start_within),
                };
                (claim, job)
            }
            Ask::Commit {
                job,
                key,
                owner,
                ttl,
                token,
                tick,
                text,
            } => {
                let commit = JobVerb::Commit {
                    lock: cast::key(key),
                    owner: Box::new(cast::owner(owner)),
                    ttl,
                    entry: JobEntry {
                        series: cast::series(ttl),
                        tick: self.tick(keyspace, job, tick),
                        attempt: cast::attempt(ttl),
                        token: self.number(keyspace, token),
                        text: text.into(),
                    },
                };
                (commit, job)
            }
            Ask::Record {
                job,
                which,
                offset,
                text,
            } => {
                let entry = self.run(job, which, offset, Some(text));
                let ttl = Duration::from_secs(1);
                (JobVerb::Record { entry, ttl }, job)
            }
            Ask::Withdraw {
                job,
                which,
                offset,
                text,
            } => {
                let entry = self.run(job, which, offset, text);
                let ttl = Duration::from_secs(1);
                (JobVerb::Withdraw { entry, ttl }, job)
            }
            Ask::Read { job, key } => {
                let lock = cast::key(key);
                (JobVerb::Read { lock }, job)
            }
            _ => unreachable!("{ask:?} is about no job"),
        };
        let job = cast::job(job);
        Request::Job { verb, job }
    }

    /// Returns a run that the node remembers, or one like it.
    fn run(&self, job: usize, which: usize, offset: i64, text: Option<&str>) -> JobEntry {
        let run = self.store.runs(&cast::job(job)).get(which);
        let now = Tick::from_millis(self.now / 1_000).expect("it is this century");
        let its_text = run.map_or("", |run| &*run.text);
        JobEntry {
            series: run.map_or(Series::TICKS, |run| run.series),
            tick: run.map_or(now, |run| run.tick),
            attempt: run.map_or(1, |run| run.attempt),
            token: run.map_or(1, |run| run.token.saturating_add_signed(offset)),
            text: text.unwrap_or(its_text).into(),
        }
    }

    fn tick(&self, keyspace: usize, job: usize, when: When) -> Tick {
        let now = self.now / 1_000;
        let (from, offset) = match when {
            When::Now { offset } => (now, offset),
            When::Watermark { offset } => {
                let last = self.store.runs(&cast::job(job)).first();
                (last.map_or(now, |run| run.tick.as_millis()), offset)
            }
            When::Since { offset } => (self.since[keyspace].as_millis(), offset),
            When::Horizon { offset } => {
                let horizon = self.store.horizon(&cast::keyspace(keyspace));
                (horizon.map_or(now, NodeTime::as_millis), offset)
            }
        };
        Tick::from_millis(from.saturating_add_signed(offset)).unwrap_or(Tick::MAX)
    }

    fn number(&self, keyspace: usize, number: Number) -> u64 {
        match number {
            Number::Is(number) => number,
            Number::Seen { shard, offset } => {
                let seen = self.counters.get(&(PREFIXES[keyspace], shard));
                seen.copied().unwrap_or(0).saturating_add_signed(offset)
            }
        }
    }

    fn since(&self, keyspace: usize, since: Since) -> NodeTime {
        match since {
            Since::Never => NodeTime::default(),
            Since::Told { offset } => {
                let told = self.since[keyspace].as_micros();
                NodeTime::from_micros(told.saturating_add_signed(offset))
            }
        }
    }
}
