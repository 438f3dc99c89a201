//! Jobs whose ticks are claimed by whichever client comes to them.

use std::time::Duration;

use redlock_proto::{
    Acquire, Claim, JobVerb, NoClaim, NotClaimed, OwnerId, Reply, Tick, TokenBlock, Verb, Window,
    Word,
};

use super::{World, process::State};
use crate::{
    Event,
    setup::{Jobs, MS, Micros},
};

impl World {
    /// A user has its client claim the tick that it takes to be due, instead of acquiring the job's lock.
    pub(super) fn claim(&mut self, client: usize, key: usize, id: u64, acquire: Acquire) {
        let Some(jobs) = self.setup.jobs else { return };
        let Jobs { period, .. } = jobs;
        let process = &self.processes[client];
        let now = process.now(self.now);
        let wall = now.wall / MS;
        let newest = wall / period * period;
        let tick = match self.random.below(12) {
            // It comes too soon, or lags behind.
            0 => newest + period,
            1 => newest - period * self.random.between(1, 4),
            2 => newest + self.random.below(2 * jobs.early),
            _ => newest,
        };
        self.processes[client].users[key].tick = tick;
        let claim = Claim {
            job: self.setup.job_keys[key].clone(),
            tick: Tick::from_millis(tick).expect("it is this century"),
            window: jobs.window(),
            fingerprint: 7,
            replica: Word::new(REPLICAS[client % REPLICAS.len()]).expect("it is a word"),
        };
        self.trace.line(self.now, || {
            format!("client {client} claims tick {tick} of job {key}")
        });
        self.processes[client].client.claim(id, acquire, claim, now);
    }

    /// A tick was won, together with a lease: the user starts it.
    pub(super) fn on_claimed(
        &mut self,
        client: usize,
        id: u64,
        deadline: redlock_proto::Instant,
        tokens: TokenBlock,
    ) {
        let users = &self.processes[client].users;
        let waits = |state: State| matches!(state, State::Waiting { id: other, .. } if other == id);
        if let Some(job) = users.iter().position(|user| waits(user.state)) {
            let user = &self.processes[client].users[job];
            let (tick, owner) = (user.tick, user.owner);
            let since = owner.map_or(0, |owner| self.owners.get(owner).started);
            let timely = self.is_timely(tick, since);
            self.counters.ticks_started += 1;
            self.trace.line(self.now, || {
                format!("client {client} starts tick {tick} of job {job}")
            });
            self.observe(&Event::Started { job, tick, timely });
        }
        self.on_acquired(client, id, deadline, tokens);
    }

    /// Whether the clocks of a majority were in the tick's window at some moment since `since`.
    fn is_timely(&self, tick: u64, since: Micros) -> bool {
        let Some(jobs) = self.setup.jobs else {
            return true;
        };
        let is_timely = |server: &&super::Server| {
            let shown = |at| server.clock.reading(at) / MS;
            shown(self.now) + jobs.early >= tick && shown(since) <= tick + jobs.start_within
        };
        let timely = self.servers.iter().filter(is_timely).count();
        timely >= self.setup.quorum.majority()
    }

    /// A tick was not won, and there is no use in another attempt.
    pub(super) fn on_not_claimed(&mut self, client: usize, id: u64, why: &NotClaimed) {
        self.trace.line(self.now, || {
            format!("client {client} has not claimed {id}: {why:?}")
        });
        match why {
            NotClaimed::Passed { watermark, .. } => {
                self.counters.ticks_passed += 1;
                let watermark = watermark.as_millis();
                let users = &self.processes[client].users;
                let waits =
                    |state: State| matches!(state, State::Waiting { id: other, .. } if other == id);
                if let Some(job) = users.iter().position(|user| waits(user.state)) {
                    let tick = users[job].tick;
                    self.observe(&Event::Passed {
                        job,
                        tick,
                        watermark,
                    });
                }
            }
            NotClaimed::TooEarly { .. } => self.counters.ticks_early += 1,
            NotClaimed::TooLate { .. } => self.counters.ticks_late += 1,
            _ => self.counters.ticks_unconfirmed += 1,
        }
        self.on_not_acquired(client, id);
    }

    /// A client sends something about a job; the number of the owner on whose behalf.
    pub(super) fn on_send_job(&mut self, client: usize, round: u64, verb: &JobVerb) -> Option<u32> {
        match verb {
            JobVerb::Claim {
                lock, owner, ttl, ..
            } => match self.owners.number(owner) {
                Some(number) => Some(number),
                None => self.tries(client, lock, *owner, *ttl),
            },
            JobVerb::Commit { owner, entry, .. } => {
                let number = self.owners.number(owner)?;
                let process = &mut self.processes[client];
                if process.last_write_back != round {
                    process.last_write_back = round;
                    self.counters.ticks_committed += 1;
                }
                let job = self.owners.get(number).key;
                let tick = entry.tick.as_millis();
                self.observe(&Event::Commits { job, tick });
                Some(number)
            }
            JobVerb::Record { .. } | JobVerb::Read { .. } => None,
        }
    }

    /// A user's claim has ended without a start.
    pub(super) fn did_not_start(&mut self, client: usize, job: usize) {
        if self.setup.jobs.is_some() {
            let tick = self.processes[client].users[job].tick;
            self.observe(&Event::NotStarted { job, tick });
        }
    }

    /// How far a majority of the nodes remembers each job.
    pub(super) fn look_at_watermarks(&mut self) {
        for job in 0..self.setup.job_keys.len() {
            let name = &self.setup.job_keys[job];
            let newest = |server: &super::Server| {
                let last = server.store.runs(name).first();
                last.map_or(0, |run| run.tick.as_millis())
            };
            let mut watermarks: Vec<u64> = self.servers.iter().map(newest).collect();
            watermarks.sort_unstable();
            let watermark = watermarks[self.setup.nodes - self.setup.quorum.majority()];
            self.observe(&Event::Remembered { job, watermark });
        }
    }

    /// Counts what a node said of a claim.
    pub(super) fn count_claim(&mut self, reply: &Reply) {
        if matches!(reply, Reply::NoClaim(NoClaim::Forgot)) {
            self.counters.ticks_forgotten += 1;
        }
    }
}

impl Jobs {
    fn window(&self) -> Window {
        let ms = Duration::from_millis;
        Window::new(ms(self.early), ms(self.start_within))
    }
}

/// What a request about a job does to the job's lock, as a request about that, and what was answered.
pub(super) fn as_lock(verb: &JobVerb, reply: &Reply) -> Option<(Verb, OwnerId, Reply)> {
    match verb {
        JobVerb::Claim {
            owner,
            ttl,
            shard,
            proposal,
            ..
        } => {
            let acquire = Verb::Acquire {
                ttl: *ttl,
                shard: *shard,
                proposal: *proposal,
                block: 1,
            };
            let reply = match reply {
                Reply::Claimed { counter, .. } => Reply::Taken { counter: *counter },
                other => other.clone(),
            };
            Some((acquire, *owner, reply))
        }
        JobVerb::Commit {
            owner,
            ttl,
            shard,
            entry,
            ..
        } => {
            let extend = Verb::Extend {
                ttl: *ttl,
                write_back: Some((*shard, entry.token)),
            };
            Some((extend, *owner, reply.clone()))
        }
        JobVerb::Record { .. } | JobVerb::Read { .. } => None,
    }
}

const REPLICAS: [&str; 5] = ["ada", "bob", "cyd", "dee", "eve"];
