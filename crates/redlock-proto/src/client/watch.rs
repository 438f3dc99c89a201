//! The watch over the nodes: what they are, where they stand, and their way back from quarantine.

use std::{sync::Arc, time::Duration};

use super::{
    Ask, Client, Effect, Entropy, Link, Notice, Now, Timer, health::Health, round::RoundKind,
    timers::TimerKey,
};
use crate::{
    Answer, FencingToken, Floor, Instant, MarkState, NodeAnswer, NodeTime, NodeVerb, Reply,
    Request, Standing, Survey,
};

/// What the watch remembers of one node.
#[derive(Debug, Default)]
pub(super) struct Watch {
    timer: Option<TimerKey>,
    inspected: Instant,
    /// Whether a floor for it is being looked for.
    surveying: bool,
    /// How often none was found.
    surveys: u32,
    /// Not to be looked for again before this.
    survey_after: Instant,
    pub(super) health: Health,
}

impl<E: Entropy> Client<E> {
    /// A connection to a node was made, and this is its answer to [`NodeVerb::Inspect`], which was sent at
    /// `sent`.
    pub fn on_connected(&mut self, node: usize, answer: Answer, sent: Instant, now: Now) {
        self.links[node] = Link::Up;
        self.connections[node] += 1;
        if let Some(standing) = answer.standing {
            self.on_standing(node, standing, sent, now);
        }
        self.watches[node].inspected = now.clock;
        self.watched(node, answer.replies.into_iter().next().and_then(Result::ok));
        self.follow_standing(node, now);
    }

    /// The connection to a node was lost or could not be made.
    ///
    /// What became of the requests on it is told separately.
    pub fn on_disconnected(&mut self, node: usize, reason: Arc<str>, now: Now) {
        self.links[node] = Link::Down(reason);
        self.outage.on_disconnected(node, now.clock);
        self.electorate.on_disconnected(node);
        let watch = std::mem::take(&mut self.watches[node]);
        if let Some(timer) = watch.timer {
            self.timers.cancel(timer);
        }
        self.news.on_disconnected(node);
        self.judge(now);
    }

    /// Lets every node vote at once that is only quarantined.
    ///
    /// Whoever asks for this vouches that none of these nodes has forgotten a lease that may still be valid.
    pub fn bless(&mut self, ask: Ask, now: Now) {
        let survey = Survey::start(self.config.quorum, self.config.quorum.nodes());
        self.ask_all(RoundKind::Bless { survey, ask }, now);
    }

    pub(super) fn on_standing(&mut self, node: usize, standing: Standing, sent: Instant, now: Now) {
        let before = self.electorate.jumped();
        self.electorate.on_standing(node, standing, sent, now.clock);
        if self.electorate.jumped() > before {
            self.on_jump(now);
        }
    }

    /// A node said where it stands: does what follows from it.
    pub(super) fn follow_standing(&mut self, node: usize, now: Now) {
        let vote = self.electorate.vote(node, now.clock);
        self.outage.on_standing(node, vote.is_ok(), now.clock);
        self.tell(node, &vote, now);
        let watch = &mut self.watches[node];
        if let Some(MarkState::Aged { since }) = self.electorate.state(node)
            && !watch.surveying
            && now.clock >= watch.survey_after
        {
            watch.surveying = true;
            let since = *since;
            let survey = Survey::start(self.config.quorum, node);
            self.ask_all(RoundKind::Survey { survey, since }, now);
        }
        self.set_watch(node, now);
    }

    /// It is time to look at a node.
    pub(super) fn on_watch(&mut self, node: usize, now: Now) {
        let watch = &mut self.watches[node];
        watch.timer = None;
        let due = watch.inspected + INSPECT_EVERY;
        let verb = match now.clock >= due || self.electorate.is_unexamined(node) {
            true => {
                watch.inspected = now.clock;
                NodeVerb::Inspect
            }
            false => NodeVerb::Tick,
        };
        let limit = self.config.node_timeout;
        let round = self.start_round(RoundKind::Watch, limit, now);
        self.send(node, round, Request::Node(verb));
        if self.watches[node].health.refuses_writes() {
            self.probe(node, now);
        }
        self.set_watch(node, now);
    }

    /// A node said what it is.
    pub(super) fn watched(&mut self, node: usize, reply: Option<Reply>) {
        if let Some(Reply::Facts(facts)) = reply {
            self.electorate.on_facts(node, facts);
        }
    }

