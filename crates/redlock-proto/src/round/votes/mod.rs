use std::time::Duration;

use crate::{ClockReading, GiveBack, NodeOutcome, Quorum, RunId, membership::Agreement};

/// The word of one node in a round so far.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Vote {
    /// It is not asked, unless the others turn out to be too few.
    HeldBack,
    /// Nothing yet.
    Pending,
    /// This, and nothing that comes later changes it.
    Cast(NodeOutcome),
}

/// The votes of one round, one per node.
///
/// Grants count only from the largest group of granting servers whose clocks agree.
/// The readings that came with the grants themselves decide that.
/// Earlier readings of a clock do not matter.
/// Otherwise a client which stood still could take one grant for right by old readings and the next by new ones.
/// Of two nodes that are one server, one counts.
/// A grant that came without a reading counts as it is: this is for drivers that have no clocks of nodes.
///
/// A node votes once, unless it put the caller in line: it may give the key later, and its gift takes the place of that
/// answer.
/// Any other answer after its vote, or after the round was closed, is never counted.
/// A duplicated reply must not make a majority out of one node, nor a late one out of an earlier round.
#[derive(Clone, Debug)]
pub struct Votes {
    quorum: Quorum,
    // invariant: as many as the quorum has nodes
    nodes: Vec<NodeVote>,
}

/// The vote of one node, and what makes it count.
#[derive(Clone, Debug)]
struct NodeVote {
    vote: Vote,
    /// Its clock, as its answer showed it.
    reading: Option<ClockReading>,
    /// Which run of a server it is.
    run: Option<RunId>,
    /// Whether it votes, so that its refusal says that it may grant the key to others.
    votes: bool,
    /// Whether its grant counts, or its refusal as a sign that the key is gone.
    counts: bool,
}

impl NodeVote {
    const NOTHING: Self = Self {
        vote: Vote::Pending,
        reading: None,
        run: None,
        votes: true,
        counts: false,
    };

    const fn granted(&self) -> bool {
        matches!(self.vote, Vote::Cast(NodeOutcome::Granted { .. }))
    }

    const fn refused(&self) -> bool {
        matches!(
            self.vote,
            Vote::Cast(
                NodeOutcome::Refused { .. } | NodeOutcome::InLine { .. } | NodeOutcome::Missing
            )
        )
    }

    const fn in_line(&self) -> bool {
        matches!(self.vote, Vote::Cast(NodeOutcome::InLine { .. }))
    }

    /// Returns whether the node would grant the key to another, or has.
    const fn is_gone(&self) -> bool {
        self.refused() && self.votes
    }
}

impl Votes {
    /// Makes a record without votes.
    pub fn new(quorum: Quorum) -> Self {
        Self {
            quorum,
            nodes: vec![NodeVote::NOTHING; quorum.nodes()],
        }
    }

    /// Asks these nodes only, for now: the others are held back.
    pub(crate) fn ask_first(&mut self, first: impl Iterator<Item = usize>) {
        for entry in &mut self.nodes {
            if entry.vote == Vote::Pending {
                entry.vote = Vote::HeldBack;
            }
        }
        for node in first {
            if let Some(entry) = self.nodes.get_mut(node)
                && entry.vote == Vote::HeldBack
            {
                entry.vote = Vote::Pending;
            }
        }
    }

    /// Asks the nodes that were held back; returns which they are.
    pub fn ask_all(&mut self) -> Vec<usize> {
        let mut asked = Vec::new();
        for (node, entry) in self.nodes.iter_mut().enumerate() {
            if entry.vote == Vote::HeldBack {
                entry.vote = Vote::Pending;
                asked.push(node);
            }
        }
        asked
    }

    /// Returns the vote of a node; `None` if there is no such node.
    pub fn get(&self, node: usize) -> Option<Vote> {
        self.nodes.get(node).map(|entry| entry.vote)
    }

    /// Returns whether nodes are held back.
    pub(crate) fn are_held_back(&self) -> bool {
        self.iter().any(|vote| vote == Vote::HeldBack)
    }

    /// Returns whether nodes were held back, and the nodes that were asked do not suffice.
    ///
    /// They do not if they have failed to grant, or if all of them have answered without making a majority.
    ///
    /// A refusal alone is none of this.
    /// Where one node has the key of another owner, the other nodes that were asked mostly have it too, and the rest
    /// need not be asked.
    pub(crate) fn are_too_few(&self) -> bool {
        let is_pending = self.iter().any(|vote| vote == Vote::Pending);
        self.are_held_back() && (self.failed() > 0 || !is_pending) && !self.is_won()
    }

