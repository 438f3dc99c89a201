//! Extensions: rounds that move a lease's deadline, and the healing of nodes that have lost its key.

use std::time::Duration;

use super::{
    super::{
        Ask, Effect, FanOut, NotExtended, Notice, Now,
        context::Context,
        rounds::{Repeat, RoundKind},
    },
    Leases, WonLease,
};
use crate::{ExtensionVerdict, NodeOutcome, Vote};

impl Leases {
    /// Extends a lease because its holder asks for it, in a round of its own.
    pub(in super::super) fn extend(&mut self, lease: u64, ask: Ask, cx: &mut Context, now: Now) {
        let live = self
            .held
            .get_mut(lease)
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

    /// Shares the keys of a lease with others from now on, which a round of extension tells the nodes.
    ///
    /// Nodes that never had the keys are asked for them before that: a node refuses readers while a writer waits there.
    pub(in super::super) fn downgrade(&mut self, lease: u64, ask: Ask, cx: &mut Context, now: Now) {
        self.spread_past(Some(Duration::ZERO), lease, cx, now);
        if let Some(held) = self.held.get_mut(lease) {
            held.share();
        }
        self.extend(lease, ask, cx, now);
    }

    pub(super) fn start_extension(
        &mut self,
        id: u64,
        ask: Option<Ask>,
        cx: &mut Context,
        now: Now,
    ) {
        let asked = if ask.is_some() {
            Vec::new()
        } else {
            self.turn(id, cx, now)
        };
        self.ask_for_extension(id, (ask, None), &asked, cx, now);
    }

    /// Asks these nodes to keep the key for longer, or all if there are none.
    ///
    fn ask_for_extension(
        &mut self,
        id: u64,
        (ask, repeat): (Option<Ask>, Option<Repeat>),
        asked: &[usize],
        cx: &mut Context,
        now: Now,
    ) {
        if asked.is_empty() {
            // They confirm it like the others, behind this.
            self.spread(id, cx, now);
        }
        let Some(held) = self.held.get(id) else {
            return;
        };
        let (extension, request) = (
            held.state.extension(cx.quorum(), now.clock),
            held.extension(),
        );
        // Time is left for another round, for which a node may be free that another client's attempt holds now.
        let left = held.state.deadline().saturating_since(now.clock);
        let limit = cx.limit_within(held.state.timing()).min(left / 2);
        let is_narrow = !asked.is_empty();
        // Hardly a caller waits for a renewal, and much of the lease is left: a node that is busy with many is not given up.
        let limit = if is_narrow { limit / 2 } else { limit };
        let repeat = repeat.unwrap_or(Repeat {
            left: REPEATS,
            until: now.clock + limit * 2,
        });
        let limit = limit.min(repeat.until.saturating_since(now.clock));
        let kind = RoundKind::Extension {
            lease: id,
            extension: if is_narrow {
                extension.among(asked)
            } else {
                extension
            },
            ask,
            is_narrow,
            repeat,
        };
        let round = cx.start_round(kind, limit, now);
        if is_narrow {
            for node in asked {
                cx.send(*node, round, request.clone());
            }
        } else {
            cx.send_all(round, &request);
        }
    }

    /// Asks all nodes to renew, because a majority was asked in vain, unless the lease is over or has no holder for
    /// now.
    fn widen(&mut self, id: u64, cx: &mut Context, now: Now) {
        if self.get(id).is_some_and(|held| held.state.is_renewed()) {
            self.ask_for_extension(id, (None, None), &[], cx, now);
        }
    }

    /// Takes in that a round of extension was decided.
    pub(in super::super) fn extended(
        &mut self,
        round: u64,
        verdict: ExtensionVerdict,
        cx: &mut Context,
        now: Now,
    ) {
        cx.end_limit(round);
        let Some(entry) = cx.rounds.get_mut(round) else {
            return;
        };
        let started = (entry.started, entry.baseline.clone());
        let RoundKind::Extension {
            lease,
            extension,
            ask,
            is_narrow,
            repeat,
        } = &mut entry.kind
        else {
            return;
        };
        if *is_narrow && verdict == ExtensionVerdict::Failed {
            let lease = *lease;
            return self.widen(lease, cx, now);
        }
        let is_repeat = repeat.left < REPEATS;
        let mut held = self.held.get_mut(*lease);
        if is_repeat && let Some(held) = &mut held {
            held.repeats = false;
        }
        let may_repeat = held.as_ref().is_some_and(|held| {
            let is_held = held.state.has_holder() && now.clock < held.state.deadline();
            // One after the other: many at once would keep the nodes busy.
            is_held && !held.repeats
        });
        // Another client's attempt may have had the key where it was missing, and has given it back.
        if verdict == ExtensionVerdict::Failed
            && extension.votes().refused() > 0
            && let Some(repeat) = repeat.next(now.clock)
            && may_repeat
            && let Some(ask) = ask.take()
        {
            if let Some(held) = held {
                held.repeats = true;
            }
            let lease = *lease;
            return self.ask_for_extension(lease, (Some(ask), Some(repeat)), &[], cx, now);
        }
        let (id, ask) = (*lease, ask.take());
        let mut action = None;
        let mut live = false;
        if let Some(held) = self.held.get_mut(id) {
            if verdict == ExtensionVerdict::Failed && extension.votes().refused() > 0 {
                held.state.on_refusal();
            }
            action = held.on_extension(started, verdict, now.clock);
            // Clocks may have gone ahead while the round was on its way, and whatever else the lease wants is over then.
            let lost = held.look_at_clocks(cx.nodes.clocks());
            action = lost.or(action);
            live = held.state.is_live();
            if live && matches!(verdict, ExtensionVerdict::Extended { .. }) {
                cx.outbox.push(Effect::Extended {
                    lease: id,
                    deadline: held.state.deadline(),
                });
            }
        }
        // Views hear of the loss before the holder does: an error that says "lost" must not meet a lease that says
        // "held".
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
            cx.notice(Notice::ExtensionFailed { lease: id });
        }
        for node in cx.nodes.all() {
            let kind = cx.rounds.get(round).map(|round| &round.kind);
            if let Some(RoundKind::Extension { extension, .. }) = kind
                && let Some(Vote::Cast(outcome)) = extension.votes().get(node)
            {
                self.heal(id, node, verdict, outcome, cx, now);
            }
        }
    }

