use std::{collections::VecDeque, time::Duration};

use crate::{Instant, Outcome, Quorum, Timing, Votes};

/// One round in which every node is asked, at once, for a key under a fresh owner.
///
/// The driver reads its clock, starts the attempt with that reading, and only then sends anything.
/// It feeds back what becomes of each request and does what [`next_action`](Self::next_action) says
/// until that is empty.
///
/// ```
/// # use redlock_proto::*;
/// # use std::{num::NonZeroUsize, time::Duration};
/// let quorum = Quorum::of(NonZeroUsize::new(3).unwrap());
/// let timing = Timing::new(Duration::from_secs(10), 0.01, Duration::from_secs(1)).unwrap();
/// let at = |ms| Instant::from_origin(Duration::from_millis(ms));
///
/// let mut attempt = Attempt::start(quorum, timing, at(0));
/// attempt.on_outcome(0, Outcome::Granted, at(1));
/// assert_eq!(attempt.next_action(), None);
/// attempt.on_outcome(2, Outcome::Granted, at(3));
/// let Some(AttemptAction::Grant(grant)) = attempt.next_action() else { panic!() };
/// assert_eq!(grant.deadline, at(9_798));
/// ```
#[derive(Debug)]
pub struct Attempt {
    timing: Timing,
    start: Instant,
    votes: Votes,
    state: State,
    actions: VecDeque<AttemptAction>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    Undecided,
    Granted,
    Failed,
}

/// What the driver must do next for an [`Attempt`].
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must handle every action")]
pub enum AttemptAction {
    /// Hand out the lease.
    Grant(Grant),
    /// Send a release to this node, behind the acquire and in order with it.
    Release {
        /// The node.
        node: usize,
    },
    /// Tell the caller, or try again later.
    Fail(Failure),
}

/// A lease that was won.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Grant {
    /// When the attempt was started.
    pub start: Instant,
    /// Up to when the lease is valid.
    pub deadline: Instant,
}

/// An attempt that won nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Failure {
    /// Why.
    pub kind: FailureKind,
    /// The earliest moment at which the remaining times that nodes reported allow a majority;
    /// `None` if too few nodes reported one.
    pub majority_free_at: Option<Instant>,
    /// How long the attempt took to be decided.
    pub took: Duration,
}

/// Why an [`Attempt`] failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum FailureKind {
    /// Enough nodes are up; others hold the key on too many of them.
    Contended,
    /// Too few nodes gave a usable answer, whoever holds the key.
    NoQuorum,
    /// A majority granted, too late to leave the minimum validity.
    Expired,
    /// The caller went away.
    Abandoned,
}

impl Attempt {
    /// An attempt whose requests are sent after `now`.
    pub fn start(quorum: Quorum, timing: Timing, now: Instant) -> Self {
        Self {
            timing,
            start: now,
            votes: Votes::new(quorum),
            state: State::Undecided,
            actions: VecDeque::new(),
        }
    }

    /// When the attempt was started.
    pub const fn started(&self) -> Instant {
        self.start
    }

    /// A node's outcome became known, at `now`.
    ///
    /// `now` is read after the outcome was received, so that a client that was paused in between
    /// finds its lease expired.
    /// Outcomes of a node that has one, and outcomes after the decision, are not counted.
    pub fn on_outcome(&mut self, node: usize, outcome: Outcome, now: Instant) {
        if self.state != State::Undecided || !self.votes.cast(node, outcome) {
            return;
        }
        self.decide(now);
    }

    /// The time limit of the attempt was reached: what has not come counts as unknown.
    pub fn on_time_limit(&mut self, now: Instant) {
        if self.state != State::Undecided {
            return;
        }
        self.votes.close();
        self.decide(now);
    }

    /// Nobody waits for the attempt any more: whatever it took, or takes later, is given back.
    pub fn on_abandoned(&mut self, now: Instant) {
        if self.state == State::Undecided {
            self.fail(FailureKind::Abandoned, now);
        }
    }

    /// What to do next, if there is something.
    pub fn next_action(&mut self) -> Option<AttemptAction> {
        self.actions.pop_front()
    }

    /// The votes counted so far.
    pub const fn votes(&self) -> &Votes {
        &self.votes
    }

    /// The votes that were counted, for the lease that follows.
    pub fn into_votes(self) -> Votes {
        self.votes
    }

    fn decide(&mut self, now: Instant) {
        if self.votes.is_won() {
            let deadline = self.timing.deadline(self.start);
            if self.timing.may_hand_out(deadline, now) {
                self.state = State::Granted;
                self.actions.push_back(AttemptAction::Grant(Grant {
                    start: self.start,
                    deadline,
                }));
            } else {
                self.fail(FailureKind::Expired, now);
            }
        } else if self.votes.is_out_of_reach() {
            // With a majority up, it is the holder that is in the way, even if a few nodes failed too.
            if self.votes.is_majority_down() {
                self.fail(FailureKind::NoQuorum, now);
            } else {
                self.fail(FailureKind::Contended, now);
            }
        }
    }