    /// Notes a node's clock as its answer showed it, and the run of the server, before its vote.
    pub fn note(&mut self, node: usize, run: RunId, reading: ClockReading) {
        if let Some(entry) = self.nodes.get_mut(node)
            && entry.vote == Vote::Pending
        {
            entry.reading = Some(reading);
            entry.run = Some(run);
        }
    }

    /// Notes that a node does not vote, before its answer: what it refuses, it does not grant to others either.
    pub fn note_no_vote(&mut self, node: usize) {
        if let Some(entry) = self.nodes.get_mut(node)
            && entry.vote == Vote::Pending
        {
            entry.votes = false;
        }
    }

    /// Returns the quorum that they are votes of.
    pub const fn quorum(&self) -> Quorum {
        self.quorum
    }

    /// Counts a node's vote; `false` if that node has voted before or does not exist.
    pub fn cast(&mut self, node: usize, outcome: NodeOutcome) -> bool {
        match self.nodes.get_mut(node) {
            Some(entry) if entry.vote == Vote::Pending => {
                entry.vote = Vote::Cast(outcome);
                if entry.granted() {
                    self.count_again(NodeVote::granted);
                } else if entry.is_gone() {
                    self.count_again(NodeVote::is_gone);
                }
                true
            }
            _ => false,
        }
    }

    /// Counts the grant of a node that gave the key to a caller which waited in line there; `false` if it did not wait.
    ///
    /// The message may be here before the answer that the caller waits.
    pub fn give(&mut self, node: usize, counter: u64, run: RunId, reading: ClockReading) -> bool {
        let Some(entry) = self.nodes.get_mut(node) else {
            return false;
        };
        if !entry.in_line() && entry.vote != Vote::Pending {
            return false;
        }
        entry.vote = Vote::Cast(NodeOutcome::Granted { counter });
        entry.reading = Some(reading);
        entry.run = Some(run);
        self.count_again(NodeVote::granted);
        true
    }

    /// Returns the number of nodes where the caller waits in line.
    pub fn in_line(&self) -> usize {
        self.nodes.iter().filter(|entry| entry.in_line()).count()
    }

    /// Makes every node that has not voted one whose outcome is unknown, and every node that was held back one that
    /// has executed nothing.
    pub fn close(&mut self) {
        for entry in &mut self.nodes {
            entry.vote = match entry.vote {
                Vote::HeldBack => Vote::Cast(NodeOutcome::NotExecuted),
                Vote::Pending => Vote::Cast(NodeOutcome::Unknown),
                Vote::Cast(outcome) => Vote::Cast(outcome),
            };
        }
    }