    /// The counters of all nodes were read, as far as they will be.
    pub(super) fn surveyed(&mut self, id: u64, now: Now) {
        self.decided(id);
        let Some(round) = self.rounds.remove(&id) else {
            return;
        };
        match round.kind {
            RoundKind::Survey { survey, since } => {
                let fresh =
                    now.clock.saturating_since(round.started) <= 2 * self.config.node_timeout;
                self.seed(&survey, since, fresh, now);
            }
            RoundKind::Bless { survey, ask } => self.open_all(&survey, ask, now),
            _ => {}
        }
    }

    /// A node that was told to vote has answered.
    pub(super) fn opened(&mut self, id: u64, node: usize, reply: Option<&Reply>, now: Now) {
        self.survey_over(node, now);
        if reply == Some(&Reply::Done) {
            self.watches[node].surveys = 0;
            self.electorate.on_opened(node);
        }
        if self.rounds.get(&id).is_some_and(|round| round.open == 0) {
            self.opening_over(id, now);
        }
    }

    /// Nodes that were told to vote have answered, as far as they will.
    pub(super) fn opening_over(&mut self, id: u64, now: Now) {
        self.decided(id);
        let Some(round) = self.rounds.remove(&id) else {
            return;
        };
        let RoundKind::Open { ask, nodes } = &round.kind else {
            return;
        };
        for node in nodes {
            self.survey_over(*node, now);
        }
        if let Some(ask) = *ask {
            let mut answers = self.standing(now);
            for (node, answer) in answers.iter_mut().enumerate() {
                // Why it did not help to ask a node says more than that it does not vote.
                if let Some(failed) = round.answer(node)
                    && matches!(
                        failed,
                        NodeAnswer::NotExecuted { .. } | NodeAnswer::Unknown { .. }
                    )
                {
                    *answer = failed;
                }
            }
            self.effects.push_back(Effect::Blessed { ask, answers });
        }
    }

    /// A search for a node's floor has ended; if it votes still not, the next one is not begun at once.
    fn survey_over(&mut self, node: usize, now: Now) {
        let pause = self.config.space.quarantine().step() / 2;
        if let Some(watch) = self.watches.get_mut(node) {
            watch.surveying = false;
            watch.survey_after = now.clock + pause;
        }
    }

    /// Asks every node for the greatest of its counters.
    fn ask_all(&mut self, kind: RoundKind, now: Now) {
        let round = self.start_round(kind, self.config.node_timeout, now);
        for node in 0..self.config.quorum.nodes() {
            if matches!(self.links[node], Link::Up) {
                self.send(node, round, Request::Node(NodeVerb::Survey));
            } else if let Some(RoundKind::Survey { survey, .. } | RoundKind::Bless { survey, .. }) =
                self.rounds.get_mut(&round).map(|round| &mut round.kind)
            {
                survey.on_failure(node);
            }
        }
        let complete = match self.rounds.get(&round).map(|round| &round.kind) {
            Some(RoundKind::Survey { survey, .. } | RoundKind::Bless { survey, .. }) => {
                survey.is_complete()
            }
            _ => false,
        };
        if complete {
            self.surveyed(round, now);
        }
    }

    /// Tells a node whose quarantine has ended the floor of its counters, if it is known.
    fn seed(&mut self, survey: &Survey, since: NodeTime, fresh: bool, now: Now) {
        let node = survey.node();
        let Some(watch) = self.watches.get_mut(node) else {
            return;
        };
        watch.surveys += 1;
        // Whoever could complete a majority that has kept its counters has stayed away for seconds.
        let is_late = watch.surveys > PATIENCE;
        if let Some(reason) = self.electorate.longer_policy() {
            self.electorate.on_trouble(node, reason);
            return self.survey_over(node, now);
        }
        let floor = match is_late && self.config.space.quarantine().guesses_floors() {
            true => survey.floor_of_those_up(),
            // A node that is away for a moment may know more.
            false => survey.floor().filter(|floor| {
                is_late || survey.has_read_all() || matches!(floor, Floor::Known(_))
            }),
        };
        // If it cannot even be read, its error says more.
        if is_late && floor.is_none() && survey.has_read(node) {
            self.electorate.on_trouble(node, WAITS_FOR_COUNTERS.into());
        }
        // What a right clock shows says which ticks it may have forgotten, whatever else keeps it from voting.
        let horizon = self.electorate.right_time(node, now.clock);
        let (Some(floor), Some(horizon), true) = (floor, horizon, fresh) else {
            return self.survey_over(node, now);
        };
        let floor = match floor {
            Floor::Known(floor) => self.at_least_seen(floor),
            Floor::Degraded(floor) => self.stand_in(floor, node, survey, now),
        };
        let limit = self.config.node_timeout;
        let nodes = vec![node];
        let round = self.start_round(RoundKind::Open { ask: None, nodes }, limit, now);
        let verb = NodeVerb::Open {
            floor,
            since,
            horizon: Some(horizon),
        };
        self.send(node, round, Request::Node(verb));
    }

