//! The state of a held lease: its deadline, when it is renewed, and its end.

use std::time::Duration;

use super::presence::{LeftOver, NodePresences};
use crate::{Extension, ExtensionVerdict, Grant, Instant, NodeOutcome, Quorum, Timing, Votes};

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
    /// Whether the lease is renewed while it has a holder.
    renews: bool,
    /// Whether its deadline rests on what nodes gave it in its turn, which is for less than the ttl: it is extended once
    /// in any case.
    is_given: bool,
    /// Whether it has no holder for the moment.
    is_parked: bool,
    renewal: RenewalPhase,
    /// When the holder is warned that a renewal is failing, unless one succeeds before.
    danger: Option<Instant>,
    progress: RenewalPace,
    keys: NodePresences,
}

/// Whether the client keeps up with the renewals, as far as this lease shows it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum RenewalPace {
    /// It does, unless the next round is still under way at this moment.
    Until(Instant),
    /// A round is under way that should be over.
    Behind,
    /// Nodes refused the last round, or none was confirmed since the lease was parked.
    Unknown,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum RenewalPhase {
    /// Nodes that never had the key are asked for it at this moment; the first round is due later, if there is one.
    Young(Instant),
    /// The next round is due at this moment.
    Due(Instant),
    /// A round is under way.
    UnderWay,
    /// No renewal is asked for.
    Off,
    /// The lease is lost or released.
    Over,
}

/// The next step of the driver for a [`LeaseState`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must handle every action")]
pub enum LeaseAction {
    /// Ask the nodes that [never had](LeaseState::lacks) the key for it: late votes of the attempt.
    Spread,
    /// Start an [`Extension`](crate::Extension) with the present deadline.
    Extend,
    /// Begin no new attempts for now: the client [is behind](LeaseState::is_behind) with its renewals.
    Wait,
    /// Tell an operator that no renewal has succeeded, though one was due for a third of the time to live.
    Warn,
    /// Tell the holder that the lease can no longer be relied on.
    Lost(Loss),
}

/// The reason for which a lease can no longer be relied on.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Loss {
    /// Its deadline was reached without a majority having confirmed an extension.
    Expired,
    /// Too many voting nodes say that they do not have the key for the others to be a majority: another client may have
    /// it.
    // Shows: A3.
    Revoked,
    /// It was held for as long as it may be.
    MaxHold,
    /// The clocks of a majority have gone too far ahead of the client's: nodes may have expired the key.
    ///
    /// The client's own clock stood still, or all of theirs were set forward.
    // Shows: A1.
    ClockJump,
}

impl LeaseState {
    /// Returns the lease that an attempt with these `votes` won.
    ///
    /// With `renew`, rounds of extension are due from a third of the ttl on.
    /// Nodes that do not have the key are asked for it after 100 ms, or with the first round if that is earlier.
    /// The lease is not valid for longer than `max_hold` from the attempt's start.
    pub fn new(
        timing: Timing,
        grant: &Grant,
        votes: &Votes,
        renew: bool,
        max_hold: Option<Duration>,
    ) -> Self {
        let keys = NodePresences::of(votes);
        let half = grant.start + grant.deadline.saturating_since(grant.start) / 2;
        let first = match grant.is_given {
            true => half.min(grant.won + SPREAD),
            false => renewal(timing, grant.start),
        };
        let renewal = if keys.are_lacking() {
            // The last nodes in line may be about to give it their key.
            RenewalPhase::Young(first.min(grant.won + SPREAD))
        } else if renew || grant.is_given {
            RenewalPhase::Due(first)
        } else {
            RenewalPhase::Off
        };
        let ends = max_hold.map(|max_hold| grant.start + max_hold);
        let deadline = earlier(grant.deadline, ends);
        Self {
            timing,
            deadline,
            ends,
            renews: renew,
            is_given: grant.is_given,
            is_parked: false,
            renewal,
            danger: Some(danger(timing, grant.start, deadline)),
            progress: if renew && !grant.is_given {
                progress(timing, grant.start)
            } else {
                RenewalPace::Unknown
            },
            keys,
        }
    }

    /// Returns the same lease, on several keys if `several`: a node that says that it has not all of them may have some,
    /// which are to be released.
    #[must_use]
    pub(crate) fn on_several_keys(mut self, several: bool) -> Self {
        self.keys.are_several = several;
        self
    }

