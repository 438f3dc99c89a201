//! The nodes that an attempt asks first, and the time at which it asks the others.

use std::{sync::Arc, time::Duration};

use super::{
    super::{FanOut, Now, context::Context, leases::Leases, rounds::RoundKind},
    Acquisitions,
};
use crate::{NodeAnswer, NodeOutcome, NotAVote, Request, Shard};

impl Acquisitions {
    /// Sends an attempt's request to those of these nodes that it does not hold back.
    pub(super) fn ask(
        &mut self,
        round: u64,
        nodes: impl Iterator<Item = usize>,
        request: &Request,
        leases: &mut Leases,
        cx: &mut Context,
        now: Now,
    ) {
        let mut twins = Vec::new();
        for node in nodes {
            if cx
                .rounds
                .get(round)
                .is_some_and(|round| round.holds_back(node))
            {
                continue;
            }
            // A server that is asked twice would refuse its vote because of the other request.
            match cx.nodes.same_server(node) {
                Some(of) => twins.push((node, of)),
                None => cx.send(node, round, request.clone()),
            }
        }
        for (node, of) in twins {
            let Some(entry) = cx.rounds.get_mut(round) else {
                return;
            };
            let reason = NotAVote::SameServer { of };
            entry.say(node, NodeAnswer::NotAVote { reason });
            let result = (node, NodeOutcome::NotExecuted, None);
            self.on_outcome(round, result, leases, cx, now);
        }
    }

    /// Asks the nodes that an attempt has held back.
    pub(super) fn widen(&mut self, id: u64, leases: &mut Leases, cx: &mut Context, now: Now) {
        let Some(round) = cx.rounds.get_mut(id) else {
            return;
        };
        let started = round.started;
        let RoundKind::Attempt {
            attempt,
            held_back,
            lock,
            ..
        } = &mut round.kind
        else {
            return;
        };
        let Some((verb, limit)) = held_back.take() else {
            return;
        };
        let lock = Arc::clone(lock);
        let nodes = attempt.widen().into_iter();
        cx.limit_round(id, started + limit);
        self.ask(id, nodes, &Request::Lock { verb, lock }, leases, cx, now);
    }

    /// Asks the other nodes, because the nodes that an attempt has asked first keep it waiting; later attempts ask
    /// others first.
    pub(in super::super) fn on_patience_over(
        &mut self,
        id: u64,
        leases: &mut Leases,
        cx: &mut Context,
        now: Now,
    ) {
        if let Some(RoundKind::Attempt { attempt, .. }) = cx.rounds.get(id).map(|round| &round.kind)
        {
            cx.nodes.on_late(attempt.votes());
        }
        self.widen(id, leases, cx, now);
    }
}

/// Returns the nodes that an attempt asks first; `None` if it asks all.
///
/// The order of the nodes is the same for every client: contenders of a key meet at the same nodes, and keys spread
/// over all.
pub(super) fn asked_first(
    shard: Shard,
    cx: &Context,
    now: Now,
) -> Option<impl Iterator<Item = usize> + Clone> {
    if cx.config.fan_out == FanOut::All {
        return None;
    }
    let (nodes, majority) = (cx.quorum().nodes(), cx.quorum().majority());
    let order = (0..nodes).map(move |step| (usize::from(shard.number()) + step) % nodes);
    let of_use = order.filter(move |node| cx.nodes.is_of_use(*node, now));
    let first = of_use.take(majority);
    // If these nodes are too few, all nodes are asked; if they are all the nodes, there is none to hold back.
    let is_narrow = majority < nodes && first.clone().count() == majority;
    is_narrow.then_some(first)
}

/// Returns how long an attempt waits for the nodes that it asks first.
pub(super) fn patience(
    first: impl Iterator<Item = usize>,
    limit: Duration,
    cx: &Context,
) -> Duration {
    let patience = first.map(|node| cx.nodes.patience(node)).max();
    patience.unwrap_or_default().min(limit / 2)
}
