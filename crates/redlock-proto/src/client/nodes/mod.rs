//! The nodes as a client sees them: its connections to them, whether they vote, and whether they are usable.

mod health;
mod notices;
mod outage;
mod pace;
#[cfg(test)]
mod tests;
mod voting;

use std::{collections::BTreeSet, ops::Range, sync::Arc, time::Duration};

use self::{
    health::Health,
    notices::{MajorityLevel, VoteNotice},
    pace::Pace,
};
use super::{Backlog, ClientConfig, Notice, Now, timers::TimerKey};
use crate::{
    Clocks, Instant, MarkState, NodeAnswer, Quarantine, Quorum, RequestError, RunId, ServerInfo,
    Vote, Votes, membership::Baseline,
};

/// All that a client knows of its nodes.
#[derive(Debug)]
pub(super) struct Nodes {
    quorum: Quorum,
    quarantine: Quarantine,
    /// How many requests may wait to be sent to a node before new acquires wait.
    most_unsent: usize,
    clocks: Clocks,
    // invariant: one entry per node
    nodes: Vec<NodeState>,
    /// The runs of servers that answered for several nodes while a majority voted.
    twins: Vec<RunId>,
    /// The majority in the last notice; `None` until each node was reached, or was found not to be.
    level: Option<MajorityLevel>,
}

/// All that a client knows of one node.
#[derive(Debug, Default)]
struct NodeState {
    /// The number of the present connection, or of the last one, from 1.
    connection: u64,
    connection_state: ConnectionState,
    /// What the node has said over the present connection.
    session: NodeSession,
    /// The nodes that were other servers than this one while the client was connected to both.
    seen_apart_from: BTreeSet<usize>,
    /// Since when it does not answer with a vote; `None` while it does, as far as is known.
    lost: Option<Instant>,
    /// What its link has before it, if that is known.
    backlog: Option<Backlog>,
    notice: VoteNotice,
    watch: NodeWatch,
}

/// The client's connection to a node, by the driver's last report.
#[derive(Debug, Default)]
enum ConnectionState {
    /// The first one is being made.
    #[default]
    Connecting,
    Up,
    Down(Arc<str>),
}

/// What a node has said over one connection; another server may be behind the next one.
#[derive(Debug, Default)]
struct NodeSession {
    /// What it is; of the same run of a server as `run`.
    server_info: Option<ServerInfo>,
    run: Option<RunId>,
    mark: Option<MarkState>,
    /// What went wrong with its last step out of quarantine.
    trouble: Option<Arc<str>>,
    health: Health,
    pace: Pace,
    /// Whether it voted, by its last answer.
    votes: bool,
}

/// The client's watch over a node: when it looks at the node, and how its search for a floor goes.
#[derive(Debug, Default)]
pub(super) struct NodeWatch {
    pub(super) timer: Option<TimerKey>,
    pub(super) inspected: Instant,
    /// Whether a floor for it is being looked for.
    pub(super) surveying: bool,
    /// How often none was found.
    pub(super) surveys: u32,
    /// Not to be looked for again before this.
    pub(super) survey_after: Instant,
}

impl Nodes {
    pub(super) fn new(config: &ClientConfig) -> Self {
        let nodes = (0..config.quorum.nodes()).map(|_| NodeState::default());
        Self {
            quorum: config.quorum,
            quarantine: *config.keyspace.quarantine(),
            most_unsent: config.most_unsent,
            clocks: Clocks::new(config.quorum),
            nodes: nodes.collect(),
            twins: Vec::new(),
            level: None,
        }
    }

    /// Returns every node's number.
    pub(super) fn all(&self) -> Range<usize> {
        0..self.quorum.nodes()
    }

    /// Returns whether a node is connected.
    pub(super) fn is_up(&self, node: usize) -> bool {
        matches!(self.nodes[node].connection_state, ConnectionState::Up)
    }

    /// Returns the number of the connection to a node, or of the last one.
    pub(super) fn connection(&self, node: usize) -> u64 {
        self.nodes[node].connection
    }

