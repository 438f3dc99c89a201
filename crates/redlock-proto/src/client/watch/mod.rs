//! The watch over the nodes: what they are, where they stand, and their way back from quarantine.

mod opening;

use std::time::Duration;

use super::{
    Ask, Now,
    context::Context,
    rounds::RoundKind,
    timers::{Timer, TimerKey},
};
use crate::{
    Instant, Lock, MarkState, Mode, NodeVerb, OwnerId, Reply, Request, ServerInfo, Survey, Verb,
};

/// What the client does of its own accord to keep nodes known and voting.
#[derive(Debug)]
pub(super) struct Watch {
    // invariant: one entry per node
    nodes: Vec<Watched>,
}

#[derive(Debug, Default)]
struct Watched {
    timer: Option<TimerKey>,
    inspected: Instant,
    /// Whether a floor for it is being looked for.
    surveying: bool,
    /// How often none was found.
    surveys: u32,
    /// Not to be looked for again before this.
    survey_after: Instant,
}

impl Watch {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            nodes: (0..nodes).map(|_| Watched::default()).collect(),
        }
    }

    /// Takes in that a connection to a node was made, and the node said what it is.
    pub(super) fn on_connected(
        &mut self,
        node: usize,
        server_info: Option<ServerInfo>,
        cx: &mut Context,
        now: Now,
    ) {
        self.nodes[node].inspected = now.clock;
        if let Some(server_info) = server_info {
            cx.nodes.on_server_info(node, server_info);
        }
        self.on_standing(node, cx, now);
    }

    /// Takes in that the connection to a node was lost: what is behind the next one is unknown.
    pub(super) fn on_disconnected(&mut self, node: usize, cx: &mut Context) {
        let watched = std::mem::take(&mut self.nodes[node]);
        if let Some(timer) = watched.timer {
            cx.timers.cancel(timer);
        }
    }

    /// Takes in that a node said where it stands, and does what follows from it.
    pub(super) fn on_standing(&mut self, node: usize, cx: &mut Context, now: Now) {
        if cx.nodes.tell(node, now, &mut cx.outbox) {
            cx.judge(now);
        }
        let watched = &mut self.nodes[node];
        if let Some(MarkState::Aged { since }) = cx.nodes.members().state(node)
            && !watched.surveying
            && now.clock >= watched.survey_after
        {
            watched.surveying = true;
            let since = *since;
            let survey = Survey::start(cx.quorum(), node);
            self.ask_all(RoundKind::Survey { survey, since }, cx, now);
        }
        self.set_timer(node, cx, now);
    }

    /// Looks at a node because it is time.
    pub(super) fn on_timer(&mut self, node: usize, cx: &mut Context, now: Now) {
        let watched = &mut self.nodes[node];
        watched.timer = None;
        let due = watched.inspected + INSPECT_EVERY;
        let verb = if now.clock >= due || cx.nodes.members().is_unexamined(node) {
            watched.inspected = now.clock;
            NodeVerb::Inspect
        } else {
            NodeVerb::Look
        };
        let limit = cx.config.node_timeout;
        let round = cx.start_round(RoundKind::Watch, limit, now);
        cx.send(node, round, Request::Node(verb));
        if cx.nodes.refuses_writes(node) {
            probe(node, cx, now);
        }
        self.set_timer(node, cx, now);
    }

    /// Lets every node vote at once that is only quarantined.
    pub(super) fn bless(&mut self, ask: Ask, cx: &mut Context, now: Now) {
        let survey = Survey::start(cx.quorum(), cx.quorum().nodes());
        self.ask_all(RoundKind::Bless { survey, ask }, cx, now);
    }

    /// Takes in that a node has answered, or failed to, in a round of the watch.
    pub(super) fn on_outcome(
        &mut self,
        id: u64,
        node: usize,
        reply: Option<Reply>,
        cx: &mut Context,
        now: Now,
    ) {
        let Some(round) = cx.rounds.get_mut(id) else {
            return;
        };
        match round.kind_mut() {
            RoundKind::Watch => {
                if let Some(Reply::ServerInfo(server_info)) = reply {
                    cx.nodes.on_server_info(node, server_info);
                }
            }
            RoundKind::Survey { survey, .. } | RoundKind::Bless { survey, .. } => {
                let members = cx.nodes.members();
                match (reply, members.run(node)) {
                    (Some(Reply::Greatest(counter)), Some(run)) => {
                        survey.on_reading(node, run.clone(), members.counters(node), counter);
                    }
                    _ => survey.on_failure(node),
                }
                if survey.is_decided() {
                    self.surveyed(id, cx, now);
                }
            }
            RoundKind::Open { .. } => self.opened(id, node, reply.as_ref(), cx, now),
            _ => {}
        }
    }

    /// Takes in that a round of the watch has reached its time limit.
    pub(super) fn on_limit(&mut self, id: u64, cx: &mut Context, now: Now) {
        match cx.rounds.get(id).map(|round| round.kind()) {
            Some(RoundKind::Survey { .. } | RoundKind::Bless { .. }) => self.surveyed(id, cx, now),
            Some(RoundKind::Open { .. }) => self.opening_over(id, cx, now),
            _ => cx.rounds.forget(id),
        }
    }

    /// Sets when to look at a node: often in quarantine, so that its time counts, and now and then else.
    fn set_timer(&mut self, node: usize, cx: &mut Context, now: Now) {
        let every = match cx.nodes.members().state(node) {
            // Another server has answered.
            Some(_) if cx.nodes.members().is_unexamined(node) => EXAMINE_WITHIN,
            Some(MarkState::Quarantined { .. } | MarkState::Aged { .. }) => {
                cx.config.keyspace.quarantine().step() / 2
            }
            Some(_) => INSPECT_EVERY,
            None => return,
        };
        let at = now.clock + every;
        let watched = &mut self.nodes[node];
        match watched.timer {
            // Whatever makes the node answer counts as a look; the next one may be later, never missing.
            Some(timer) if timer.at() <= at => {}
            other => {
                if let Some(timer) = other {
                    cx.timers.cancel(timer);
                }
                watched.timer = Some(cx.timers.set(at, Timer::Watch(node)));
            }
        }
    }
}

/// Asks a node to write a tombstone that no client needs.
fn probe(node: usize, cx: &mut Context, now: Now) {
    let owner: OwnerId = cx.owner();
    let tombstone = Request::Lock {
        verb: Verb::Tombstone {
            ttl: Duration::from_millis(1),
        },
        lock: Lock {
            mode: Mode::Exclusive,
            keys: cx.config.keyspace.tombstone(owner).into(),
            owner,
        }
        .into(),
    };
    let round = cx.start_round(RoundKind::Probe, cx.config.node_timeout, now);
    cx.send(node, round, tombstone);
}

/// How soon a node is asked what it is that may be another than before.
const EXAMINE_WITHIN: Duration = Duration::from_millis(25);

/// How often a node that votes is asked what it is.
const INSPECT_EVERY: Duration = Duration::from_secs(5);
