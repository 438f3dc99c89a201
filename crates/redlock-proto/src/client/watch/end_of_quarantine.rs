//! The last step of a node's way back: the floor of its counters is found, and the node is asked to vote.

use super::super::{
    Ask, Effect, Notice, Now, context::Context, rounds::RoundKind, token_proposals::wall,
};
use crate::{Floor, MarkState, NodeAnswer, NodeTime, NodeVerb, Reply, Request, Survey};

/// Asks every node for the greatest of its counters.
pub(super) fn ask_all(mut kind: RoundKind, cx: &mut Context, now: Now) {
    let (RoundKind::Survey { survey, .. } | RoundKind::Bless { survey, .. }) = &mut kind else {
        return;
    };
    let (up, down): (Vec<usize>, Vec<usize>) =
        cx.nodes.all().partition(|node| cx.nodes.is_up(*node));
    for node in down {
        survey.on_failure(node);
    }
    let is_complete = survey.is_complete();
    let round = cx.start_round(kind, cx.config.node_timeout, now);
    for node in up {
        cx.send(node, round, Request::Node(NodeVerb::Survey));
    }
    if is_complete {
        surveyed(round, cx, now);
    }
}

/// Takes in that the counters of all nodes were read, as far as they will be.
pub(in super::super) fn surveyed(id: u64, cx: &mut Context, now: Now) {
    cx.end_limit(id);
    let Some(round) = cx.rounds.remove(id) else {
        return;
    };
    let age = now.clock.saturating_since(round.started);
    match round.kind {
        RoundKind::Survey { survey, since } => {
            let fresh = age <= 2 * cx.config.node_timeout;
            seed(&survey, since, fresh, cx, now);
        }
        RoundKind::Bless { survey, ask } => open_all(&survey, ask, cx, now),
        _ => {}
    }
}

/// Notes that a node that was asked to vote has answered.
pub(in super::super) fn opened(
    id: u64,
    node: usize,
    reply: Option<&Reply>,
    cx: &mut Context,
    now: Now,
) {
    survey_over(node, cx, now);
    if reply == Some(&Reply::Done) {
        cx.nodes.watch(node).surveys = 0;
        cx.nodes.on_opened(node);
    }
    if cx.rounds.get(id).is_some_and(|round| round.open == 0) {
        opening_over(id, cx, now);
    }
}

/// Ends a round in which nodes were asked to vote: each has answered, or will not.
pub(in super::super) fn opening_over(id: u64, cx: &mut Context, now: Now) {
    cx.end_limit(id);
    let Some(round) = cx.rounds.remove(id) else {
        return;
    };
    let RoundKind::Open { ask, nodes } = &round.kind else {
        return;
    };
    for node in nodes {
        survey_over(*node, cx, now);
    }
    if let Some(ask) = *ask {
        let mut answers = cx.nodes.standing(now);
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
        cx.outbox.push(Effect::Blessed { ask, answers });
    }
}

/// Ends a search for a node's floor; if the node still does not vote, the next search is not begun at once.
fn survey_over(node: usize, cx: &mut Context, now: Now) {
    let pause = cx.config.keyspace.quarantine().step() / 2;
    let watch = cx.nodes.watch(node);
    watch.surveying = false;
    watch.survey_after = now.clock + pause;
}

/// Tells a node whose quarantine has ended the floor of its counters, if it is known.
fn seed(survey: &Survey, since: NodeTime, fresh: bool, cx: &mut Context, now: Now) {
    let node = survey.node();
    let watch = cx.nodes.watch(node);
    watch.surveys += 1;
    // The nodes that could complete a majority with kept counters have stayed away for seconds.
    let is_late = watch.surveys > PATIENCE;
    if let Some(reason) = cx.nodes.longer_policy() {
        cx.nodes.on_trouble(node, reason);
        return survey_over(node, cx, now);
    }
    let floor = if is_late && cx.config.keyspace.quarantine().guesses_floors() {
        survey.floor_of_those_up()
    } else {
        // A node that is away for a moment may know more.
        survey
            .floor()
            .filter(|floor| is_late || survey.has_read_all() || matches!(floor, Floor::Known(_)))
    };
    // If it cannot even be read, its error says more.
    if is_late && floor.is_none() && survey.has_read(node) {
        cx.nodes.on_trouble(node, WAITS_FOR_COUNTERS.into());
    }
    // What a right clock shows says which ticks it may have forgotten, whatever else keeps it from voting.
    let horizon = cx.nodes.right_time(node, now.clock);
    let (Some(floor), Some(horizon), true) = (floor, horizon, fresh) else {
        return survey_over(node, cx, now);
    };
    let floor = match floor {
        Floor::Known(floor) => cx.tokens.at_least_seen(floor),
        Floor::Degraded(floor) => stand_in(floor, node, survey, cx, now),
    };
    let nodes = vec![node];
    let kind = RoundKind::Open { ask: None, nodes };
    let round = cx.start_round(kind, cx.config.node_timeout, now);
    let verb = NodeVerb::Open {
        floor,
        since,
        horizon: Some(horizon),
    };
    cx.send(node, round, Request::Node(verb));
}

/// Tells every node that is quarantined to vote.
fn open_all(survey: &Survey, ask: Ask, cx: &mut Context, now: Now) {
    let since = |node| match cx.nodes.mark(node) {
        Some(MarkState::Aged { since } | MarkState::Quarantined { since, .. }) => Some(*since),
        _ => None,
    };
    let nodes = cx.nodes.all();
    let opened: Vec<(usize, NodeTime)> = nodes
        .filter_map(|node| Some((node, since(node)?)))
        .collect();
    let floors: Vec<u64> = opened
        .iter()
        .map(|(node, _)| match survey.floor() {
            Some(Floor::Known(floor)) => cx.tokens.at_least_seen(floor),
            _ => stand_in(survey.greatest(), *node, survey, cx, now),
        })
        .collect();
    let kind = RoundKind::Open {
        ask: Some(ask),
        nodes: opened.iter().map(|(node, _)| *node).collect(),
    };
    let round = cx.start_round(kind, cx.config.node_timeout, now);
    for ((node, since), floor) in opened.iter().zip(floors) {
        let verb = NodeVerb::Open {
            floor,
            since: *since,
            horizon: None,
        };
        cx.send(*node, round, Request::Node(verb));
    }
    if opened.is_empty() {
        opening_over(round, cx, now);
    }
}

/// Returns a floor where too few nodes know it: no less than what they and this client know, and the clock.
fn stand_in(floor: u64, node: usize, survey: &Survey, cx: &mut Context, now: Now) -> u64 {
    let is_first_use = survey.is_first_use() || cx.nodes.is_new(node);
    cx.notice(Notice::FencingDegraded { node, is_first_use });
    let floor = cx.tokens.at_least_seen(floor);
    wall(now).map_or(floor, |wall| floor.max(wall))
}

/// The number of searches for a floor that may fail, half a step apart at least, before the client reports it.
/// If the policy guesses floors, the nodes that are up are then enough.
const PATIENCE: u32 = 8;

/// What an operator can do about it.
const WAITS_FOR_COUNTERS: &str = "it has lost its fencing counters, and too few nodes that have kept theirs can be reached; bring those back, or bless the nodes";
