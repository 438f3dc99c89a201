//! Claims of scheduled ticks: an acquisition whose votes are the nodes' own judgement of the tick, and whose
//! token is settled together with the watermark.

use std::time::Duration;

use super::{
    Client, Effect, Entropy, Now,
    acquire::{Acquire, Acquisition},
    round::RoundKind,
};
use crate::{
    ExtensionVerdict, Instant, JobEntry, JobVerb, NoClaim, NodeKey, OwnerId, Reply, Request,
    RunRecord, RunState, Shard, Tick, TokenBlock, Votes, Window, Word,
};

/// What a claim asks for, besides the lease.
#[derive(Clone, Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a driver must settle every part of it"
)]
pub struct Claim {
    /// The key of what nodes remember of the job.
    pub job: NodeKey,
    /// The tick.
    pub tick: Tick,
    /// When it may be claimed, by the clocks of the nodes.
    pub window: Window,
    /// What to remember of the job's configuration, so that replicas which differ are noticed.
    pub fingerprint: u64,
    /// What to call the claimant.
    pub replica: Word,
}

/// Why a tick was not claimed, where trying again would not help.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum NotClaimed {
    /// The tick was claimed, or a later one.
    Passed {
        /// The newest tick that was claimed, as far as the nodes said that were heard.
        watermark: Tick,
        /// That run; `None` if this version cannot read what is remembered of it.
        last: Option<RunRecord>,
    },
    /// By the clocks of so many nodes that no majority is left, it is too early, and will be when the wait ends.
    TooEarly {
        /// In how much time enough of them may think otherwise.
        by: Duration,
    },
    /// By the clocks of so many nodes that no majority is left, it is too late.
    TooLate {
        /// By how much at least.
        by: Duration,
    },
    /// The nodes had granted the tick, and too few have confirmed in time that they remember it.
    ///
    /// It was not started, and perhaps nobody can claim it any more.
    Unconfirmed,
}

/// A claim that is under way.
#[derive(Clone, Debug)]
pub(super) struct Claiming {
    claim: Claim,
    /// The newest run that the nodes of this attempt remember.
    last: Option<JobEntry>,
    /// By how much it was too early for nodes that vote, and too late.
    early: Vec<Duration>,
    late: Vec<Duration>,
    /// The nodes whose votes have won it.
    voters: Vec<usize>,
    /// How often they were asked to remember it.
    commits: u32,
}

/// What follows from what nodes said of the tick.
#[derive(Clone, Copy, Debug)]
pub(super) enum Decided {
    /// The claim is over.
    ForGood,
    /// The nodes will say the same up to then.
    NotBefore(Instant),
}

/// The run that goes on under a lease.
#[derive(Clone, Debug)]
pub(super) struct Claimed {
    job: NodeKey,
    run: RunRecord,
    last: Option<JobEntry>,
}

impl Claimed {
    /// The newest run before it.
    pub(super) fn last(&self) -> Option<RunRecord> {
        self.last.as_ref().and_then(RunRecord::of)
    }
}

impl Claiming {
    fn new(claim: Claim) -> Self {
        Self {
            claim,
            last: None,
            early: Vec::new(),
            late: Vec::new(),
            voters: Vec::new(),
            commits: 0,
        }
    }

    /// Nothing was heard yet in a new attempt.
    pub(super) fn asked_anew(self) -> Self {
        Self::new(self.claim)
    }

    /// What every node is asked.
    pub(super) fn request(
        &self,
        request: &Acquire,
        owner: OwnerId,
        shard: Shard,
        proposal: u64,
    ) -> Request {
        let Claim {
            job, tick, window, ..
        } = &self.claim;
        Request::Job {
            verb: JobVerb::Claim {
                lock: request.key.clone(),
                owner,
                ttl: request.timing.key_ttl(),
                shard,
                proposal,
                tick: *tick,
                window: *window,
            },
            job: job.clone(),
        }
    }

    /// Whether a node has seen the tick pass.
    pub(super) fn passed(&self) -> Option<NotClaimed> {
        let last = self.last.as_ref()?;
        (last.tick >= self.claim.tick).then(|| NotClaimed::Passed {
            watermark: last.tick,
            last: RunRecord::of(last),
        })
    }

