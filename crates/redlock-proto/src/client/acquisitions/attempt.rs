//! An attempt: nodes are asked, until a majority has granted or no longer can.

use std::sync::Arc;

use super::{
    super::{
        Acquire, Effect, NotClaimed, Now,
        context::Context,
        leases::{Leases, WonAttempt, send_release},
        rounds::RoundKind,
    },
    Acquisitions, FailedAttempt,
    acquisition::Acquisition,
    claim::{ClaimVerdict, Claiming},
    fan_out::{asked_first, patience},
    not_acquired,
};
use crate::{
    Attempt, AttemptVerdict, Failure, FailureKind, Lock, Notice, Request, Settled, TokenBlock,
    Verb, Votes,
};

impl Acquisitions {
    /// Starts an attempt, with a fresh owner.
    pub(super) fn attempt(
        &mut self,
        id: u64,
        mut acquisition: Acquisition,
        leases: &mut Leases,
        cx: &mut Context,
        now: Now,
    ) {
        let owner = cx.owner().labelled(acquisition.request.label);
        let line = acquisition.in_line(cx, now);
        let request = &acquisition.request;
        let shard = request.keys.first_shard();
        let wait_until = request.wait_until;
        // The same for all nodes, so that they mostly agree at once.
        let proposal = cx.tokens.propose(&request.keys, request.tokens, now);
        let wish = acquisition.wish(&cx.config, now);
        let lock = Arc::new(Lock {
            mode: request.mode,
            keys: request.keys.clone(),
            owner,
        });
        let verb = Verb::Acquire {
            ttl: request.timing.key_ttl(),
            proposal,
            block: request.tokens,
            wish,
            line,
        };
        let limit = cx.limit_within(request.timing);
        let mut attempt = Attempt::start(cx.quorum(), request.timing, now.clock);
        let (mut first_limit, mut held_back) = (limit, None);
        if let Some(line) = line {
            attempt = attempt.in_line(line.grant - request.timing.lock_delay());
        }
        // Once it is known that others want the key, all nodes are asked for its place in line.
        let asks_all = line.is_some_and(|line| line.at_once);
        let asked = match &acquisition.claim {
            None => {
                if let Some(first) = asked_first(shard, cx, now).filter(|_| !asks_all) {
                    first_limit = patience(first.clone(), limit, cx);
                    attempt = attempt.asking(first);
                    held_back = Some((verb, limit));
                }
                let lock = Arc::clone(&lock);
                Request::Lock { verb, lock }
            }
            Some(claim) => claim.request(request, owner, proposal),
        };
        let counts = (Arc::clone(&lock), request.tokens);
        let kind = RoundKind::Attempt {
            acquisition: id,
            lock,
            attempt,
            held_back,
        };
        let round = cx.start_round(kind, first_limit, now);
        if let Some(entry) = cx.rounds.get_mut(round) {
            entry.counts = Some(counts);
            entry.ends_by(wait_until.max(now.clock + limit));
        }
        acquisition.attempt(round);
        if acquisition.attempts > 1 {
            cx.notice(Notice::Retries { acquisition: id });
        }
        self.acquisitions.insert(id, acquisition);
        self.ask(round, cx.nodes.all(), &asked, leases, cx, now);
    }

    /// Takes in that an attempt was decided.
    pub(in super::super) fn attempted(
        &mut self,
        round: u64,
        verdict: AttemptVerdict,
        leases: &mut Leases,
        cx: &mut Context,
        now: Now,
    ) {
        cx.end_limit(round);
        if let Some(RoundKind::Attempt { acquisition, .. }) =
            cx.rounds.get(round).map(|round| &round.kind)
        {
            self.stands_no_more(*acquisition, cx);
        }
        let Some(entry) = cx.rounds.get_mut(round) else {
            return;
        };
        let decided = RoundKind::decided(None);
        let kind = std::mem::replace(&mut entry.kind, decided);
        let RoundKind::Attempt {
            acquisition: id,
            lock,
            mut attempt,
            held_back,
        } = kind
        else {
            return;
        };
        match verdict {
            AttemptVerdict::Granted(grant) => {
                entry.kind = RoundKind::decided(Some((id, Arc::clone(&lock))));
                let baseline = entry.baseline.clone();
                // A vote that comes late may take the place of a node that does not come to confirm the token.
                if let Settled::WriteBack { .. } = grant.settled
                    && let Some((verb, _)) = held_back
                {
                    for node in attempt.widen() {
                        let lock = Arc::clone(&lock);
                        cx.send(node, round, Request::Lock { verb, lock });
                    }
                }
                let won = WonAttempt {
                    lock: &lock,
                    grant: &grant,
                    votes: attempt.votes(),
                    baseline: &baseline,
                };
                self.won(id, &won, round, leases, cx, now);
            }
            AttemptVerdict::Failed(failure) => {
                let nodes = &cx.nodes;
                entry.say_uncounted(attempt.votes(), |node| nodes.same_server(node));
                let Some(acquisition) = self.acquisitions.remove(id) else {
                    return;
                };
                give_back(&failure, &acquisition.request, &lock, cx, now);
                let not_before = match untimely(&acquisition, attempt.votes(), now) {
                    None => None,
                    Some(ClaimVerdict::NotBefore(at)) => Some(at),
                    Some(ClaimVerdict::ForGood(why)) => {
                        let answers = cx.answers(round, now);
                        return cx.outbox.push(Effect::NotClaimed { id, why, answers });
                    }
                };
                let failed = FailedAttempt {
                    failure,
                    round,
                    not_before,
                };
                self.failed(id, acquisition, failed, cx, now);
            }
        }
    }

