//! Leases that are held: renewal, healing, loss and release.

use super::{
    Ask, Client, Effect, Entropy, NotExtended, NotReleased, Notice, Now, Timer, acquire::Acquire,
    commit::Claimed, round::RoundKind, timers::TimerKey,
};
use crate::{
    ExtensionVerdict, GiveBack, Grant, Instant, LeaseAction, LeaseState, NodeKey, Outcome, OwnerId,
    Release, ReleaseVerdict, Request, Shard, Timing, TokenBlock, Verb, Vote, Votes,
};

/// A lease that was won and is not released.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) state: LeaseState,
    pub(super) key: NodeKey,
    pub(super) owner: OwnerId,
    pub(super) timing: Timing,
    /// `None` only for a lease that is given back at once.
    pub(super) tokens: Option<TokenBlock>,
    /// The run that goes on under it, if it was claimed.
    pub(super) claimed: Option<Claimed>,
    timer: Option<TimerKey>,
    /// How far the nodes' clocks had gone ahead of the client's when the round was started on which it rests.
    jumped: i64,
}

/// An attempt that a majority has granted.
#[derive(Debug)]
pub(super) struct Won<'a> {
    pub(super) owner: OwnerId,
    pub(super) grant: &'a Grant,
    pub(super) votes: &'a Votes,
    /// How far the nodes' clocks had gone ahead when it was started.
    pub(super) jumped: i64,
}

impl Held {
    /// A round of extension that was started at `start`, when clocks had gone ahead so far, came to this `verdict`.
    pub(super) fn on_extension(
        &mut self,
        start: Instant,
        jumped: i64,
        verdict: ExtensionVerdict,
        now: Instant,
    ) -> Option<LeaseAction> {
        if let ExtensionVerdict::Extended { .. } = verdict {
            self.jumped = jumped;
        }
        self.state.on_extension(start, verdict, now)
    }

    /// The nodes' clocks have gone ahead so far.
    fn look_at_clocks(&mut self, jumped: i64) -> Option<LeaseAction> {
        self.state.on_jump(jumped.saturating_sub(self.jumped))
    }

    /// Whether the lease may be handed out now.
    pub(super) fn may_hand_out(&mut self, jumped: i64, now: Instant) -> bool {
        // Whoever has not got it yet need not be told that it is lost.
        let _ = self.look_at_clocks(jumped);
        self.state.is_live() && self.state.may_hand_out(now)
    }
}

impl<E: Entropy> Client<E> {
    /// The clocks of a majority have gone ahead of the client's: ends the leases that this makes unsafe.
    pub(super) fn on_jump(&mut self, now: Now) {
        let jumped = self.electorate.jumped();
        // Those that nobody has got yet are looked at when they are handed out.
        let held = self.leases.keys().copied();
        let held: Vec<u64> = held
            .filter(|id| !self.acquisitions.contains_key(id))
            .collect();
        for id in held {
            let held = self.leases.get_mut(&id);
            let action = held.and_then(|held| held.look_at_clocks(jumped));
            if action.is_some() {
                self.follow_lease(id, action, now);
            }
        }
    }

    /// The holder asks for an extension, in a round of its own.
    pub fn extend(&mut self, lease: u64, ask: Ask, now: Now) {
        let live = self
            .leases
            .get_mut(&lease)
            .is_some_and(|held| held.state.extend());
        match live {
            true => self.start_extension(lease, Some(ask), now),
            false => self.effects.push_back(Effect::ExtensionOver {
                ask,
                result: Err(NotExtended {
                    lost: true,
                    answers: Vec::new(),
                }),
            }),
        }
        self.set_lease_timer(lease);
    }

    /// Nothing is extended any more, and nodes are told to let the key go.
    ///
    /// A run that goes on under it, and that nobody has said the end of, is recorded as
    /// [`DROPPED`](crate::RunRecord::DROPPED).
    pub fn release(&mut self, lease: u64, ask: Option<Ask>, now: Now) {
        self.was_dropped(lease, now);
        let Some(mut held) = self.leases.remove(&lease) else {
            self.effects.extend(ask.map(|ask| Effect::ReleaseOver {
                ask,
                result: Ok(()),
            }));
            return;
        };
        if let Some(timer) = held.timer {
            self.timers.cancel(timer);
        }
        let nodes = held.state.release();
        self.send_release(&nodes, &held.key, held.owner, held.timing, ask, now);
    }

