//! Leases that are held: renewal, loss and release.

use std::sync::Arc;

use redlock_proto::{
    ExtensionVerdict, Grant, LeaseAction, LeaseState, Loss, NodeKey, OwnerId, Quorum, Release,
    ReleaseVerdict, Timing, Verb, Votes,
};
use tokio::sync::oneshot;

use super::{
    Holding,
    command::AcquireRequest,
    driver::{Driver, Timer},
    round::RoundKind,
    timers::TimerKey,
};
use crate::{ExtendError, ReleaseError, lease::LeaseShared};

/// A lease whose guard lives.
#[derive(Debug)]
pub(super) struct HeldLease {
    pub(super) state: LeaseState,
    encoded: NodeKey,
    owner: OwnerId,
    timing: Timing,
    shared: Arc<LeaseShared>,
    timer: Option<TimerKey>,
}

impl Driver {
    /// Takes a lease into care; `None` if no caller is left.
    pub(super) fn hold(
        &mut self,
        id: u64,
        request: AcquireRequest,
        owner: OwnerId,
        grant: &Grant,
        votes: &Votes,
    ) -> Option<Holding> {
        let AcquireRequest {
            key,
            encoded,
            timing,
            renew,
            ..
        } = request;
        let shared = Arc::new(LeaseShared::new(key, self.config.clock, grant.deadline));
        let state = LeaseState::new(timing, grant, votes, renew);
        let held = HeldLease {
            state,
            encoded,
            owner,
            timing,
            shared: Arc::clone(&shared),
            timer: None,
        };
        self.leases.insert(id, held);
        self.set_lease_timer(id);
        self.handles
            .upgrade()
            .map(|engine| Holding::new(id, shared, engine))
    }

    pub(super) fn on_lease_timer(&mut self, id: u64) {
        let now = self.now();
        let Some(held) = self.leases.get_mut(&id) else {
            return;
        };
        held.timer = None;
        let action = held.state.on_timer(now);
        self.follow_lease(id, action);
    }

    /// The holder asks for an extension, in a round of its own.
    pub(super) fn extend_now(&mut self, id: u64, answer: oneshot::Sender<Result<(), ExtendError>>) {
        let live = self
            .leases
            .get_mut(&id)
            .is_some_and(|held| held.state.extend());
        match live {
            true => self.start_extension(id, Some(answer)),
            // Whoever asked may have stopped waiting.
            false => drop(answer.send(Err(ExtendError::lost(Vec::new())))),
        }
        self.set_lease_timer(id);
    }

    /// A round of extension was decided.
    pub(super) fn extended(&mut self, round: u64, verdict: ExtensionVerdict) {
        self.decided(round);
        let now = self.now();
        let Some(entry) = self.rounds.get_mut(&round) else {
            return;
        };
        let started = entry.started;
        let RoundKind::Extension {
            lease,
            extension,
            answer,
        } = &mut entry.kind
        else {
            return;
        };
        let (id, answer) = (*lease, answer.take());
        let mut action = None;
        let mut held = self.leases.get_mut(&id);
        if let Some(held) = &mut held {
            let votes = extension.votes();
            action = held.state.on_extension(started, verdict, votes, now);
            if !held.shared.extend(held.state.deadline()) {
                action = action.or_else(|| held.state.expire());
            }
        }
        let live = held.is_some_and(|held| held.state.is_live());
        // Views are told before the holder is: an error that says "lost" must not meet a lease that
        // says "held".
        self.follow_lease(id, action);
        if let Some(answer) = answer {
            // Whoever asked may have stopped waiting.
            let _ = answer.send(match verdict {
                _ if !live => Err(ExtendError::lost(self.reports(round))),
                ExtensionVerdict::Extended { .. } => Ok(()),
                _ => Err(ExtendError::unconfirmed(self.reports(round))),
            });
        }
        if verdict == ExtensionVerdict::Failed {
            tracing::debug!("no majority confirmed an extension; the lease keeps its deadline");
        }
    }

