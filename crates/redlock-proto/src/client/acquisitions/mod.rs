//! Acquisitions: attempts, and the delays between them, until one wins or the wait ends.
//!
//! A claim is an acquisition that a tick belongs to.

mod acquisition;
mod admission;
mod attempt;
mod claim;
mod confirmation;
mod fan_out;
mod waiting;

use std::sync::Arc;

use self::{
    acquisition::{Acquisition, AcquisitionPhase},
    admission::AdmissionQueue,
};
use super::{
    Acquire, Effect, Now, TickClaim,
    context::Context,
    leases::{FOR_OTHERS, Leases},
    rounds::RoundKind,
    timers::Timer,
};
use crate::{
    AttemptVerdict, Failure, FailureKind, Instant, NodeAnswer, NodeOutcome, Reply, RetryDecision,
    SlabMap,
};

/// The acquisitions that are under way, by number.
#[derive(Debug, Default)]
pub(super) struct Acquisitions {
    acquisitions: SlabMap<Acquisition>,
    queue: AdmissionQueue,
}

/// An attempt that came to nothing.
#[derive(Debug)]
struct FailedAttempt {
    failure: Failure,
    round: u64,
    /// There is no use in another attempt before this.
    not_before: Option<Instant>,
}

impl Acquisitions {
    /// Returns how many there are.
    pub(super) fn len(&self) -> usize {
        self.acquisitions.len()
    }

    /// Returns whether this acquisition is under way, so that no caller has its lease yet.
    pub(super) fn is_under_way(&self, id: u64) -> bool {
        self.acquisitions.contains(id)
    }

    /// Starts an acquisition; it claims a tick if there is one.
    pub(super) fn start(
        &mut self,
        id: u64,
        request: Box<Acquire>,
        claim: Option<TickClaim>,
        leases: &mut Leases,
        cx: &mut Context,
        now: Now,
    ) {
        if cx.is_closing() {
            return refuse_closed(id, cx);
        }
        let mut acquisition = Acquisition::new(request, claim);
        let Acquire {
            keys, wait_until, ..
        } = &*acquisition.request;
        let is_in_line = acquisition.claim.is_none() && keys.slots().is_none();
        if !is_in_line && now.clock < *wait_until && leases.has_just_had(keys, now) {
            let at = (now.clock + FOR_OTHERS).min(*wait_until);
            let timer = cx.timers.set(at, Timer::Retry(id));
            acquisition.phase = AcquisitionPhase::Pausing { timer };
            self.acquisitions.insert(id, acquisition);
            return;
        }
        self.attempt_in_turn(id, acquisition, leases, cx, now);
    }

    /// Starts the acquisition of an exclusive lease beside a shared one of the same holder.
    pub(super) fn upgrade(
        &mut self,
        lease: u64,
        id: u64,
        leases: &mut Leases,
        cx: &mut Context,
        now: Now,
    ) {
        match leases.get(lease).and_then(|shared| shared.upgrade(now)) {
            Some(request) => self.start(id, request.into(), None, leases, cx, now),
            None => {
                let failure = Failure::after_grant(FailureKind::Expired, now.clock, now.clock);
                not_acquired(id, Some(failure), Vec::new(), cx);
            }
        }
    }

    /// Gives back whatever an acquisition took, or takes later, because no caller waits for it any more.
    pub(super) fn abandon(&mut self, id: u64, leases: &mut Leases, cx: &mut Context, now: Now) {
        if let Some(acquisition) = self.acquisitions.remove(id) {
            self.queue.leave(&acquisition.phase);
            stop(id, &acquisition, leases, cx, now);
        }
    }

    /// Abandons all and says so, because the client is being closed.
    pub(super) fn close(&mut self, leases: &mut Leases, cx: &mut Context, now: Now) {
        let ids: Vec<u64> = self.acquisitions.iter().map(|(id, _)| id).collect();
        for id in ids {
            self.abandon(id, leases, cx, now);
            refuse_closed(id, cx);
        }
    }

