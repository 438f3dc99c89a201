use std::{sync::Arc, time::Duration};

use super::{
    super::{Acquire, ClientConfig, Now, TickClaim, nodes::Nodes, timers::TimerKey},
    claim::Claiming,
};
use crate::{
    Failure, FailureKind, Instant, Lock, LockMode, NodeAnswer, NodeTime, OwnerId, RetryPolicy,
};

/// An acquisition that is under way.
#[derive(Debug)]
pub(super) struct Acquisition {
    pub(super) request: Box<Acquire>,
    /// The tick, if it is a claim.
    pub(super) claim: Option<Box<Claiming>>,
    /// How many attempts were started.
    pub(super) attempts: u32,
    /// When it came, by the clocks that the nodes have in common, once that is known.
    pub(super) came: Option<NodeTime>,
    /// How many callers wait before it in line, at the node where most do.
    pub(super) ahead: u32,
    /// The owner that keeps its places in lines in which it cannot wait, if it does.
    pub(super) keeper: Option<OwnerId>,
    /// How many were before it when it stood in line last.
    stood_behind: Option<u32>,
    /// Whether nodes have refused the latest attempt because other owners share the keys.
    meets_sharers: bool,
    /// Since when it bears with too few nodes.
    outage: Option<Instant>,
    /// Why its latest attempt failed, and what the nodes said, while it pauses.
    pub(super) failed: Option<Box<(Failure, Vec<NodeAnswer>)>>,
    pub(super) phase: AcquisitionPhase,
}

#[derive(Clone, Debug)]
pub(super) enum AcquisitionPhase {
    Attempting {
        round: u64,
    },
    /// A majority has granted, and is asked to confirm.
    Settling(Settlement),
    /// A majority has granted a claim, and will be asked again to remember it.
    Unconfirmed {
        timer: TimerKey,
        settlement: Settlement,
    },
    /// It waits in line for its turn, in this round.
    InLine {
        round: u64,
        timer: TimerKey,
        /// When it asks again at the latest.
        asks_at: Instant,
    },
    Pausing {
        timer: TimerKey,
    },
    /// It waits for its turn to ask nodes, under this number.
    Queued {
        timer: TimerKey,
        number: u64,
    },
}

impl Acquisition {
    /// Makes an acquisition whose first attempt is this round.
    pub(super) fn new(request: Box<Acquire>, claim: Option<TickClaim>) -> Self {
        Self {
            request,
            claim: claim.map(|claim| Box::new(Claiming::new(claim))),
            attempts: 0,
            came: None,
            ahead: 0,
            keeper: None,
            stood_behind: None,
            meets_sharers: false,
            outage: None,
            failed: None,
            phase: AcquisitionPhase::Attempting { round: 0 },
        }
    }

    /// Returns whether its wait is over, so that no other attempt may begin: a process that stood still may notice late.
    ///
    /// The last attempt begins when the wait ends, by a timer that may be a little late.
    pub(super) fn is_too_late(&self, now: Now) -> bool {
        self.attempts > 0 && now.clock > self.request.wait_until + LATE
    }

    /// Goes on to the next attempt, in this round.
    pub(super) fn attempt(&mut self, round: u64) {
        self.attempts += 1;
        self.failed = None;
        self.meets_sharers = false;
        self.ahead = 0;
        if let Some(claim) = &mut self.claim {
            claim.ask_anew();
        }
        self.phase = AcquisitionPhase::Attempting { round };
    }

    /// Notes that it stands in line; returns whether fewer callers are before it than when it stood there last.
    pub(super) fn moves_up(&mut self) -> bool {
        // A majority has answered.
        self.outage = None;
        let before = self.stood_behind.replace(self.ahead);
        before.is_some_and(|before| self.ahead < before)
    }

    /// Returns when to try again: sooner where only sharers are in the way, because no other owner comes to share the
    /// keys meanwhile.
    ///
    /// Sooner, too, [now and then](Self::is_in_a_hurry) while its place in line is kept, because nodes may leave the key
    /// free for it.
    pub(super) fn retry(&self, config: &ClientConfig, now: Now) -> RetryPolicy {
        let meets_sharers = self.request.mode == LockMode::Exclusive && self.meets_sharers;
        let is_kept = self.keeper.is_some() && self.is_in_a_hurry(now);
        if meets_sharers || is_kept {
            config.retry.hurried()
        } else {
            config.retry
        }
    }

