//! From the votes of a majority to a lease that may be handed out: nodes confirm its token, and the tick of a claim.

use std::sync::Arc;

use super::{
    super::{
        Effect, NotClaimed, Now,
        context::Context,
        leases::{Leases, WonAttempt},
        rounds::RoundKind,
        timers::Timer,
    },
    Acquisitions, FailedAttempt,
    acquisition::{Acquisition, AcquisitionPhase, Settlement},
};
use crate::{
    ExtensionVerdict, Failure, FailureKind, Instant, NodeOutcome, TokenBlock, Vote, Votes,
};

impl Acquisitions {
    /// Asks a majority that has granted an attempt to confirm.
    pub(super) fn settle(
        &mut self,
        id: u64,
        won: &WonAttempt<'_>,
        attempt: u64,
        leases: &Leases,
        cx: &mut Context,
        now: Now,
    ) {
        let Some(held) = leases.get(id) else {
            return;
        };
        let settlement = Settlement {
            lock: Arc::clone(won.lock),
            attempt,
            round: 0,
            voters: won.votes.counters().map(|(node, _)| node).collect(),
            awaited: nodes(won.votes, |vote| {
                matches!(vote, Vote::Pending | Vote::Cast(NodeOutcome::InLine { .. }))
            }),
            is_contended: won.votes.refused() > 0,
            until: held.state.deadline(),
        };
        if let Some(entry) = cx.rounds.get_mut(attempt)
            && let RoundKind::Decided { is_settling, .. } = &mut entry.kind
        {
            *is_settling = true;
        }
        self.ask_to_confirm(id, settlement, leases, cx, now);
    }

    /// Asks those whose vote counted, in a round of its own.
    ///
    /// They have kept the lock for this owner ever since, so that what they say of the watermark is still true.
    fn ask_to_confirm(
        &mut self,
        id: u64,
        mut settlement: Settlement,
        leases: &Leases,
        cx: &mut Context,
        now: Now,
    ) {
        let Some(held) = leases.get(id) else {
            return;
        };
        let among = [&settlement.voters[..], &settlement.awaited].concat();
        let extension = held.state.extension(cx.quorum(), now.clock);
        let kind = RoundKind::WriteBack {
            lease: id,
            lock: Arc::clone(&settlement.lock),
            extension: extension.among(&among),
        };
        let round = cx.start_round(kind, cx.limit_within(held.state.timing()), now);
        for node in &settlement.voters {
            ask_one_to_confirm(id, *node, round, leases, cx);
        }
        settlement.round = round;
        if let Some(acquisition) = self.acquisitions.get_mut(id) {
            acquisition.phase = AcquisitionPhase::Settling(settlement);
        }
    }

    /// Takes in that a node's vote came after the attempt had been decided that has won this lease.
    pub(super) fn voted_late(
        &mut self,
        id: u64,
        (node, outcome): (usize, NodeOutcome),
        leases: &mut Leases,
        cx: &mut Context,
        now: Now,
    ) {
        let Some(held) = leases.get(id) else { return };
        let owner = held.lock.owner;
        let acquisition = self.acquisitions.get_mut(id);
        let phase = acquisition.map(|acquisition| &mut acquisition.phase);
        let Some((tokens, phase)) = held.tokens.zip(phase) else {
            return;
        };
        let (AcquisitionPhase::Settling(settlement)
        | AcquisitionPhase::Unconfirmed { settlement, .. }) = phase
        else {
            return;
        };
        let is_awaited = settlement.awaited.contains(&node);
        if settlement.lock.owner != owner || !is_awaited {
            return;
        }
        let is_in_line = matches!(outcome, NodeOutcome::InLine { .. });
        settlement.is_contended |= is_in_line || matches!(outcome, NodeOutcome::Refused { .. });
        if is_in_line {
            return;
        }
        settlement.awaited.retain(|awaited| *awaited != node);
        let counts = counts(outcome, tokens);
        if counts {
            settlement.voters.push(node);
        }
        let round = settlement.round;
        if matches!(phase, AcquisitionPhase::Unconfirmed { .. }) {
            // It is asked with the others, after the pause.
            return;
        }
        if counts {
            ask_one_to_confirm(id, node, round, leases, cx);
        } else {
            let result = (node, NodeOutcome::NotExecuted, None);
            self.on_outcome(round, result, leases, cx, now);
            // No request of its own came to an end by this, after which it would be looked at.
            cx.forget_if_over(round);
        }
    }

