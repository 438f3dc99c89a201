//! From the votes of a majority to a lease that may be handed out: nodes confirm its token, and the tick of a claim.

use super::{
    Client, Effect, Entropy, Link, Now,
    acquire::{Acquisition, Phase},
    claim::NotClaimed,
    round::RoundKind,
};
use crate::{
    ExtensionVerdict, Failure, FailureKind, Instant, NodeAnswer, Outcome, OwnerId, Request, Shard,
    TokenBlock, Verb, Vote, Votes,
};

/// A majority has granted, and a majority is to confirm before the caller has the lease.
///
/// Nodes whose votes count are asked, and so is a node whose vote comes late: a node that dies between its vote and
/// its confirmation must not matter while a majority is left.
/// A vote counts if its counter is no greater than the token, which was taken from the votes that were there first.
#[derive(Clone, Debug)]
pub(super) struct Settlement {
    /// By the owner, outcomes of this attempt are told from those of an earlier one.
    owner: OwnerId,
    /// The present round of requests to confirm.
    round: u64,
    voters: Vec<usize>,
    /// The nodes whose votes are still to come.
    awaited: Vec<usize>,
    /// Up to when the lease lasts that the votes have granted.
    until: Instant,
}

impl<E: Entropy> Client<E> {
    /// A majority has granted an attempt of this owner: it is asked to confirm.
    pub(super) fn settle(&mut self, id: u64, owner: OwnerId, votes: &Votes, now: Now) {
        let Some(held) = self.leases.get(&id) else {
            return;
        };
        let settlement = Settlement {
            owner,
            round: 0,
            voters: votes.counters().iter().map(|(node, _)| *node).collect(),
            awaited: nodes(votes, |vote| vote == Vote::Pending),
            until: held.state.deadline(),
        };
        self.ask_to_confirm(id, settlement, now);
    }

    /// Asks those whose vote counted, in a round of its own.
    ///
    /// They have kept the lock for this owner ever since, so that what they say of the watermark is still true.
    fn ask_to_confirm(&mut self, id: u64, mut settlement: Settlement, now: Now) {
        let Some(held) = self.leases.get(&id) else {
            return;
        };
        let among = [&settlement.voters[..], &settlement.awaited].concat();
        let kind = RoundKind::WriteBack {
            lease: id,
            owner: settlement.owner,
            extension: held
                .state
                .extension(self.config.quorum, now.clock)
                .among(&among),
        };
        let limit = self.limit_within(held.timing);
        let round = self.start_round(kind, limit, now);
        for node in &settlement.voters {
            self.ask_one_to_confirm(id, *node, round);
        }
        settlement.round = round;
        if let Some(acquisition) = self.acquisitions.get_mut(&id) {
            acquisition.phase = Phase::Settling(settlement);
        }
    }

    fn ask_one_to_confirm(&mut self, id: u64, node: usize, round: u64) {
        let Some(held) = self.leases.get(&id) else {
            return;
        };
        let Some(tokens) = held.tokens else { return };
        let request = held.commit().unwrap_or_else(|| Request::Lock {
            verb: Verb::Extend {
                ttl: held.timing.key_ttl(),
                write_back: Some((Shard::of(&held.key), tokens.last().get())),
            },
            key: held.key.clone(),
            owner: held.owner,
        });
        self.send(node, round, request);
    }

    /// A node's vote came after the attempt had been decided.
    pub(super) fn voted_late(
        &mut self,
        id: u64,
        owner: OwnerId,
        node: usize,
        outcome: Outcome,
        now: Now,
    ) {
        let tokens = self.leases.get(&id).and_then(|held| held.tokens);
        let acquisition = self.acquisitions.get_mut(&id);
        let Some((tokens, phase)) = tokens.zip(acquisition.map(|a| &mut a.phase)) else {
            return;
        };
        let (Phase::Settling(settlement) | Phase::Unconfirmed { settlement, .. }) = phase else {
            return;
        };
        let is_awaited = settlement.awaited.contains(&node);
        if settlement.owner != owner || !is_awaited {
            return;
        }
        settlement.awaited.retain(|awaited| *awaited != node);
        let counts = counts(outcome, tokens);
        if counts {
            settlement.voters.push(node);
        }
        let round = settlement.round;
        if matches!(phase, Phase::Unconfirmed { .. }) {
            // It is asked with the others, after the pause.
            return;
        }
        match counts {
            true => self.ask_one_to_confirm(id, node, round),
            false => self.on_outcome(round, node, Outcome::NotExecuted, None, now),
        }
    }

