//! The votes of nodes, by their marks, their clocks and what they are.

use std::{sync::Arc, time::Duration};

use super::{NodeSession, NodeState, Nodes};
use crate::{
    ClockReading, Counters, Instant, MarkState, NodeTime, NotAVote, Quarantine, RunId, ServerInfo,
    Standing,
};

impl Nodes {
    /// Takes in where a node stands, in answer to what was sent at `sent` and seen at `received`.
    ///
    /// Returns whether its clock has gone ahead by more than `step` since leases were looked at.
    pub(in super::super) fn on_standing(
        &mut self,
        node: usize,
        standing: Standing,
        sent: Instant,
        received: Instant,
        step: Duration,
    ) -> bool {
        let votes = standing.state == MarkState::Voting;
        let session = &mut self.nodes[node].session;
        if !matches!(standing.state, MarkState::Aged { .. }) {
            session.trouble = None;
        }
        let has_voted = session.mark.replace(standing.state) == Some(MarkState::Voting);
        if session.run.as_ref() != Some(&standing.run) {
            // Another server answers, or another run of it, perhaps over the same connection.
            let server_info = &mut session.server_info;
            server_info.take_if(|server_info| server_info.run != standing.run);
            self.on_run(node, standing.run.clone());
        } else if votes != has_voted {
            self.forget_twins();
        }
        self.note_twins(&standing.run);
        // The clock of a server that is there twice would be a majority of its own.
        if self.same_server(node).is_none() {
            let reading = ClockReading {
                time: standing.time,
                sent,
                received,
            };
            self.clocks.note(node, &standing.run, reading);
        }
        self.clocks.is_news(node, step)
    }

    /// Takes in what a node said that it is.
    pub(in super::super) fn on_server_info(&mut self, node: usize, server_info: ServerInfo) {
        let run = server_info.run.clone();
        self.nodes[node].session.server_info = Some(server_info);
        self.on_run(node, run);
    }

    /// Takes in which run of a server a node is.
    fn on_run(&mut self, node: usize, run: RunId) {
        for other in self.all() {
            let others = self.nodes[other].session.run.as_ref();
            if other != node && others.is_some_and(|others| *others != run) {
                self.nodes[other].seen_apart_from.insert(node);
                self.nodes[node].seen_apart_from.insert(other);
            }
        }
        self.nodes[node].session.run = Some(run);
        self.forget_twins();
    }

    /// Returns whether a node has not said yet what it is.
    pub(in super::super) fn is_unexamined(&self, node: usize) -> bool {
        self.nodes[node].session.server_info.is_none()
    }

    /// Returns why no node may be let out of its quarantine, if a node remembers clients with longer leases than this
    /// one's:
    /// the quarantine was not for those.
    pub(in super::super) fn longer_policy(&self) -> Option<Arc<str>> {
        let ours = self.quarantine.max_ttl();
        let is_longer = |mark: &&MarkState| match mark {
            // One that cannot be read may be any.
            MarkState::PolicyMismatch { theirs } => {
                Quarantine::max_ttl_of(theirs).is_none_or(|theirs| theirs > ours)
            }
            _ => false,
        };
        let mut marks = self.nodes.iter().flat_map(|node| &node.session.mark);
        marks.find(is_longer)?;
        Some(LONGER_POLICY.into())
    }

    /// Forgets the clock of each node that is the same server as another, except for the one that votes for both.
    fn forget_twins(&mut self) {
        for node in 0..self.nodes.len() {
            if self.same_server(node).is_some() {
                self.clocks.forget(node);
            }
        }
    }

