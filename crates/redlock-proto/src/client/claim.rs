//! Claims of scheduled ticks: acquisitions whose votes are the nodes' own judgement of the tick.

use std::{sync::Arc, time::Duration};

use super::{
    Client, Effect, Entropy, Now,
    acquire::{Acquire, Acquisition},
};
use crate::{
    Instant, JobEntry, JobVerb, NoClaim, NodeKey, OwnerId, Reply, Request, RunRecord, Shard, Tick,
    Votes, Window, Word,
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
    /// Which run before it is to be started again first; `None` if none is.
    pub not_after: Option<NotAfter>,
}

/// The runs that must be settled before a later tick is claimed: those that were cut short.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a driver must settle every part of it"
)]
pub struct NotAfter {
    /// The outcomes of runs that were cut short; see [`RunRecord::was_cut_short`].
    pub outcomes: Arc<[Word]>,
    /// The runs of ticks up to this one are settled, however they ended.
    pub settled: Option<Tick>,
}

impl NotAfter {
    /// Whether a claim may follow `last`, whose lock nobody holds.
    fn forbids(&self, last: &RunRecord) -> bool {
        let is_settled = self.settled.is_some_and(|settled| last.tick <= settled);
        !is_settled && last.was_cut_short(&self.outcomes)
    }
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
    /// The tick could have been claimed before so many nodes forgot what was that no majority is left to say.
    Forgotten {
        /// Whether that will stay so: if not, nodes that have not answered may still grant it.
        for_good: bool,
    },
    /// The newest run before it was cut short, and the claimant does not know it as settled.
    ///
    /// The nodes had granted the tick and were not asked to remember it, so anybody can claim it.
    CutShort {
        /// That run.
        last: RunRecord,
    },
    /// The nodes had granted the tick, and too few have confirmed in time that they remember it.
    ///
    /// It was not started, and perhaps nobody can claim it any more.
    Unconfirmed,
}

/// A claim that is under way.
#[derive(Clone, Debug)]
pub(super) struct Claiming {
    pub(super) claim: Claim,
    /// The newest run that the nodes of this attempt remember.
    pub(super) last: Option<JobEntry>,
    /// By how much it was too early for nodes that vote, and too late.
    early: Vec<Duration>,
    late: Vec<Duration>,
    /// How many that vote may have forgotten that it was claimed.
    forgot: usize,
}

/// What follows from what nodes said of the tick.
#[derive(Clone, Copy, Debug)]
pub(super) enum Decided {
    /// The claim is over.
    ForGood,
    /// The nodes will say the same up to then.
    NotBefore(Instant),
}

impl Claiming {
    fn new(claim: Claim) -> Self {
        Self {
            claim,
            last: None,
            early: Vec::new(),
            late: Vec::new(),
            forgot: 0,
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

    /// The run that must be settled before the tick is claimed.
    fn cut_short(&self) -> Option<RunRecord> {
        let not_after = self.claim.not_after.as_ref()?;
        let last = RunRecord::of(self.last.as_ref()?)?;
        not_after.forbids(&last).then_some(last)
    }

    /// Remembers the newest run that a node has told of.
    fn note_last(&mut self, last: &JobEntry) {
        let is_news = self.last.as_ref().is_none_or(|known| {
            known.tick < last.tick
                // Of what nodes say of one run, its end counts.
                || known.is_same_run(last) && RunRecord::of(known).is_some_and(|run| run.is_open())
        });
        if is_news {
            self.last = Some(last.clone());
        }
    }

    /// What the nodes' refusals come to, if nothing else keeps a majority from granting.
    pub(super) fn untimely(&self, votes: &Votes) -> Option<NotClaimed> {
        let tolerated = votes.quorum().tolerated();
        let missing = votes.refused() + votes.failed();
        let others = missing.saturating_sub(self.early.len() + self.late.len());
        if missing <= tolerated {
            return None;
        }
        if others > tolerated {
            let is_why = others.saturating_sub(self.forgot) <= tolerated;
            let for_good = self.forgot > tolerated;
            return is_why.then_some(NotClaimed::Forgotten { for_good });
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
    /// Nodes that have granted are asked to remember the claim.
    /// If too few can, nodes are told to forget it, and there is another attempt.
    /// If no majority can be reached, those are asked again, with pauses, for as long as the lease lasts that they have
    /// granted, which may be longer than the wait.
    pub fn claim(&mut self, id: u64, mut request: Acquire, claim: Claim, now: Now) {
        if self.closing {
            return self.acquire(id, request, now);
        }
        // The token is part of what nodes remember, so that it cannot be another holder's.
        request.tokens = 1;
        self.attempt(id, request, Some(Claiming::new(claim)), 1, None, now);
    }

    /// A node answered in an attempt; whether this ends the claim at once.
    pub(super) fn note_claim(&mut self, id: u64, node: usize, reply: &Reply, now: Instant) -> bool {
        // A wrong clock has no say.
        let votes = self.electorate.vote(node, now).is_ok();
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
            Reply::NoClaim(NoClaim::Forgot) if votes => {
                claiming.forgot += 1;
                None
            }
            _ => None,
        };
        if let Some(last) = last {
            claiming.note_last(last);
        }
        claiming.passed().is_some()
    }

    /// A majority has granted: gives it back if the run before must be settled first, and says whether that is so.
    pub(super) fn comes_too_soon(&mut self, id: u64, now: Now) -> bool {
        let claiming = self.acquisitions.get(&id);
        let claiming = claiming.and_then(|acquisition| acquisition.claim.as_ref());
        let Some(last) = claiming.and_then(Claiming::cut_short) else {
            return false;
        };
        self.acquisitions.remove(&id);
        self.release(id, None, now);
        self.effects.push_back(Effect::NotClaimed {
            id,
            why: NotClaimed::CutShort { last },
            answers: Vec::new(),
        });
        true
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
}