    fn fail(&mut self, kind: FailureKind, now: Instant) {
        self.state = State::Failed;
        // Partial grants are freed before anything else, so that split votes dissolve, and so that
        // the next attempt is not refused by the leftovers of this one.
        let releases = self
            .votes
            .may_hold()
            .map(|node| AttemptAction::Release { node });
        self.actions.extend(releases);
        self.actions.push_back(AttemptAction::Fail(Failure {
            kind,
            majority_free_at: self.votes.majority_free_in().map(|free_in| now + free_in),
            took: now.saturating_since(self.start),
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroUsize;

    const HELD: Outcome = Outcome::Refused {
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

    fn actions(attempt: &mut Attempt) -> Vec<AttemptAction> {
        std::iter::from_fn(|| attempt.next_action()).collect()
    }

    fn released(actions: &[AttemptAction]) -> Vec<usize> {
        let nodes = actions.iter().filter_map(|action| match action {
            AttemptAction::Release { node } => Some(*node),
            _ => None,
        });
        nodes.collect()
    }

    fn failure(actions: &[AttemptAction]) -> Failure {
        match actions.last() {
            Some(AttemptAction::Fail(failure)) => *failure,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn s01_a_majority_after_the_ttl_is_refused_and_freed() {
        let mut late = attempt(3);
        late.on_outcome(0, Outcome::Granted, ms(10));
        late.on_outcome(1, Outcome::Granted, ms(879));
        let actions = actions(&mut late);
        assert_eq!(failure(&actions).kind, FailureKind::Expired);
        assert_eq!(released(&actions), [0, 1, 2]);

        let mut in_time = attempt(3);
        in_time.on_outcome(0, Outcome::Granted, ms(10));
        in_time.on_outcome(1, Outcome::Granted, ms(878));
        let grant = Grant {
            start: ms(0),
            deadline: ms(978),
        };
        assert_eq!(in_time.next_action(), Some(AttemptAction::Grant(grant)));
    }

    #[test]
    fn l01_a_hung_minority_is_not_waited_for() {
        let mut attempt = attempt(5);
        for node in [4, 0, 2] {
            assert_eq!(attempt.next_action(), None);
            attempt.on_outcome(node, Outcome::Granted, ms(1));
        }
        assert!(matches!(
            attempt.next_action(),
            Some(AttemptAction::Grant(_))
        ));
    }

    #[test]
    fn l02_a_dead_minority_does_not_fail_the_attempt() {
        let mut attempt = attempt(3);
        attempt.on_outcome(0, Outcome::NotExecuted, ms(1));
        attempt.on_outcome(1, Outcome::Granted, ms(1));
        attempt.on_outcome(2, Outcome::Granted, ms(1));
        assert!(matches!(
            attempt.next_action(),
            Some(AttemptAction::Grant(_))
        ));
    }

    #[test]
    fn l04_a_failed_attempt_frees_what_it_took_before_the_next() {
        let mut attempt = attempt(5);
        attempt.on_outcome(0, Outcome::Granted, ms(1));
        attempt.on_outcome(1, HELD, ms(1));
        attempt.on_outcome(2, Outcome::NotExecuted, ms(1));
        attempt.on_outcome(3, HELD, ms(2));
        let actions = actions(&mut attempt);
        // Node 4 has not answered yet, so it may still grant.
        assert_eq!(released(&actions), [0, 4]);
        assert_eq!(failure(&actions).kind, FailureKind::Contended);
        attempt.on_outcome(4, Outcome::Granted, ms(3));
        assert_eq!(attempt.next_action(), None);
    }

    #[test]
    fn too_few_nodes_up_is_no_quorum_whoever_holds_the_key() {
        let mut attempt = attempt(4);
        attempt.on_outcome(0, HELD, ms(1));
        attempt.on_outcome(1, Outcome::NotExecuted, ms(1));
        let contended = actions(&mut attempt);
        assert_eq!(failure(&contended).kind, FailureKind::Contended);

        let mut attempt = self::attempt(4);
        attempt.on_outcome(0, Outcome::Granted, ms(1));
        attempt.on_outcome(1, Outcome::NotExecuted, ms(1));
        attempt.on_time_limit(ms(50));
        let actions = actions(&mut attempt);
        assert_eq!(failure(&actions).kind, FailureKind::NoQuorum);
        assert_eq!(released(&actions), [0, 2, 3]);
    }

    #[test]
    fn l03_an_abandoned_attempt_frees_what_it_took_and_what_it_may_take() {
        let mut attempt = attempt(3);
        attempt.on_outcome(0, HELD, ms(1));
        attempt.on_outcome(1, Outcome::Granted, ms(1));
        attempt.on_abandoned(ms(2));
        let actions = actions(&mut attempt);
        assert_eq!(released(&actions), [1, 2]);
        assert_eq!(failure(&actions).kind, FailureKind::Abandoned);
        attempt.on_abandoned(ms(3));
        assert_eq!(attempt.next_action(), None);
    }
}
