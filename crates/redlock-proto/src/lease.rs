use std::time::Duration;

use crate::{Extension, ExtensionVerdict, Grant, Instant, Outcome, Quorum, Timing, Vote, Votes};

/// A lease that was granted, until it is released or lost.
///
/// The deadline is a local timer: [`on_timer`](Self::on_timer) reports the loss when it is reached,
/// whatever the network does, and only a confirmed extension moves it, only later.
#[derive(Debug)]
pub struct LeaseState {
    timing: Timing,
    deadline: Instant,
    renewal: Renewal,
    // invariant: one entry per node
    may_hold: Vec<bool>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Renewal {
    /// The next round is due at this moment.
    Due(Instant),
    /// A round is under way.
    UnderWay,
    /// Nobody asked for it.
    Off,
    /// The lease is lost or released.
    Over,
}

/// What the driver must do next for a [`LeaseState`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must handle every action")]
pub enum LeaseAction {
    /// Start an [`Extension`](crate::Extension) with the present deadline.
    Extend,
    /// Tell the holder that the lease can no longer be relied on.
    Lost(Loss),
}

/// Why a lease can no longer be relied on.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Loss {
    /// Its deadline was reached without a majority having confirmed an extension.
    Expired,
    /// So many nodes say that the key is gone or another's that no majority is left.
    Revoked,
}

impl LeaseState {
    /// The lease that an attempt with these `votes` won.
    ///
    /// With `renew`, rounds of extension are due from a third of the ttl on.
    pub fn new(timing: Timing, grant: &Grant, votes: &Votes, renew: bool) -> Self {
        let mut may_hold = vec![false; votes.iter().len()];
        for node in votes.may_hold() {
            may_hold[node] = true;
        }
        let renewal = match renew {
            true => Renewal::Due(grant.start + timing.ttl() / 3),
            false => Renewal::Off,
        };
        Self {
            timing,
            deadline: grant.deadline,
            renewal,
            may_hold,
        }
    }

    /// Up to when the lease is valid.
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether the lease was neither lost nor released.
    pub fn is_live(&self) -> bool {
        self.renewal != Renewal::Over
    }

    /// When [`on_timer`](Self::on_timer) has something to say at the earliest.
    pub fn next_timer(&self) -> Option<Instant> {
        match self.renewal {
            Renewal::Due(at) => Some(at.min(self.deadline)),
            Renewal::UnderWay | Renewal::Off => Some(self.deadline),
            Renewal::Over => None,
        }
    }

    /// What is due at `now`.
    pub fn on_timer(&mut self, now: Instant) -> Option<LeaseAction> {
        if !self.is_live() {
            return None;
        }
        // The deadline is looked at first: a client that wakes after a pause is told of the loss
        // before it does anything else.
        if now >= self.deadline {
            return self.lose(Loss::Expired);
        }
        match self.renewal {
            Renewal::Due(at) if now >= at => {
                self.renewal = Renewal::UnderWay;
                Some(LeaseAction::Extend)
            }
            _ => None,
        }
    }

    /// The holder asks for an extension now; whether a round may be started for it.
    pub fn extend(&mut self) -> bool {
        if let Renewal::Due(_) = self.renewal {
            self.renewal = Renewal::UnderWay;
        }
        self.is_live()
    }

    /// A view of the lease has seen the deadline pass, and whoever looked acts on it.
    pub fn expire(&mut self) -> Option<LeaseAction> {
        self.is_live().then(|| self.lose(Loss::Expired))?
    }

    /// The round that [`LeaseAction::Extend`] asks for, with requests sent after `now`.
    pub fn extension(&self, quorum: Quorum, now: Instant) -> Extension {
        Extension::start(quorum, self.timing, self.deadline, now)
    }

    /// A round of extension that was started at `start` came to this `verdict`.
    pub fn on_extension(
        &mut self,
        start: Instant,
        verdict: ExtensionVerdict,
        votes: &Votes,
        now: Instant,
    ) -> Option<LeaseAction> {
        if !self.is_live() {
            return None;
        }
        for (node, vote) in votes.iter().enumerate() {
            match vote {
                Vote::Cast(Outcome::Granted) => self.may_hold[node] = true,
                Vote::Cast(Outcome::Refused { .. }) => self.may_hold[node] = false,
                _ => {}
            }
        }
        let next = match verdict {
            ExtensionVerdict::Extended { deadline } => {
                self.deadline = self.deadline.max(deadline);
                start + self.timing.ttl() / 3
            }
            // The lease is valid up to its deadline all the same, and the next round may succeed.
            ExtensionVerdict::Failed => now + self.pause_after_failure(),
            ExtensionVerdict::Revoked => return self.lose(Loss::Revoked),
        };
        if self.renewal == Renewal::UnderWay {
            self.renewal = Renewal::Due(next);
        }
        self.on_timer(now)
    }

    /// The outcome of an acquire became known after the attempt had been decided.
    pub fn on_late_outcome(&mut self, node: usize, outcome: Outcome) {
        if let Some(may_hold) = self.may_hold.get_mut(node)
            && !outcome.may_hold()
        {
            *may_hold = false;
        }
    }