    /// Gives the key to a node that has lost it, so that the lease outlives the loss of others.
    pub(in super::super) fn heal(
        &mut self,
        lease: u64,
        node: usize,
        verdict: ExtensionVerdict,
        outcome: NodeOutcome,
        cx: &mut Context,
        now: Now,
    ) {
        let held = self.held.get_mut(lease);
        let Some(request) = held.and_then(|held| held.healing(node, verdict, outcome)) else {
            return;
        };
        let limit = cx.config.node_timeout;
        let round = cx.start_round(RoundKind::Give { lease }, limit, now);
        cx.send(node, round, request);
    }
}

impl Leases {
    /// Returns the nodes that the renewal of a lease asks, if they take turns; none if it asks all.
    ///
    /// A majority decides, whichever it is, and a node that is left out keeps the key up to the renewal after this one:
    /// that is due after two thirds of the time to live, and asks this node first.
    ///
    /// All are asked if the renewal comes late, if the one before has failed, or if a node does not have the key yet.
    pub(super) fn turn(&mut self, id: u64, cx: &Context, now: Now) -> Vec<usize> {
        let take_turns = match cx.config.fan_out {
            FanOut::All => false,
            FanOut::Majority => true,
            FanOut::Adaptive => self.len() >= MANY,
        };
        let held = self.held.get_mut(id).filter(|_| take_turns);
        held.map(|held| held.turn(cx, now)).unwrap_or_default()
    }
}

impl WonLease {
    fn turn(&mut self, cx: &Context, now: Now) -> Vec<usize> {
        let (nodes, majority) = (cx.quorum().nodes(), cx.quorum().majority());
        let is_late = self.state.deadline() < now.clock + self.state.timing().ttl() / 2;
        let lacks = |node: usize| self.state.lacks(node) && cx.nodes.is_of_use(node, now);
        let is_spread = !cx.nodes.all().any(lacks);
        if is_late || self.has_failed || !is_spread || majority == nodes {
            return Vec::new();
        }
        let from = usize::from(self.next) % nodes;
        let order = (from..nodes).chain(0..from);
        let mut asked = Vec::with_capacity(majority);
        let of_use = order.filter(|node| cx.nodes.is_of_use(*node, now));
        asked.extend(of_use.take(majority));
        match asked.last() {
            Some(last) if asked.len() == majority => self.next = (last + 1) as u16,
            _ => asked.clear(),
        }
        asked
    }
}

/// How often a round that the holder asked for is repeated, if nodes say that they do not have the key.
const REPEATS: u8 = 8;

/// The number of leases from which a client has enough to do for its nodes to take turns.
const MANY: usize = 64;
