use std::time::Duration;

use super::{Ballot, Rule};
use crate::{ClockReading, GiveBack, Instant, Quorum, RunId, Settled, Timing, Vote, Votes, settle};

/// One round in which nodes are asked for a key under a fresh owner: all at once, or a majority first and the others
/// when it does not grant.
pub type Attempt = Ballot<Winning>;

/// The rule of an [`Attempt`].
#[derive(Debug)]
pub struct Winning {
    timing: Timing,
    start: Instant,
    /// For how long nodes give the key to a caller that waits in line, if this one does.
    line: Option<Duration>,
    /// Whether a node has given it the key.
    is_given: bool,
}

/// The verdict of an [`Attempt`].
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a driver must handle every verdict"
)]
pub enum AttemptVerdict {
    /// A majority granted in time: hand out the lease, once its token is settled.
    Granted(Grant),
    /// Nothing was won: give back what was taken, then try again later or tell the caller.
    Failed(Failure),
}

/// A lease that was won.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Grant {
    /// The time at which the attempt was started.
    pub start: Instant,
    /// The time at which a majority had granted it.
    pub won: Instant,
    /// The time up to which the lease is valid.
    pub deadline: Instant,
    /// The token that follows from the counters of the votes.
    pub settled: Settled,
    /// Set if nodes gave the key to a caller that waited in line, and so for less than the ttl.
    pub is_given: bool,
}

/// An attempt that won nothing.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Failure {
    /// Its kind.
    pub kind: FailureKind,
    /// The nodes that may have the key, now or once their request arrives.
    ///
    /// Each must be sent a release, behind the acquire and in order with it, before the next attempt:
    /// split votes dissolve that way, and the next attempt is not refused by the leftovers of this.
    pub give_back: Vec<GiveBack>,
    /// The earliest moment at which the remaining times that nodes reported allow a majority;
    /// `None` if too few nodes reported one.
    pub majority_free_at: Option<Instant>,
    /// The time until enough nodes vote again, if quarantined nodes are what is missing.
    pub quorum_ready_in: Option<Duration>,
    /// The time that the attempt took to be decided.
    pub took: Duration,
}

/// The kind of a [`Failure`] of an [`Attempt`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum FailureKind {
    /// Enough nodes are up; others hold the key on too many of them.
    Contended,
    /// Too few nodes gave an answer that counts, whether or not the key is free.
    NoQuorum,
    /// Too few nodes vote, and enough will once their quarantine has ended.
    Quarantined,
    /// A majority granted, too late to leave the minimum validity.
    Expired,
    /// Requests waited for too long in the client, or behind others at nodes that answer.
    Overloaded,
    /// The caller went away.
    Abandoned,
}

impl Failure {
    /// Makes the failure of an attempt that a majority had granted, but whose lease could not be handed out.
    ///
    /// What was taken is given back as the lease that it was.
    pub(crate) fn after_grant(kind: FailureKind, start: Instant, now: Instant) -> Self {
        Self {
            kind,
            give_back: Vec::new(),
            majority_free_at: None,
            quorum_ready_in: None,
            took: now.saturating_since(start),
        }
    }
}

impl Attempt {
    /// Starts an attempt whose requests are sent after `now`.
    pub fn start(quorum: Quorum, timing: Timing, now: Instant) -> Self {
        let rule = Winning {
            timing,
            start: now,
            line: None,
            is_given: false,
        };
        Self::new(quorum, rule)
    }

    /// Returns the lengths of time of the lease.
    pub const fn timing(&self) -> Timing {
        self.rule.timing
    }

    /// Asks these nodes first, and the others only if they are too few.
    ///
    /// A node that is held back is, for every promise, one whose request was lost on its way.
    #[must_use]
    pub fn asking(mut self, first: impl Iterator<Item = usize>) -> Self {
        self.votes.ask_first(first);
        self
    }

    /// Waits in line where a node refuses, and counts what nodes give it [afterwards](Self::on_gift), which is for `grant`.
    #[must_use]
    pub const fn in_line(mut self, grant: Duration) -> Self {
        self.rule.line = Some(grant);
        self
    }

    /// Returns whether the nodes that have granted, and those that may give it the key in its turn, are a majority.
    pub fn stands(&self) -> bool {
        !self.decided && self.rule.stands(&self.votes)
    }

    /// Takes in that a node gave it the key after it had handled its request: that is a vote, from the same start.
    ///
    /// `reading` was made between that start and now.
    pub fn on_gift(
        &mut self,
        node: usize,
        counter: u64,
        (run, reading): (RunId, ClockReading),
        now: Instant,
    ) -> Option<AttemptVerdict> {
        if self.decided || self.rule.line.is_none() || !self.votes.give(node, counter, run, reading)
        {
            return None;
        }
        self.rule.is_given = true;
        self.decide(now)
    }