    /// Returns the watch over a node.
    pub(super) fn watch(&mut self, node: usize) -> &mut NodeWatch {
        &mut self.nodes[node].watch
    }

    /// Takes in that a connection to a node was made; nothing that another server said over the one before counts for
    /// this.
    pub(super) fn on_connected(&mut self, node: usize) {
        let state = &mut self.nodes[node];
        state.connection += 1;
        state.connection_state = ConnectionState::Up;
        self.forget(node);
    }

    /// Takes in that the connection to a node was lost, or could not be made.
    pub(super) fn on_disconnected(&mut self, node: usize, reason: Arc<str>, at: Instant) {
        let state = &mut self.nodes[node];
        state.connection_state = ConnectionState::Down(reason);
        state.lost.get_or_insert(at);
        state.notice.on_disconnected();
        self.forget(node);
    }

    /// Forgets what was said over a connection.
    fn forget(&mut self, node: usize) {
        self.nodes[node].session = NodeSession::default();
        self.clocks.forget(node);
    }

    /// Returns what the nodes' clocks say.
    pub(super) const fn clocks(&self) -> &Clocks {
        &self.clocks
    }

    /// Returns what the clocks are compared with later that have gone ahead since now.
    pub(super) fn baseline(&mut self, now: Instant) -> Baseline {
        self.clocks.baseline(now)
    }

    /// Takes in that all leases were looked at.
    pub(super) fn on_look_at_clocks(&mut self) {
        self.clocks.on_look();
    }

    /// Notes that a node has answered a call, and how long that `took`.
    pub(super) fn on_answer(&mut self, node: usize, took: Duration) {
        self.nodes[node].session.pace.on_answer(took);
    }

    /// Notes that an attempt goes on without the nodes whose votes are still to come.
    pub(super) fn on_late(&mut self, votes: &Votes) {
        for (node, vote) in self.nodes.iter_mut().zip(votes.iter()) {
            if vote == Vote::Pending {
                node.session.pace.on_late();
            }
        }
    }

    /// Returns how long an attempt waits for a node before it asks others instead.
    pub(super) fn patience(&self, node: usize) -> Duration {
        self.nodes[node].session.pace.patience()
    }

    /// Returns whether a node is worth to be asked first, as far as its last answer tells.
    pub(super) fn is_of_use(&self, node: usize, now: Now) -> bool {
        let session = &self.nodes[node].session;
        // With the answers of others since, it may be known to be right.
        let votes = session.votes || self.vote(node, now.clock).is_ok();
        votes
            && self.is_up(node)
            && !self.refuses_writes(node)
            && !session.pace.is_late()
            && self.same_server(node).is_none()
    }

    /// Takes in that a node has answered, `looked` if it said where it stands: whether it wrote something, or its error.
    ///
    /// Returns what an operator should know of that.
    pub(super) fn on_heard(
        &mut self,
        node: usize,
        result: Result<bool, &RequestError>,
        looked: bool,
        at: Instant,
    ) -> Option<Notice> {
        let is_up = self.is_up(node);
        let health = &mut self.nodes[node].session.health;
        let refused = health.refuses_writes().is_some();
        match result {
            Ok(wrote) => health.on_reply(looked, wrote, at),
            Err(error) if is_up => {
                // What it ran, and looked at its mark for, and no key is to blame for, can have failed only because it
                // does not write.
                let refuses_writes = looked || error.refuses_writes;
                health.on_error(&error.reason, refuses_writes);
            }
            Err(_) => {}
        }
        match (refused, health.refuses_writes()) {
            (false, Some(reason)) => Some(Notice::RefusesWrites {
                node,
                reason: Arc::clone(reason),
            }),
            (true, None) => Some(Notice::Writes { node }),
            _ => None,
        }
    }

    /// Returns whether a node votes, and grants nothing because it refuses to write.
    pub(super) fn refuses_writes(&self, node: usize) -> bool {
        self.nodes[node].session.health.refuses_writes().is_some()
    }

    /// Returns how many nodes are connected and vote.
    pub(super) fn reachable(&self, now: Now) -> usize {
        self.all().filter(|node| self.votes(*node, now)).count()
    }

