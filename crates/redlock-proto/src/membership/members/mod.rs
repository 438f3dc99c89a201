#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use crate::{
    ClockReading, Clocks, Counters, Instant, MarkState, NodeTime, NotAVote, Quarantine, Quorum,
    RunId, ServerInfo, Standing,
};

/// The nodes that vote: what is known of each, from its last answer.
#[derive(Clone, Debug)]
pub struct Membership {
    quarantine: Quarantine,
    clocks: Clocks,
    // invariant: one entry per node
    nodes: Vec<Member>,
}

/// A node, as its last answers describe it.
#[derive(Clone, Debug, Default)]
struct Member {
    /// What it is; of the same run of a server as `run`.
    server_info: Option<ServerInfo>,
    run: Option<RunId>,
    state: Option<MarkState>,
    /// What went wrong with its last step out of quarantine.
    trouble: Option<Arc<str>>,
}

impl Membership {
    /// Makes a membership in which nothing is known of any node yet.
    pub fn new(quorum: Quorum, quarantine: Quarantine) -> Self {
        Self {
            quarantine,
            clocks: Clocks::new(quorum),
            nodes: vec![Member::default(); quorum.nodes()],
        }
    }

    /// Takes in where a node stands, in answer to what was sent at `sent` and seen at `received`.
    pub fn on_standing(
        &mut self,
        node: usize,
        standing: Standing,
        sent: Instant,
        received: Instant,
    ) {
        if let Some(known) = self.nodes.get_mut(node)
            && known.run.as_ref() != Some(&standing.run)
        {
            // Another server answers, or another run of it, perhaps over the same connection.
            known.server_info = known
                .server_info
                .take()
                .filter(|server_info| server_info.run == standing.run);
            known.run = Some(standing.run.clone());
            self.forget_twins();
        }
        // The clock of a server that is there twice would be a majority of its own.
        if self.same_server(node).is_none() {
            let reading = ClockReading {
                time: standing.time,
                sent,
                received,
            };
            self.clocks.note(node, &standing.run, reading);
        }
        if let Some(known) = self.nodes.get_mut(node) {
            if !matches!(standing.state, MarkState::Aged { .. }) {
                known.trouble = None;
            }
            known.state = Some(standing.state);
        }
    }

    /// Takes in what a node said that it is.
    pub fn on_server_info(&mut self, node: usize, server_info: ServerInfo) {
        if let Some(known) = self.nodes.get_mut(node) {
            known.run = Some(server_info.run.clone());
            known.server_info = Some(server_info);
        }
        self.forget_twins();
    }

    /// Returns whether a node has not said yet what it is.
    pub(crate) fn is_unexamined(&self, node: usize) -> bool {
        self.nodes
            .get(node)
            .is_some_and(|known| known.server_info.is_none())
    }

    /// Returns why no node may be let out of its quarantine, if a node remembers clients with longer leases than this
    /// one's:
    /// the quarantine was not for those.
    pub(crate) fn longer_policy(&self) -> Option<Arc<str>> {
        let ours = self.quarantine.max_ttl();
        let is_longer = |known: &&Member| match &known.state {
            // One that cannot be read may be any.
            Some(MarkState::PolicyMismatch { theirs }) => {
                Quarantine::max_ttl_of(theirs).is_none_or(|theirs| theirs > ours)
            }
            _ => false,
        };
        self.nodes.iter().find(is_longer)?;
        Some(LONGER_POLICY.into())
    }

    /// Returns what the nodes' clocks say by themselves.
    pub(crate) const fn clocks(&self) -> &Clocks {
        &self.clocks
    }

    /// Returns what the nodes' clocks say by themselves, to add to it.
    pub(crate) const fn clocks_mut(&mut self) -> &mut Clocks {
        &mut self.clocks
    }

    /// Forgets the clock of each node that is the same server as an earlier node.
    fn forget_twins(&mut self) {
        for node in 0..self.nodes.len() {
            if self.same_server(node).is_some() {
                self.clocks.forget(node);
            }
        }
    }

    /// Takes in that the connection to a node was lost: what is behind the next one is unknown.
    pub fn on_disconnected(&mut self, node: usize) {
        self.clocks.forget(node);
        if let Some(known) = self.nodes.get_mut(node) {
            *known = Member::default();
        }
    }

    /// Takes in that a node was asked to vote, and does.
    pub fn on_opened(&mut self, node: usize) {
        if let Some(known) = self.nodes.get_mut(node) {
            known.state = Some(MarkState::Voting);
            known.trouble = None;
        }
    }

