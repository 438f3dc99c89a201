//! Acquisitions: attempts, and the delays between them, until one wins or the wait ends.

use std::time::Duration;

use super::{
    Client, Effect, Entropy, Now, Timer,
    claim::{Claiming, Decided},
    hold::Won,
    round::RoundKind,
    settle::Settlement,
    timers::TimerKey,
};
use crate::{
    Attempt, AttemptVerdict, Failure, FailureKind, Grant, Instant, Next, NodeAnswer, NodeKey,
    NotAVote, Outcome, OwnerId, Request, Settled, Shard, Timing, TokenBlock, Verb, Votes,
};

/// What an acquisition asks for.
#[derive(Clone, Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a driver must settle every part of it"
)]
pub struct Acquire {
    /// The key on the nodes.
    pub key: NodeKey,
    /// The lengths of time of the lease.
    pub timing: Timing,
    /// Whether the lease is extended without being asked.
    pub renew: bool,
    /// How long it may be held, however often it is extended.
    pub max_hold: Option<Duration>,
    /// How many fencing tokens to reserve, so that the lease can be handed over so often but one.
    pub tokens: u32,
    /// Up to when to try again.
    pub wait_until: Instant,
    /// For how long to try again while too few nodes are of use, from the moment at which the client saw them fail;
    /// `None`: for the whole wait.
    pub quorum_wait: Option<Duration>,
}

/// An acquisition that is under way.
#[derive(Debug)]
pub(super) struct Acquisition {
    pub(super) request: Acquire,
    /// The tick, if it is a claim.
    pub(super) claim: Option<Claiming>,
    attempts: u32,
    /// Since when it bears with too few nodes.
    pub(super) outage: Option<Instant>,
    pub(super) phase: Phase,
}

#[derive(Clone, Debug)]
pub(super) enum Phase {
    Attempting {
        round: u64,
    },
    /// A majority has granted, and is asked to confirm.
    Settling(Settlement),
    /// A majority has granted a claim, and will be asked again to remember it.
    Unconfirmed {
        timer: TimerKey,
        settlement: Settlement,
    },
    Pausing {
        timer: TimerKey,
    },
}

impl<E: Entropy> Client<E> {
    /// Attempts to win a lease, until `wait_until`; `id` was never used before.
    pub fn acquire(&mut self, id: u64, request: Acquire, now: Now) {
        if self.closing {
            self.effects.push_back(Effect::NotAcquired {
                id,
                failure: None,
                answers: Vec::new(),
            });
            return;
        }
        self.attempt(id, request, None, 1, None, now);
    }

    /// Nobody waits for the acquisition any more: whatever it took, or takes later, is given back.
    pub fn abandon(&mut self, id: u64, now: Now) {
        if let Some(acquisition) = self.acquisitions.remove(&id) {
            self.stop(id, &acquisition, now);
        }
    }

    /// As [`abandon`](Self::abandon), and says so, because the client is being closed.
    pub(super) fn end(&mut self, id: u64, now: Now) {
        self.abandon(id, now);
        self.effects.push_back(Effect::NotAcquired {
            id,
            failure: None,
            answers: Vec::new(),
        });
    }

    fn stop(&mut self, id: u64, acquisition: &Acquisition, now: Now) {
        match acquisition.phase {
            Phase::Pausing { timer } => self.timers.cancel(timer),
            Phase::Settling(_) | Phase::Unconfirmed { .. } => {
                if let Phase::Unconfirmed { timer, .. } = acquisition.phase {
                    self.timers.cancel(timer);
                }
                self.withdraw(id, now);
                self.release(id, None, now);
            }
            Phase::Attempting { round } => {
                let Some(entry) = self.rounds.get_mut(&round) else {
                    return;
                };
                let RoundKind::Attempt { attempt, owner, .. } = &mut entry.kind else {
                    return;
                };
                let owner = *owner;
                if let Some(AttemptVerdict::Failed(failure)) = attempt.on_abandoned(now.clock) {
                    entry.kind = RoundKind::Decided { lease: None };
                    self.decided(round);
                    self.give_back(&failure, &acquisition.request, owner, now);
                }
            }
        }
    }