    /// Returns whether it is one of the times, a quarter of all, in which it asks more often for a place that is kept.
    ///
    /// Only then it keeps others from those of several keys that are free, while it waits for one that is held for long.
    pub(super) fn is_in_a_hurry(&self, now: Now) -> bool {
        let waited = now.clock.saturating_since(self.request.came);
        waited.as_millis() % 4_000 < 1_000
    }

    /// Notes that a node has refused the attempt because other owners share the keys.
    pub(super) fn on_shared(&mut self) {
        self.meets_sharers = true;
    }

    /// Returns for how long nodes shall let no other owner share the keys, if sharers are in the way.
    ///
    /// That is up to the attempt after the next, unless the caller stops waiting before.
    pub(super) fn wish(&self, config: &ClientConfig, now: Now) -> Option<Duration> {
        let Acquire {
            mode,
            timing,
            wait_until,
            ..
        } = &*self.request;
        let is_kept_out = *mode == LockMode::Exclusive && self.meets_sharers;
        let between = 2 * config.retry.longest() + config.node_timeout;
        let left = wait_until.saturating_since(now.clock) + config.node_timeout;
        is_kept_out.then(|| between.min(left).min(timing.key_ttl()))
    }

    /// Returns whether the acquisition is over because too few nodes answer with a vote, though its wait is not.
    ///
    /// The wait is for another holder.
    /// Without a majority, it ends now if nodes have said that they need longer than what is left of the wait.
    /// Otherwise it ends when the outage has lasted for `quorum_wait`, whichever attempt saw it begin.
    /// While first connections are being made, there is no outage yet.
    pub(super) fn gives_nodes_up(
        &mut self,
        failure: &Failure,
        limit: Duration,
        nodes: &Nodes,
        now: Now,
    ) -> bool {
        let wait_until = self.request.wait_until;
        let Some(quorum_wait) = self.request.quorum_wait else {
            return false;
        };
        // One that stood in line has lasted for longer than any node had time.
        let began = now.clock - failure.took.min(limit);
        let ready_at = failure
            .quorum_ready_in
            .map(|ready_in| now.clock + ready_in)
            .filter(|ready_at| *ready_at <= wait_until);
        let since = match (failure.kind, ready_at) {
            (FailureKind::NoQuorum | FailureKind::Quarantined, None) => {
                if nodes.are_quarantined_beyond(wait_until, now) {
                    return true;
                }
                let seen = nodes.outage().unwrap_or(began);
                let since = self.outage.get_or_insert(began);
                *since = seen.min(*since);
                *since
            }
            // Nodes vote when they have said so, and a few steps later.
            (FailureKind::Quarantined, Some(ready_at)) => {
                let since = self.outage.get_or_insert(began);
                if ready_at > now.clock {
                    *since = ready_at.max(*since);
                }
                *since
            }
            _ => {
                self.outage = None;
                return false;
            }
        };
        now.clock >= since + quorum_wait && !nodes.are_connecting(now)
    }
}

/// A majority has granted, and a majority is to confirm before the caller has the lease.
///
/// Nodes whose votes count are asked, and so is a node whose vote comes late.
/// So a node that dies between its vote and its confirmation does not matter while a majority is left.
/// A vote counts if its counter is no greater than the token, which was taken from the votes that were there first.
#[derive(Clone, Debug)]
pub(super) struct Settlement {
    /// Its owner distinguishes outcomes of this attempt from those of an earlier one.
    pub(super) lock: Arc<Lock>,
    /// The round of the attempt, in which late votes come, and keys that nodes give to callers in line.
    pub(super) attempt: u64,
    /// The present round of requests to confirm.
    pub(super) round: u64,
    pub(super) voters: Vec<usize>,
    /// The nodes whose votes are still to come, or that may give the key in its turn.
    pub(super) awaited: Vec<usize>,
    /// Whether nodes had refused the attempt, because others had the lock there.
    pub(super) is_contended: bool,
    /// Up to when the lease lasts that the votes have granted.
    pub(super) until: Instant,
}

/// By how much the timer of an attempt may be late that begins when the wait ends.
const LATE: Duration = Duration::from_millis(20);