    /// The guard is gone: nothing is extended any more, and nodes are told to let the key go.
    pub(super) fn release(
        &mut self,
        id: u64,
        answer: Option<oneshot::Sender<Result<(), ReleaseError>>>,
    ) {
        let Some(mut held) = self.leases.remove(&id) else {
            return;
        };
        if let Some(timer) = held.timer {
            self.timers.cancel(timer);
        }
        let nodes = held.state.release();
        self.send_release(&nodes, &held.encoded, held.owner, held.timing, answer);
    }

    /// The guard is gone, and the key stays until its time to live ends.
    pub(super) fn leave(&mut self, id: u64) {
        if let Some(timer) = self.leases.remove(&id).and_then(|held| held.timer) {
            self.timers.cancel(timer);
        }
    }

    /// Tells nodes to let a key go, behind everything that was sent to them before.
    pub(super) fn send_release(
        &mut self,
        nodes: &[usize],
        key: &NodeKey,
        owner: OwnerId,
        timing: Timing,
        answer: Option<oneshot::Sender<Result<(), ReleaseError>>>,
    ) {
        if nodes.is_empty() {
            answer
                .into_iter()
                .for_each(|answer| drop(answer.send(Ok(()))));
            return;
        }
        let now = self.now();
        let ends = now + timing.ttl();
        let release = Release::start(self.config.quorum, nodes);
        let kind = RoundKind::Release {
            release,
            answer,
            ends,
        };
        let round = self.start_round(kind, now, self.config.node_timeout);
        for node in nodes {
            let owed = Self::owed_until(&timing);
            self.send(*node, round, Verb::Release, key, owner, owed);
        }
    }

    /// A release was decided; its other nodes are waited for up to its time limit all the same, so
    /// that closing the client does not cut them off.
    pub(super) fn released(&mut self, round: u64, verdict: ReleaseVerdict) {
        let now = self.now();
        let Some(entry) = self.rounds.get_mut(&round) else {
            return;
        };
        let RoundKind::Release { answer, ends, .. } = &mut entry.kind else {
            return;
        };
        let ends_within = ends.saturating_since(now);
        if let Some(answer) = answer.take() {
            // Whoever asked may have stopped waiting.
            let _ = answer.send(match verdict {
                ReleaseVerdict::Released => Ok(()),
                ReleaseVerdict::Unconfirmed => {
                    Err(ReleaseError::unconfirmed(self.reports(round), ends_within))
                }
            });
        }
    }

    fn follow_lease(&mut self, id: u64, action: Option<LeaseAction>) {
        match action {
            Some(LeaseAction::Extend) => self.start_extension(id, None),
            Some(LeaseAction::Lost(loss)) => self.lost(id, loss),
            None => {}
        }
        self.set_lease_timer(id);
    }

    fn start_extension(
        &mut self,
        id: u64,
        answer: Option<oneshot::Sender<Result<(), ExtendError>>>,
    ) {
        let now = self.now();
        let quorum: Quorum = self.config.quorum;
        let Some(held) = self.leases.get(&id) else {
            return;
        };
        let (key, owner, timing) = (held.encoded.clone(), held.owner, held.timing);
        let limit = self.limit_within(&timing);
        let extension = held.state.extension(quorum, now);
        let round = self.start_round(
            RoundKind::Extension {
                lease: id,
                extension,
                answer,
            },
            now,
            limit,
        );
        for node in 0..quorum.nodes() {
            let verb = Verb::Extend { ttl: timing.ttl() };
            self.send(node, round, verb, &key, owner, None);
        }
    }

    fn lost(&mut self, id: u64, loss: Loss) {
        let Some(held) = self.leases.get_mut(&id) else {
            return;
        };
        held.shared.end(loss.into());
        tracing::warn!(reason = ?loss, "a lease was lost before its release");
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
