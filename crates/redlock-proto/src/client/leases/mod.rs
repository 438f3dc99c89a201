//! Leases that are held: renewal, healing, loss and release.

mod claimed;
mod commit;
mod held;

use std::collections::BTreeMap;

pub(super) use self::held::{Held, Won};
use super::{
    Acquire, Ask, Effect, Entropy, NotExtended, NotReleased, Notice, Now,
    context::Context,
    rounds::{Round, RoundKind},
    timers::Timer,
};
use crate::{
    ExtensionVerdict, GiveBack, Instant, LeaseAction, LeaseState, NodeKey, Outcome, OwnerId,
    Release, ReleaseVerdict, Request, Timing, TokenBlock, Verb, Vote,
};

/// The leases that were won and are not released, by number.
#[derive(Debug, Default)]
pub(super) struct Leases {
    held: BTreeMap<u64, Held>,
}

impl Leases {
    /// Returns how many there are.
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    pub(super) fn get(&self, lease: u64) -> Option<&Held> {
        self.held.get(&lease)
    }

    pub(super) fn get_mut(&mut self, lease: u64) -> Option<&mut Held> {
        self.held.get_mut(&lease)
    }

    /// Returns the lease of this number if it is this owner's.
    ///
    /// After an attempt that failed, the number of the lease is that of another attempt's.
    pub(super) fn of_owner(&mut self, lease: u64, owner: OwnerId) -> Option<&mut Held> {
        self.get_mut(lease).filter(|held| held.owner() == owner)
    }

    /// Takes a lease into care.
    pub(super) fn hold(
        &mut self,
        id: u64,
        request: &Acquire,
        won: &Won<'_>,
        tokens: Option<TokenBlock>,
    ) {
        let Acquire {
            key,
            timing,
            renew,
            max_hold,
            ..
        } = request;
        let state = LeaseState::new(*timing, won.grant, won.votes, *renew, *max_hold);
        let held = Held::new(state, key.clone(), *timing, tokens, won);
        self.held.insert(id, held);
    }

    /// Tells the caller that it has the lease.
    pub(super) fn hand_out<E: Entropy>(&mut self, id: u64, cx: &mut Context<E>) {
        self.set_timer(id, cx);
        let Some(held) = self.held.get(&id) else {
            return;
        };
        let Some(tokens) = held.tokens() else { return };
        let (deadline, ends) = (held.state.deadline(), held.state.ends());
        cx.outbox.push(match &held.claimed {
            None => Effect::Acquired {
                id,
                deadline,
                ends,
                tokens,
            },
            Some(claimed) => Effect::Claimed {
                id,
                deadline,
                ends,
                tokens,
                last: claimed.last(),
            },
        });
    }

    /// Ends the leases that are no longer safe because the clocks of a majority have gone ahead of the client's.
    ///
    /// Those that nobody has got yet, as `is_awaited` says, are looked at when they are handed out.
    pub(super) fn on_jump<E: Entropy>(
        &mut self,
        is_awaited: impl Fn(u64) -> bool,
        cx: &mut Context<E>,
        now: Now,
    ) {
        let jumped = cx.nodes.members().jumped();
        let held = self.held.keys().copied();
        let held: Vec<u64> = held.filter(|id| !is_awaited(*id)).collect();
        for id in held {
            let held = self.held.get_mut(&id);
            let action = held.and_then(|held| held.look_at_clocks(jumped));
            if action.is_some() {
                self.follow(id, action, cx, now);
            }
        }
    }

    /// Extends a lease because its holder asks for it, in a round of its own.
    pub(super) fn extend<E: Entropy>(
        &mut self,
        lease: u64,
        ask: Ask,
        cx: &mut Context<E>,
        now: Now,
    ) {
        let live = self
            .held
            .get_mut(&lease)
            .is_some_and(|held| held.state.extend());
        if live {
            self.start_extension(lease, Some(ask), cx, now);
        } else {
            cx.outbox.push(Effect::ExtensionOver {
                ask,
                result: Err(NotExtended {
                    lost: true,
                    answers: Vec::new(),
                }),
            });
        }
        self.set_timer(lease, cx);
    }

    /// Ends a lease and tells nodes to let its key go.
    pub(super) fn release<E: Entropy>(
        &mut self,
        lease: u64,
        ask: Option<Ask>,
        cx: &mut Context<E>,
        now: Now,
    ) {
        self.was_dropped(lease, cx, now);
        let Some(mut held) = self.held.remove(&lease) else {
            return release_over(ask, Ok(()), cx);
        };
        if let Some(timer) = held.timer {
            cx.timers.cancel(timer);
        }
        let nodes = held.release();
        send_release(
            &nodes,
            held.key(),
            held.owner(),
            held.timing(),
            ask,
            cx,
            now,
        );
    }

