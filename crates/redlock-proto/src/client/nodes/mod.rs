//! The nodes as a client sees them: its connections to them, whether they vote, and whether they are usable.

mod absence;
mod connection;
mod health;
mod news;
mod outage;
mod pace;
mod room;

use std::{ops::Range, sync::Arc, time::Duration};

pub(super) use self::absence::DidNotWait;
use self::{
    absence::Absence,
    connection::{Connection, State},
    health::Health,
    news::News,
    outage::Outage,
    pace::Pace,
};
use super::{Backlog, ClientConfig, Notice, Now, outbox::Outbox};
use crate::{
    Clocks, Instant, MarkState, Membership, NodeAnswer, NodeOutcome, Quarantine, Quorum,
    ServerInfo, Standing, Vote, Votes, membership::Baseline,
};

/// All that a client knows of its nodes.
#[derive(Debug)]
pub(super) struct Nodes {
    quorum: Quorum,
    members: Membership,
    // invariant: one entry per node
    connections: Vec<Connection>,
    health: Vec<Health>,
    pace: Vec<Pace>,
    /// What the link to each has before it, if that is known.
    backlogs: Vec<Option<Backlog>>,
    /// How many requests may wait to be sent to a node before new acquires wait.
    most_unsent: usize,
    /// Whether each voted, when its last answer came.
    voted: Vec<bool>,
    absences: Vec<Absence>,
    outage: Outage,
    news: News,
}

/// What a node's answer says of its health.
#[derive(Clone, Copy, Debug)]
pub(super) enum Heard<'a> {
    /// It did what it was asked, and wrote something for that if `wrote`.
    Done { wrote: bool },
    /// It failed.
    Error {
        reason: &'a Arc<str>,
        /// Nothing but a write shows that it is over.
        refuses_writes: bool,
    },
}

impl Nodes {
    pub(super) fn new(config: &ClientConfig) -> Self {
        let nodes = config.quorum.nodes();
        Self {
            quorum: config.quorum,
            members: Membership::new(config.quorum, *config.keyspace.quarantine()),
            connections: vec![Connection::default(); nodes],
            health: (0..nodes).map(|_| Health::default()).collect(),
            pace: vec![Pace::default(); nodes],
            backlogs: vec![None; nodes],
            most_unsent: config.most_unsent,
            voted: vec![false; nodes],
            absences: vec![Absence::default(); nodes],
            outage: Outage::new(nodes),
            news: News::new(nodes),
        }
    }

    /// Returns every node's number.
    pub(super) fn all(&self) -> Range<usize> {
        0..self.quorum.nodes()
    }

    /// Returns what is known of each node's vote.
    pub(super) const fn members(&self) -> &Membership {
        &self.members
    }

    /// Returns whether a node is connected.
    pub(super) fn is_up(&self, node: usize) -> bool {
        self.connections[node].is_up()
    }

    /// Returns the number of the connection to a node, or of the last one.
    pub(super) fn connection(&self, node: usize) -> u64 {
        self.connections[node].number()
    }

    /// Takes in that a connection to a node was made; nothing that another server said over the one before counts for
    /// this.
    pub(super) fn on_connected(&mut self, node: usize) {
        self.connections[node].on_connected();
        self.forget(node);
    }

    /// Takes in that the connection to a node was lost, or could not be made.
    pub(super) fn on_disconnected(&mut self, node: usize, reason: Arc<str>, at: Instant) {
        self.connections[node].on_disconnected(reason);
        self.outage.on_disconnected(node, at);
        self.forget(node);
        self.news.on_disconnected(node);
    }

    /// Forgets what was said over a connection.
    fn forget(&mut self, node: usize) {
        self.members.on_disconnected(node);
        self.health[node] = Health::default();
        self.pace[node] = Pace::default();
        self.voted[node] = false;
    }

    /// Takes in that a node said where it stands; returns whether its clock has gone ahead by more than `step` since
    /// leases were looked at.
    pub(super) fn on_standing(
        &mut self,
        node: usize,
        standing: Standing,
        sent: Instant,
        received: Instant,
        step: Duration,
    ) -> bool {
        let votes = standing.state == MarkState::Voting;
        self.absences[node].on_answer(&standing.run, votes, received);
        self.members.on_standing(node, standing, sent, received);
        self.clocks().is_news(node, step)
    }

    /// Returns what the nodes' clocks say.
    pub(super) const fn clocks(&self) -> &Clocks {
        self.members.clocks()
    }

    /// Returns what the clocks are compared with later that have gone ahead since now.
    pub(super) fn baseline(&mut self, now: Instant) -> Baseline {
        self.members.clocks_mut().baseline(now)
    }

    /// Takes in that all leases were looked at.
    pub(super) fn on_look_at_clocks(&mut self) {
        self.members.clocks_mut().on_look();
    }

    /// Takes in that a node said what it is.
    pub(super) fn on_server_info(&mut self, node: usize, server_info: ServerInfo) {
        self.members.on_server_info(node, server_info);
    }

    /// Notes that a node was asked to vote, and does.
    pub(super) fn on_opened(&mut self, node: usize) {
        self.members.on_opened(node);
    }

    /// Returns why a node did not wait, if its restarts are said to be delayed and leases from before may be valid.
    pub(super) fn did_not_wait(
        &self,
        node: usize,
        quarantine: &Quarantine,
        now: Instant,
    ) -> Option<DidNotWait> {
        self.absences[node].did_not_wait(quarantine, now)
    }

    /// Takes in that a node cannot go on with its way back from quarantine.
    pub(super) fn on_trouble(&mut self, node: usize, reason: Arc<str>) {
        self.members.on_trouble(node, reason);
    }

