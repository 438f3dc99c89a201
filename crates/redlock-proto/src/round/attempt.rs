use std::time::Duration;

use super::{Ballot, Rule};
use crate::{GiveBack, Instant, Quorum, Settled, Timing, Vote, Votes, settle};

/// One round in which nodes are asked for a key under a fresh owner: all at once, or a majority first and the others
/// when it does not grant.
///
/// ```
/// # use redlock_proto::*;
/// # use std::{num::NonZeroUsize, time::Duration};
/// let quorum = Quorum::of(NonZeroUsize::new(3).unwrap());
/// let timing = Timing::new(Duration::from_secs(10), 0.01, Duration::from_secs(1)).unwrap();
/// let at = |ms| Instant::from_origin(Duration::from_millis(ms));
///
/// let mut attempt = Attempt::start(quorum, timing, at(0));
/// let granted = NodeOutcome::Granted { counter: 7 };
/// assert_eq!(attempt.on_outcome(0, granted, at(1)), None);
/// let Some(AttemptVerdict::Granted(grant)) = attempt.on_outcome(2, granted, at(3)) else {
///     panic!("two of three are a majority");
/// };
/// assert_eq!(grant.deadline, at(9_798));
/// assert_eq!(grant.settled, Settled::Agreed(7));
/// ```
pub type Attempt = Ballot<Winning>;