    /// Returns where each node stands.
    pub(super) fn standing(&self, now: Now) -> Vec<NodeAnswer> {
        self.all().map(|node| self.stands(node, now)).collect()
    }

    /// Returns what there is to say of a node that has not answered, for an error; `had_time` if it had as long as
    /// any node has.
    pub(super) fn unanswered(&self, node: usize, had_time: bool, now: Now) -> NodeAnswer {
        let state = &self.nodes[node];
        let is_alive = || state.session.health.is_alive(now.clock);
        match &state.connection_state {
            // Its last call may be among those that it executed.
            ConnectionState::Down(reason) => NodeAnswer::Unknown {
                reason: Arc::clone(reason),
            },
            ConnectionState::Connecting => NodeAnswer::Pending,
            ConnectionState::Up => match self.vote(node, now.clock) {
                // Whatever it answers would not count.
                Err(reason) if reason.needs_a_change() => NodeAnswer::NotAVote { reason },
                // The others decided before it could answer, so its last answers say more.
                _ if !had_time && is_alive() => self.stands(node, now),
                _ => NodeAnswer::Pending,
            },
        }
    }

    /// Notes what the link to a node has before it.
    pub(super) fn on_backlog(&mut self, node: usize, backlog: Backlog) {
        self.nodes[node].backlog = Some(backlog);
    }

    /// Notes that a request for a node was handed to its link.
    pub(super) fn on_sent(&mut self, node: usize) {
        if let Some(backlog) = &mut self.nodes[node].backlog {
            backlog.unsent += 1;
        }
    }

    /// Returns when a node has said nothing for `patience` though it owes an answer, if it says nothing up to then.
    ///
    /// What was not written yet waits in this client, and not for the node.
    /// This is `now` at the latest where nothing is known of the link.
    pub(super) fn silent_at(&self, node: usize, patience: Duration, now: Instant) -> Instant {
        match self.nodes[node].backlog {
            None => now,
            Some(backlog) => backlog.awaited.unwrap_or(now) + patience,
        }
    }

    /// Returns whether the requests of another attempt would be sent soon: fewer than the limit wait to be sent to a
    /// majority of the nodes.
    ///
    /// A node that has said nothing for `node_timeout` keeps no attempt waiting, which would fail there at once.
    pub(super) fn have_room(&self, node_timeout: Duration, now: Instant) -> bool {
        let has_room = |node: &usize| {
            let backlog = self.nodes[*node].backlog;
            let unsent = backlog.map_or(0, |backlog| backlog.unsent);
            unsent < self.most_unsent || self.silent_at(*node, node_timeout, now) <= now
        };
        self.all().filter(has_room).count() >= self.quorum.majority()
    }

    /// Returns whether a majority votes, of which no node has said nothing for `node_timeout` though it owes an answer.
    pub(super) fn answer_in_time(&self, node_timeout: Duration, now: Now) -> bool {
        let answers = |node: &usize| {
            self.votes(*node, now) && self.silent_at(*node, node_timeout, now.clock) > now.clock
        };
        self.all().filter(answers).count() >= self.quorum.majority()
    }

    fn votes(&self, node: usize, now: Now) -> bool {
        self.is_up(node) && self.vote(node, now.clock).is_ok()
    }

    fn stands(&self, node: usize, now: Now) -> NodeAnswer {
        let state = &self.nodes[node];
        match (&state.connection_state, self.vote(node, now.clock)) {
            (ConnectionState::Connecting, _) => NodeAnswer::Pending,
            (ConnectionState::Down(reason), _) => NodeAnswer::NotExecuted {
                reason: Arc::clone(reason),
            },
            (ConnectionState::Up, Ok(())) => state.session.health.standing(),
            (ConnectionState::Up, Err(reason)) => NodeAnswer::NotAVote { reason },
        }
    }
}

impl NodeState {
    /// Returns whether the node was reached, or found not to be reachable.
    const fn is_settled(&self) -> bool {
        !matches!(self.connection_state, ConnectionState::Connecting)
    }
}
