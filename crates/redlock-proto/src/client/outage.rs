//! Since when nodes are of no use, and how long an acquisition tries again without a majority.

use super::{Client, Entropy, Now, acquire::Acquisition};
use crate::{Failure, FailureKind, Instant, Outcome, Quorum};

/// Since when the answers of nodes are no votes.
#[derive(Debug)]
pub(super) struct Outage {
    // invariant: one entry per node
    nodes: Vec<Usefulness>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Usefulness {
    /// Since when it is of no use; `None` while it is, as far as is known.
    lost: Option<Instant>,
    /// Whether it voted, by its last standing on this connection.
    votes: bool,
}

impl Outage {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            nodes: vec![Usefulness::default(); nodes],
        }
    }

    /// The connection to a node was lost, or could not be made.
    pub(super) fn on_disconnected(&mut self, node: usize, at: Instant) {
        self.on_standing(node, false, at);
    }

    /// A node said where it stands: whether it votes.
    ///
    /// That it goes on to vote proves nothing: it may fail whatever it is asked for.
    pub(super) fn on_standing(&mut self, node: usize, votes: bool, at: Instant) {
        let Some(known) = self.nodes.get_mut(node) else {
            return;
        };
        match votes {
            true if !known.votes => known.lost = None,
            true => {}
            false => _ = known.lost.get_or_insert(at),
        }
        known.votes = votes;
    }

    /// A node's outcome in an attempt became known.
    pub(super) fn on_outcome(&mut self, node: usize, outcome: Outcome, at: Instant) {
        let Some(known) = self.nodes.get_mut(node) else {
            return;
        };
        match outcome {
            Outcome::Granted { .. } | Outcome::Refused { .. } | Outcome::Missing => {
                known.lost = None;
            }
            Outcome::NotAVote { .. } | Outcome::NotExecuted | Outcome::Unknown => {
                known.lost.get_or_insert(at);
            }
        }
    }

    /// Since when the nodes that are of use are no majority; `None` while they are.
    fn since(&self, quorum: Quorum) -> Option<Instant> {
        let mut lost: Vec<Instant> = self.nodes.iter().filter_map(|node| node.lost).collect();
        lost.sort_unstable();
        lost.get(quorum.tolerated()).copied()
    }
}

impl<E: Entropy> Client<E> {
    /// Whether an acquisition is over because too few nodes are of use, though its wait is not.
    ///
    /// The wait is for another holder.
    /// Without a majority it ends now if nodes have said that they need longer than what is left of it, and else when
    /// the outage has lasted for as long as the acquisition bears with one, whichever attempt saw it begin.
    pub(super) fn gives_nodes_up(
        &self,
        acquisition: &mut Acquisition,
        failure: &Failure,
        now: Now,
    ) -> bool {
        let wait_until = acquisition.request.wait_until;
        let Some(quorum_wait) = acquisition.request.quorum_wait else {
            return false;
        };
        let began = now.clock - failure.took;
        let ready_at = failure
            .quorum_ready_in
            .map(|ready_in| now.clock + ready_in)
            .filter(|ready_at| *ready_at <= wait_until);
        let since = match (failure.kind, ready_at) {
            (FailureKind::NoQuorum | FailureKind::Quarantined, None) => {
                if self.is_quarantined_beyond(wait_until, now) {
                    return true;
                }
                let seen = self.outage.since(self.config.quorum).unwrap_or(began);
                let since = acquisition.outage.get_or_insert(began);
                *since = seen.min(*since);
                *since
            }
            // Nodes vote when they have said so, and a few steps later.
            (FailureKind::Quarantined, Some(ready_at)) => {
                let since = acquisition.outage.get_or_insert(began);
                if ready_at > now.clock {
                    *since = ready_at.max(*since);
                }
                *since
            }
            _ => {
                acquisition.outage = None;
                return false;
            }
        };
        now.clock >= since + quorum_wait
    }

    /// Whether so many nodes are quarantined beyond this moment that the others are no majority.
    fn is_quarantined_beyond(&self, end: Instant, now: Now) -> bool {
        let quorum = self.config.quorum;
        let beyond = (0..quorum.nodes()).filter(|node| {
            let vote = self.electorate.vote(*node, now.clock);
            let ready_in = vote.err().and_then(|reason| reason.ready_in());
            ready_in.is_some_and(|ready_in| now.clock + ready_in > end)
        });
        beyond.count() > quorum.tolerated()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{num::NonZeroUsize, time::Duration};

    fn at(secs: u64) -> Instant {
        Instant::from_origin(Duration::from_secs(secs))
    }

    fn since(outage: &Outage) -> Option<Instant> {
        outage.since(Quorum::of(NonZeroUsize::new(3).unwrap()))
    }

    #[test]
    fn it_begins_when_the_majority_goes_and_ends_when_it_is_back() {
        let mut outage = Outage::new(3);
        outage.on_disconnected(0, at(1));
        assert_eq!(since(&outage), None);
        outage.on_disconnected(2, at(5));
        outage.on_disconnected(0, at(7));
        assert_eq!(since(&outage), Some(at(5)));
        outage.on_disconnected(1, at(8));
        outage.on_standing(2, true, at(9));
        assert_eq!(since(&outage), Some(at(8)));
        outage.on_standing(1, true, at(9));
        assert_eq!(since(&outage), None);
    }

    #[test]
    fn a_node_that_fails_each_request_is_of_no_use_though_it_votes() {
        let mut outage = Outage::new(3);
        for node in 0..2 {
            outage.on_standing(node, true, at(1));
            outage.on_outcome(node, Outcome::NotExecuted, at(2));
            outage.on_standing(node, true, at(3));
        }
        assert_eq!(since(&outage), Some(at(2)));
        outage.on_outcome(0, Outcome::Granted { counter: 1 }, at(4));
        assert_eq!(since(&outage), None);
    }
}