    /// What the nodes' refusals come to, if nothing else keeps a majority from granting.
    pub(super) fn untimely(&self, votes: &Votes) -> Option<NotClaimed> {
        let tolerated = votes.quorum().tolerated();
        let missing = votes.refused() + votes.failed();
        let others = missing.saturating_sub(self.early.len() + self.late.len());
        if missing <= tolerated || others > tolerated {
            return None;
        }
        let mut early = self.early.clone();
        early.sort_unstable();
        // So many of them must think otherwise; the rest may be missing.
        match early.get(missing - tolerated - 1).or_else(|| early.last()) {
            Some(by) => Some(NotClaimed::TooEarly { by: *by }),
            None => self
                .late
                .iter()
                .min()
                .map(|by| NotClaimed::TooLate { by: *by }),
        }
    }
}

impl<E: Entropy> Client<E> {
    /// Attempts to claim a tick and the lease under which its run goes on, until `wait_until`; `id` was never used
    /// before.
    ///
    /// The wait is for a lock that another holds, for a majority of nodes, and for the tick's window to open if it
    /// does in that time.
    /// Once nodes were asked to remember the claim there is no other attempt.
    pub fn claim(&mut self, id: u64, mut request: Acquire, claim: Claim, now: Now) {
        if self.closing {
            return self.acquire(id, request, now);
        }
        // The token is part of what nodes remember, so that it cannot be another holder's.
        request.tokens = 1;
        self.attempt(id, request, Some(Claiming::new(claim)), 1, now);
    }

    /// Says what came of the run under a lease, which is about to be released.
    pub fn finish(&mut self, lease: u64, outcome: Word, took: Duration, now: Now) {
        self.record(lease, RunState::Ended { outcome, took }, now);
    }

    /// The tick will not be started, though nodes may remember it.
    pub(super) fn was_not_started(&mut self, lease: u64, now: Now) {
        if let Some(outcome) = Word::new(RunRecord::UNSTARTED) {
            self.finish(lease, outcome, Duration::ZERO, now);
        }
    }

    /// A lease is released: the run under it is over, if nobody said so.
    pub(super) fn was_dropped(&mut self, lease: u64, now: Now) {
        let claimed = self
            .leases
            .get(&lease)
            .and_then(|held| held.claimed.as_ref());
        if claimed.is_some_and(|claimed| claimed.run.state == RunState::Claimed)
            && let Some(outcome) = Word::new(RunRecord::DROPPED)
        {
            self.finish(lease, outcome, Duration::ZERO, now);
        }
    }

    fn record(&mut self, lease: u64, state: RunState, now: Now) {
        let held = self.leases.get_mut(&lease);
        let Some(Claimed { job, run, .. }) = held.and_then(|held| held.claimed.as_mut()) else {
            return;
        };
        run.state = state;
        let (job, entry) = (job.clone(), run.to_entry());
        let round = self.start_round(RoundKind::Record, self.config.node_timeout, now);
        for node in 0..self.config.quorum.nodes() {
            let request = Request::Job {
                verb: JobVerb::Record {
                    entry: entry.clone(),
                },
                job: job.clone(),
            };
            self.send(node, round, request);
        }
    }

    /// A node answered in an attempt; whether this ends the claim at once.
    pub(super) fn note_claim(&mut self, id: u64, node: usize, reply: &Reply, now: Now) -> bool {
        let votes = self.electorate.vote(node, now.clock).is_ok();
        let acquisition = self.acquisitions.get_mut(&id);
        let Some(claiming) = acquisition.and_then(|acquisition| acquisition.claim.as_mut()) else {
            return false;
        };
        let last = match reply {
            Reply::Claimed { last, .. } => last.as_ref(),
            // Two majorities always share a node, so one that has seen the tick pass is enough; and whatever it
            // says else, it was told that by somebody who had won the votes.
            Reply::NoClaim(NoClaim::Passed(last)) => Some(last),
            Reply::NoClaim(NoClaim::Early { by }) if votes => {
                claiming.early.push(*by);
                None
            }
            Reply::NoClaim(NoClaim::Late { by }) if votes => {
                claiming.late.push(*by);
                None
            }
            _ => None,
        };
        if let Some(last) = last
            && claiming
                .last
                .as_ref()
                .is_none_or(|known| known.tick < last.tick)
        {
            claiming.last = Some(last.clone());
        }
        claiming.passed().is_some()
    }

