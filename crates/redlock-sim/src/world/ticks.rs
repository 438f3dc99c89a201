//! Jobs whose ticks are claimed by whichever client comes to them.

use std::{sync::Arc, time::Duration};

use redlock_proto::{
    Acquire, JobEntry, JobVerb, NoClaim, NodeAnswer, NotAfter, NotClaimed, OwnerId, Reply,
    RunRecord, RunState, Series, Tick, TickClaim, TokenBlock, Verb, Window, Word,
};

use super::{World, process::State};
use crate::{
    Event, Moment, Violation,
    setup::{Jobs, MS, RECORD},
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
            // It was claimed before, and perhaps all nodes that knew have forgotten.
            // Not near the end: a caller that must acquire soon would have to wait for the next tick.
            3..6 if self.brings_back(key) => {
                let place = self.random.index(self.recent[key].len());
                self.recent[key][place]
            }
            _ => newest,
        };
        let user = &mut self.processes[client].users[key];
        user.tick = tick;
        let settled = user.settled;
        let claim = TickClaim {
            job: RECORD.into(),
            series: self.setup.series[key],
            tick: Tick::from_millis(tick).expect("it is this century"),
            attempt: 1,
            window: jobs.window(client),
            fingerprint: 7,
            replica: Word::new(REPLICAS[client % REPLICAS.len()]).expect("it is a word"),
            not_after: jobs.in_order.then(|| NotAfter {
                outcomes: cut_short(),
                settled: Tick::from_millis(settled).filter(|_| settled > 0),
            }),
        };
        self.trace.line(self.now, || {
            format!("client {client} claims tick {tick} of job {key}")
        });
        self.processes[client].client.claim(id, acquire, claim, now);
    }

    /// Returns whether ticks that were claimed are claimed again, for as long as things go wrong.
    fn brings_back(&self, key: usize) -> bool {
        let sets_clocks = self.setup.plan.sets_all_clocks();
        sets_clocks && self.now < self.setup.horizon && !self.recent[key].is_empty()
    }

    /// A tick was won, together with a lease that is handed out next: the user starts it.
    pub(super) fn on_claimed(&mut self, client: usize, id: u64, tokens: TokenBlock) {
        let users = &self.processes[client].users;
        let waits = |state: State| matches!(state, State::Waiting { id: other, .. } if other == id);
        if let Some(job) = users.iter().position(|user| waits(user.state)) {
            let user = &self.processes[client].users[job];
            let (tick, owner) = (user.tick, user.owner);
            let timely = owner.is_some_and(|owner| self.is_timely(client, tick, owner));
            let token = tokens.first().get();
            self.counters.ticks_started += 1;
            self.trace.line(self.now, || {
                format!("client {client} starts tick {tick} of job {job}")
            });
            self.follows(client, job);
            self.observe(&Event::Started {
                job,
                tick,
                token,
                timely,
            });
        }
    }

    /// Reports what nodes remember of a job at the start of a tick that must not follow a run that was cut short.
    ///
    /// A node that lost its data after the claim may remember runs again that it did not know when it granted the tick.
    fn follows(&mut self, client: usize, job: usize) {
        let user = &self.processes[client].users[job];
        let Some((owner, true)) = user.owner.zip(self.setup.jobs.map(|jobs| jobs.in_order)) else {
            return;
        };
        let (tick, settled) = (user.tick, user.settled);
        let started = self.owners.get(owner).started;
        let series = self.setup.series[job];
        let remembered = self
            .servers
            .iter()
            .zip(&self.forgot)
            .map(|(server, forgot)| {
                let runs = server.lines(series).filter_map(RunRecord::of);
                let told = runs.map(|run| {
                    let was_cut_short = run.was_cut_short(&cut_short());
                    (run.tick.as_millis(), run.token.get(), was_cut_short)
                });
                let knew = |(.., was_cut_short): &(u64, u64, bool)| {
                    !was_cut_short || forgot.is_none_or(|at| at < started)
                };
                told.filter(knew).collect()
            });
        let follows = Event::Follows {
            job,
            tick,
            settled,
            majority: self.setup.quorum.majority(),
            remembered: remembered.collect(),
        };
        self.observe(&follows);
    }

    /// Handles a claim that was refused because the run before was cut short; perhaps the user settles that run.
    fn comes_too_soon(&mut self, client: usize, id: u64, last: &RunRecord) {
        self.counters.ticks_too_soon += 1;
        let users = &self.processes[client].users;
        let waits = |state: State| matches!(state, State::Waiting { id: other, .. } if other == id);
        let Some(job) = users.iter().position(|user| waits(user.state)) else {
            return;
        };
        let settled = users[job].settled;
        let outcome = match &last.state {
            RunState::Ended { outcome, .. } => Some(outcome.as_str().into()),
            _ => None,
        };
        let tick = last.tick.as_millis();
        self.observe(&Event::CutShort {
            job,
            tick,
            token: last.token.get(),
            outcome,
            settled,
        });
        if !self.phase.is_faulty() || self.random.chance(500) {
            self.processes[client].users[job].settled = settled.max(tick);
        }
    }

    /// Returns whether the clocks of a majority were in the tick's window when their nodes granted it.
    fn is_timely(&self, client: usize, tick: u64, owner: u32) -> bool {
        let Some(jobs) = self.setup.jobs else {
            return true;
        };
        let early = jobs.early_of(client);
        let is_timely =
            |shown: &&u64| **shown + early >= tick && **shown <= tick + jobs.start_within;
        let granted = self.owners.get(owner).granted.iter().flatten();
        granted.filter(is_timely).count() >= self.setup.quorum.majority()
    }

    /// A tick was not won, and there is no use in another attempt.
    pub(super) fn on_not_claimed(
        &mut self,
        client: usize,
        id: u64,
        why: &NotClaimed,
        answers: &[NodeAnswer],
    ) {
        self.trace.line(self.now, || {
            format!("client {client} has not claimed {id}: {why:?}, {answers:?}")
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
            NotClaimed::CutShort { last } => self.comes_too_soon(client, id, last),
            NotClaimed::TooEarly { .. } => self.counters.ticks_early += 1,
            NotClaimed::TooLate { .. } => self.counters.ticks_late += 1,
            // The nodes that said so were counted.
            NotClaimed::Forgotten { .. } => self.must_be_forgotten(client, id, answers),
            _ => {
                self.counters.ticks_unconfirmed += 1;
                self.must_have_a_reason(client, id, false);
            }
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
                None => self.tries(client, (&lock.clone().into(), false), **owner, *ttl),
            },
            JobVerb::Commit { owner, entry, .. } => {
                let number = self.owners.number(owner)?;
                let process = &mut self.processes[client];
                if process.last_write_back != round {
                    process.last_write_back = round;
                    self.counters.ticks_committed += 1;
                }
                let job = self.owners.get(number).key;
                let (tick, token) = (entry.tick.as_millis(), entry.token);
                let recent = &mut self.recent[job];
                if recent.back() != Some(&tick) {
                    recent.push_back(tick);
                    if recent.len() > MOST_RECENT {
                        recent.pop_front();
                    }
                }
                self.owners.get_mut(number).run = Some((tick, token));
                self.observe(&Event::Commits { job, tick, token });
                Some(number)
            }
            JobVerb::Record { .. } | JobVerb::Withdraw { .. } | JobVerb::Read { .. } => None,
        }
    }

    /// A client tells nodes what came of a run.
    pub(super) fn on_record(&mut self, verb: &JobVerb) {
        let (entry, outcome) = match verb {
            JobVerb::Record { entry, .. } => match RunRecord::of(entry).map(|run| run.state) {
                Some(RunState::Ended { outcome, .. }) => (entry, outcome.as_str().into()),
                _ => return,
            },
            // It says that the run was not started, and is not to be remembered.
            JobVerb::Withdraw { entry, .. } => (entry, RunRecord::UNSTARTED.into()),
            _ => return,
        };
        let Some(job) = self.job_of(entry.series) else {
            return;
        };
        self.observe(&Event::Recorded {
            job,
            tick: entry.tick.as_millis(),
            token: entry.token,
            outcome,
        });
    }

    /// A user's claim has ended without a start.
    pub(super) fn did_not_start(&mut self, client: usize, job: usize) {
        if self.setup.jobs.is_some() {
            let tick = self.processes[client].users[job].tick;
            self.observe(&Event::NotStarted { job, tick });
        }
    }

    /// Looks how far a majority of the nodes remembers each job.
    pub(super) fn look_at_watermarks(&mut self) {
        for job in 0..self.setup.series.len() {
            let watermark = self.known(job);
            self.observe(&Event::Remembered { job, watermark });
        }
    }

    /// A node may remember a run from now on.
    pub(super) fn note_kept(&mut self, verb: &JobVerb, reply: &Reply) {
        if let (JobVerb::Commit { entry, .. }, Reply::Done) = (verb, reply)
            && let Some(job) = self.job_of(entry.series)
        {
            let (tick, token) = (entry.tick.as_millis(), entry.token);
            self.observe(&Event::Kept { job, tick, token });
        }
    }

    /// A node has refused to store what became of a run.
    pub(super) fn note_unstored(&mut self, node: usize, verb: &JobVerb) {
        if let JobVerb::Record { entry, .. } | JobVerb::Withdraw { entry, .. } = verb {
            let run = (entry.tick.as_millis(), entry.token);
            self.servers[node].unstored.push(run);
        }
    }

    /// A node has freed an owner's key because its client released it: if a run went on under it, the node knows the end.
    pub(super) fn must_have_heard_of_the_end(&mut self, node: usize, owner: u32) {
        let owner = self.owners.get(owner);
        let Some(run) = owner.run else { return };
        let (job, server) = (owner.key, &self.servers[node]);
        let is_open = |line: &JobEntry| {
            (line.tick.as_millis(), line.token) == run
                && RunRecord::of(line).is_some_and(|run| run.is_open())
        };
        let mut lines = server.lines(self.setup.series[job]);
        if lines.any(is_open) && !server.unstored.contains(&run) {
            let (tick, at) = (run.0, Moment::from_micros(self.now));
            let untold = Violation::FreedUntold { node, job, tick };
            self.checker.report(at, untold);
        }
    }

    /// Returns the job that has this series.
    fn job_of(&self, series: Series) -> Option<usize> {
        let mut all = self.setup.series.iter();
        all.position(|other| *other == series)
    }

    /// Counts what a node said of a claim.
    pub(super) fn count_claim(&mut self, reply: &Reply) {
        if matches!(reply, Reply::NoClaim(NoClaim::Forgot)) {
            self.counters.ticks_forgotten += 1;
        }
    }
}

