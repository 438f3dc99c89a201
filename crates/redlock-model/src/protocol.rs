//! The seam to `redlock-proto`: whatever it has a function for is decided there.
//!
//! The search explores one of several worlds that differ only in the order of their nodes.
//! A decision must not depend on that order, and so that one which does is found, each is asked for in
//! every rotation of the nodes.

use redlock_proto::{
    Counters, Floor, NodeOutcome, Quorum, RunId, Settled, Survey, Votes, next_counter, settle,
};

use crate::{
    Mutation, Scope,
    state::{Exchange, Node, NodeSet, Standing},
};

/// The protocol's decisions, apart from what a mutation breaks.
#[derive(Debug)]
pub(crate) struct Protocol {
    mutation: Option<Mutation>,
    quorum: Quorum,
    /// The servers, none of which is there twice.
    runs: Vec<RunId>,
    /// By the number of a set of nodes, whether an attempt is won that these nodes granted.
    won: [bool; NodeSet::COUNT],
}

impl Protocol {
    pub(crate) fn new(scope: Scope, mutation: Option<Mutation>) -> Self {
        let quorum = scope.quorum();
        let mut won = [false; NodeSet::COUNT];
        let all: NodeSet = (0..scope.nodes()).collect();
        for set in all.subsets() {
            let mut votes = Votes::new(quorum);
            for node in set.iter() {
                votes.cast(node, NodeOutcome::Granted { counter: 0 });
            }
            won[set.number()] = votes.is_won();
        }
        Self {
            mutation,
            quorum,
            runs: runs(quorum),
            won,
        }
    }

    pub(crate) fn breaks(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    /// Whether these nodes are enough.
    pub(crate) fn is_won(&self, nodes: NodeSet) -> bool {
        self.won[nodes.number()]
    }

    /// Whether what this node grants and confirms counts.
    pub(crate) fn counts(&self, node: &Node) -> bool {
        node.standing == Standing::Voting || self.breaks(Mutation::QuarantinedVotes)
    }

    /// Whether a vote with this counter still counts once the client has settled on this token.
    pub(crate) fn joins(&self, counter: u8, token: u8) -> bool {
        counter <= token || self.breaks(Mutation::LateVoteUnbounded)
    }

    /// What a node's counter becomes when it grants.
    pub(crate) fn grant(&self, node: &Node, proposal: u8) -> u64 {
        match self.mutation {
            Some(Mutation::NoIncrement) => node.known().max(proposal).into(),
            _ => next_counter(node.counter.into(), node.floor.into(), proposal.into()),
        }
    }

    /// What an attempt may conclude from these votes: its token, and where that must be written back.
    ///
    /// `conclude` may be told the same more than once.
    pub(crate) fn settle(
        &self,
        counted: NodeSet,
        at: &[Exchange],
        mut conclude: impl FnMut(u64, Option<NodeSet>),
    ) {
        let mut votes = [(0, 0); Scope::MAX_NODES];
        let mut count = 0;
        for node in counted.iter() {
            if let Exchange::Vote(counter) = at[node] {
                votes[count] = (node, counter.into());
                count += 1;
            }
        }
        let votes = &mut votes[..count];
        for _ in 0..count {
            votes.rotate_left(1);
            let (mut token, mut write_back) =
                match settle(votes.iter().copied(), self.quorum.majority()) {
                    Settled::Agreed(counter) => (counter, None),
                    Settled::WriteBack { counter, nodes } => {
                        let all = 0..self.quorum.nodes();
                        let there = nodes.into_iter().filter(|node| all.contains(node));
                        (counter, Some(there.collect()))
                    }
                };
            match self.mutation {
                Some(Mutation::NoWriteBack) => write_back = None,
                Some(Mutation::WriteBackUncounted) if write_back.is_some() => {
                    write_back = Some((0..self.quorum.nodes()).collect());
                }
                Some(Mutation::MinimumToken) => {
                    token = votes.iter().map(|(_, counter)| *counter).min().unwrap_or(0);
                }
                _ => {}
            }
            conclude(token, write_back);
        }
    }

    /// The floor that a node may take, by what was read on its behalf.
    ///
    /// `conclude` may be told the same more than once.
    pub(crate) fn floor(&self, number: usize, node: &Node, mut conclude: impl FnMut(u64)) {
        let nodes = self.quorum.nodes();
        for turn in 0..nodes {
            let place = |node: usize| (node + turn) % nodes;
            let mut survey = Survey::start(self.quorum, place(number));
            for (of, reading) in node.readings[..nodes].iter().enumerate() {
                if let Some(reading) = reading {
                    let (run, kept) = (self.runs[of].clone(), counters(reading.voting));
                    survey.on_reading(place(of), run, kept, reading.known.into());
                }
            }
            match survey.floor() {
                Some(Floor::Known(floor)) => conclude(floor),
                Some(Floor::Degraded(floor)) if self.breaks(Mutation::DegradedFloor) => {
                    conclude(floor);
                }
                _ => {}
            }
        }
    }
}

/// One run of a server for each node.
pub(crate) fn runs(quorum: Quorum) -> Vec<RunId> {
    let nodes = 0..quorum.nodes();
    nodes
        .map(|node| RunId::from(node.to_string().as_str()))
        .collect()
}

/// What a node's mark says of its counters.
pub(crate) const fn counters(votes: bool) -> Counters {
    if votes {
        Counters::Kept
    } else {
        Counters::Lost
    }
}
