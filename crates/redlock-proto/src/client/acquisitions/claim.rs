//! A claim that is under way: what nodes have said of its tick.

use std::time::Duration;

use super::super::{Acquire, NotClaimed, TickClaim};
use crate::{Instant, JobEntry, JobVerb, NoClaim, OwnerId, Reply, Request, RunRecord, Votes};

/// A claim that is under way.
#[derive(Clone, Debug)]
pub(super) struct Claiming {
    pub(super) claim: TickClaim,
    /// The newest run that the nodes of this attempt remember.
    pub(super) last: Option<JobEntry>,
    /// By how much it was too early for nodes that vote, and too late.
    early: Vec<Duration>,
    late: Vec<Duration>,
    /// How many that vote may have forgotten that it was claimed.
    forgot: usize,
}

/// What follows from what nodes said of the tick.
#[derive(Debug)]
pub(super) enum ClaimVerdict {
    /// The claim is over.
    ForGood(NotClaimed),
    /// The nodes will say the same up to then.
    NotBefore(Instant),
}

impl Claiming {
    pub(super) fn new(claim: TickClaim) -> Self {
        Self {
            claim,
            last: None,
            early: Vec::new(),
            late: Vec::new(),
            forgot: 0,
        }
    }

    /// Forgets what was heard in the attempt before.
    pub(super) fn ask_anew(&mut self) {
        self.last = None;
        self.early.clear();
        self.late.clear();
        self.forgot = 0;
    }

    /// Returns what every node is asked.
    pub(super) fn request(&self, request: &Acquire, owner: OwnerId, proposal: u64) -> Request {
        let TickClaim {
            job,
            series,
            tick,
            attempt,
            window,
            ..
        } = &self.claim;
        Request::Job {
            verb: JobVerb::Claim {
                lock: request.keys.first().clone(),
                owner: Box::new(owner),
                ttl: request.timing.key_ttl(),
                proposal,
                series: *series,
                tick: *tick,
                attempt: *attempt,
                window: *window,
            },
            job: job.clone(),
        }
    }

    /// Returns why the tick cannot be claimed, if a node has seen it pass.
    pub(super) fn passed(&self) -> Option<NotClaimed> {
        let last = self.last.as_ref()?;
        (last.order() >= (self.claim.tick, self.claim.attempt)).then(|| NotClaimed::Passed {
            watermark: last.tick,
            last: RunRecord::of(last),
        })
    }

    /// Returns the run that must be settled before the tick is claimed.
    pub(super) fn cut_short(&self) -> Option<RunRecord> {
        let not_after = self.claim.not_after.as_ref()?;
        let last = RunRecord::of(self.last.as_ref()?)?;
        not_after.forbids(&last).then_some(last)
    }

    /// Notes what a node said of the tick, and whether its clock has a say; returns whether this ends the claim at once.
    pub(super) fn note(&mut self, reply: &Reply, votes: bool) -> bool {
        let last = match reply {
            Reply::Claimed { last, .. } => last.as_ref(),
            // Two majorities always share a node, so one node that has seen the tick pass is enough.
            // Whatever else the node answers, a client that had won the votes has told it of the tick.
            Reply::NoClaim(NoClaim::Passed(last)) => Some(last),
            Reply::NoClaim(NoClaim::Early { by }) if votes => {
                self.early.push(*by);
                None
            }
            Reply::NoClaim(NoClaim::Late { by }) if votes => {
                self.late.push(*by);
                None
            }
            Reply::NoClaim(NoClaim::Forgot) if votes => {
                self.forgot += 1;
                None
            }
            _ => None,
        };
        if let Some(last) = last {
            self.note_last(last);
        }
        self.passed().is_some()
    }

    /// Remembers the newest run that a node has reported.
    fn note_last(&mut self, last: &JobEntry) {
        let is_news = self.last.as_ref().is_none_or(|known| {
            known.order() < last.order()
                // A node may have kept only the tick of the run.
                || known.order() == last.order() && known.is_anchor()
                // Of what nodes say of one run, its end counts.
                || known.is_same_run(last) && RunRecord::of(known).is_some_and(|run| run.is_open())
        });
        if is_news {
            self.last = Some(last.clone());
        }
    }

    /// Returns what the nodes' refusals come to, if nothing else keeps a majority from granting.
    ///
    /// A node that has the lock of another owner says nothing of the tick: it may grant once that lock is free.
    pub(super) fn untimely(&self, votes: &Votes) -> Option<NotClaimed> {
        let tolerated = votes.quorum().tolerated();
        let missing = votes.failed();
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

#[cfg(test)]
mod tests {
    use super::super::super::NotAfter;
    use super::*;
    use crate::{FencingToken, RunState, Series, Tick, Window, Word};

    /// One node has had a hundred runs since that were withdrawn, and keeps the tick alone.
    #[test]
    fn a_run_is_heard_of_though_a_node_has_kept_its_tick_alone() {
        let word = || Word::new("word").unwrap();
        let tick = |ms| Tick::from_millis(ms).unwrap();
        let run = RunRecord {
            series: Series::TICKS,
            tick: tick(1_000),
            attempt: 1,
            token: FencingToken::new(7).unwrap(),
            fingerprint: 1,
            claimed_at: 1_000,
            replica: word(),
            state: RunState::Claimed,
            note: None,
        };
        let entry = run.to_entry();
        for runs in [
            [entry.clone(), entry.to_anchor()],
            [entry.to_anchor(), entry],
        ] {
            let mut claiming = Claiming::new(TickClaim {
                job: "job".into(),
                series: Series::TICKS,
                tick: tick(2_000),
                attempt: 1,
                window: Window::new(Window::LONGEST, Window::LONGEST),
                fingerprint: 1,
                replica: word(),
                not_after: Some(NotAfter {
                    outcomes: [].into(),
                    settled: None,
                }),
            });
            for last in runs {
                let (counter, last) = (1, Some(last));
                assert!(!claiming.note(&Reply::Claimed { counter, last }, true));
            }
            assert_eq!(claiming.cut_short(), Some(run.clone()));
        }
    }
}