    /// Notes that a server answers for several nodes while a majority votes, so that no other server is needed there.
    fn note_twins(&mut self, run: &RunId) {
        let is_voter = |node: &usize| {
            let votes = self.nodes[*node].session.mark == Some(MarkState::Voting);
            votes && self.same_server(*node).is_none()
        };
        let answer_by_it = |node: &NodeState| node.session.run.as_ref() == Some(run);
        let is_twin = self.nodes.iter().filter(|node| answer_by_it(node)).count() > 1;
        if is_twin
            && !self.twins.contains(run)
            && self.all().filter(is_voter).count() >= self.quorum.majority()
        {
            self.twins.push(run.clone());
        }
    }

    /// Notes that a node was asked to vote, and does.
    pub(in super::super) fn on_opened(&mut self, node: usize) {
        let session = &mut self.nodes[node].session;
        session.mark = Some(MarkState::Voting);
        session.trouble = None;
        self.forget_twins();
    }

    /// Takes in that a node failed when it was examined or asked to vote.
    pub(in super::super) fn on_trouble(&mut self, node: usize, reason: Arc<str>) {
        self.nodes[node].session.trouble = Some(reason);
    }

    /// Returns what the node's clock showed in its last answer, if it agrees with those of a majority.
    pub(in super::super) fn right_time(&self, node: usize, now: Instant) -> Option<NodeTime> {
        self.clocks.agrees(node, now).then_some(())?;
        self.clocks.time(node)
    }

    /// Returns whether the node votes in its namespace, as far as its mark goes.
    pub(in super::super) fn mark(&self, node: usize) -> Option<&MarkState> {
        self.nodes[node].session.mark.as_ref()
    }

    /// Returns whether the node has the counters that it has stored, as far as its last answers tell.
    ///
    /// A clock that is wrong changes nothing of that.
    pub(in super::super) fn counters(&self, node: usize) -> Counters {
        let session = &self.nodes[node].session;
        let (Some(server), Some(mark)) = (&session.server_info, &session.mark) else {
            return Counters::Unknown;
        };
        // A copy says nothing of the server that nodes have given votes to.
        if !server.is_master {
            return Counters::Unknown;
        }
        // What else keeps it from voting takes no counter from it.
        let forgets = server.is_cluster || server.forgets(&self.quarantine).is_some();
        if *mark == MarkState::Voting && !forgets {
            Counters::Kept
        } else {
            Counters::Lost
        }
    }

    /// Returns which run of a server the node is, if it has said so.
    pub(in super::super) fn run(&self, node: usize) -> Option<&RunId> {
        self.nodes[node].session.run.as_ref()
    }

    /// Returns the node that votes for the server of this one, if that is another node.
    ///
    /// Of the nodes that are one server, it is the first whose mark says that it votes.
    /// If no mark says so, it is the first of them.
    /// Each vote of a Cluster has a mark of its own, also where several are on one server.
    pub(in super::super) fn same_server(&self, node: usize) -> Option<usize> {
        let run = self.nodes.get(node)?.session.run.as_ref()?;
        let is_same = |other: &NodeState| other.session.run.as_ref() == Some(run);
        let votes = |other: &NodeState| other.session.mark == Some(MarkState::Voting);
        let mut nodes = self.nodes.iter();
        let voter = nodes.position(|other| votes(other) && is_same(other));
        let of = voter.or_else(|| self.nodes.iter().position(is_same))?;
        (of != node).then_some(of)
    }

    /// Returns whether a server of its own may be known for a node that is the same server as another now: the client has
    /// seen no majority beside this server.
    ///
    /// A vote of a Cluster has a mark and counters of its own, whichever server has them.
    pub(in super::super) fn may_be_another(&self, node: usize) -> bool {
        if self.quarantine.follows_failovers() {
            return false;
        }
        let run = self.nodes[node].session.run.as_ref();
        let mut nodes = self.nodes.iter().enumerate();
        let is_twin =
            nodes.any(|(other, state)| other != node && state.session.run.as_ref() == run);
        let is_known = run.is_some_and(|run| self.twins.contains(run));
        self.has_moved(node) || is_twin && !is_known
    }