    /// The delay is over after a failed attempt, or a commit that too few have confirmed.
    pub(super) fn try_again(&mut self, id: u64, now: Now) {
        let Some(acquisition) = self.acquisitions.remove(&id) else {
            return;
        };
        if let Phase::Unconfirmed { settlement, .. } = &acquisition.phase {
            let settlement = settlement.clone();
            return self.confirm_again(id, acquisition, settlement, now);
        }
        let Acquisition {
            request,
            claim,
            attempts,
            outage,
            ..
        } = acquisition;
        self.attempt(id, request, claim, attempts + 1, outage, now);
    }

    /// Those who were asked to confirm are to be asked again at this moment.
    pub(super) fn confirm_at(
        &mut self,
        id: u64,
        mut acquisition: Acquisition,
        settlement: Settlement,
        at: Instant,
    ) {
        let timer = self.timers.set(at, Timer::Retry(id));
        acquisition.phase = Phase::Unconfirmed { timer, settlement };
        self.acquisitions.insert(id, acquisition);
    }

    /// An attempt was decided.
    pub(super) fn attempted(&mut self, round: u64, verdict: AttemptVerdict, now: Now) {
        self.decided(round);
        let Some(entry) = self.rounds.get_mut(&round) else {
            return;
        };
        let decided = RoundKind::Decided { lease: None };
        let kind = std::mem::replace(&mut entry.kind, decided);
        let RoundKind::Attempt {
            acquisition: id,
            owner,
            attempt,
        } = kind
        else {
            return;
        };
        match verdict {
            AttemptVerdict::Granted(grant) => {
                entry.kind = RoundKind::Decided {
                    lease: Some((id, owner)),
                };
                self.won(id, owner, &grant, attempt.votes(), round, now);
            }
            AttemptVerdict::Failed(failure) => {
                entry.say_uncounted(attempt.votes(), |node| self.electorate.same_server(node));
                let Some(acquisition) = self.acquisitions.remove(&id) else {
                    return;
                };
                self.give_back(&failure, &acquisition.request, owner, now);
                match self.not_granted(id, &acquisition, attempt.votes(), round, now) {
                    Some(Decided::ForGood) => {}
                    Some(Decided::NotBefore(at)) => {
                        self.failed(id, acquisition, failure, round, Some(at), now);
                    }
                    None => self.failed(id, acquisition, failure, round, None, now),
                }
            }
        }
    }

    pub(super) fn attempt(
        &mut self,
        id: u64,
        request: Acquire,
        claim: Option<Claiming>,
        attempts: u32,
        outage: Option<Instant>,
        now: Now,
    ) {
        let owner = self.entropy.owner();
        let attempt = Attempt::start(self.config.quorum, request.timing, now.clock);
        let kind = RoundKind::Attempt {
            acquisition: id,
            owner,
            attempt,
        };
        let round = self.start_round(kind, self.limit_within(request.timing), now);
        let shard = Shard::of(&request.key);
        if let Some(entry) = self.rounds.get_mut(&round) {
            entry.counts = Some((shard, request.tokens));
        }
        // The same for all nodes, so that they mostly agree at once.
        let proposal = self.proposal(shard, now);
        let lock = || Request::Lock {
            verb: Verb::Acquire {
                ttl: request.timing.key_ttl(),
                shard,
                proposal,
                block: request.tokens,
            },
            key: request.key.clone(),
            owner,
        };
        let asked = match &claim {
            None => lock(),
            Some(claim) => claim.request(&request, owner, shard, proposal),
        };
        let mut twins = Vec::new();
        for node in 0..self.config.quorum.nodes() {
            // A server that is asked twice would refuse its vote because of the other request.
            if let Some(of) = self.electorate.same_server(node) {
                twins.push((node, of));
                continue;
            }
            self.send(node, round, asked.clone());
        }
        let acquisition = Acquisition {
            request,
            claim: claim.map(Claiming::asked_anew),
            attempts,
            outage,
            phase: Phase::Attempting { round },
        };
        self.acquisitions.insert(id, acquisition);
        for (node, of) in twins {
            if let Some(entry) = self.rounds.get_mut(&round) {
                let reason = NotAVote::SameServer { of };
                entry.say(node, NodeAnswer::NotAVote { reason });
                self.on_outcome(round, node, Outcome::NotExecuted, None, now);
            }
        }
    }

