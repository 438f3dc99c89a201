//! The watch over the nodes: what they are, where they stand, and their way back from quarantine.

mod end_of_quarantine;

use std::time::Duration;

use self::end_of_quarantine::ask_all;
pub(super) use self::end_of_quarantine::{opened, opening_over, surveyed};
use super::{Ask, ClientConfig, Now, context::Context, rounds::RoundKind, timers::Timer};
use crate::{Lock, LockMode, MarkState, NodeVerb, OwnerId, Request, ServerInfo, Survey, Verb};

/// Takes in that a connection to a node was made, and the node said what it is.
pub(super) fn on_connected(
    node: usize,
    server_info: Option<ServerInfo>,
    cx: &mut Context,
    now: Now,
) {
    cx.nodes.watch(node).inspected = now.clock;
    if let Some(server_info) = server_info {
        cx.nodes.on_server_info(node, server_info);
    }
    on_standing(node, cx, now);
}

/// Takes in that the connection to a node was lost: what is behind the next one is unknown.
pub(super) fn on_disconnected(node: usize, cx: &mut Context) {
    let watched = std::mem::take(cx.nodes.watch(node));
    if let Some(timer) = watched.timer {
        cx.timers.cancel(timer);
    }
}

/// Takes in that a node said where it stands, and does what follows from it.
pub(super) fn on_standing(node: usize, cx: &mut Context, now: Now) {
    if cx.nodes.tell(node, now, &mut cx.outbox) {
        cx.judge(now);
    }
    if let Some(MarkState::Aged { since }) = cx.nodes.mark(node).cloned()
        && let watch = cx.nodes.watch(node)
        && !watch.surveying
        && now.clock >= watch.survey_after
    {
        watch.surveying = true;
        let survey = Survey::start(cx.quorum(), node);
        ask_all(RoundKind::Survey { survey, since }, cx, now);
    }
    set_timer(node, cx, now);
}

/// Looks at a node because it is time.
pub(super) fn on_timer(node: usize, cx: &mut Context, now: Now) {
    let is_unexamined = cx.nodes.is_unexamined(node);
    let inspect_every = cx.config.inspect_every;
    let watch = cx.nodes.watch(node);
    watch.timer = None;
    let due = watch.inspected + inspect_every;
    let verb = if now.clock >= due || is_unexamined {
        watch.inspected = now.clock;
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
    set_timer(node, cx, now);
}

/// Lets every node vote at once that is only quarantined.
pub(super) fn bless(ask: Ask, cx: &mut Context, now: Now) {
    let survey = Survey::start(cx.quorum(), cx.quorum().nodes());
    ask_all(RoundKind::Bless { survey, ask }, cx, now);
}

/// Sets when to look at a node: often in quarantine, so that its time counts, and now and then else.
fn set_timer(node: usize, cx: &mut Context, now: Now) {
    let every = match cx.nodes.mark(node) {
        // Another server has answered.
        Some(_) if cx.nodes.is_unexamined(node) => EXAMINE_WITHIN,
        Some(MarkState::Quarantined { .. } | MarkState::Aged { .. }) => {
            cx.config.keyspace.quarantine().step() / 2
        }
        // It may be over at any moment.
        Some(_) if cx.nodes.refuses_writes(node) => ClientConfig::INSPECT_EVERY,
        Some(_) => cx.config.inspect_every,
        None => return,
    };
    let at = now.clock + every;
    match cx.nodes.watch(node).timer {
        // Whatever makes the node answer counts as a look; the next one may be later, never missing.
        Some(timer) if timer.at() <= at => {}
        other => {
            if let Some(timer) = other {
                cx.timers.cancel(timer);
            }
            cx.nodes.watch(node).timer = Some(cx.timers.set(at, Timer::Watch(node)));
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
            mode: LockMode::Exclusive,
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