    /// Ends a lease and leaves its key to its time to live.
    pub(super) fn leave<E: Entropy>(&mut self, lease: u64, cx: &mut Context<E>) {
        if let Some(timer) = self.held.remove(&lease).and_then(|held| held.timer) {
            cx.timers.cancel(timer);
        }
    }

    /// Extends a lease no longer because its holder is gone, and the next one is not there yet.
    pub(super) fn park<E: Entropy>(&mut self, lease: u64, cx: &mut Context<E>) {
        if let Some(held) = self.held.get_mut(&lease) {
            held.state.park();
        }
        self.set_timer(lease, cx);
    }

    /// Gives a parked lease to its next holder; returns up to when it is valid, `None` if it is over.
    pub(super) fn resume<E: Entropy>(
        &mut self,
        lease: u64,
        cx: &mut Context<E>,
        now: Now,
    ) -> Option<Instant> {
        let held = self.held.get_mut(&lease)?;
        let action = held.state.resume(now.clock);
        let deadline = held.state.is_live().then(|| held.state.deadline());
        self.follow(lease, action, cx, now);
        deadline
    }

    /// Ends a lease whose deadline was seen to pass.
    pub(super) fn expire<E: Entropy>(&mut self, lease: u64, cx: &mut Context<E>, now: Now) {
        let held = self.held.get_mut(&lease);
        let action = held.and_then(|held| held.state.expire());
        self.follow(lease, action, cx, now);
    }

    /// Does what is due for a lease.
    pub(super) fn on_timer<E: Entropy>(&mut self, id: u64, cx: &mut Context<E>, now: Now) {
        let Some(held) = self.held.get_mut(&id) else {
            return;
        };
        held.timer = None;
        let action = held.state.on_timer(now.clock);
        self.follow(id, action, cx, now);
    }

    /// A node's outcome in a round about a lease became known.
    pub(super) fn on_outcome<E: Entropy>(
        &mut self,
        id: u64,
        node: usize,
        outcome: Outcome,
        cx: &mut Context<E>,
        now: Now,
    ) {
        let Some(round) = cx.rounds.get_mut(id) else {
            return;
        };
        match round.kind_mut() {
            RoundKind::Extension {
                extension, lease, ..
            } => {
                let lease = *lease;
                if let Some(held) = self.held.get_mut(&lease) {
                    held.on_extension_outcome(node, outcome);
                }
                if let Some(verdict) = extension.on_outcome(node, outcome, now.clock) {
                    self.extended(id, verdict, cx, now);
                } else if let Some(verdict) = extension.verdict() {
                    self.heal(lease, node, verdict, outcome, cx, now);
                }
            }
            RoundKind::Heal { lease } => {
                if let Some(held) = self.held.get_mut(lease) {
                    held.on_late_outcome(node, outcome);
                }
            }
            RoundKind::Release { release, .. } => {
                if let Some(verdict) = release.on_outcome(node, outcome, now.clock) {
                    released(id, verdict, cx, now);
                }
            }
            _ => {}
        }
    }

    /// A round about a lease has reached its time limit.
    pub(super) fn on_limit<E: Entropy>(&mut self, id: u64, cx: &mut Context<E>, now: Now) {
        let Some(round) = cx.rounds.get_mut(id) else {
            return;
        };
        match round.kind_mut() {
            RoundKind::Extension { extension, .. } => {
                if let Some(verdict) = extension.on_time_limit(now.clock) {
                    self.extended(id, verdict, cx, now);
                }
            }
            RoundKind::Release { release, .. } => {
                if let Some(verdict) = release.on_time_limit(now.clock) {
                    released(id, verdict, cx, now);
                }
                // Whatever is still owed to a node is its link's business.
                cx.rounds.remove(id);
            }
            _ => {}
        }
    }

    /// Does what a lease asks for.
    pub(super) fn follow<E: Entropy>(
        &mut self,
        id: u64,
        action: Option<LeaseAction>,
        cx: &mut Context<E>,
        now: Now,
    ) {
        match action {
            Some(LeaseAction::Extend) => self.start_extension(id, None, cx, now),
            Some(LeaseAction::Warn) => cx.notice(Notice::Endangered { lease: id }),
            Some(LeaseAction::Lost(loss)) => cx.outbox.push(Effect::Lost { lease: id, loss }),
            None => {}
        }
        self.set_timer(id, cx);
    }