    fn won(&mut self, id: u64, owner: OwnerId, grant: &Grant, votes: &Votes, round: u64, now: Now) {
        let Some(acquisition) = self.acquisitions.get_mut(&id) else {
            return;
        };
        let won = Won {
            owner,
            grant,
            votes,
            jumped: self.rounds.get(&round).map_or(0, |round| round.jumped),
        };
        let request = acquisition.request.clone();
        let is_claim = acquisition.claim.is_some();
        let (counter, is_agreed) = match &grant.settled {
            Settled::Agreed(counter) => (*counter, true),
            Settled::WriteBack { counter, .. } => (*counter, false),
        };
        let Some(tokens) = TokenBlock::new(counter, request.tokens) else {
            // Nodes refuse to count so far, so these do not speak the truth; there is no token to hand out.
            self.hold(id, &request, &won, None);
            self.release(id, None, now);
            self.acquisitions.remove(&id);
            self.effects.push_back(Effect::NotAcquired {
                id,
                failure: Some(Failure::after_grant(
                    FailureKind::NoQuorum,
                    grant.start,
                    now.clock,
                )),
                answers: Vec::new(),
            });
            return;
        };
        self.hold(id, &request, &won, Some(tokens));
        if is_claim && self.comes_too_soon(id, now) {
            return;
        }
        if is_claim {
            self.prepare_commit(id, tokens, now);
        }
        if is_claim || !is_agreed {
            return self.settle(id, owner, votes, now);
        }
        let Some(acquisition) = self.acquisitions.remove(&id) else {
            return;
        };
        let by_now = self.electorate.jumped();
        let held = self.leases.get_mut(&id);
        if held.is_some_and(|held| held.may_hand_out(by_now, now.clock)) {
            return self.hand_out(id);
        }
        let failure = Failure::after_grant(FailureKind::Expired, grant.start, now.clock);
        self.release(id, None, now);
        self.failed(id, acquisition, failure, round, None, now);
    }

    /// Gives an attempt up, whose outcome is known from elsewhere.
    pub(super) fn abandoned(&mut self, round: u64, now: Now) -> Option<AttemptVerdict> {
        match &mut self.rounds.get_mut(&round)?.kind {
            RoundKind::Attempt { attempt, .. } => attempt.on_abandoned(now.clock),
            _ => None,
        }
    }

    fn give_back(&mut self, failure: &Failure, request: &Acquire, owner: OwnerId, now: Now) {
        self.send_release(
            &failure.give_back,
            &request.key,
            owner,
            request.timing,
            None,
            now,
        );
    }

    pub(super) fn failed(
        &mut self,
        id: u64,
        mut acquisition: Acquisition,
        failure: Failure,
        round: u64,
        not_before: Option<Instant>,
        now: Now,
    ) {
        let next = match self.closing || self.gives_nodes_up(&mut acquisition, &failure, now) {
            true => Next::GiveUp,
            false => self.config.retry.next(
                &failure,
                acquisition.attempts,
                acquisition.request.wait_until,
                now.clock,
                self.entropy.bits(),
            ),
        };
        match next {
            Next::RetryAt(at) => {
                let at = not_before.map_or(at, |earliest| earliest.max(at));
                let timer = self.timers.set(at, Timer::Retry(id));
                acquisition.phase = Phase::Pausing { timer };
                self.acquisitions.insert(id, acquisition);
            }
            Next::GiveUp => {
                let answers = self.answers(round, now);
                self.effects.push_back(Effect::NotAcquired {
                    id,
                    failure: Some(failure),
                    answers,
                });
            }
        }
    }

    /// The time limit of a round for such a lease: what takes longer than half the lease is no use.
    pub(super) fn limit_within(&self, timing: Timing) -> Duration {
        self.config.node_timeout.min(timing.ttl() / 2)
    }
}
