use std::time::Duration;

use super::{
    ClientConfig, Effect, Entropy, Notice, Now,
    effect::Outbox,
    listening::Listening,
    nodes::Nodes,
    rounds::{Round, RoundKind, Rounds},
    timers::{Timer, Timers},
    token_proposals::Tokens,
};
use crate::{
    ClockReading, Instant, NodeAnswer, NodeOutcome, NodeVerb, NotAVote, OwnerId, Quorum, Reply,
    Request, RequestError, RunId, Timing,
};

/// What the parts of a client share: its nodes, the rounds in which they are asked, and what the driver is to do.
pub(super) struct Context {
    pub(super) config: ClientConfig,
    pub(super) nodes: Nodes,
    pub(super) rounds: Rounds,
    pub(super) tokens: Tokens,
    pub(super) timers: Timers,
    pub(super) listening: Listening,
    pub(super) outbox: Outbox,
    entropy: Box<dyn Entropy>,
    closing: bool,
}

impl Context {
    pub(super) fn new(config: ClientConfig, entropy: Box<dyn Entropy>) -> Self {
        Self {
            nodes: Nodes::new(&config),
            listening: Listening::new(config.quorum.nodes()),
            config,
            rounds: Rounds::default(),
            tokens: Tokens::new(),
            timers: Timers::default(),
            outbox: Outbox::default(),
            entropy,
            closing: false,
        }
    }

    pub(super) const fn quorum(&self) -> Quorum {
        self.config.quorum
    }

    /// Returns an owner that was never used before.
    pub(super) fn owner(&mut self) -> OwnerId {
        self.entropy.owner()
    }

    /// Returns 64 random bits.
    pub(super) fn bits(&mut self) -> u64 {
        self.entropy.bits()
    }

    /// Closes the client: nothing is tried again, and no caller waits to hear of its turn.
    pub(super) fn close(&mut self) {
        self.closing = true;
        self.listening.end(&mut self.outbox);
    }

    pub(super) const fn is_closing(&self) -> bool {
        self.closing
    }

    /// Returns the number under which nodes know this client.
    pub(super) fn number(&mut self) -> u64 {
        let entropy = &mut self.entropy;
        self.listening.number(|| entropy.bits())
    }

    /// Has the driver listen to the nodes: callers wait for keys that others have.
    pub(super) fn listen(&mut self, now: Now) {
        if self.closing {
            return;
        }
        let number = self.number();
        let Self { timers, outbox, .. } = self;
        self.listening.begin(number, now.clock, timers, outbox);
    }

    /// Returns whether it hears a majority of the nodes.
    pub(super) fn hears(&self) -> bool {
        self.listening.count() >= self.quorum().majority()
    }

    /// Gives nodes signs of life from now on, ahead of what is sent next, until no caller is in line.
    pub(super) fn give_signs(&mut self, now: Now) {
        if !std::mem::replace(&mut self.listening.gives_signs, true) {
            self.sign(now);
        }
    }

    /// Gives each node a sign of life, and does so again in a second.
    pub(super) fn sign(&mut self, now: Now) {
        let client = self.number();
        let round = self.start_round(RoundKind::Sign, self.config.node_timeout, now);
        self.send_all(round, &Request::Node(NodeVerb::Sign { client }));
        self.timers.set(now.clock + NodeVerb::SIGN / 3, Timer::Sign);
    }

    /// Starts a round with its time limit; requests are added by [`send`](Self::send).
    pub(super) fn start_round(&mut self, kind: RoundKind, limit: Duration, now: Now) -> u64 {
        let id = self.rounds.next();
        let at = self.timers.set(now.clock + limit, Timer::RoundLimit(id));
        let baseline = self.nodes.baseline(now.clock);
        let nodes = self.quorum().nodes();
        self.rounds
            .add(kind, (now.clock, baseline), nodes, (limit, at))
    }

    /// Returns the time limit of a round for such a lease: what takes longer than half the lease is no use.
    pub(super) fn limit_within(&self, timing: Timing) -> Duration {
        self.config.node_timeout.min(timing.ttl() / 2)
    }

    /// Has the time limit of a round looked at again at this moment.
    pub(super) fn wait_until(&mut self, id: u64, at: Instant) {
        let limit = self.timers.set(at, Timer::RoundLimit(id));
        if let Some(round) = self.rounds.get_mut(id) {
            round.look_again(limit);
        }
    }

    /// Gives a round another time limit.
    pub(super) fn limit_round(&mut self, id: u64, at: Instant) {
        let Some(round) = self.rounds.get_mut(id) else {
            return;
        };
        let limit = self.timers.set(at, Timer::RoundLimit(id));
        if let Some(before) = round.limit(limit) {
            self.timers.cancel(before);
        }
    }