    /// Returns the lengths of time that it has.
    pub const fn timing(&self) -> Timing {
        self.timing
    }

    /// Returns up to when the lease is valid.
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Returns whether the lease may be handed out at `now`: enough of it is left, or else anything at all of one that
    /// may not be held for longer.
    pub fn may_hand_out(&self, now: Instant) -> bool {
        match self.ends {
            Some(ends) if ends <= self.deadline => now < ends,
            _ => self.timing.may_hand_out(self.deadline, now),
        }
    }

    /// Returns when the lease ends however often it is extended, if it does.
    pub const fn ends(&self) -> Option<Instant> {
        self.ends
    }

    /// Returns whether it is renewed as things are: it is live and not parked.
    pub(crate) const fn is_renewed(&self) -> bool {
        match self.renewal {
            RenewalPhase::Due(_) | RenewalPhase::UnderWay => true,
            RenewalPhase::Young(_) => self.renews,
            RenewalPhase::Off | RenewalPhase::Over => false,
        }
    }

    /// Returns whether a renewal is late: the client begins no new attempt until it is done.
    pub fn is_behind(&self) -> bool {
        self.progress == RenewalPace::Behind && self.is_renewed()
    }

    /// Notes that nodes have refused a renewal: if it is late, that is not for want of time.
    pub fn on_refusal(&mut self) {
        self.progress = RenewalPace::Unknown;
    }

    /// Returns whether the lease is renewed while it has a holder.
    pub const fn renews(&self) -> bool {
        self.renews
    }

    /// Returns whether a node is to be asked for the key: it never had it and is not being asked, and the lease has a holder.
    pub fn lacks(&self, node: usize) -> bool {
        self.has_holder() && self.keys.lacks(node)
    }

    /// Notes that a node that [lacks](Self::lacks) the key is asked for it.
    pub fn on_asked(&mut self, node: usize) {
        self.keys.on_asked(node);
    }

    /// Returns whether the lease was neither lost nor released.
    pub fn is_live(&self) -> bool {
        self.renewal != RenewalPhase::Over
    }

    /// Returns when [`on_timer`](Self::on_timer) has something to say at the earliest.
    pub fn next_timer(&self) -> Option<Instant> {
        let warning = self.danger.unwrap_or(self.deadline).min(self.deadline);
        match self.renewal {
            RenewalPhase::Young(at) => Some(at.min(self.deadline)),
            RenewalPhase::Due(at) => Some(at.min(warning)),
            RenewalPhase::UnderWay => Some(match self.progress {
                RenewalPace::Until(at) => at.min(warning),
                RenewalPace::Behind | RenewalPace::Unknown => warning,
            }),
            RenewalPhase::Off => Some(self.deadline),
            RenewalPhase::Over => None,
        }
    }

    /// Returns what is due at `now`.
    pub fn on_timer(&mut self, now: Instant) -> Option<LeaseAction> {
        if !self.is_live() {
            return None;
        }
        // The deadline is checked first: a client that wakes after a pause hears of the loss before it does anything
        // else.
        if now >= self.deadline {
            return self.lose(self.loss_at_deadline());
        }
        match self.renewal {
            RenewalPhase::Young(at) => (now >= at).then(|| self.spread()),
            RenewalPhase::Due(at) if now >= at => {
                self.renewal = RenewalPhase::UnderWay;
                Some(LeaseAction::Extend)
            }
            RenewalPhase::UnderWay if matches!(self.progress, RenewalPace::Until(at) if now >= at) =>
            {
                self.progress = RenewalPace::Behind;
                Some(LeaseAction::Wait)
            }
            RenewalPhase::Due(_) | RenewalPhase::UnderWay => {
                self.danger.take_if(|danger| now >= *danger)?;
                Some(LeaseAction::Warn)
            }
            RenewalPhase::Off | RenewalPhase::Over => None,
        }
    }

    /// Asks for an extension on the holder's behalf, and returns whether a round may be started for it.
    ///
    /// It may if the lease is live, and its holder has not left it to the next one meanwhile.
    pub fn extend(&mut self) -> bool {
        if let RenewalPhase::Young(_) = self.renewal {
            // The round itself asks the nodes that never had the key.
            self.spread();
        }
        if let RenewalPhase::Due(_) = self.renewal {
            self.renewal = RenewalPhase::UnderWay;
        }
        self.has_holder()
    }