    /// Returns whether a node is the same server as another now, and the client has known the two as different servers.
    ///
    /// Then its address may lead to its own server again.
    pub(in super::super) fn has_moved(&self, node: usize) -> bool {
        let NodeState {
            session: NodeSession { run, .. },
            seen_apart_from,
            ..
        } = &self.nodes[node];
        let mut others = seen_apart_from.iter();
        run.is_some() && others.any(|other| self.nodes[*other].session.run == *run)
    }

    /// Returns what the nodes' wall clocks show, if a majority's agree.
    pub(in super::super) fn common_time(&self, now: Instant) -> Option<NodeTime> {
        self.clocks.middle(now)
    }

    /// Returns what the node's wall clock shows, as far as it was heard lately.
    pub(in super::super) fn node_time(&self, node: usize, now: Instant) -> Option<NodeTime> {
        self.clocks.shown(node, now)
    }

    /// Returns whether what the node grants in its last answer is a vote, as far as its clock is right.
    ///
    /// Whether that is so is decided with all the votes of a round; see [`Votes`](crate::Votes).
    ///
    /// # Errors
    ///
    /// Why it is not.
    pub(in super::super) fn vote_by_mark(&self, node: usize) -> Result<(), NotAVote> {
        self.vote_if(node, || Ok(()))
    }

    /// Returns whether the node votes, as far as its last answers tell.
    ///
    /// # Errors
    ///
    /// Why it does not.
    pub(in super::super) fn vote(&self, node: usize, now: Instant) -> Result<(), NotAVote> {
        self.vote_if(node, || {
            if self.clocks.agrees(node, now) {
                Ok(())
            } else if self.clocks.are_comparable(now) {
                Err(NotAVote::Clock)
            } else {
                Err(NotAVote::Alone)
            }
        })
    }

    /// Returns whether the node votes if it is `in_time`.
    fn vote_if(
        &self,
        node: usize,
        in_time: impl FnOnce() -> Result<(), NotAVote>,
    ) -> Result<(), NotAVote> {
        let session = &self.nodes[node].session;
        let Some(server_info) = &session.server_info else {
            // That it is quarantined says more, and lasts longer.
            return self.quarantine_of(node).and(Err(NotAVote::Unexamined));
        };
        // A replica has no state of its own.
        if let Some(unfit) = server_info.unfit(&self.quarantine) {
            return Err(NotAVote::Unfit(unfit));
        }
        if let Some(of) = self.same_server(node) {
            return Err(NotAVote::SameServer { of });
        }
        match session.mark.as_ref().ok_or(NotAVote::Unexamined)? {
            MarkState::PolicyMismatch { theirs } => Err(NotAVote::PolicyMismatch {
                theirs: Arc::clone(theirs),
                ours: self.quarantine.to_wire().into(),
            }),
            // The clock comes first: with a wrong one, the end of the quarantine changes nothing.
            MarkState::Quarantined { .. } | MarkState::Aged { .. } | MarkState::Voting => {
                in_time().and_then(|()| self.quarantine_of(node))
            }
        }
    }

    /// Returns whether the node is in quarantine.
    fn quarantine_of(&self, node: usize) -> Result<(), NotAVote> {
        let session = &self.nodes[node].session;
        let ready_in = match &session.mark {
            Some(MarkState::Quarantined { ready_in, .. }) => *ready_in,
            Some(MarkState::Aged { .. }) => Duration::ZERO,
            Some(MarkState::Voting) => return Ok(()),
            Some(MarkState::PolicyMismatch { .. }) | None => return Err(NotAVote::Unexamined),
        };
        match session.trouble.clone() {
            None => Err(NotAVote::Quarantined { ready_in }),
            Some(reason) => Err(NotAVote::Stuck { reason }),
        }
    }
}

/// What an operator can do about it.
const LONGER_POLICY: &str = "another node knows this namespace with a longer max_ttl, whose leases may be valid still; use that max_ttl, or another namespace";