    /// A round of requests to confirm was decided.
    pub(super) fn settled(&mut self, round: u64, verdict: ExtensionVerdict, now: Now) {
        self.decided(round);
        let Some(entry) = self.rounds.get(&round) else {
            return;
        };
        let (started, jumped) = (entry.started, entry.jumped);
        let RoundKind::WriteBack {
            lease, extension, ..
        } = &entry.kind
        else {
            return;
        };
        let id = *lease;
        let is_contended = extension.votes().refused() > 0;
        let hopeful = entry.confirmed_or_silent(extension.votes());
        let Some(acquisition) = self.acquisitions.remove(&id) else {
            return;
        };
        let Phase::Settling(settlement) = acquisition.phase.clone() else {
            return;
        };
        let hopeful = settlement.voters.iter().filter(|node| hopeful[**node]);
        let hopeful = hopeful.count();
        let until = settlement.until;
        let Some(held) = self.leases.get_mut(&id) else {
            return;
        };
        let action = held.on_extension(started, jumped, verdict, now.clock);
        let usable = held.may_hand_out(self.electorate.jumped(), now.clock);
        if usable && matches!(verdict, ExtensionVerdict::Extended { .. }) {
            self.hand_out(id);
            return self.follow_lease(id, action, now);
        }
        let at = now.clock + held.state.pause_after_failure();
        // Whoever is asked for a tick may remember it, so another attempt of this claim might find it taken.
        let may_wait = usable && held.claimed.is_some() && verdict == ExtensionVerdict::Failed;
        if may_wait && at < until && self.may_come_to_confirm(hopeful, now) {
            return self.confirm_at(id, acquisition, settlement, at);
        }
        let kind = match verdict {
            ExtensionVerdict::Extended { .. } => FailureKind::Expired,
            _ if is_contended => FailureKind::Contended,
            _ => FailureKind::NoQuorum,
        };
        let failure = Failure::after_grant(kind, started, now.clock);
        self.withdraw(id, now);
        self.release(id, None, now);
        self.failed(id, acquisition, failure, round, None, now);
    }

    /// Whether those that were asked may yet come to a majority, or nobody else can have one meanwhile.
    ///
    /// If neither is so, the lock is in the way of an attempt that could win.
    fn may_come_to_confirm(&self, hopeful: usize, now: Now) -> bool {
        let votes = |node: &usize| {
            matches!(self.links[*node], Link::Up) && self.electorate.vote(*node, now.clock).is_ok()
        };
        let quorum = self.config.quorum;
        let reachable = (0..quorum.nodes()).filter(votes).count();
        hopeful >= quorum.majority() || reachable < quorum.majority()
    }

    /// The pause is over after a round that too few have confirmed.
    pub(super) fn confirm_again(
        &mut self,
        id: u64,
        acquisition: Acquisition,
        settlement: Settlement,
        now: Now,
    ) {
        let jumped = self.electorate.jumped();
        let held = self.leases.get_mut(&id);
        if held.is_some_and(|held| held.may_hand_out(jumped, now.clock)) {
            self.acquisitions.insert(id, acquisition);
            return self.ask_to_confirm(id, settlement, now);
        }
        // The last answers are those of rounds that are over.
        self.unconfirmed(id, self.standing(now), now);
    }

    fn unconfirmed(&mut self, id: u64, answers: Vec<NodeAnswer>, now: Now) {
        self.withdraw(id, now);
        self.release(id, None, now);
        let why = NotClaimed::Unconfirmed;
        self.effects
            .push_back(Effect::NotClaimed { id, why, answers });
    }
}

/// Whether a late vote counts: the token must exceed what the node has given to others, which is less than its counter.
fn counts(outcome: Outcome, tokens: TokenBlock) -> bool {
    matches!(outcome, Outcome::Granted { counter } if counter <= tokens.first().get())
}

fn nodes(votes: &Votes, is: impl Fn(Vote) -> bool) -> Vec<usize> {
    let votes = votes.iter().enumerate();
    votes
        .filter(|(_, vote)| is(*vote))
        .map(|(node, _)| node)
        .collect()
}