    /// Returns whether the lease is live, and its holder has not left it to the next one.
    pub(crate) fn has_holder(&self) -> bool {
        self.is_live() && !self.is_parked
    }

    /// Takes in that a node was lost: if it was asked for the key and others are still to be, it is time for that.
    pub(crate) fn on_node_lost(&mut self, node: usize) -> Option<LeaseAction> {
        let is_young = matches!(self.renewal, RenewalPhase::Young(_));
        (is_young && !self.keys.lacks(node)).then(|| self.spread())
    }

    /// Parks the lease, which has no holder for the moment: no round of extension is begun.
    pub fn park(&mut self) {
        self.is_parked = true;
        self.progress = RenewalPace::Unknown;
        if self.is_live() {
            self.renewal = RenewalPhase::Off;
        }
    }

    /// Resumes a lease that has a holder again, and returns what is due at `now`.
    pub fn resume(&mut self, now: Instant) -> Option<LeaseAction> {
        self.is_parked = false;
        let lacks = self.keys.are_lacking();
        if self.is_live() && (self.renews || self.is_given || lacks) {
            let since = self.since();
            let due = since + self.timing.ttl() / 3;
            self.renewal = if lacks {
                RenewalPhase::Young(now.max(due.min(since + SPREAD)))
            } else {
                RenewalPhase::Due(due)
            };
            // It may have waited for its holder until now, and nothing has failed yet.
            let half = self.deadline.saturating_since(now) / 2;
            self.danger = Some((self.deadline - self.timing.warning()).max(now + half));
        }
        self.on_timer(now)
    }

    /// Ends a lease whose deadline a view has seen pass.
    pub fn expire(&mut self) -> Option<LeaseAction> {
        self.is_live().then(|| self.lose(self.loss_at_deadline()))?
    }

    /// Takes in by how much, in microseconds, the nodes' clocks have gone ahead since the lease was granted or extended
    /// last.
    ///
    /// What the drift allows for is no loss.
    pub(crate) fn on_jump(&mut self, micros: i64) -> Option<LeaseAction> {
        let jumped = Duration::from_micros(u64::try_from(micros).unwrap_or(0));
        let is_lost = self.is_live() && jumped > self.timing.drift();
        is_lost.then(|| self.lose(Loss::ClockJump))?
    }

    /// Returns the round that [`LeaseAction::Extend`] asks for, with requests sent after `now`.
    pub fn extension(&self, quorum: Quorum, now: Instant) -> Extension {
        Extension::start(quorum, self.timing, self.deadline, now)
    }

