//! Releases: nodes are asked to release a key.

use std::sync::Arc;

use super::{
    super::{Ask, Effect, NotReleased, Now, context::Context, rounds::RoundKind},
    Leases,
};
use crate::{GiveBack, Lock, Release, ReleaseVerdict, Request, Timing, Verb};

impl Leases {
    /// Ends a lease and tells nodes to let its key go.
    pub(in super::super) fn release(
        &mut self,
        lease: u64,
        ask: Option<Ask>,
        cx: &mut Context,
        now: Now,
    ) {
        self.record_end(lease, cx, now);
        let Some(mut held) = self.held.remove(lease) else {
            return release_over(ask, Ok(()), cx);
        };
        if let Some(timer) = held.timer {
            cx.timers.cancel(timer);
        }
        let keys = &held.lock.keys;
        let had_until_now = || Some((keys.first().clone(), now.clock));
        if keys.slots().is_some() {
            self.last_slot = had_until_now();
        } else if held.is_claimed() {
            self.last_run = had_until_now();
        }
        let left = held.state.release();
        send_release(left.nodes(), &held.lock, held.state.timing(), ask, cx, now);
    }
}

/// Tells nodes to let a key go, behind everything that was sent to them before.
pub(in super::super) fn send_release(
    nodes: impl Iterator<Item = GiveBack> + Clone,
    lock: &Arc<Lock>,
    timing: Timing,
    ask: Option<Ask>,
    cx: &mut Context,
    now: Now,
) {
    if nodes.clone().next().is_none() {
        return release_over(ask, Ok(()), cx);
    }
    let ttl = timing.key_ttl();
    let is_sent = |node| nodes.clone().any(|back| back.node == node);
    let kind = RoundKind::Release {
        release: Release::start(cx.quorum(), is_sent),
        ask,
        ends: now.clock + ttl,
    };
    let round = cx.start_round(kind, cx.config.node_timeout, now);
    for GiveBack { node, tombstone } in nodes {
        let verb = if tombstone {
            Verb::Tombstone { ttl }
        } else {
            Verb::Release { ttl }
        };
        let request = Request::Lock {
            verb,
            lock: Arc::clone(lock),
        };
        cx.send(node, round, request);
    }
}

/// Takes in that a release was decided.
///
/// The client waits for its other nodes up to its time limit all the same, so that closing the client does not cut them
/// off.
pub(in super::super) fn released(round: u64, verdict: ReleaseVerdict, cx: &mut Context, now: Now) {
    let Some(RoundKind::Release { ask, ends, .. }) =
        cx.rounds.get_mut(round).map(|round| &mut round.kind)
    else {
        return;
    };
    let ends_within = ends.saturating_since(now.clock);
    let Some(ask) = ask.take() else { return };
    let result = match verdict {
        ReleaseVerdict::Released => Ok(()),
        ReleaseVerdict::Unconfirmed => Err(NotReleased {
            ends_within,
            answers: cx.answers(round, now),
        }),
    };
    release_over(Some(ask), result, cx);
}

fn release_over(ask: Option<Ask>, result: Result<(), NotReleased>, cx: &mut Context) {
    if let Some(ask) = ask {
        cx.outbox.push(Effect::ReleaseOver { ask, result });
    }
}