    /// Ends the lease and returns the nodes that may have the key, to be told to let it go.
    ///
    /// Empty if it was released before.
    pub fn release(&mut self) -> Vec<usize> {
        self.renewal = Renewal::Over;
        let nodes = self
            .may_hold
            .iter()
            .enumerate()
            .filter_map(|(node, may)| may.then_some(node));
        let nodes = nodes.collect();
        self.may_hold.fill(false);
        nodes
    }

    fn lose(&mut self, loss: Loss) -> Option<LeaseAction> {
        self.renewal = Renewal::Over;
        Some(LeaseAction::Lost(loss))
    }

    fn pause_after_failure(&self) -> Duration {
        (self.timing.ttl() / 20).clamp(Duration::from_millis(5), Duration::from_millis(500))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroUsize;

    fn ms(ms: u64) -> Instant {
        Instant::from_origin(Duration::from_millis(ms))
    }

    fn quorum() -> Quorum {
        Quorum::of(NonZeroUsize::new(3).unwrap())
    }

    fn lease(ttl: u64, renew: bool) -> LeaseState {
        let min_validity = Duration::from_millis(1);
        let timing = Timing::new(Duration::from_millis(ttl), 0.01, min_validity).unwrap();
        let mut votes = Votes::new(quorum());
        votes.cast(0, Outcome::Granted);
        votes.cast(1, Outcome::Granted);
        let grant = Grant {
            start: ms(0),
            deadline: timing.deadline(ms(0)),
        };
        LeaseState::new(timing, &grant, &votes, renew)
    }

    fn all(outcome: Outcome) -> Votes {
        let mut votes = Votes::new(quorum());
        (0..3).for_each(|node| assert!(votes.cast(node, outcome)));
        votes
    }

    /// rslock computed `ttl - 500` in unsigned numbers and never renewed a short lock.
    #[test]
    fn s07_renewal_is_due_before_the_deadline_for_every_ttl() {
        for ttl in 4..=2_000 {
            let mut lease = lease(ttl, true);
            let due = lease.next_timer().unwrap();
            assert!(
                due < lease.deadline(),
                "ttl {ttl}: due {due}, deadline {}",
                lease.deadline()
            );
            assert_eq!(lease.on_timer(due), Some(LeaseAction::Extend), "ttl {ttl}");
        }
    }

    #[test]
    fn s06_the_loss_is_told_at_the_deadline_though_a_round_is_under_way() {
        let mut lease = lease(1_000, true);
        assert_eq!(lease.on_timer(ms(334)), Some(LeaseAction::Extend));
        assert_eq!(lease.next_timer(), Some(ms(978)));
        assert_eq!(lease.on_timer(ms(977)), None);
        assert_eq!(
            lease.on_timer(ms(978)),
            Some(LeaseAction::Lost(Loss::Expired))
        );
        assert_eq!(lease.on_timer(ms(979)), None);
    }

    #[test]
    fn s05_a_failed_extension_changes_nothing_and_is_tried_again() {
        let mut lease = lease(1_000, true);
        assert_eq!(lease.on_timer(ms(334)), Some(LeaseAction::Extend));
        let failed = ExtensionVerdict::Failed;
        assert_eq!(
            lease.on_extension(ms(334), failed, &all(Outcome::Unknown), ms(400)),
            None
        );
        assert_eq!(lease.deadline(), ms(978));
        assert_eq!(lease.on_timer(ms(450)), Some(LeaseAction::Extend));
        let extended = ExtensionVerdict::Extended {
            deadline: ms(450 + 978),
        };
        assert_eq!(
            lease.on_extension(ms(450), extended, &all(Outcome::Granted), ms(451)),
            None
        );
        assert_eq!(lease.deadline(), ms(450 + 978));
        assert_eq!(lease.release(), [0, 1, 2]);
    }

    #[test]
    fn s08_nothing_is_extended_after_the_release() {
        let mut lease = lease(1_000, true);
        assert_eq!(lease.release(), [0, 1, 2]);
        assert_eq!(lease.on_timer(ms(500)), None);
        assert!(!lease.extend());
        assert_eq!(lease.expire(), None);
        let extended = ExtensionVerdict::Extended {
            deadline: ms(2_000),
        };
        assert_eq!(
            lease.on_extension(ms(334), extended, &all(Outcome::Granted), ms(340)),
            None
        );
        assert_eq!(lease.deadline(), ms(978));
        assert_eq!(lease.release(), []);
    }

    #[test]
    fn a_lease_that_a_majority_has_lost_is_lost_at_once() {
        let mut lease = lease(1_000, true);
        assert_eq!(lease.on_timer(ms(400)), Some(LeaseAction::Extend));
        let gone = all(Outcome::Refused { remaining: None });
        let action = lease.on_extension(ms(400), ExtensionVerdict::Revoked, &gone, ms(401));
        assert_eq!(action, Some(LeaseAction::Lost(Loss::Revoked)));
        assert_eq!(lease.release(), []);
    }

    #[test]
    fn only_nodes_that_may_hold_the_key_are_released() {
        let mut lease = lease(1_000, false);
        lease.on_late_outcome(2, Outcome::NotExecuted);
        lease.on_late_outcome(1, Outcome::Unknown);
        assert_eq!(lease.release(), [0, 1]);
    }
}
