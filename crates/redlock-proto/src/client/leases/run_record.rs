//! The nodes' memory of a run: a majority must have it before the run may start, and is informed of its end.

use std::time::Duration;

use super::{
    super::{Now, TickClaim, context::Context, rounds::RoundKind},
    Leases,
};
use crate::{JobEntry, JobVerb, NodeKey, Note, Request, RunRecord, RunState, TokenBlock, Word};

impl Leases {
    /// Tells nodes what came of the run under a lease, which is about to be released.
    pub(in super::super) fn finish(
        &mut self,
        lease: u64,
        outcome: Word,
        took: Duration,
        note: Option<Note>,
        cx: &mut Context,
        now: Now,
    ) {
        let held = self.held.get_mut(lease);
        if let Some(claimed) = held.and_then(|held| held.claimed.as_mut()) {
            claimed.run.state = RunState::Ended { outcome, took };
            claimed.run.note = note;
            self.record_end(lease, cx, now);
        }
    }

    /// Tells nodes that may remember the tick to forget it, because it will not be started.
    ///
    /// The request goes ahead of the release, so that no client is given a tick in between.
    pub(in super::super) fn withdraw(&mut self, lease: u64, cx: &mut Context, now: Now) {
        let Some(held) = self.held.get_mut(lease) else {
            return;
        };
        let ttl = held.state.timing().key_ttl();
        let Some(ClaimedRun { job, run, .. }) = held.claimed.take().map(|claimed| *claimed) else {
            return;
        };
        let entry = run.to_entry();
        tell_of_run(&job, &JobVerb::Withdraw { entry, ttl }, cx, now);
    }

    /// Tells nodes what came of the run under a lease; the run was dropped if no end was reported.
    ///
    /// A release says so again, because it may come long after the end.
    /// A link repeats both for as long as the key may stay, and sends them in one call: a node that has heard the release
    /// alone would give the lock to a client that takes the run for one that was cut short.
    pub(super) fn record_end(&mut self, lease: u64, cx: &mut Context, now: Now) {
        let Some(held) = self.held.get_mut(lease) else {
            return;
        };
        let ttl = held.state.timing().key_ttl();
        let Some(ClaimedRun { job, run, .. }) = held.claimed.as_deref_mut() else {
            return;
        };
        if run.is_open()
            && let Some(outcome) = Word::new(RunRecord::DROPPED)
        {
            let took = Duration::ZERO;
            run.state = RunState::Ended { outcome, took };
        }
        let entry = run.to_entry();
        tell_of_run(job, &JobVerb::Record { entry, ttl }, cx, now);
    }

    /// Notes what nodes are to remember of a granted claim, before the run may start.
    pub(in super::super) fn prepare_commit(
        &mut self,
        lease: u64,
        claim: &TickClaim,
        last: Option<JobEntry>,
        tokens: TokenBlock,
        now: Now,
    ) {
        let run = RunRecord {
            series: claim.series,
            tick: claim.tick,
            attempt: claim.attempt,
            token: tokens.first(),
            fingerprint: claim.fingerprint,
            claimed_at: now.wall / 1_000,
            replica: claim.replica.clone(),
            state: RunState::Claimed,
            note: None,
        };
        if let Some(held) = self.held.get_mut(lease) {
            let job = claim.job.clone();
            held.claimed = Some(Box::new(ClaimedRun { job, run, last }));
        }
    }
}

fn tell_of_run(job: &NodeKey, verb: &JobVerb, cx: &mut Context, now: Now) {
    let round = cx.start_round(RoundKind::Record, cx.config.node_timeout, now);
    let request = Request::Job {
        verb: verb.clone(),
        job: job.clone(),
    };
    cx.send_all(round, &request);
}

/// The run that goes on under a lease.
#[derive(Clone, Debug)]
pub(super) struct ClaimedRun {
    pub(super) job: NodeKey,
    pub(super) run: RunRecord,
    pub(super) last: Option<JobEntry>,
}

impl ClaimedRun {
    /// Returns the newest run before it.
    pub(super) fn last(&self) -> Option<RunRecord> {
        self.last.as_ref().and_then(RunRecord::of)
    }
}