    /// Returns whether a majority is still possible, and only with nodes that were held back.
    pub(crate) fn needs_more(&self) -> bool {
        !self.decided && self.votes.are_too_few()
    }

    /// Asks all nodes from now on; returns the nodes that were held back, to be sent the same request.
    ///
    /// Once the attempt is decided, their votes are late ones.
    pub(crate) fn widen(&mut self) -> Vec<usize> {
        self.votes.ask_all()
    }

    /// Returns up to when the attempt waits for the nodes that have not answered, if another is known to be in the way.
    ///
    /// An attempt that has split the votes with another keeps both from a majority for as long as it waits.
    /// So once as many nodes have answered as make a majority, the others have as long as those took.
    pub(crate) fn split_until(&self, now: Instant) -> Option<Instant> {
        let answered = self
            .votes
            .iter()
            .filter(|vote| matches!(vote, Vote::Cast(_)));
        let is_split = !self.decided
            && self.votes.refused() > 0
            && answered.count() >= self.votes.quorum().majority();
        let took = now.saturating_since(self.rule.start);
        is_split.then(|| now + took.max(SHORTEST_SPLIT))
    }

    /// Ends the attempt because that time is over: what the other nodes still say does not matter.
    pub(crate) fn on_split(&mut self, now: Instant) -> Option<AttemptVerdict> {
        self.give_up(FailureKind::Contended, now)
    }

    /// Ends the attempt because its time is over, though nodes that owe an outcome answer others: that is no sign of an
    /// outage.
    pub(crate) fn on_overload(&mut self, now: Instant) -> Option<AttemptVerdict> {
        self.give_up(FailureKind::Overloaded, now)
    }

    /// Ends the attempt because no caller waits for it any more: what it took, or takes later, is given back.
    pub fn on_abandoned(&mut self, now: Instant) -> Option<AttemptVerdict> {
        self.give_up(FailureKind::Abandoned, now)
    }

    fn give_up(&mut self, kind: FailureKind, now: Instant) -> Option<AttemptVerdict> {
        if std::mem::replace(&mut self.decided, true) {
            return None;
        }
        Some(self.rule.fail(&self.votes, kind, now))
    }
}

impl Rule for Winning {
    type Verdict = AttemptVerdict;

    fn decide(&mut self, votes: &Votes, now: Instant) -> Option<AttemptVerdict> {
        if votes.is_won() {
            let deadline = match self.line.filter(|_| self.is_given) {
                Some(grant) => self.timing.given(self.start, grant),
                None => self.timing.deadline(self.start),
            };
            if !self.timing.may_hand_out(deadline, now) {
                return Some(self.fail(votes, FailureKind::Expired, now));
            }
            return Some(AttemptVerdict::Granted(Grant {
                start: self.start,
                won: now,
                deadline,
                settled: settle(votes.counters(), votes.quorum().majority()),
                is_given: self.is_given,
            }));
        }
        if !votes.is_out_of_reach() || self.may_stand(votes) {
            return None;
        }
        // With a majority up, it is the holder that is in the way, even if a few nodes failed too.
        let kind = match (votes.is_majority_down(), votes.quorum_ready_in()) {
            (true, Some(_)) => FailureKind::Quarantined,
            (true, None) => FailureKind::NoQuorum,
            (false, _) => FailureKind::Contended,
        };
        Some(self.fail(votes, kind, now))
    }
}

impl Winning {
    fn stands(&self, votes: &Votes) -> bool {
        let may_win = votes.granted() + votes.in_line() >= votes.quorum().majority();
        self.line.is_some() && votes.in_line() > 0 && may_win
    }

    /// Returns whether it stands in line, or may once the nodes have answered that have not yet.
    fn may_stand(&self, votes: &Votes) -> bool {
        let lost = votes.refused() + votes.failed() - votes.in_line();
        self.line.is_some() && votes.in_line() > 0 && lost <= votes.quorum().tolerated()
    }

    fn fail(&self, votes: &Votes, kind: FailureKind, now: Instant) -> AttemptVerdict {
        AttemptVerdict::Failed(Failure {
            kind,
            quorum_ready_in: votes.quorum_ready_in(),
            give_back: votes.may_hold().collect(),
            majority_free_at: votes.majority_free_in().map(|free_in| now + free_in),
            took: now.saturating_since(self.start),
        })
    }
}

/// Nodes that answer at once are not taken for slow because of the machine's own unrest.
const SHORTEST_SPLIT: Duration = Duration::from_millis(1);