impl Jobs {
    fn window(&self, client: usize) -> Window {
        let ms = Duration::from_millis;
        Window::new(ms(self.early_of(client)), ms(self.start_within))
    }

    /// Returns what a client takes to be early enough.
    const fn early_of(&self, client: usize) -> u64 {
        match client % 2 {
            0 => self.early,
            _ => self.early.saturating_sub(self.less),
        }
    }
}

/// Returns what a request about a job does to the job's lock, as a request about that, and what was answered.
pub(super) fn as_lock(verb: &JobVerb, reply: &Reply) -> Option<(Verb, OwnerId, Reply)> {
    match verb {
        JobVerb::Claim {
            owner,
            ttl,
            proposal,
            ..
        } => {
            let acquire = Verb::Acquire {
                ttl: *ttl,
                proposal: *proposal,
                block: 1,
                wish: None,
                line: None,
            };
            let reply = match reply {
                Reply::Claimed { counter, .. } => Reply::Taken { counter: *counter },
                other => other.clone(),
            };
            Some((acquire, **owner, reply))
        }
        JobVerb::Commit {
            owner, ttl, entry, ..
        } => {
            let extend = Verb::Extend {
                ttl: *ttl,
                write_back: Some(entry.token),
            };
            Some((extend, **owner, reply.clone()))
        }
        JobVerb::Record { .. } | JobVerb::Withdraw { .. } | JobVerb::Read { .. } => None,
    }
}

/// Returns the outcome, besides those of the protocol's own, of runs that are to be settled.
fn cut_short() -> Arc<[Word]> {
    [Word::new(LOST).expect("it is a word")].into()
}

/// The outcome that a replica reports for a run that was cut short.
pub(super) const LOST: &str = "lost";

/// How many ticks of each job are kept in mind, to be claimed again.
const MOST_RECENT: usize = 12;

const REPLICAS: [&str; 5] = ["ada", "bob", "cyd", "dee", "eve"];