    /// Goes on after the delay that follows a failed attempt, or a commit that too few have confirmed; or ends a wait for
    /// its turn to ask nodes.
    pub(super) fn on_timer(&mut self, id: u64, leases: &mut Leases, cx: &mut Context, now: Now) {
        let Some(mut acquisition) = self.acquisitions.remove(id) else {
            return;
        };
        if let AcquisitionPhase::Unconfirmed { settlement, .. } = &acquisition.phase {
            let settlement = settlement.clone();
            return self.confirm_again(id, acquisition, settlement, leases, cx, now);
        }
        if let AcquisitionPhase::Queued { .. } = acquisition.phase {
            return self.waited_in_vain(id, &acquisition, cx, now);
        }
        if let AcquisitionPhase::InLine { round, asks_at, .. } = acquisition.phase {
            return self.stood(id, acquisition, (round, asks_at), leases, cx, now);
        }
        if acquisition.is_too_late(now)
            && let Some((failure, answers)) = acquisition.failed.take().map(|failed| *failed)
        {
            acquisition.leave_lines(cx, now);
            return not_acquired(id, Some(failure), answers, cx);
        }
        self.attempt_in_turn(id, acquisition, leases, cx, now);
    }

    /// Takes in that a node's outcome in a round about an acquisition became known.
    pub(super) fn on_outcome(
        &mut self,
        id: u64,
        (node, outcome, reply): (usize, NodeOutcome, Option<&Reply>),
        leases: &mut Leases,
        cx: &mut Context,
        now: Now,
    ) {
        let Some(round) = cx.rounds.get_mut(id) else {
            return;
        };
        match &mut round.kind {
            RoundKind::Attempt {
                attempt,
                acquisition,
                ..
            } => {
                let acquisition = *acquisition;
                if let Some(Reply::Held {
                    is_shared: true, ..
                }) = reply
                    && let Some(acquisition) = self.acquisitions.get_mut(acquisition)
                {
                    acquisition.on_shared();
                }
                if let Some(Reply::InLine { ahead, .. }) = reply
                    && let Some(acquisition) = self.acquisitions.get_mut(acquisition)
                {
                    acquisition.ahead = acquisition.ahead.max(*ahead);
                }
                let mut verdict = attempt.on_outcome(node, outcome, now.clock);
                let needs_more = attempt.needs_more();
                let split_until = attempt.split_until(now.clock);
                if let Some(reply) = reply
                    && self.note_claim(acquisition, node, reply, cx, now)
                {
                    verdict = verdict.or_else(|| abandoned(id, cx, now));
                }
                if let Some(verdict) = verdict {
                    return self.attempted(id, verdict, leases, cx, now);
                }
                if needs_more {
                    self.widen(id, leases, cx, now);
                }
                self.stand(id, leases, cx, now);
                if let Some(until) = split_until {
                    splits(id, until, cx);
                }
            }
            RoundKind::Decided { lease, .. } => {
                let Some((lease, lock)) = lease else { return };
                let lease = *lease;
                if let Some(held) = leases.of_owner(lease, lock.owner) {
                    held.state.on_late_outcome(node, outcome);
                    self.voted_late(lease, (node, outcome), leases, cx, now);
                }
            }
            RoundKind::WriteBack {
                extension,
                lease,
                lock,
            } => {
                if let Some(held) = leases.of_owner(*lease, lock.owner) {
                    held.state.on_extension_outcome(node, outcome);
                }
                if let Some(verdict) = extension.on_outcome(node, outcome, now.clock) {
                    self.settled(id, verdict, leases, cx, now);
                }
            }
            _ => {}
        }
    }

    /// Notes what a node said of a claim's tick; returns whether this ends the claim at once.
    fn note_claim(&mut self, id: u64, node: usize, reply: &Reply, cx: &Context, now: Now) -> bool {
        let acquisition = self.acquisitions.get_mut(id);
        let Some(claiming) = acquisition.and_then(|acquisition| acquisition.claim.as_mut()) else {
            return false;
        };
        // A wrong clock has no say.
        let votes = cx.nodes.vote(node, now.clock).is_ok();
        claiming.note(reply, votes)
    }