    /// Takes in that a node's outcome in an attempt became known.
    pub(super) fn on_outcome(&mut self, node: usize, outcome: NodeOutcome, at: Instant) {
        self.outage.on_outcome(node, outcome, at);
    }

    /// Notes that a node has answered a call, and how long that `took`.
    pub(super) fn on_answer(&mut self, node: usize, took: Duration) {
        self.pace[node].on_answer(took);
    }

    /// Notes that an attempt goes on without the nodes whose votes are still to come.
    pub(super) fn on_late(&mut self, votes: &Votes) {
        for (pace, vote) in self.pace.iter_mut().zip(votes.iter()) {
            if vote == Vote::Pending {
                pace.on_late();
            }
        }
    }

    /// Returns how long an attempt waits for a node before it asks others instead.
    pub(super) fn patience(&self, node: usize) -> Duration {
        self.pace[node].patience()
    }

    /// Returns whether a node is worth to be asked first, as far as its last answer tells.
    pub(super) fn is_of_use(&self, node: usize, now: Now) -> bool {
        // With the answers of others since, it may be known to be right.
        let votes = self.voted[node] || self.members.vote(node, now.clock).is_ok();
        votes
            && self.is_up(node)
            && !self.refuses_writes(node)
            && !self.pace[node].is_late()
            && self.members.same_server(node).is_none()
    }

    /// Takes in that a node has answered, `looked` if it said where it stands; returns what an operator should know of
    /// that.
    pub(super) fn on_heard(
        &mut self,
        node: usize,
        heard: Heard<'_>,
        looked: bool,
        at: Instant,
    ) -> Option<Notice> {
        let health = &mut self.health[node];
        let refused = health.refuses_writes().is_some();
        match heard {
            Heard::Done { wrote } => health.on_reply(looked, wrote, at),
            Heard::Error {
                reason,
                refuses_writes,
            } if self.connections[node].is_up() => {
                health.on_error(reason, refuses_writes);
            }
            Heard::Error { .. } => {}
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
        self.health[node].refuses_writes().is_some()
    }

    /// Says what has changed with a node's vote; returns whether the majority is to be judged.
    pub(super) fn tell(&mut self, node: usize, now: Now, outbox: &mut Outbox) -> bool {
        let vote = self.members.vote(node, now.clock);
        self.voted[node] = vote.is_ok();
        self.outage.on_standing(node, vote.is_ok(), now.clock);
        let run = self.members.run(node);
        self.news.tell(node, &vote, run, outbox)
    }

    /// Says what has become of the majority, once every node was reached or was found not to be.
    pub(super) fn judge(&mut self, now: Now, outbox: &mut Outbox) {
        if !self.connections.iter().all(Connection::is_settled) {
            return;
        }
        if self.news.is_unjudged() {
            // The first nodes had no others to compare their clocks with.
            for node in self
                .all()
                .filter(|node| self.is_up(*node))
                .collect::<Vec<_>>()
            {
                self.tell(node, now, outbox);
            }
        }
        let votes = self
            .all()
            .filter(|node| self.votes(*node, now) && !self.refuses_writes(*node));
        let votes = votes.count();
        self.news.judge(votes, self.quorum, outbox);
    }

    /// Returns whether no majority has voted yet, because the nodes are new to the namespace or have lost all of it.
    pub(super) const fn is_first_start(&self) -> bool {
        self.news.is_first_start()
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
        match self.connections[node].state() {
            // Its last call may be among those that it executed.
            State::Down(reason) => NodeAnswer::Unknown {
                reason: Arc::clone(reason),
            },
            State::Connecting => NodeAnswer::Pending,
            State::Up => match self.members.vote(node, now.clock) {
                // Whatever it answers would not count.
                Err(reason) if reason.needs_a_change() => NodeAnswer::NotAVote { reason },
                // The others decided before it could answer, so its last answers say more.
                _ if !had_time && self.health[node].is_alive(now.clock) => self.stands(node, now),
                _ => NodeAnswer::Pending,
            },
        }
    }

    /// Returns since when the nodes that answer with votes are no majority; `None` while they are.
    pub(super) fn outage(&self) -> Option<Instant> {
        self.outage.since(self.quorum)
    }

    /// Returns whether the first connections that are still being made could complete a majority: whether there is an
    /// outage shows when they are made, or have failed.
    pub(super) fn are_connecting(&self, now: Now) -> bool {
        let connecting = self.connections.iter().filter(|node| !node.is_settled());
        let connecting = connecting.count();
        connecting > 0 && connecting + self.reachable(now) >= self.quorum.majority()
    }

    /// Returns whether too many nodes are quarantined beyond `end` for the others to be a majority.
    pub(super) fn are_quarantined_beyond(&self, end: Instant, now: Now) -> bool {
        let beyond = self.all().filter(|node| {
            let vote = self.members.vote(*node, now.clock);
            let ready_in = vote.err().and_then(|reason| reason.ready_in());
            ready_in.is_some_and(|ready_in| now.clock + ready_in > end)
        });
        beyond.count() > self.quorum.tolerated()
    }

    fn votes(&self, node: usize, now: Now) -> bool {
        self.is_up(node) && self.members.vote(node, now.clock).is_ok()
    }

    fn stands(&self, node: usize, now: Now) -> NodeAnswer {
        let vote = self.members.vote(node, now.clock);
        match (self.connections[node].state(), vote) {
            (State::Connecting, _) => NodeAnswer::Pending,
            (State::Down(reason), _) => NodeAnswer::NotExecuted {
                reason: Arc::clone(reason),
            },
            (State::Up, Ok(())) => self.health[node].standing(),
            (State::Up, Err(reason)) => NodeAnswer::NotAVote { reason },
        }
    }
}
