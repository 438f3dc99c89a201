//! The commit of a claim: a majority remembers the tick before its run may start, and what comes of the run after.

use std::time::Duration;

use super::{
    Client, Effect, Entropy, Now,
    acquire::Acquisition,
    claim::{Claim, NotClaimed},
    round::RoundKind,
};
use crate::{
    ExtensionVerdict, Instant, JobEntry, JobVerb, LeaseState, NodeAnswer, NodeKey, Request,
    RunRecord, RunState, Shard, TokenBlock, Votes, Word,
};

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

impl<E: Entropy> Client<E> {
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
            claiming.commit_until = held.state.deadline();
            held.claimed = Some(Claimed { job, run, last });
        }
        self.ask_to_remember(id, now);
    }

    /// A round in which nodes are asked to remember a claim.
    ///
    /// Only those count whose vote counted: they have kept the lock for it ever since, so that what they say of the
    /// watermark is still true.
    fn ask_to_remember(&mut self, id: u64, now: Now) {
        let acquisition = self.acquisitions.get(&id);
        let Some(claiming) = acquisition.and_then(|acquisition| acquisition.claim.as_ref()) else {
            return;
        };
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

    /// Too few nodes have confirmed that they remember a claim: they are asked again while the lease lasts that they
    /// have granted, and else it is given up for good, because some may.
    pub(super) fn not_committed(
        &mut self,
        id: u64,
        acquisition: Acquisition,
        verdict: ExtensionVerdict,
        round: u64,
        now: Now,
    ) {
        let claim = acquisition.claim.as_ref();
        let until = claim.map_or(Instant::ORIGIN, |claim| claim.commit_until);
        if verdict == ExtensionVerdict::Failed
            && let Some(held) = self.leases.get(&id)
            && held.state.is_live()
        {
            let at = now.clock + held.state.pause_after_failure();
            if at < until && held.state.may_hand_out(at) {
                return self.confirm_at(id, acquisition, at);
            }
        }
        let answers = self.answers(round, now);
        self.unconfirmed(id, answers, now);
    }

    /// The pause after a commit that too few have confirmed is over.
    pub(super) fn commit_again(&mut self, id: u64, acquisition: Acquisition, now: Now) {
        let usable = |state: &LeaseState| state.is_live() && state.may_hand_out(now.clock);
        if self.leases.get(&id).is_some_and(|held| usable(&held.state)) {
            self.acquisitions.insert(id, acquisition.settling());
            self.ask_to_remember(id, now);
        } else {
            self.unconfirmed(id, Vec::new(), now);
        }
    }

    fn unconfirmed(&mut self, id: u64, answers: Vec<NodeAnswer>, now: Now) {
        self.was_not_started(id, now);
        self.release(id, None, now);
        let why = NotClaimed::Unconfirmed;
        self.effects
            .push_back(Effect::NotClaimed { id, why, answers });
    }
}