    fn start_extension<E: Entropy>(
        &mut self,
        id: u64,
        ask: Option<Ask>,
        cx: &mut Context<E>,
        now: Now,
    ) {
        let Some(held) = self.held.get(&id) else {
            return;
        };
        let kind = RoundKind::Extension {
            lease: id,
            extension: held.state.extension(cx.quorum(), now.clock),
            ask,
        };
        let round = cx.start_round(kind, cx.limit_within(held.timing()), now);
        cx.send_all(round, &held.extension());
    }

    /// A round of extension was decided.
    fn extended<E: Entropy>(
        &mut self,
        round: u64,
        verdict: ExtensionVerdict,
        cx: &mut Context<E>,
        now: Now,
    ) {
        cx.end_limit(round);
        let Some(entry) = cx.rounds.get_mut(round) else {
            return;
        };
        let (started, jumped) = (entry.started(), entry.jumped());
        let RoundKind::Extension {
            lease,
            extension,
            ask,
        } = entry.kind_mut()
        else {
            return;
        };
        let (id, ask, votes) = (*lease, ask.take(), extension.votes().clone());
        let mut action = None;
        let mut live = false;
        if let Some(held) = self.held.get_mut(&id) {
            action = held.on_extension(started, jumped, verdict, now.clock);
            if action.is_none() {
                action = held.look_at_clocks(cx.nodes.members().jumped());
            }
            live = held.state.is_live();
            if live && matches!(verdict, ExtensionVerdict::Extended { .. }) {
                cx.outbox.push(Effect::Extended {
                    lease: id,
                    deadline: held.state.deadline(),
                });
            }
        }
        // Views are told before the holder is: an error that says "lost" must not meet a lease that
        // says "held".
        self.follow(id, action, cx, now);
        if let Some(ask) = ask {
            let answers = cx.answers(round, now);
            let result = match verdict {
                _ if !live => Err(NotExtended {
                    lost: true,
                    answers,
                }),
                ExtensionVerdict::Extended { .. } => Ok(()),
                _ => Err(NotExtended {
                    lost: false,
                    answers,
                }),
            };
            cx.outbox.push(Effect::ExtensionOver { ask, result });
        }
        if verdict == ExtensionVerdict::Failed {
            cx.notice(Notice::ExtensionFailed);
        }
        for (node, vote) in votes.iter().enumerate() {
            if let Vote::Cast(outcome) = vote {
                self.heal(id, node, verdict, outcome, cx, now);
            }
        }
    }

    /// Gives the key to a node that has lost it, so that the lease outlives the loss of others.
    fn heal<E: Entropy>(
        &mut self,
        lease: u64,
        node: usize,
        verdict: ExtensionVerdict,
        outcome: Outcome,
        cx: &mut Context<E>,
        now: Now,
    ) {
        let held = self.held.get_mut(&lease);
        let Some(request) = held.and_then(|held| held.healing(node, verdict, outcome)) else {
            return;
        };
        let limit = cx.config.node_timeout;
        let round = cx.start_round(RoundKind::Heal { lease }, limit, now);
        cx.send(node, round, request);
    }

    fn set_timer<E: Entropy>(&mut self, id: u64, cx: &mut Context<E>) {
        let Some(held) = self.held.get_mut(&id) else {
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

/// Tells nodes to let a key go, behind everything that was sent to them before.
pub(super) fn send_release<E: Entropy>(
    nodes: &[GiveBack],
    key: &NodeKey,
    owner: OwnerId,
    timing: Timing,
    ask: Option<Ask>,
    cx: &mut Context<E>,
    now: Now,
) {
    if nodes.is_empty() {
        return release_over(ask, Ok(()), cx);
    }
    let ttl = timing.key_ttl();
    let told: Vec<usize> = nodes.iter().map(|back| back.node).collect();
    let kind = RoundKind::Release {
        release: Release::start(cx.quorum(), &told),
        ask,
        ends: now.clock + ttl,
    };
    let round = cx.start_round(kind, cx.config.node_timeout, now);
    for GiveBack { node, bury } in nodes {
        let verb = if *bury {
            Verb::Bury { ttl }
        } else {
            Verb::Release { ttl }
        };
        let request = Request::Lock {
            verb,
            key: key.clone(),
            owner,
        };
        cx.send(*node, round, request);
    }
}

/// A release was decided; its other nodes are waited for up to its time limit all the same, so
/// that closing the client does not cut them off.
fn released<E: Entropy>(round: u64, verdict: ReleaseVerdict, cx: &mut Context<E>, now: Now) {
    let Some(RoundKind::Release { ask, ends, .. }) = cx.rounds.get_mut(round).map(Round::kind_mut)
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

fn release_over<E: Entropy>(
    ask: Option<Ask>,
    result: Result<(), NotReleased>,
    cx: &mut Context<E>,
) {
    if let Some(ask) = ask {
        cx.outbox.push(Effect::ReleaseOver { ask, result });
    }
}
