//! Leases that are held: renewal, healing, loss and release.

mod extension;
mod lease;
mod missing_nodes;
mod release;
mod run_record;

use std::{collections::BTreeSet, time::Duration};

pub(super) use self::{
    lease::{WonAttempt, WonLease},
    release::{released, send_release},
};
use super::{Acquire, Effect, Notice, Now, context::Context, timers::Timer};
use crate::{Instant, KeySet, LeaseAction, LeaseState, NodeKey, OwnerId, SlabMap, TokenBlock};

/// The leases that were won and are not released, by number.
#[derive(Debug, Default)]
pub(super) struct Leases {
    // In boxes, so that they stay where they are while others come and go.
    held: SlabMap<Box<WonLease>>,
    /// The least drift that any of them allows for, or less: nothing is known of it before the first look.
    least_drift: Duration,
    /// The leases whose renewals the client was behind with, when last looked at.
    behind: BTreeSet<u64>,
    /// The lock of the run that ended last, and when that was.
    last_run: Option<(NodeKey, Instant)>,
    /// The slot that was released last, and when that was.
    last_slot: Option<(NodeKey, Instant)>,
}

impl Leases {
    /// Returns whether this client has just released the slot, or has just ended a run under the lock.
    pub(super) fn has_just_had(&self, keys: &KeySet, now: Now) -> bool {
        let last = match keys.slots() {
            Some(_) => self.last_slot.as_ref(),
            None => self.last_run.as_ref(),
        };
        let last = last.filter(|(key, _)| key == keys.first());
        last.is_some_and(|(_, ended)| now.clock < *ended + FOR_OTHERS)
    }

    /// Returns whether the client is behind with a renewal: other work must wait for that.
    pub(super) fn are_behind(&mut self) -> bool {
        while let Some(lease) = self.behind.first() {
            if self.get(*lease).is_some_and(|held| held.state.is_behind()) {
                return true;
            }
            self.behind.pop_first();
        }
        false
    }

    /// Returns how many there are.
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    pub(super) fn get(&self, lease: u64) -> Option<&WonLease> {
        self.held.get(lease).map(|held| &**held)
    }

    pub(super) fn get_mut(&mut self, lease: u64) -> Option<&mut WonLease> {
        self.held.get_mut(lease).map(|held| &mut **held)
    }

    /// Returns the lease of this number if it is this owner's.
    ///
    /// After an attempt that failed, the number of the lease is that of another attempt's.
    pub(super) fn of_owner(&mut self, lease: u64, owner: OwnerId) -> Option<&mut WonLease> {
        self.get_mut(lease).filter(|held| held.lock.owner == owner)
    }

    /// Takes a lease into care.
    pub(super) fn hold(
        &mut self,
        id: u64,
        request: &Acquire,
        won: &WonAttempt<'_>,
        tokens: Option<TokenBlock>,
    ) {
        let Acquire {
            keys,
            timing,
            renew,
            max_hold,
            ..
        } = request;
        let state = LeaseState::new(*timing, won.grant, won.votes, *renew, *max_hold)
            .on_several_keys(keys.is_several());
        self.least_drift = self.least_drift.min(timing.drift());
        self.held
            .insert(id, Box::new(WonLease::new(state, tokens, won)));
    }

    /// Tells the caller that it has the lease.
    pub(super) fn hand_out(&mut self, id: u64, cx: &mut Context, now: Now) {
        self.set_timer(id, cx);
        let Some(held) = self.held.get_mut(id) else {
            return;
        };
        let Some(tokens) = held.tokens else { return };
        let (deadline, ends) = (held.state.deadline(), held.state.ends());
        cx.outbox.push(Effect::Acquired {
            id,
            deadline,
            ends,
            tokens,
            last: held.claimed.as_ref().and_then(|claimed| claimed.last()),
        });
        // A node may have been lost between its vote and this.
        let mut lost = cx.nodes.all().filter(|node| !cx.nodes.is_up(*node));
        if let Some(action) = lost.find_map(|node| held.state.on_node_lost(node)) {
            self.follow(id, Some(action), cx, now);
        }
    }

