//! The commit of a claim: a majority remembers the tick before its run may start, and what comes of the run after.

use std::time::Duration;

use super::{Client, Entropy, Now, claim::Claim, hold::Held, round::RoundKind};
use crate::{JobEntry, JobVerb, NodeKey, Request, RunRecord, RunState, Shard, TokenBlock, Word};

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

    /// The tick will not be started: nodes that may remember it are told to forget it, so that another claim may have
    /// it.
    ///
    /// They are told ahead of the release, so that nobody was given a tick in between.
    pub(super) fn withdraw(&mut self, lease: u64, now: Now) {
        let Some(held) = self.leases.get_mut(&lease) else {
            return;
        };
        let ttl = held.timing.key_ttl();
        let Some(Claimed { job, run, .. }) = held.claimed.take() else {
            return;
        };
        let entry = run.to_entry();
        self.tell_of_run(&job, &JobVerb::Withdraw { entry, ttl }, now);
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
        self.tell_of_run(&job, &JobVerb::Record { entry }, now);
    }

    fn tell_of_run(&mut self, job: &NodeKey, verb: &JobVerb, now: Now) {
        let round = self.start_round(RoundKind::Record, self.config.node_timeout, now);
        for node in 0..self.config.quorum.nodes() {
            let request = Request::Job {
                verb: verb.clone(),
                job: job.clone(),
            };
            self.send(node, round, request);
        }
    }

    /// A majority has granted a claim: what it is to remember before the run may start.
    pub(super) fn prepare_commit(&mut self, id: u64, tokens: TokenBlock, now: Now) {
        let acquisition = self.acquisitions.get(&id);
        let Some(claiming) = acquisition.and_then(|acquisition| acquisition.claim.as_ref()) else {
            return;
        };
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
    }
}

impl Held {
    /// What a node is asked to remember, if the lease was claimed.
    pub(super) fn commit(&self) -> Option<Request> {
        let claimed = self.claimed.as_ref()?;
        Some(Request::Job {
            verb: JobVerb::Commit {
                lock: self.key.clone(),
                owner: self.owner,
                ttl: self.timing.key_ttl(),
                shard: Shard::of(&self.key),
                entry: claimed.run.to_entry(),
            },
            job: claimed.job.clone(),
        })
    }
}