    /// Takes in that a node failed when it was examined or asked to vote.
    pub(crate) fn on_trouble(&mut self, node: usize, reason: Arc<str>) {
        if let Some(known) = self.nodes.get_mut(node) {
            known.trouble = Some(reason);
        }
    }

    /// Returns what the node's clock showed in its last answer, if it agrees with those of a majority.
    pub(crate) fn right_time(&self, node: usize, now: Instant) -> Option<NodeTime> {
        self.clocks.agrees(node, now).then_some(())?;
        self.clocks.time(node)
    }

    /// Returns whether the node votes in its namespace, as far as its mark goes.
    pub fn state(&self, node: usize) -> Option<&MarkState> {
        self.nodes.get(node)?.state.as_ref()
    }

    /// Returns whether the node has the counters that it has stored, as far as its last answers tell.
    ///
    /// A clock that is wrong changes nothing of that.
    pub(crate) fn counters(&self, node: usize) -> Counters {
        let Some(Member {
            server_info: Some(server),
            state: Some(state),
            ..
        }) = self.nodes.get(node)
        else {
            return Counters::Unknown;
        };
        // A copy says nothing of the server that nodes have given votes to.
        if !server.is_master {
            return Counters::Unknown;
        }
        // What else keeps it from voting takes no counter from it.
        let forgets = server.is_cluster || server.forgets(&self.quarantine).is_some();
        if *state == MarkState::Voting && !forgets {
            Counters::Kept
        } else {
            Counters::Lost
        }
    }

    /// Returns which run of a server the node is, if it has said so.
    pub(crate) fn run(&self, node: usize) -> Option<&RunId> {
        self.nodes.get(node)?.run.as_ref()
    }

    /// Returns the first node that is the same server as this one, if there is one before it.
    pub fn same_server(&self, node: usize) -> Option<usize> {
        let (before, rest) = self.nodes.split_at_checked(node)?;
        let run = rest.first()?.run.as_ref()?;
        before
            .iter()
            .position(|other| other.run.as_ref() == Some(run))
    }

    /// Returns what the nodes' wall clocks show, if a majority's agree.
    pub fn common_time(&self, now: Instant) -> Option<NodeTime> {
        self.clocks.middle(now)
    }

    /// Returns what the node's wall clock shows, as far as it was heard lately.
    pub fn node_time(&self, node: usize, now: Instant) -> Option<NodeTime> {
        self.clocks.shown(node, now)
    }

    /// Returns whether what the node grants in its last answer is a vote, as far as its clock is right.
    ///
    /// Whether that is so is decided with all the votes of a round; see [`Votes`](crate::Votes).
    ///
    /// # Errors
    ///
    /// Why it is not.
    pub fn mark(&self, node: usize, now: Instant) -> Result<(), NotAVote> {
        match self.vote(node, now) {
            Err(NotAVote::Clock | NotAVote::Alone) => self.quarantine_of(node),
            vote => vote,
        }
    }

    /// Returns whether the node votes, as far as its last answers tell.
    ///
    /// # Errors
    ///
    /// Why it does not.
    pub fn vote(&self, node: usize, now: Instant) -> Result<(), NotAVote> {
        let known = self.nodes.get(node).ok_or(NotAVote::Unexamined)?;
        let Some(server_info) = &known.server_info else {
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
        let in_time = || {
            if self.clocks.agrees(node, now) {
                Ok(())
            } else if self.clocks.are_comparable(now) {
                Err(NotAVote::Clock)
            } else {
                Err(NotAVote::Alone)
            }
        };
        match known.state.as_ref().ok_or(NotAVote::Unexamined)? {
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
        let known = self.nodes.get(node).ok_or(NotAVote::Unexamined)?;
        let ready_in = match &known.state {
            Some(MarkState::Quarantined { ready_in, .. }) => *ready_in,
            Some(MarkState::Aged { .. }) => Duration::ZERO,
            Some(MarkState::Voting) => return Ok(()),
            Some(MarkState::PolicyMismatch { .. }) | None => return Err(NotAVote::Unexamined),
        };
        match known.trouble.clone() {
            None => Err(NotAVote::Quarantined { ready_in }),
            Some(reason) => Err(NotAVote::Stuck { reason }),
        }
    }
}

/// What an operator can do about it.
const LONGER_POLICY: &str = "another node knows this namespace with a longer max_ttl, whose leases may be valid still; use that max_ttl, or another namespace";