    pub(super) fn send(&mut self, node: usize, round: u64, request: Request) {
        if let Some(round) = self.rounds.get_mut(round) {
            round.on_sent(node);
        }
        self.nodes.on_sent(node);
        self.outbox.push(Effect::Send {
            node,
            round,
            request,
            connection: self.nodes.connection(node),
        });
    }

    /// Sends the same request to every node.
    pub(super) fn send_all(&mut self, round: u64, request: &Request) {
        for node in self.nodes.all() {
            self.send(node, round, request.clone());
        }
    }

    /// Notes what became of a request; returns how the protocol counts it, `None` if that was noted before.
    ///
    /// `vote` says whether the node's grants are votes.
    pub(super) fn note(
        &mut self,
        node: usize,
        id: u64,
        result: &Result<Reply, RequestError>,
        seen: Option<&(RunId, ClockReading)>,
        vote: &Result<(), NotAVote>,
        now: Now,
    ) -> Option<NodeOutcome> {
        let round = self.rounds.get_mut(id)?;
        let vote = || vote.clone();
        // A node is asked once in a round; a second outcome is ignored.
        let outcome = round.note(node, result, seen, vote)?;
        if round.kind.asks_for_a_vote() {
            self.nodes.on_outcome(node, outcome, now.clock);
        }
        match result {
            Err(error) if round.kind.looks_after(node) => {
                self.nodes.on_trouble(node, error.reason.clone());
            }
            Ok(reply) => {
                if let Some((lock, tokens)) = &round.counts {
                    self.tokens.note(&lock.keys, *tokens, reply);
                }
            }
            Err(_) => {}
        }
        Some(outcome)
    }

    /// Notes what a result says of a node's health; `looked` if the node said where it stands with it.
    pub(super) fn note_health(
        &mut self,
        node: usize,
        round: u64,
        result: &Result<Reply, RequestError>,
        looked: bool,
        now: Now,
    ) {
        let kind = self.rounds.get(round).map(|round| &round.kind);
        let heard = match (result, kind) {
            (Ok(reply), kind) => Ok(matches!(kind, Some(RoundKind::Probe))
                || matches!(reply, Reply::Taken { .. } | Reply::Claimed { .. })),
            // A release may take as long as the node needs, and a probe goes to a node that is in trouble already.
            (Err(_), None | Some(RoundKind::Probe | RoundKind::Release { .. })) => return,
            (Err(error), Some(_)) if error.is_of_a_key() => Ok(false),
            (Err(error), Some(_)) => Err(error),
        };
        if let Some(notice) = self.nodes.on_heard(node, heard, looked, now.clock) {
            self.notice(notice);
            self.judge(now);
        }
    }

    /// Says what has become of the majority, if that has changed.
    pub(super) fn judge(&mut self, now: Now) {
        if !self.closing {
            self.nodes.judge(now, &mut self.outbox);
        }
    }

    /// Tells an operator something.
    pub(super) fn notice(&mut self, notice: Notice) {
        self.outbox.notice(notice);
    }

    /// Ends the time limit of a round, which does not need it any longer.
    pub(super) fn end_limit(&mut self, id: u64) {
        let limit = self.rounds.get_mut(id).and_then(Round::take_limit);
        if let Some(limit) = limit {
            self.timers.cancel(limit);
        }
    }

    /// Forgets a round of which nothing is to come any more.
    pub(super) fn forget_if_over(&mut self, id: u64) {
        if self.rounds.get(id).is_some_and(Round::is_over) {
            self.end_limit(id);
            self.rounds.forget(id);
        }
    }

    /// Ends the time in which votes of an attempt may join those that confirm it.
    pub(super) fn joins_no_more(&mut self, attempt: u64) {
        if let Some(round) = self.rounds.get_mut(attempt)
            && let RoundKind::Decided { is_settling, .. } = &mut round.kind
        {
            *is_settling = false;
        }
        self.forget_if_over(attempt);
    }

    /// Returns what each node said in a round, for an error.
    pub(super) fn answers(&self, round: u64, now: Now) -> Vec<NodeAnswer> {
        let Some(round) = self.rounds.get(round) else {
            return Vec::new();
        };
        let had_time = now.clock >= round.started + self.config.node_timeout;
        let unanswered = |node| self.nodes.unanswered(node, had_time, now);
        let answers = self.nodes.all();
        answers
            .map(|node| round.answer(node).unwrap_or_else(|| unanswered(node)))
            .collect()
    }
}
