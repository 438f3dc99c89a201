use std::time::Duration;

use crate::{
    Extension, ExtensionVerdict, GiveBack, Grant, Instant, Outcome, Quorum, Timing, Votes,
};

/// A lease that was granted, until it is released or lost.
///
/// The deadline is a local timer: [`on_timer`](Self::on_timer) reports the loss when it is reached,
/// whatever the network does, and only a confirmed extension moves it, only later.
#[derive(Debug)]
pub struct LeaseState {
    timing: Timing,
    deadline: Instant,
    /// When the lease ends however often it is extended.
    ends: Option<Instant>,
    /// Whether the lease is renewed while somebody holds it.
    renews: bool,
    renewal: Renewal,
    // invariant: one entry per node
    keys: Vec<Presence>,
}

/// Whether a node has the lease's key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Presence {
    No,
    /// It does, or the request for it is on its way over a connection that stands.
    Yes,
    /// It lost the key and is being given it again; what it says of an extension was asked before.
    Healing,
    /// Nobody knows, and a request for it may arrive at any time.
    Unknown,
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
    /// It was held for as long as it may be.
    MaxHold,
}

impl LeaseState {
    /// The lease that an attempt with these `votes` won.
    ///
    /// With `renew`, rounds of extension are due from a third of the ttl on.
    /// It is not valid for longer than `max_hold` from the attempt's start.
    pub fn new(
        timing: Timing,
        grant: &Grant,
        votes: &Votes,
        renew: bool,
        max_hold: Option<Duration>,
    ) -> Self {
        let mut keys = vec![Presence::No; votes.iter().len()];
        for GiveBack { node, bury } in votes.may_hold() {
            keys[node] = match bury {
                true => Presence::Unknown,
                false => Presence::Yes,
            };
        }
        let renewal = match renew {
            true => Renewal::Due(grant.start + timing.ttl() / 3),
            false => Renewal::Off,
        };
        let ends = max_hold.map(|max_hold| grant.start + max_hold);
        Self {
            timing,
            deadline: earlier(grant.deadline, ends),
            ends,
            renews: renew,
            renewal,
            keys,
        }
    }

    /// Up to when the lease is valid.
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether the lease may be handed out at `now`: enough of it is left, or else anything at all of one that
    /// may not be held for longer.
    pub fn may_hand_out(&self, now: Instant) -> bool {
        match self.ends {
            Some(ends) if ends <= self.deadline => now < ends,
            _ => self.timing.may_hand_out(self.deadline, now),
        }
    }