    /// Nothing is extended any more, and the key stays until its time to live ends.
    pub fn leave(&mut self, lease: u64) {
        if let Some(timer) = self.leases.remove(&lease).and_then(|held| held.timer) {
            self.timers.cancel(timer);
        }
    }

    /// The holder is gone and the next one, in the same process, is not there yet: the lease is not extended
    /// meanwhile, so that it ends if nobody comes.
    pub fn park(&mut self, lease: u64) {
        if let Some(held) = self.leases.get_mut(&lease) {
            held.state.park();
        }
        self.set_lease_timer(lease);
    }

    /// The next holder is there; up to when its lease is valid, `None` if it is over.
    pub fn resume(&mut self, lease: u64, now: Now) -> Option<Instant> {
        let held = self.leases.get_mut(&lease)?;
        let action = held.state.resume(now.clock);
        let deadline = held.state.is_live().then(|| held.state.deadline());
        self.follow_lease(lease, action, now);
        deadline
    }

    /// Whoever looked at the lease has seen its deadline pass, and acts on it: an extension that is
    /// confirmed now must not bring it back.
    pub fn expire(&mut self, lease: u64, now: Now) {
        let action = self
            .leases
            .get_mut(&lease)
            .and_then(|held| held.state.expire());
        self.follow_lease(lease, action, now);
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
        let held = Held {
            state: LeaseState::new(*timing, won.grant, won.votes, *renew, *max_hold),
            key: key.clone(),
            owner: won.owner,
            timing: *timing,
            tokens,
            claimed: None,
            timer: None,
            jumped: won.jumped,
        };
        self.leases.insert(id, held);
    }