    /// Takes in the `verdict` of a round of extension that was started at `start`.
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
                self.danger = Some(danger(self.timing, start, self.deadline));
                self.is_given = false;
                self.progress = progress(self.timing, start);
                renewal(self.timing, start)
            }
            // The lease is valid up to its deadline all the same, and the next round may succeed.
            ExtensionVerdict::Failed => now + self.pause_after_failure(),
            ExtensionVerdict::Revoked => return self.lose(Loss::Revoked),
        };
        if self.renewal == RenewalPhase::UnderWay {
            self.renewal = match self.ends {
                // Nothing that may be confirmed moves the deadline any more.
                Some(ends) if self.deadline >= ends => RenewalPhase::Off,
                _ if !self.renews && !self.is_given => RenewalPhase::Off,
                _ => RenewalPhase::Due(next),
            };
        }
        self.on_timer(now)
    }

    /// Takes in an outcome of an acquire that became known after the attempt had been decided, or that of a healing.
    pub fn on_late_outcome(&mut self, node: usize, outcome: NodeOutcome) {
        self.keys.on_late_outcome(node, outcome);
    }

    /// Takes in a node's answer to a round of extension, decided or not.
    ///
    /// The caller reports outcomes in the order in which the node answered, whenever its rounds are decided.
    /// Of two rounds, the older may be decided later, and what the node said in it is old by then.
    pub fn on_extension_outcome(&mut self, node: usize, outcome: NodeOutcome) {
        let is_live = self.is_live();
        self.keys.on_extension_outcome(node, outcome, is_live);
    }

    /// Returns whether a node that has lost the key, and said so in a round of extension that came to this
    /// `verdict`, should be given it again.
    ///
    /// Only once a majority has confirmed that round: it proves that the lease is valid still, and the node
    /// counts from the next round on.
    /// Where a request for the key may still be on its way, that stays known: the release tombstones the owner there.
    pub fn heals(&self, node: usize, verdict: ExtensionVerdict, outcome: NodeOutcome) -> bool {
        self.is_live()
            && matches!(verdict, ExtensionVerdict::Extended { .. })
            && outcome == NodeOutcome::Missing
            && self.keys.may_be_healed(node)
    }

    /// Notes that a node is being given the key again.
    pub fn on_healing(&mut self, node: usize) {
        self.keys.on_healing(node);
    }

    /// Ends the lease and returns what is left of it on the nodes, which are to be asked to release it.
    ///
    /// Nothing is left of a lease that was released before.
    pub fn release(&mut self) -> LeftOver {
        self.renewal = RenewalPhase::Over;
        // What a node says from now on is for the release to settle.
        self.keys.take()
    }

    /// Goes on to the renewals, once the nodes are asked that never had the key.
    fn spread(&mut self) -> LeaseAction {
        self.renewal = match self.ends {
            _ if !self.renews && !self.is_given => RenewalPhase::Off,
            // Nothing that may be confirmed moves the deadline.
            Some(ends) if self.deadline >= ends => RenewalPhase::Due(ends),
            _ => RenewalPhase::Due(renewal(self.timing, self.since())),
        };
        LeaseAction::Spread
    }

    /// Returns the start of the round on which the deadline rests, if nothing else ends the lease earlier.
    fn since(&self) -> Instant {
        self.deadline + self.timing.drift() - self.timing.ttl()
    }

    fn loss_at_deadline(&self) -> Loss {
        match self.ends {
            Some(ends) if self.deadline >= ends => Loss::MaxHold,
            _ => Loss::Expired,
        }
    }

    fn lose(&mut self, loss: Loss) -> Option<LeaseAction> {
        self.renewal = RenewalPhase::Over;
        Some(LeaseAction::Lost(loss))
    }

    /// Returns how long to wait after a round that has not come to a majority.
    pub(crate) fn pause_after_failure(&self) -> Duration {
        (self.timing.ttl() / 20).clamp(Duration::from_millis(5), Duration::from_millis(500))
    }
}

/// How long a renewal may take before new attempts wait for it, however short the ttl is.
const SHORTEST_PATIENCE: Duration = Duration::from_millis(50);
/// The same, however long the ttl is.
const LONGEST_PATIENCE: Duration = Duration::from_millis(500);

/// After which time a lease that is still held is given to the nodes that do not have it yet.
const SPREAD: Duration = Duration::from_millis(100);

/// Returns when the lease is renewed that was won or extended by a round that began at `start`.
///
/// This is after a third of the ttl, or less than a two-thousandth of the ttl earlier.
/// Leases of one ttl are renewed at the same moments, so that their renewals share calls.
fn renewal(timing: Timing, start: Instant) -> Instant {
    let due = start + timing.ttl() / 3;
    let step = (timing.ttl() / 2048).as_nanos().max(1);
    let early = due.since_origin().as_nanos() % step;
    due - Duration::from_nanos(u64::try_from(early).unwrap_or(0))
}

/// Returns the progress with a lease that was won or extended by a round that began at `start`.
///
/// A client that can renew its leases just in time is late by nothing with each; with a few more, it is soon late by
/// seconds.
fn progress(timing: Timing, start: Instant) -> RenewalPace {
    let longest = (timing.ttl() / 10).clamp(SHORTEST_PATIENCE, LONGEST_PATIENCE);
    RenewalPace::Until(renewal(timing, start) + longest)
}

/// Returns when so little of the lease is left that it is in danger, and not before the next renewal is due.
fn danger(timing: Timing, start: Instant, deadline: Instant) -> Instant {
    (deadline - timing.warning()).max(start + timing.ttl() / 3)
}

/// Returns when a lease ends that its holder gives up at `ends` at the latest.
fn earlier(deadline: Instant, ends: Option<Instant>) -> Instant {
    ends.map_or(deadline, |ends| deadline.min(ends))
}