/// The rule of an [`Attempt`].
#[derive(Debug)]
pub struct Winning {
    timing: Timing,
    start: Instant,
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
    /// The time up to which the lease is valid.
    pub deadline: Instant,
    /// The token that follows from the counters of the votes.
    pub settled: Settled,
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
        Self::new(quorum, Winning { timing, start: now })
    }

    /// Returns the lengths of time of the lease.
    pub const fn timing(&self) -> Timing {
        self.rule.timing
    }

    /// Asks these nodes first, and the others only if they are [too few](Self::widen).
    ///
    /// A node that is held back is, for every promise, one whose request was lost on its way.
    #[must_use]
    pub fn asking(mut self, first: impl Iterator<Item = usize>) -> Self {
        self.votes.ask_first(first);
        self
    }

    /// Returns whether a majority is still possible, and only with nodes that were held back.
    pub fn needs_more(&self) -> bool {
        !self.decided && self.votes.are_too_few()
    }

    /// Asks all nodes from now on; returns the nodes that were held back, to be sent the same request.
    ///
    /// Once the attempt is decided, their votes are late ones.
    pub fn widen(&mut self) -> Vec<usize> {
        self.votes.ask_all()
    }

    /// Returns up to when the attempt waits for the nodes that have not answered, if another is known to be in the way.
    ///
    /// An attempt that has split the votes with another keeps both from a majority for as long as it waits.
    /// So once as many nodes have answered as make a majority, the others have as long as those took.
    pub fn split_until(&self, now: Instant) -> Option<Instant> {
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
    pub fn on_split(&mut self, now: Instant) -> Option<AttemptVerdict> {
        self.give_up(FailureKind::Contended, now)
    }

    /// Ends the attempt because its time is over, though nodes that owe an outcome answer others: that is no sign of an
    /// outage.
    pub fn on_overload(&mut self, now: Instant) -> Option<AttemptVerdict> {
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
            let deadline = self.timing.deadline(self.start);
            if !self.timing.may_hand_out(deadline, now) {
                return Some(self.fail(votes, FailureKind::Expired, now));
            }
            return Some(AttemptVerdict::Granted(Grant {
                start: self.start,
                deadline,
                settled: settle(votes.counters(), votes.quorum().majority()),
            }));
        }
        if !votes.is_out_of_reach() {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NodeOutcome;
    use std::num::NonZeroUsize;

    const GRANTED: NodeOutcome = NodeOutcome::Granted { counter: 7 };
    const HELD: NodeOutcome = NodeOutcome::Refused {
        remaining: Some(Duration::from_secs(1)),
    };

    fn ms(ms: u64) -> Instant {
        Instant::from_origin(Duration::from_millis(ms))
    }

    fn attempt(nodes: usize) -> Attempt {
        let quorum = Quorum::of(NonZeroUsize::new(nodes).unwrap());
        let timing = Timing::new(Duration::from_secs(1), 0.01, Duration::from_millis(100)).unwrap();
        Attempt::start(quorum, timing, ms(0))
    }

    /// Feeds outcomes that must not decide, then one that must.
    fn decided(
        attempt: &mut Attempt,
        before: &[(usize, NodeOutcome)],
        (node, last, at): (usize, NodeOutcome, u64),
    ) -> AttemptVerdict {
        for (node, outcome) in before {
            assert_eq!(attempt.on_outcome(*node, *outcome, ms(1)), None);
        }
        attempt
            .on_outcome(node, last, ms(at))
            .expect("this outcome decides")
    }

    fn nodes(give_back: &[GiveBack]) -> Vec<usize> {
        give_back.iter().map(|back| back.node).collect()
    }

    fn failure(verdict: AttemptVerdict) -> Failure {
        match verdict {
            AttemptVerdict::Failed(failure) => failure,
            AttemptVerdict::Granted(grant) => panic!("granted until {}", grant.deadline),
        }
    }

    // Shows: T1.1.
    #[test]
    fn s01_a_majority_after_the_ttl_is_refused_and_freed() {
        let granted = [(0, GRANTED)];
        let late = decided(&mut attempt(3), &granted, (1, GRANTED, 879));
        let late = failure(late);
        assert_eq!(
            (late.kind, nodes(&late.give_back)),
            (FailureKind::Expired, vec![0, 1, 2])
        );

        let in_time = decided(&mut attempt(3), &granted, (1, GRANTED, 878));
        let grant = Grant {
            start: ms(0),
            deadline: ms(978),
            settled: Settled::Agreed(7),
        };
        assert_eq!(in_time, AttemptVerdict::Granted(grant));
    }

    #[test]
    fn l01_a_hung_minority_is_not_waited_for() {
        let granted = [(4, GRANTED), (0, GRANTED)];
        let verdict = decided(&mut attempt(5), &granted, (2, GRANTED, 1));
        assert!(matches!(verdict, AttemptVerdict::Granted(_)));
    }

    #[test]
    fn l02_a_dead_minority_does_not_fail_the_attempt() {
        let before = [(0, NodeOutcome::NotExecuted), (1, GRANTED)];
        let verdict = decided(&mut attempt(3), &before, (2, GRANTED, 1));
        assert!(matches!(verdict, AttemptVerdict::Granted(_)));
    }

    // Shows: T1.2.
    #[test]
    fn l04_a_failed_attempt_frees_what_it_took_before_the_next() {
        let mut attempt = attempt(5);
        let before = [(0, GRANTED), (1, HELD), (2, NodeOutcome::NotExecuted)];
        let failure = failure(decided(&mut attempt, &before, (3, HELD, 2)));
        // Node 4 has not answered yet, so it may still grant.
        assert_eq!(nodes(&failure.give_back), [0, 4]);
        assert_eq!(failure.kind, FailureKind::Contended);
        assert_eq!(attempt.on_outcome(4, GRANTED, ms(3)), None);
    }

    #[test]
    fn too_few_nodes_up_is_no_quorum_whoever_holds_the_key() {
        let contended = decided(
            &mut attempt(4),
            &[(0, HELD)],
            (1, NodeOutcome::NotExecuted, 1),
        );
        assert_eq!(failure(contended).kind, FailureKind::Contended);

        let mut silent = attempt(4);
        assert_eq!(silent.on_outcome(0, GRANTED, ms(1)), None);
        assert_eq!(silent.on_outcome(1, NodeOutcome::NotExecuted, ms(1)), None);
        let silent = failure(silent.on_time_limit(ms(50)).expect("the limit decides"));
        assert_eq!(
            (silent.kind, nodes(&silent.give_back)),
            (FailureKind::NoQuorum, vec![0, 2, 3])
        );
    }

    // Shows: T5.1.
    #[test]
    fn l03_an_abandoned_attempt_frees_what_it_took_and_what_it_may_take() {
        let mut attempt = attempt(3);
        assert_eq!(attempt.on_outcome(0, HELD, ms(1)), None);
        assert_eq!(attempt.on_outcome(1, GRANTED, ms(1)), None);
        let failure = failure(attempt.on_abandoned(ms(2)).expect("nobody waits"));
        assert_eq!(
            (failure.kind, nodes(&failure.give_back)),
            (FailureKind::Abandoned, vec![1, 2])
        );
        assert_eq!(attempt.on_abandoned(ms(3)), None);
    }

    // Shows: T5.4.
    #[test]
    fn s28_an_owner_whose_request_may_be_anywhere_is_tombstoned() {
        let mut attempt = attempt(5);
        let before = [(0, GRANTED), (1, NodeOutcome::Unknown), (2, HELD)];
        let failure = failure(decided(&mut attempt, &before, (3, HELD, 2)));
        let tombstone = |node, tombstone| GiveBack { node, tombstone };
        // Node 4 has its request on the connection that the release takes too.
        assert_eq!(
            failure.give_back,
            [tombstone(0, false), tombstone(1, true), tombstone(4, false)]
        );
    }

    // Shows: L1.1.
    #[test]
    fn s15_what_a_quarantined_node_grants_is_no_vote() {
        let ready_in = Some(Duration::from_secs(9));
        let quarantined = NodeOutcome::NotAVote { ready_in };
        let before = [(0, GRANTED), (1, quarantined)];
        let failure = failure(decided(&mut attempt(3), &before, (2, quarantined, 2)));
        assert_eq!(failure.kind, FailureKind::Quarantined);
        assert_eq!(failure.quorum_ready_in, ready_in);
        assert_eq!(nodes(&failure.give_back), [0, 1, 2]);
    }
}