    /// Tells the caller that it has the lease.
    pub(super) fn hand_out(&mut self, id: u64) {
        self.set_lease_timer(id);
        let Some(held) = self.leases.get(&id) else {
            return;
        };
        let Some(tokens) = held.tokens else { return };
        let (deadline, ends) = (held.state.deadline(), held.state.ends());
        self.effects.push_back(match &held.claimed {
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

    pub(super) fn on_lease_timer(&mut self, id: u64, now: Now) {
        let Some(held) = self.leases.get_mut(&id) else {
            return;
        };
        held.timer = None;
        let action = held.state.on_timer(now.clock);
        self.follow_lease(id, action, now);
    }

    /// A round of extension was decided.
    pub(super) fn extended(&mut self, round: u64, verdict: ExtensionVerdict, now: Now) {
        self.decided(round);
        let Some(entry) = self.rounds.get_mut(&round) else {
            return;
        };
        let (started, jumped) = (entry.started, entry.jumped);
        let RoundKind::Extension {
            lease,
            extension,
            ask,
        } = &mut entry.kind
        else {
            return;
        };
        let (id, ask, votes) = (*lease, ask.take(), extension.votes().clone());
        let mut action = None;
        let mut live = false;
        if let Some(held) = self.leases.get_mut(&id) {
            action = held.on_extension(started, jumped, verdict, now.clock);
            if action.is_none() {
                action = held.look_at_clocks(self.electorate.jumped());
            }
            live = held.state.is_live();
            if live && matches!(verdict, ExtensionVerdict::Extended { .. }) {
                self.effects.push_back(Effect::Extended {
                    lease: id,
                    deadline: held.state.deadline(),
                });
            }
        }
        // Views are told before the holder is: an error that says "lost" must not meet a lease that
        // says "held".
        self.follow_lease(id, action, now);
        if let Some(ask) = ask {
            let answers = self.answers(round, now);
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
            self.effects
                .push_back(Effect::ExtensionOver { ask, result });
        }
        if verdict == ExtensionVerdict::Failed {
            self.effects
                .push_back(Effect::Notice(Notice::ExtensionFailed));
        }
        for (node, vote) in votes.iter().enumerate() {
            if let Vote::Cast(outcome) = vote {
                self.heal(id, node, verdict, outcome, now);
            }
        }
    }

    /// A release was decided; its other nodes are waited for up to its time limit all the same, so
    /// that closing the client does not cut them off.
    pub(super) fn released(&mut self, round: u64, verdict: ReleaseVerdict, now: Now) {
        let Some(entry) = self.rounds.get_mut(&round) else {
            return;
        };
        let RoundKind::Release { ask, ends, .. } = &mut entry.kind else {
            return;
        };
        let ends_within = ends.saturating_since(now.clock);
        if let Some(ask) = ask.take() {
            let result = match verdict {
                ReleaseVerdict::Released => Ok(()),
                ReleaseVerdict::Unconfirmed => Err(NotReleased {
                    ends_within,
                    answers: self.answers(round, now),
                }),
            };
            self.effects.push_back(Effect::ReleaseOver { ask, result });
        }
    }

    /// Tells nodes to let a key go, behind everything that was sent to them before.
    pub(super) fn send_release(
        &mut self,
        nodes: &[GiveBack],
        key: &NodeKey,
        owner: OwnerId,
        timing: Timing,
        ask: Option<Ask>,
        now: Now,
    ) {
        if nodes.is_empty() {
            self.effects.extend(ask.map(|ask| Effect::ReleaseOver {
                ask,
                result: Ok(()),
            }));
            return;
        }
        let ttl = timing.key_ttl();
        let told: Vec<usize> = nodes.iter().map(|back| back.node).collect();
        let kind = RoundKind::Release {
            release: Release::start(self.config.quorum, &told),
            ask,
            ends: now.clock + ttl,
        };
        let round = self.start_round(kind, self.config.node_timeout, now);
        for GiveBack { node, bury } in nodes {
            let verb = match bury {
                true => Verb::Bury { ttl },
                false => Verb::Release { ttl },
            };
            let request = Request::Lock {
                verb,
                key: key.clone(),
                owner,
            };
            self.send(*node, round, request);
        }
    }

    pub(super) fn follow_lease(&mut self, id: u64, action: Option<LeaseAction>, now: Now) {
        match action {
            Some(LeaseAction::Extend) => self.start_extension(id, None, now),
            Some(LeaseAction::Warn) => {
                let notice = Notice::Endangered { lease: id };
                self.effects.push_back(Effect::Notice(notice));
            }
            Some(LeaseAction::Lost(loss)) => {
                self.effects.push_back(Effect::Lost { lease: id, loss });
            }
            None => {}
        }
        self.set_lease_timer(id);
    }

    fn start_extension(&mut self, id: u64, ask: Option<Ask>, now: Now) {
        let Some(held) = self.leases.get(&id) else {
            return;
        };
        let (key, owner, timing) = (held.key.clone(), held.owner, held.timing);
        let extension = held.state.extension(self.config.quorum, now.clock);
        let kind = RoundKind::Extension {
            lease: id,
            extension,
            ask,
        };
        let round = self.start_round(kind, self.limit_within(timing), now);
        for node in 0..self.config.quorum.nodes() {
            let request = Request::Lock {
                verb: Verb::Extend {
                    ttl: timing.key_ttl(),
                    write_back: None,
                },
                key: key.clone(),
                owner,
            };
            self.send(node, round, request);
        }
    }

    /// Gives the key to a node that has lost it, so that the lease outlives the loss of others.
    pub(super) fn heal(
        &mut self,
        lease: u64,
        node: usize,
        verdict: ExtensionVerdict,
        outcome: Outcome,
        now: Now,
    ) {
        let Some(held) = self.leases.get_mut(&lease) else {
            return;
        };
        let Some(tokens) = held.tokens else { return };
        if !held.state.heals(node, verdict, outcome) {
            return;
        }
        held.state.on_healing(node);
        let request = Request::Lock {
            verb: Verb::Heal {
                ttl: held.timing.key_ttl(),
                shard: Shard::of(&held.key),
                counter: tokens.last().get(),
            },
            key: held.key.clone(),
            owner: held.owner,
        };
        let limit = self.config.node_timeout;
        let round = self.start_round(RoundKind::Heal { lease }, limit, now);
        self.send(node, round, request);
    }

    fn set_lease_timer(&mut self, id: u64) {
        let Some(held) = self.leases.get_mut(&id) else {
            return;
        };
        if let Some(timer) = held.timer.take() {
            self.timers.cancel(timer);
        }
        held.timer = held
            .state
            .next_timer()
            .map(|at| self.timers.set(at, Timer::Lease(id)));
    }
}