    /// Hands the lease out that a majority has granted, or has it confirmed first.
    fn won(
        &mut self,
        id: u64,
        won: &WonAttempt<'_>,
        round: u64,
        leases: &mut Leases,
        cx: &mut Context,
        now: Now,
    ) {
        let Some(acquisition) = self.acquisitions.get_mut(id) else {
            return;
        };
        acquisition.leave_lines(cx, now);
        let request = &acquisition.request;
        let (counter, is_agreed) = match &won.grant.settled {
            Settled::Agreed(counter) => (*counter, true),
            Settled::WriteBack { counter, .. } => (*counter, false),
        };
        let failure = |kind| Failure::after_grant(kind, won.grant.start, now.clock);
        let Some(tokens) = TokenBlock::new(counter, request.tokens) else {
            // Nodes refuse to count so far, so these do not speak the truth; there is no token to hand out.
            leases.hold(id, request, won, None);
            leases.release(id, None, cx, now);
            self.acquisitions.remove(id);
            let failure = Some(failure(FailureKind::NoQuorum));
            return not_acquired(id, failure, Vec::new(), cx);
        };
        leases.hold(id, request, won, Some(tokens));
        let claim = acquisition.claim.as_deref();
        if let Some(last) = claim.and_then(Claiming::cut_short) {
            // The run before must be settled first.
            self.acquisitions.remove(id);
            leases.release(id, None, cx, now);
            return cx.outbox.push(Effect::NotClaimed {
                id,
                why: NotClaimed::CutShort { last },
                answers: Vec::new(),
            });
        }
        if let Some(Claiming { claim, last, .. }) = claim {
            leases.prepare_commit(id, claim, last.clone(), tokens, now);
        }
        if claim.is_some() || !is_agreed {
            return self.settle(id, won, round, leases, cx, now);
        }
        let Some(acquisition) = self.acquisitions.remove(id) else {
            return;
        };
        let held = leases.get_mut(id);
        if held.is_some_and(|held| held.may_hand_out(cx.nodes.clocks(), now.clock)) {
            return leases.hand_out(id, cx, now);
        }
        leases.release(id, None, cx, now);
        let failed = FailedAttempt {
            failure: failure(FailureKind::Expired),
            round,
            not_before: None,
        };
        self.failed(id, acquisition, failed, cx, now);
    }
}

/// Returns what follows for a claim from what nodes said of its tick in an attempt that failed, if that decides.
fn untimely(acquisition: &Acquisition, votes: &Votes, now: Now) -> Option<ClaimVerdict> {
    let claiming = acquisition.claim.as_deref()?;
    let why = claiming.passed().or_else(|| claiming.untimely(votes))?;
    if let NotClaimed::TooEarly { by } = why
        && now.clock + by < acquisition.request.wait_until
    {
        return Some(ClaimVerdict::NotBefore(now.clock + by));
    }
    Some(ClaimVerdict::ForGood(why))
}

/// Tells nodes that have granted, or may yet, to let the key go.
pub(super) fn give_back(
    failure: &Failure,
    request: &Acquire,
    lock: &Arc<Lock>,
    cx: &mut Context,
    now: Now,
) {
    let nodes = failure.give_back.iter().copied();
    send_release(nodes, lock, request.timing, None, cx, now);
}
