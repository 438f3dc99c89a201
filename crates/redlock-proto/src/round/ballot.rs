use crate::{ClockReading, Instant, NodeOutcome, Quorum, RunId, Votes};

/// One round in which nodes are asked for something, until it is decided: their votes, and the rule that decides.
///
/// The driver reads its clock, starts the round with that reading, and only then sends anything.
/// It feeds back what becomes of each request, with the time at which it saw that.
/// It gets the verdict once, as soon as there is one.
#[derive(Debug)]
pub struct Ballot<R> {
    pub(super) rule: R,
    pub(super) votes: Votes,
    pub(super) decided: bool,
}

/// The rule by which a [`Ballot`] is decided.
pub trait Rule {
    /// The verdict that it comes to.
    type Verdict;

    /// Returns how an outcome counts.
    fn counts(&self, outcome: NodeOutcome) -> NodeOutcome {
        outcome
    }

    /// Returns the verdict if these votes decide, at `now`.
    fn decide(&mut self, votes: &Votes, now: Instant) -> Option<Self::Verdict>;
}

impl<R: Rule> Ballot<R> {
    pub(super) fn new(quorum: Quorum, rule: R) -> Self {
        Self {
            rule,
            votes: Votes::new(quorum),
            decided: false,
        }
    }

    /// Counts an outcome of each node that is not asked.
    pub(super) fn with_others(
        mut self,
        is_asked: impl Fn(usize) -> bool,
        others: NodeOutcome,
    ) -> Self {
        for node in (0..self.votes.quorum().nodes()).filter(|node| !is_asked(*node)) {
            self.votes.cast(node, others);
        }
        self
    }

    /// Counts a node's outcome, which became known at `now`; returns the verdict when this decides the round.
    ///
    /// `now` is read after the outcome was received, so that a client that was paused in between
    /// finds its lease expired.
    /// Outcomes of a node that has one, and outcomes after the decision, are not counted.
    pub fn on_outcome(
        &mut self,
        node: usize,
        outcome: NodeOutcome,
        now: Instant,
    ) -> Option<R::Verdict> {
        let outcome = self.rule.counts(outcome);
        if self.decided || !self.votes.cast(node, outcome) {
            return None;
        }
        self.decide(now)
    }

    /// Ends the round at its time limit: what has not come counts as unknown.
    pub fn on_time_limit(&mut self, now: Instant) -> Option<R::Verdict> {
        if self.decided {
            return None;
        }
        self.votes.close();
        self.decide(now)
    }

    /// Notes a node's clock as its answer showed it, and which run of a server it is: before its outcome.
    pub fn note(&mut self, node: usize, run: RunId, reading: ClockReading) {
        self.votes.note(node, run, reading);
    }

    /// Notes that a node does not vote: before its outcome.
    pub fn note_no_vote(&mut self, node: usize) {
        self.votes.note_no_vote(node);
    }

    /// Returns the votes counted so far.
    pub const fn votes(&self) -> &Votes {
        &self.votes
    }

    pub(super) fn decide(&mut self, now: Instant) -> Option<R::Verdict> {
        let verdict = self.rule.decide(&self.votes, now)?;
        self.decided = true;
        Some(verdict)
    }
}