    /// Tries again after an attempt that failed, or says that the acquisition has.
    fn failed(
        &mut self,
        id: u64,
        mut acquisition: Acquisition,
        failed: FailedAttempt,
        cx: &mut Context,
        now: Now,
    ) {
        let FailedAttempt {
            failure,
            round,
            not_before,
        } = failed;
        let next = if cx.is_closing()
            || acquisition.gives_nodes_up(&failure, cx.config.node_timeout, &cx.nodes, now)
        {
            RetryDecision::GiveUp
        } else {
            let bits = cx.bits();
            acquisition.retry(&cx.config, now).next(
                &failure,
                acquisition.attempts,
                acquisition.request.wait_until,
                now.clock,
                bits,
            )
        };
        acquisition.keep_places(cx, now);
        let answers = cx.answers(round, now);
        match next {
            RetryDecision::RetryAt(at) => {
                acquisition.failed = Some(Box::new((failure, answers)));
                let at = not_before.map_or(at, |earliest| earliest.max(at));
                let timer = cx.timers.set(at, Timer::Retry(id));
                acquisition.phase = AcquisitionPhase::Pausing { timer };
                self.acquisitions.insert(id, acquisition);
            }
            RetryDecision::GiveUp => not_acquired(id, Some(failure), answers, cx),
        }
    }
}

/// Gives back what an acquisition has, or may have.
fn stop(id: u64, acquisition: &Acquisition, leases: &mut Leases, cx: &mut Context, now: Now) {
    if let AcquisitionPhase::Pausing { timer }
    | AcquisitionPhase::Queued { timer, .. }
    | AcquisitionPhase::InLine { timer, .. } = acquisition.phase
    {
        cx.timers.cancel(timer);
    }
    match acquisition.phase {
        AcquisitionPhase::Pausing { .. } | AcquisitionPhase::Queued { .. } => {}
        AcquisitionPhase::Settling(ref settlement)
        | AcquisitionPhase::Unconfirmed { ref settlement, .. } => {
            if let AcquisitionPhase::Unconfirmed { timer, .. } = acquisition.phase {
                cx.timers.cancel(timer);
            }
            cx.joins_no_more(settlement.attempt);
            leases.withdraw(id, cx, now);
            leases.release(id, None, cx, now);
        }
        AcquisitionPhase::Attempting { round } | AcquisitionPhase::InLine { round, .. } => {
            let Some(entry) = cx.rounds.get_mut(round) else {
                return;
            };
            let kind = &mut entry.kind;
            let RoundKind::Attempt { attempt, lock, .. } = kind else {
                return;
            };
            let lock = Arc::clone(lock);
            if let Some(AttemptVerdict::Failed(failure)) = attempt.on_abandoned(now.clock) {
                *kind = RoundKind::decided(None);
                cx.end_limit(round);
                attempt::give_back(&failure, &acquisition.request, &lock, cx, now);
                cx.forget_if_over(round);
            }
        }
    }
}

/// Gives an attempt up, whose outcome is known from elsewhere.
fn abandoned(round: u64, cx: &mut Context, now: Now) -> Option<AttemptVerdict> {
    match &mut cx.rounds.get_mut(round)?.kind {
        RoundKind::Attempt { attempt, .. } => attempt.on_abandoned(now.clock),
        _ => None,
    }
}

/// Ends the wait for slow nodes at `until`, because an attempt has split the votes.
fn splits(id: u64, until: Instant, cx: &mut Context) {
    if !cx.rounds.get(id).is_some_and(|round| round.splits(until)) {
        return;
    }
    let limit = cx.timers.set(until, Timer::RoundLimit(id));
    let before = cx.rounds.get_mut(id).and_then(|round| round.split(limit));
    if let Some(before) = before {
        cx.timers.cancel(before);
    }
}

/// Says that an acquisition is over because the client is closed.
fn refuse_closed(id: u64, cx: &mut Context) {
    not_acquired(id, None, Vec::new(), cx);
}

fn not_acquired(id: u64, failure: Option<Failure>, answers: Vec<NodeAnswer>, cx: &mut Context) {
    cx.outbox.push(Effect::NotAcquired {
        id,
        failure,
        answers,
    });
}