    /// Returns by how much a clock may go ahead before leases are looked at again.
    ///
    /// Each lease is ended soon after its drift is used up, and all are looked at seldom.
    pub(super) fn least_step(&self) -> Duration {
        self.least_drift / 4
    }

    /// Ends the leases that are no longer safe because the clocks of a majority have gone ahead of the client's.
    ///
    /// Leases that no caller has yet, as `is_awaited` says, are checked when they are handed out.
    pub(super) fn on_jump(&mut self, is_awaited: impl Fn(u64) -> bool, cx: &mut Context, now: Now) {
        self.least_drift = Duration::MAX;
        let mut ended = Vec::new();
        for (id, held) in self.held.iter_mut() {
            self.least_drift = self.least_drift.min(held.state.timing().drift());
            if is_awaited(id) {
                continue;
            }
            let action = held.look_at_clocks(cx.nodes.clocks());
            if action.is_some() {
                ended.push((id, action));
            }
        }
        for (id, action) in ended {
            self.follow(id, action, cx, now);
        }
        cx.nodes.on_look_at_clocks();
    }

    /// Ends a lease and leaves its key to its time to live.
    pub(super) fn leave(&mut self, lease: u64, cx: &mut Context) {
        if let Some(timer) = self.held.remove(lease).and_then(|held| held.timer) {
            cx.timers.cancel(timer);
        }
    }

    /// Extends a lease no longer because its holder is gone, and the next one is not there yet.
    pub(super) fn park(&mut self, lease: u64, cx: &mut Context) {
        if let Some(held) = self.held.get_mut(lease) {
            held.state.park();
        }
        self.set_timer(lease, cx);
    }

    /// Gives a parked lease to its next holder; returns up to when it is valid, `None` if it is over.
    pub(super) fn resume(&mut self, lease: u64, cx: &mut Context, now: Now) -> Option<Instant> {
        let held = self.held.get_mut(lease)?;
        let action = held.state.resume(now.clock);
        let deadline = held.state.is_live().then(|| held.state.deadline());
        self.follow(lease, action, cx, now);
        deadline
    }

    /// Ends a lease whose deadline was seen to pass.
    pub(super) fn expire(&mut self, lease: u64, cx: &mut Context, now: Now) {
        let held = self.held.get_mut(lease);
        let action = held.and_then(|held| held.state.expire());
        self.follow(lease, action, cx, now);
    }

    /// Does what is due for a lease.
    pub(super) fn on_timer(&mut self, id: u64, cx: &mut Context, now: Now) {
        let Some(held) = self.held.get_mut(id) else {
            return;
        };
        held.timer = None;
        let action = held.state.on_timer(now.clock);
        self.follow(id, action, cx, now);
    }

    /// Does what a lease asks for.
    pub(super) fn follow(
        &mut self,
        id: u64,
        action: Option<LeaseAction>,
        cx: &mut Context,
        now: Now,
    ) {
        match action {
            Some(LeaseAction::Spread) => self.spread(id, cx, now),
            Some(LeaseAction::Extend) => self.start_extension(id, None, cx, now),
            Some(LeaseAction::Wait) => drop(self.behind.insert(id)),
            Some(LeaseAction::Warn) => cx.notice(Notice::Endangered { lease: id }),
            Some(LeaseAction::Lost(loss)) => cx.outbox.push(Effect::Lost { lease: id, loss }),
            None => {}
        }
        self.set_timer(id, cx);
    }

    fn set_timer(&mut self, id: u64, cx: &mut Context) {
        let Some(held) = self.held.get_mut(id) else {
            return;
        };
        if let Some(timer) = held.timer.take() {
            cx.timers.cancel(timer);
        }
        held.timer = held
            .state
            .next_timer()
            .map(|at| cx.timers.set(at, Timer::Lease(id)));
    }
}

/// For how long a client leaves a slot, or the lock of its run, to other clients, whose callers are not in line and try
/// again at random.
pub(super) const FOR_OTHERS: Duration = Duration::from_millis(25);