    /// Tells every node that is quarantined to vote.
    fn open_all(&mut self, survey: &Survey, ask: Ask, now: Now) {
        let limit = self.config.node_timeout;
        let since = |node| match self.electorate.state(node) {
            Some(MarkState::Aged { since } | MarkState::Quarantined { since, .. }) => Some(*since),
            _ => None,
        };
        let told: Vec<(usize, NodeTime)> = (0..self.config.quorum.nodes())
            .filter_map(|node| Some((node, since(node)?)))
            .collect();
        let floors: Vec<u64> = told
            .iter()
            .map(|(node, _)| match survey.floor() {
                Some(Floor::Known(floor)) => self.at_least_seen(floor),
                _ => self.stand_in(survey.greatest(), *node, survey, now),
            })
            .collect();
        let kind = RoundKind::Open {
            ask: Some(ask),
            nodes: told.iter().map(|(node, _)| *node).collect(),
        };
        let round = self.start_round(kind, limit, now);
        for ((node, since), floor) in told.iter().zip(floors) {
            let (node, since) = (*node, *since);
            let verb = NodeVerb::Open {
                floor,
                since,
                horizon: None,
            };
            self.send(node, round, Request::Node(verb));
        }
        if told.is_empty() {
            self.opening_over(round, now);
        }
    }

    /// A floor where too few nodes know it: no less than what they and this client know, and the clock.
    fn stand_in(&mut self, floor: u64, node: usize, survey: &Survey, now: Now) -> u64 {
        let is_first_use = survey.is_first_use();
        self.effects
            .push_back(Effect::Notice(Notice::FencingDegraded {
                node,
                is_first_use,
            }));
        let floor = self.at_least_seen(floor);
        match now.wall <= FencingToken::MAX.get() {
            true => floor.max(now.wall),
            false => floor,
        }
    }

    /// No less than any counter that this client has seen.
    fn at_least_seen(&self, floor: u64) -> u64 {
        let seen = self.counters.iter().copied().max().unwrap_or(0);
        floor.max(seen)
    }

    /// Nodes in quarantine are looked at often, so that their time counts; others now and then.
    fn set_watch(&mut self, node: usize, now: Now) {
        let every = match self.electorate.state(node) {
            // Another server has answered.
            Some(_) if self.electorate.is_unexamined(node) => EXAMINE_WITHIN,
            Some(MarkState::Quarantined { .. } | MarkState::Aged { .. }) => {
                self.config.space.quarantine().step() / 2
            }
            Some(_) => INSPECT_EVERY,
            None => return,
        };
        let at = now.clock + every;
        let watch = &mut self.watches[node];
        match watch.timer {
            // Whatever makes the node answer counts as a look; the next one may be later, never missing.
            Some(timer) if timer.at() <= at => {}
            other => {
                if let Some(timer) = other {
                    self.timers.cancel(timer);
                }
                watch.timer = Some(self.timers.set(at, Timer::Watch(node)));
            }
        }
    }
}

/// How soon a node is asked what it is that may be another than before.
const EXAMINE_WITHIN: Duration = Duration::from_millis(25);

/// How often a node that votes is asked what it is.
const INSPECT_EVERY: Duration = Duration::from_secs(5);

/// How many searches for a floor may fail, half a step apart at least, before that is told, or those that are up do if
/// that was asked for.
const PATIENCE: u32 = 8;

/// What an operator can do about it.
const WAITS_FOR_COUNTERS: &str = "it has lost its fencing counters, and too few nodes that have kept theirs can be reached; bring those back, or bless the nodes";