    /// Takes in that a round of requests to confirm was decided.
    pub(in super::super) fn settled(
        &mut self,
        round: u64,
        verdict: ExtensionVerdict,
        leases: &mut Leases,
        cx: &mut Context,
        now: Now,
    ) {
        cx.end_limit(round);
        let Some(entry) = cx.rounds.get(round) else {
            return;
        };
        let (started, baseline) = (entry.started, entry.baseline.clone());
        let ran_out = entry.ran_out;
        let RoundKind::WriteBack {
            lease, extension, ..
        } = &entry.kind
        else {
            return;
        };
        let id = *lease;
        let is_refused = extension.votes().refused() > 0;
        // Its majority has confirmed, too late.
        let is_confirmed = extension.votes().is_won();
        let hopeful = entry.confirmed_or_silent(extension.votes());
        let Some(acquisition) = self.acquisitions.remove(id) else {
            return;
        };
        let AcquisitionPhase::Settling(settlement) = acquisition.phase.clone() else {
            return;
        };
        let hopeful = settlement.voters.iter().filter(|node| hopeful[**node]);
        let hopeful = hopeful.count();
        let until = settlement.until;
        // If too few nodes are up, that is the reason, though others are in the way as well.
        let is_up = cx.nodes.reachable(now) >= cx.quorum().majority();
        let is_contended = is_refused || settlement.is_contended && is_up;
        let Some(held) = leases.get_mut(id) else {
            return cx.joins_no_more(settlement.attempt);
        };
        let action = held.on_extension((started, baseline), verdict, now.clock);
        let usable = held.may_hand_out(cx.nodes.clocks(), now.clock);
        if usable && matches!(verdict, ExtensionVerdict::Extended { .. }) {
            cx.joins_no_more(settlement.attempt);
            leases.hand_out(id, cx, now);
            return leases.follow(id, action, cx, now);
        }
        let at = now.clock + held.state.pause_after_failure();
        // A node that is asked for a tick may remember it, so another attempt of this claim might find it taken.
        let may_wait = usable && held.is_claimed() && verdict == ExtensionVerdict::Failed;
        if may_wait && at < until && may_come_to_confirm(hopeful, cx, now) {
            return self.confirm_at(id, acquisition, settlement, at, cx);
        }
        cx.joins_no_more(settlement.attempt);
        let kind = match verdict {
            _ if is_confirmed => FailureKind::Expired,
            _ if is_contended => FailureKind::Contended,
            _ if ran_out => FailureKind::Overloaded,
            _ => FailureKind::NoQuorum,
        };
        leases.withdraw(id, cx, now);
        leases.release(id, None, cx, now);
        if let Some(entry) = cx.rounds.get_mut(round)
            && let RoundKind::WriteBack { extension, .. } = &entry.kind
        {
            let (votes, nodes) = (extension.votes().clone(), &cx.nodes);
            entry.say_uncounted(&votes, |node| nodes.same_server(node));
        }
        let failed = FailedAttempt {
            failure: Failure::after_grant(kind, started, now.clock),
            round,
            not_before: None,
        };
        self.failed(id, acquisition, failed, cx, now);
    }

    /// Sets the timer to ask nodes at `at` again to confirm.
    fn confirm_at(
        &mut self,
        id: u64,
        mut acquisition: Acquisition,
        settlement: Settlement,
        at: Instant,
        cx: &mut Context,
    ) {
        let timer = cx.timers.set(at, Timer::Retry(id));
        acquisition.phase = AcquisitionPhase::Unconfirmed { timer, settlement };
        self.acquisitions.insert(id, acquisition);
    }

    /// Goes on when the pause is over after a round that too few have confirmed.
    pub(super) fn confirm_again(
        &mut self,
        id: u64,
        acquisition: Acquisition,
        settlement: Settlement,
        leases: &mut Leases,
        cx: &mut Context,
        now: Now,
    ) {
        let held = leases.get_mut(id);
        if held.is_some_and(|held| held.may_hand_out(cx.nodes.clocks(), now.clock)) {
            self.acquisitions.insert(id, acquisition);
            return self.ask_to_confirm(id, settlement, leases, cx, now);
        }
        cx.joins_no_more(settlement.attempt);
        // The last answers are those of rounds that are over.
        let answers = cx.nodes.standing(now);
        leases.withdraw(id, cx, now);
        leases.release(id, None, cx, now);
        let why = NotClaimed::Unconfirmed;
        cx.outbox.push(Effect::NotClaimed { id, why, answers });
    }
}

fn ask_one_to_confirm(id: u64, node: usize, round: u64, leases: &Leases, cx: &mut Context) {
    if let Some(request) = leases.get(id).and_then(|held| held.confirmation()) {
        cx.send(node, round, request);
    }
}

/// Returns whether the nodes that were asked may still become a majority, or no other client can win one meanwhile.
///
/// If neither is so, the lock is in the way of an attempt that could win.
fn may_come_to_confirm(hopeful: usize, cx: &Context, now: Now) -> bool {
    let quorum = cx.quorum();
    let reachable = cx.nodes.reachable(now);
    hopeful >= quorum.majority() || reachable < quorum.majority()
}

/// Returns whether a late vote counts: the token must exceed what the node has given to others, which is less than its
/// counter.
fn counts(outcome: NodeOutcome, tokens: TokenBlock) -> bool {
    matches!(outcome, NodeOutcome::Granted { counter } if counter <= tokens.first().get())
}

fn nodes(votes: &Votes, is: impl Fn(Vote) -> bool) -> Vec<usize> {
    let votes = votes.iter().enumerate();
    votes
        .filter(|(_, vote)| is(*vote))
        .map(|(node, _)| node)
        .collect()
}