    /// An attempt to claim has failed: says so, or when to try again, if that is decided by what nodes said of the
    /// tick.
    pub(super) fn not_granted(
        &mut self,
        id: u64,
        acquisition: &Acquisition,
        votes: &Votes,
        round: u64,
        now: Now,
    ) -> Option<Decided> {
        let claiming = acquisition.claim.as_ref()?;
        let why = claiming.passed().or_else(|| claiming.untimely(votes))?;
        if let NotClaimed::TooEarly { by } = why
            && now.clock + by < acquisition.request.wait_until
        {
            return Some(Decided::NotBefore(now.clock + by));
        }
        let answers = self.answers(round, now);
        self.effects
            .push_back(Effect::NotClaimed { id, why, answers });
        Some(Decided::ForGood)
    }

    /// A majority has granted: it must remember that before the run may start.
    pub(super) fn commit(&mut self, id: u64, votes: &Votes, tokens: TokenBlock, now: Now) {
        let acquisition = self.acquisitions.get_mut(&id);
        let Some(claiming) = acquisition.and_then(|acquisition| acquisition.claim.as_mut()) else {
            return;
        };
        claiming.voters = votes.counters().iter().map(|(node, _)| *node).collect();
        let Claim {
            job,
            tick,
            fingerprint,
            replica,
            ..
        } = claiming.claim.clone();
        let run = RunRecord {
            tick,
            token: tokens.first(),
            fingerprint,
            claimed_at: now.wall / 1_000,
            replica,
            state: RunState::Claimed,
        };
        let last = claiming.last.clone();
        if let Some(held) = self.leases.get_mut(&id) {
            held.claimed = Some(Claimed { job, run, last });
        }
        self.ask_to_remember(id, now);
    }

    /// A round in which nodes are asked to remember a claim.
    ///
    /// Only those count whose vote counted: they have kept the lock for it ever since, so that what they say of the
    /// watermark is still true.
    fn ask_to_remember(&mut self, id: u64, now: Now) {
        let acquisition = self.acquisitions.get_mut(&id);
        let Some(claiming) = acquisition.and_then(|acquisition| acquisition.claim.as_mut()) else {
            return;
        };
        claiming.commits += 1;
        let voters = claiming.voters.clone();
        let Some(held) = self.leases.get(&id) else {
            return;
        };
        let Some(claimed) = &held.claimed else { return };
        let request = Request::Job {
            verb: JobVerb::Commit {
                lock: held.key.clone(),
                owner: held.owner,
                ttl: held.timing.key_ttl(),
                shard: Shard::of(&held.key),
                entry: claimed.run.to_entry(),
            },
            job: claimed.job.clone(),
        };
        let extension = held.state.extension(self.config.quorum, now.clock);
        let limit = self.limit_within(held.timing);
        let kind = RoundKind::WriteBack {
            lease: id,
            extension: extension.among(&voters),
        };
        let round = self.start_round(kind, limit, now);
        for node in voters {
            self.send(node, round, request.clone());
        }
    }

    /// Too few nodes have confirmed that they remember a claim: they are asked again while the lease lasts, and
    /// else it is given up for good, because some may.
    pub(super) fn not_committed(
        &mut self,
        id: u64,
        acquisition: Acquisition,
        verdict: ExtensionVerdict,
        round: u64,
        now: Now,
    ) {
        let commits = acquisition.claim.as_ref().map_or(0, |claim| claim.commits);
        let usable = |state: &crate::LeaseState| state.is_live() && state.may_hand_out(now.clock);
        let is_usable = self.leases.get(&id).is_some_and(|held| usable(&held.state));
        if verdict == ExtensionVerdict::Failed && is_usable && commits < COMMITS {
            self.acquisitions.insert(id, acquisition);
            return self.ask_to_remember(id, now);
        }
        let answers = self.answers(round, now);
        self.was_not_started(id, now);
        self.release(id, None, now);
        let why = NotClaimed::Unconfirmed;
        self.effects
            .push_back(Effect::NotClaimed { id, why, answers });
    }
}

/// How often nodes are asked to remember a claim.
const COMMITS: u32 = 3;