    /// Returns the votes, by node.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Vote> + Clone + '_ {
        self.nodes.iter().map(|entry| entry.vote)
    }

    /// Returns the number of nodes that granted, and whose grant counts.
    pub fn granted(&self) -> usize {
        self.counted(NodeVote::granted)
    }

    /// Returns whether a node granted, and its grant counts.
    pub fn counts(&self, node: usize) -> bool {
        let entry = self.nodes.get(node);
        entry.is_some_and(|entry| entry.granted() && entry.counts)
    }

    /// Returns the number of nodes that refused.
    pub fn refused(&self) -> usize {
        self.nodes.iter().filter(|entry| entry.refused()).count()
    }

    /// Returns the number of nodes that gave no answer that counts, as far as the votes go that have come.
    pub fn failed(&self) -> usize {
        let came = self.count(|vote| matches!(vote, Vote::Cast(_)));
        came - self.refused() - self.granted()
    }

    /// Returns the nodes whose grants count, each with its counter.
    pub fn counters(&self) -> impl Iterator<Item = (usize, u64)> + Clone + '_ {
        let nodes = self.nodes.iter().enumerate();
        nodes.filter_map(|(node, entry)| match entry.vote {
            Vote::Cast(NodeOutcome::Granted { counter }) if entry.counts => Some((node, counter)),
            _ => None,
        })
    }

    /// Returns whether a majority has granted.
    pub fn is_won(&self) -> bool {
        self.granted() >= self.quorum.majority()
    }

    /// Returns whether a majority can no longer grant, whatever is still to come.
    pub fn is_out_of_reach(&self) -> bool {
        self.refused() + self.failed() > self.quorum.tolerated()
    }

    /// Returns whether too few nodes are left that may give a usable answer.
    pub(crate) fn is_majority_down(&self) -> bool {
        self.failed() > self.quorum.tolerated()
    }

    /// Returns whether too many voting nodes lack the key for the others to be a majority.
    ///
    /// They count as another client would count their grants: only while they vote, once for each server, and only
    /// those whose clocks agree.
    /// It does not matter whether they had the key: a node that votes and has it not grants it to another.
    pub fn is_majority_gone(&self) -> bool {
        self.counted(NodeVote::is_gone) > self.quorum.tolerated()
    }

    /// Returns whether [`is_majority_gone`](Self::is_majority_gone) may still become true.
    pub fn may_majority_be_gone(&self) -> bool {
        let pending = self.count(|vote| vote == Vote::Pending);
        let gone = self.nodes.iter().filter(|entry| entry.is_gone()).count();
        pending > 0 && gone + pending > self.quorum.tolerated()
    }

    /// Returns the nodes that may hold what they were asked to take, now or once their request arrives.
    ///
    /// Where the request is still on its way over a connection that stands, a release on that connection follows it.
    /// Where the outcome is unknown, the owner must be tombstoned.
    pub(crate) fn may_hold(&self) -> impl Iterator<Item = GiveBack> + Clone + '_ {
        self.iter()
            .enumerate()
            .filter_map(|(node, vote)| match vote {
                Vote::HeldBack => None,
                Vote::Cast(outcome) if !outcome.may_hold() => None,
                vote => Some(GiveBack {
                    node,
                    tombstone: vote == Vote::Cast(NodeOutcome::Unknown),
                }),
            })
    }

    /// Returns how long until enough of the nodes that are quarantined vote again, if too few do without them.
    ///
    /// `None` if they are not what is missing.
    pub fn quorum_ready_in(&self) -> Option<Duration> {
        let missing = self.failed().checked_sub(self.quorum.tolerated() + 1)? + 1;
        let mut ready_in: Vec<Duration> = self
            .iter()
            .filter_map(|vote| match vote {
                Vote::Cast(NodeOutcome::NotAVote { ready_in }) => ready_in,
                _ => None,
            })
            .collect();
        ready_in.sort_unstable();
        ready_in.get(missing - 1).copied()
    }

    /// Returns how long until the remaining times that nodes reported allow a majority again.
    ///
    /// Nodes that granted count as free, since a failed round frees them, and so do nodes that were held back.
    /// Nodes in quarantine are free when they vote again.
    /// Nodes that gave no answer, or do not vote for another reason, count as never free.
    pub fn majority_free_in(&self) -> Option<Duration> {
        let mut free_in: Vec<Duration> = self
            .iter()
            .filter_map(|vote| match vote {
                Vote::HeldBack | Vote::Cast(NodeOutcome::Granted { .. } | NodeOutcome::Missing) => {
                    Some(Duration::ZERO)
                }
                Vote::Cast(
                    NodeOutcome::Refused { remaining } | NodeOutcome::InLine { remaining },
                ) => remaining,
                Vote::Cast(NodeOutcome::NotAVote { ready_in }) => ready_in,
                _ => None,
            })
            .collect();
        free_in.sort_unstable();
        free_in.get(self.quorum.majority() - 1).copied()
    }

    /// Looks again which of the nodes that say the same count, now that there is one more.
    fn count_again(&mut self, says: fn(&NodeVote) -> bool) {
        for node in 0..self.nodes.len() {
            let entry = &self.nodes[node];
            if !says(entry) {
                continue;
            }
            let twin = |other: &NodeVote| says(other) && other.run == entry.run;
            let is_twin = entry.run.is_some() && self.nodes[..node].iter().any(twin);
            self.nodes[node].counts = !is_twin;
        }
        let own = self
            .nodes
            .iter()
            .filter(|entry| says(entry) && entry.counts);
        let agreement = Agreement::of(own.filter_map(|entry| entry.reading));
        for entry in self.nodes.iter_mut().filter(|entry| says(entry)) {
            let agrees = match (&entry.reading, agreement) {
                (Some(reading), Some(agreement)) => agreement.includes(reading),
                (Some(_), None) => false,
                (None, _) => true,
            };
            entry.counts &= agrees;
        }
    }

    fn counted(&self, says: fn(&NodeVote) -> bool) -> usize {
        let entries = self.nodes.iter();
        entries.filter(|entry| says(entry) && entry.counts).count()
    }

    fn count(&self, counts: impl Fn(Vote) -> bool) -> usize {
        self.iter().filter(|vote| counts(*vote)).count()
    }
}