    /// When the lease ends however often it is extended, if it does.
    pub const fn ends(&self) -> Option<Instant> {
        self.ends
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
            return self.lose(self.loss_at_deadline());
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

    /// Nobody holds the lease for the moment: no round of extension is begun.
    pub fn park(&mut self) {
        if self.is_live() {
            self.renewal = Renewal::Off;
        }
    }

    /// Somebody holds the lease again; what is due at `now`.
    pub fn resume(&mut self, now: Instant) -> Option<LeaseAction> {
        if self.is_live() && self.renews {
            let left = self.timing.ttl() - self.timing.ttl() / 3;
            self.renewal = Renewal::Due(self.deadline + self.timing.drift() - left);
        }
        self.on_timer(now)
    }

    /// A view of the lease has seen the deadline pass, and whoever looked acts on it.
    pub fn expire(&mut self) -> Option<LeaseAction> {
        self.is_live().then(|| self.lose(self.loss_at_deadline()))?
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
        now: Instant,
    ) -> Option<LeaseAction> {
        if !self.is_live() {
            return None;
        }
        let next = match verdict {
            ExtensionVerdict::Extended { deadline } => {
                self.deadline = earlier(self.deadline.max(deadline), self.ends);
                start + self.timing.ttl() / 3
            }
            // The lease is valid up to its deadline all the same, and the next round may succeed.
            ExtensionVerdict::Failed => now + self.pause_after_failure(),
            ExtensionVerdict::Revoked => return self.lose(Loss::Revoked),
        };
        if self.renewal == Renewal::UnderWay {
            self.renewal = match self.ends {
                // Nothing that may be confirmed moves the deadline any more.
                Some(ends) if self.deadline >= ends => Renewal::Off,
                _ => Renewal::Due(next),
            };
        }
        self.on_timer(now)
    }

    /// The outcome of an acquire became known after the attempt had been decided, or that of a healing.
    pub fn on_late_outcome(&mut self, node: usize, outcome: Outcome) {
        let Some(key) = self.keys.get_mut(node) else {
            return;
        };
        *key = match outcome {
            outcome if outcome.holds() => Presence::Yes,
            Outcome::Unknown => Presence::Unknown,
            _ => Presence::No,
        };
    }

    /// A node answered a round of extension, decided or not.
    ///
    /// This is told in the order in which the node answered, whenever its rounds are decided: of two
    /// rounds, the older may be decided later, and what the node said in it is old by then.
    pub fn on_extension_outcome(&mut self, node: usize, outcome: Outcome) {
        let is_live = self.is_live();
        let Some(key) = self.keys.get_mut(node) else {
            return;
        };
        match (outcome, *key) {
            (_, Presence::Healing) => {}
            // Also of a lease that is lost: a node may come back with a key that it had lost.
            (outcome, _) if outcome.holds() => *key = Presence::Yes,
            // Where nobody knows what became of the acquire, it may take the key after this answer.
            (Outcome::Refused { .. } | Outcome::Missing, Presence::Yes) if is_live => {
                *key = Presence::No;
            }
            _ => {}
        }
    }

    /// Whether a node that has lost the key, and said so in a round of extension that came to this
    /// `verdict`, should be given it again.
    ///
    /// Only once a majority has confirmed that round: it proves that the lease is valid still, and the node
    /// counts from the next round on.
    /// Not where a request for the key may still be on its way: whatever becomes of it must stay visible.
    pub fn heals(&self, node: usize, verdict: ExtensionVerdict, outcome: Outcome) -> bool {
        self.is_live()
            && matches!(verdict, ExtensionVerdict::Extended { .. })
            && outcome == Outcome::Missing
            && self.keys.get(node) == Some(&Presence::No)
    }

    /// A node is being given the key again.
    pub fn on_healing(&mut self, node: usize) {
        if let Some(key @ Presence::No) = self.keys.get_mut(node) {
            *key = Presence::Healing;
        }
    }

    /// Ends the lease and returns the nodes that may have the key, to be told to let it go.
    ///
    /// Empty if it was released before.
    pub fn release(&mut self) -> Vec<GiveBack> {
        self.renewal = Renewal::Over;
        // What a node says from now on is for the release to settle.
        let nodes = std::mem::take(&mut self.keys).into_iter().enumerate();
        let give_back = nodes.filter(|(_, key)| *key != Presence::No);
        let give_back = give_back.map(|(node, key)| GiveBack {
            node,
            bury: key == Presence::Unknown,
        });
        give_back.collect()
    }

    fn loss_at_deadline(&self) -> Loss {
        match self.ends {
            Some(ends) if self.deadline >= ends => Loss::MaxHold,
            _ => Loss::Expired,
        }
    }

    fn lose(&mut self, loss: Loss) -> Option<LeaseAction> {
        self.renewal = Renewal::Over;
        Some(LeaseAction::Lost(loss))
    }

    /// How long to wait after a round that has not come to a majority.
    pub(crate) fn pause_after_failure(&self) -> Duration {
        (self.timing.ttl() / 20).clamp(Duration::from_millis(5), Duration::from_millis(500))
    }
}

fn earlier(deadline: Instant, ends: Option<Instant>) -> Instant {
    ends.map_or(deadline, |ends| deadline.min(ends))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settled;
    use std::num::NonZeroUsize;

    fn ms(ms: u64) -> Instant {
        Instant::from_origin(Duration::from_millis(ms))
    }

    const GRANTED: Outcome = Outcome::Granted { counter: 1 };

    fn quorum() -> Quorum {
        Quorum::of(NonZeroUsize::new(3).unwrap())
    }

    fn lease(ttl: u64, renew: bool) -> LeaseState {
        lease_for(ttl, renew, None)
    }

    fn lease_for(ttl: u64, renew: bool, max_hold: Option<Duration>) -> LeaseState {
        let min_validity = Duration::from_millis(1);
        let timing = Timing::new(Duration::from_millis(ttl), 0.01, min_validity).unwrap();
        let mut votes = Votes::new(quorum());
        votes.cast(0, GRANTED);
        votes.cast(1, GRANTED);
        let grant = Grant {
            start: ms(0),
            deadline: timing.deadline(ms(0)),
            settled: Settled::Agreed(1),
        };
        LeaseState::new(timing, &grant, &votes, renew, max_hold)
    }

    /// The nodes that are told, and whether the owner is buried there.
    fn released(lease: &mut LeaseState) -> Vec<(usize, bool)> {
        let give_back = lease.release().into_iter();
        give_back.map(|back| (back.node, back.bury)).collect()
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
        assert_eq!(lease.on_extension(ms(334), failed, ms(400)), None);
        assert_eq!(lease.deadline(), ms(978));
        assert_eq!(lease.on_timer(ms(450)), Some(LeaseAction::Extend));
        let extended = ExtensionVerdict::Extended {
            deadline: ms(450 + 978),
        };
        assert_eq!(lease.on_extension(ms(450), extended, ms(451)), None);
        assert_eq!(lease.deadline(), ms(450 + 978));
        assert_eq!(released(&mut lease), [(0, false), (1, false), (2, false)]);
    }

    #[test]
    fn s08_nothing_is_extended_after_the_release() {
        let mut lease = lease(1_000, true);
        assert_eq!(released(&mut lease), [(0, false), (1, false), (2, false)]);
        assert_eq!(lease.on_timer(ms(500)), None);
        assert!(!lease.extend());
        assert_eq!(lease.expire(), None);
        let extended = ExtensionVerdict::Extended {
            deadline: ms(2_000),
        };
        assert_eq!(lease.on_extension(ms(334), extended, ms(340)), None);
        assert_eq!(lease.deadline(), ms(978));
        assert_eq!(released(&mut lease), []);
    }

    #[test]
    fn a_lease_that_a_majority_has_lost_is_lost_at_once() {
        let mut lease = lease(1_000, true);
        assert_eq!(lease.on_timer(ms(400)), Some(LeaseAction::Extend));
        (0..3).for_each(|node| lease.on_extension_outcome(node, Outcome::Missing));
        let action = lease.on_extension(ms(400), ExtensionVerdict::Revoked, ms(401));
        assert_eq!(action, Some(LeaseAction::Lost(Loss::Revoked)));
        assert_eq!(released(&mut lease), []);
    }

    #[test]
    fn only_nodes_that_may_hold_the_key_are_released() {
        let mut lease = lease(1_000, false);
        lease.on_late_outcome(2, Outcome::NotExecuted);
        lease.on_late_outcome(1, Outcome::Unknown);
        assert_eq!(released(&mut lease), [(0, false), (1, true)]);
    }

    #[test]
    fn s28_a_refused_extension_does_not_forget_an_acquire_that_may_still_arrive() {
        let mut lease = lease(1_000, true);
        lease.on_late_outcome(2, Outcome::Unknown);
        assert_eq!(lease.on_timer(ms(400)), Some(LeaseAction::Extend));
        lease.on_extension_outcome(2, Outcome::Missing);
        lease.on_extension_outcome(1, Outcome::Missing);
        let failed = ExtensionVerdict::Failed;
        assert_eq!(lease.on_extension(ms(400), failed, ms(401)), None);
        assert_eq!(released(&mut lease), [(0, false), (2, true)]);
    }

    #[test]
    fn a_node_is_healed_only_after_a_majority_has_confirmed() {
        let mut lease = lease(1_000, true);
        let extended = ExtensionVerdict::Extended {
            deadline: ms(1_500),
        };
        lease.on_late_outcome(1, Outcome::Unknown);
        for node in [0, 1] {
            lease.on_extension_outcome(node, Outcome::Missing);
        }
        assert!(lease.heals(0, extended, Outcome::Missing));
        assert!(!lease.heals(1, extended, Outcome::Missing), "s28");
        assert!(!lease.heals(0, extended, Outcome::Refused { remaining: None }));
        assert!(!lease.heals(0, ExtensionVerdict::Failed, Outcome::Missing));
        lease.release();
        assert!(!lease.heals(0, extended, Outcome::Missing));
    }

    /// A client that was paused hears of several rounds at once, all of them from before the healing.
    #[test]
    fn a_node_that_is_being_healed_is_released_whatever_it_said_before() {
        let mut lease = lease(1_000, true);
        let extended = ExtensionVerdict::Extended {
            deadline: ms(1_500),
        };
        lease.on_late_outcome(2, Outcome::NotExecuted);
        assert!(lease.heals(2, extended, Outcome::Missing));
        lease.on_healing(2);
        lease.on_extension_outcome(2, Outcome::Missing);
        assert!(
            !lease.heals(2, extended, Outcome::Missing),
            "it is under way"
        );
        assert_eq!(released(&mut lease), [(0, false), (1, false), (2, false)]);
    }

    #[test]
    fn a_node_that_was_healed_is_believed_again() {
        let mut lease = lease(1_000, true);
        lease.on_late_outcome(2, Outcome::NotExecuted);
        lease.on_healing(2);
        lease.on_late_outcome(2, GRANTED);
        lease.on_extension_outcome(2, Outcome::Missing);
        assert_eq!(released(&mut lease), [(0, false), (1, false)]);
    }

    /// A node that lost the key can come back with it, from old data, and say so when the lease is lost already.
    #[test]
    fn a_node_that_has_the_key_after_the_loss_is_released() {
        let mut lease = lease(1_000, true);
        lease.on_extension_outcome(2, Outcome::Missing);
        assert!(lease.on_timer(ms(978)).is_some());
        assert!(!lease.is_live());
        lease.on_extension_outcome(2, GRANTED);
        assert_eq!(released(&mut lease), [(0, false), (1, false), (2, false)]);
        lease.on_extension_outcome(2, GRANTED);
        assert_eq!(released(&mut lease), [], "it was released");
    }

    #[test]
    fn a_lease_ends_when_it_was_held_for_as_long_as_it_may_be() {
        let mut lease = lease_for(1_000, true, Some(Duration::from_millis(1_200)));
        assert_eq!(lease.deadline(), ms(978));
        assert_eq!(lease.on_timer(ms(334)), Some(LeaseAction::Extend));
        let deadline = ms(334 + 978);
        let extended = ExtensionVerdict::Extended { deadline };
        let action = lease.on_extension(ms(334), extended, ms(335));
        assert_eq!(action, None);
        assert_eq!(lease.deadline(), ms(1_200));
        let lost = Some(LeaseAction::Lost(Loss::MaxHold));
        assert_eq!(lease.on_timer(ms(1_200)), lost);
    }
}
