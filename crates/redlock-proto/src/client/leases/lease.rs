use std::sync::Arc;

use super::{
    super::{Acquire, Now, timers::TimerKey},
    run_record::ClaimedRun,
};
use crate::{
    Clocks, ExtensionVerdict, Fairness, Grant, Instant, JobVerb, LeaseAction, LeaseState, Lock,
    LockMode, NodeOutcome, Request, TokenBlock, Verb, Votes, membership::Baseline,
};

/// A lease that was won and is not released.
#[derive(Debug)]
pub(in super::super) struct WonLease {
    pub(in super::super) state: LeaseState,
    pub(in super::super) lock: Arc<Lock>,
    /// `None` only for a lease that is given back at once.
    pub(in super::super) tokens: Option<TokenBlock>,
    /// The run that goes on under it, if it was claimed.
    pub(super) claimed: Option<Box<ClaimedRun>>,
    pub(super) timer: Option<TimerKey>,
    /// The nodes' clocks when the round was started on which its deadline rests.
    baseline: Baseline,
    /// Whether the latest round of extension has failed.
    pub(super) has_failed: bool,
    /// Whether a round that its holder asked for is being repeated.
    pub(super) repeats: bool,
    /// The node that is asked first by a renewal for which the nodes take turns.
    pub(super) next: u16,
}

/// An attempt that a majority has granted.
#[derive(Debug)]
pub(in super::super) struct WonAttempt<'a> {
    pub(in super::super) lock: &'a Arc<Lock>,
    pub(in super::super) grant: &'a Grant,
    pub(in super::super) votes: &'a Votes,
    /// The nodes' clocks when it was started.
    pub(in super::super) baseline: &'a Baseline,
}

impl WonLease {
    pub(super) fn new(state: LeaseState, tokens: Option<TokenBlock>, won: &WonAttempt<'_>) -> Self {
        Self {
            state,
            lock: Arc::clone(won.lock),
            tokens,
            claimed: None,
            timer: None,
            baseline: won.baseline.clone(),
            has_failed: false,
            repeats: false,
            // Leases of one moment are spread over the nodes.
            next: won.lock.keys.first_shard().number(),
        }
    }

    /// Shares the keys from the next request on; nodes that hear of it let others share them too.
    pub(super) fn share(&mut self) {
        Arc::make_mut(&mut self.lock).mode = LockMode::Shared;
    }

    /// Returns whether a run was claimed with it, so that nodes remember a tick.
    pub(in super::super) const fn is_claimed(&self) -> bool {
        self.claimed.is_some()
    }

    /// Takes in the `verdict` of a round of extension, with the moment of its start and what the clocks showed then.
    pub(in super::super) fn on_extension(
        &mut self,
        (start, baseline): (Instant, Baseline),
        verdict: ExtensionVerdict,
        now: Instant,
    ) -> Option<LeaseAction> {
        self.has_failed = verdict == ExtensionVerdict::Failed;
        // A round that was decided after a later one does not move the deadline, which rests on that.
        if let ExtensionVerdict::Extended { deadline } = verdict
            && deadline >= self.state.deadline()
        {
            self.baseline = baseline;
        }
        self.state.on_extension(start, verdict, now)
    }

    /// Ends the lease if the nodes' clocks have gone too far ahead since its round was started.
    pub(super) fn look_at_clocks(&mut self, clocks: &Clocks) -> Option<LeaseAction> {
        self.state.on_jump(clocks.ahead_since(&self.baseline))
    }

    /// Returns whether the lease may be handed out now.
    pub(in super::super) fn may_hand_out(&mut self, clocks: &Clocks, now: Instant) -> bool {
        // A caller that does not have the lease yet needs no notice that it is lost.
        let _ = self.look_at_clocks(clocks);
        self.state.is_live() && self.state.may_hand_out(now)
    }

    /// Returns how to ask for an exclusive lease on the same terms beside this shared one; `None` if this is over.
    pub(in super::super) fn upgrade(&self, now: Now) -> Option<Acquire> {
        self.state.is_live().then(|| Acquire {
            keys: self.lock.keys.clone(),
            mode: LockMode::Upgrade {
                of: self.lock.owner.secret(),
            },
            timing: self.state.timing(),
            renew: self.state.renews(),
            max_hold: self
                .state
                .ends()
                .map(|ends| ends.saturating_since(now.clock)),
            // No caller takes the lease over: callers that wait in the process come behind others.
            tokens: 1,
            // Another attempt would find the same others, and two that waited would wait for each other.
            fairness: Fairness::Cohort,
            came: now.clock,
            wait_until: now.clock,
            quorum_wait: None,
            label: self.lock.owner.label(),
        })
    }

    /// Returns what a node is asked that granted: to confirm the token, and the tick if one was claimed.
    pub(in super::super) fn confirmation(&self) -> Option<Request> {
        let tokens = self.tokens?;
        let request = self.commit().unwrap_or_else(|| Request::Lock {
            verb: Verb::Extend {
                ttl: self.state.timing().key_ttl(),
                write_back: Some(tokens.last().get()),
            },
            lock: Arc::clone(&self.lock),
        });
        Some(request)
    }

    /// Returns what a node is asked to remember, if the lease was claimed.
    fn commit(&self) -> Option<Request> {
        let claimed = self.claimed.as_ref()?;
        Some(Request::Job {
            verb: JobVerb::Commit {
                lock: self.lock.keys.first().clone(),
                owner: Box::new(self.lock.owner),
                ttl: self.state.timing().key_ttl(),
                entry: claimed.run.to_entry(),
            },
            job: claimed.job.clone(),
        })
    }

    /// Returns what a node is asked to keep the key for longer.
    pub(super) fn extension(&self) -> Request {
        Request::Lock {
            verb: Verb::Extend {
                ttl: self.state.timing().key_ttl(),
                write_back: None,
            },
            lock: Arc::clone(&self.lock),
        }
    }

    /// Returns what a node is asked that is given the key again, if it should be.
    pub(super) fn healing(
        &mut self,
        node: usize,
        verdict: ExtensionVerdict,
        outcome: NodeOutcome,
    ) -> Option<Request> {
        let tokens = self.tokens?;
        if !self.state.heals(node, verdict, outcome) {
            return None;
        }
        self.state.on_healing(node);
        Some(Request::Lock {
            verb: Verb::Heal {
                ttl: self.state.timing().key_ttl(),
                counter: tokens.last().get(),
            },
            lock: Arc::clone(&self.lock),
        })
    }
}
