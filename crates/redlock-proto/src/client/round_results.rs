//! The one dispatch of what becomes of a round: to the part that the round is for.

use super::{
    Client, Now, leases,
    rounds::{Limit, Rest, RoundKind},
    watch,
};
use crate::{NodeOutcome, Reply};

impl Client {
    /// Takes in that a node's outcome in a round became known.
    pub(super) fn on_outcome(
        &mut self,
        id: u64,
        node: usize,
        outcome: NodeOutcome,
        reply: Option<Reply>,
        now: Now,
    ) {
        let Self { leases, cx, .. } = self;
        let Some(round) = cx.rounds.get_mut(id) else {
            return;
        };
        match &mut round.kind {
            RoundKind::Attempt { .. } | RoundKind::Decided { .. } | RoundKind::WriteBack { .. } => {
                let result = (node, outcome, reply.as_ref());
                self.acquisitions.on_outcome(id, result, leases, cx, now);
            }
            RoundKind::Extension {
                extension, lease, ..
            } => {
                let lease = *lease;
                if let Some(held) = leases.get_mut(lease) {
                    held.state.on_extension_outcome(node, outcome);
                }
                if let Some(verdict) = extension.on_outcome(node, outcome, now.clock) {
                    leases.extended(id, verdict, cx, now);
                } else if let Some(verdict) = extension.verdict() {
                    leases.heal(lease, node, verdict, outcome, cx, now);
                }
            }
            RoundKind::Give { lease } => {
                if let Some(held) = leases.get_mut(*lease) {
                    held.state.on_late_outcome(node, outcome);
                }
            }
            RoundKind::Release { release, .. } => {
                if let Some(verdict) = release.on_outcome(node, outcome, now.clock) {
                    leases::released(id, verdict, cx, now);
                }
            }
            RoundKind::Sign => {
                if reply == Some(Reply::Missing) {
                    let sent = round.started;
                    self.acquisitions.ask_soon(sent, cx, now);
                }
            }
            RoundKind::Recheck {
                acquisition,
                attempt,
            } => {
                let asked = (*acquisition, *attempt);
                self.acquisitions.on_recheck(asked, reply.as_ref(), cx, now);
            }
            RoundKind::Watch => {
                if let Some(Reply::ServerInfo(server_info)) = reply {
                    cx.nodes.on_server_info(node, server_info);
                }
            }
            RoundKind::Survey { survey, .. } | RoundKind::Bless { survey, .. } => {
                match (reply, cx.nodes.run(node)) {
                    (Some(Reply::Greatest(counter)), Some(run)) => {
                        if cx.nodes.may_be_another(node) {
                            survey.on_moved(node);
                        }
                        survey.on_reading(node, run.clone(), cx.nodes.counters(node), counter);
                    }
                    _ => survey.on_failure(node),
                }
                if survey.is_decided() {
                    watch::surveyed(id, cx, now);
                }
            }
            RoundKind::Open { .. } => watch::opened(id, node, reply.as_ref(), cx, now),
            RoundKind::Read { .. } => cx.on_read(id, node, reply, now),
            RoundKind::Record | RoundKind::Probe => {}
        }
    }

    /// Takes in that a round's time is over.
    ///
    /// Nodes have more time if their requests wait in this client, or if they answer others.
    pub(super) fn on_round_limit(&mut self, id: u64, now: Now) {
        let Self {
            acquisitions,
            leases,
            cx,
        } = self;
        let Some(round) = cx.rounds.get_mut(id) else {
            return;
        };
        let limit = match round.rest(&cx.nodes, now.clock) {
            Rest::Until(at) => return cx.wait_until(id, at),
            Rest::Over(limit) => limit,
        };
        round.on_limit(limit);
        match &mut round.kind {
            RoundKind::Attempt {
                held_back: Some(_), ..
            } => {
                acquisitions.on_patience_over(id, leases, cx, now);
                cx.forget_if_over(id);
            }
            RoundKind::Attempt { attempt, .. } => {
                let verdict = match limit {
                    Limit::Split => attempt.on_split(now.clock),
                    Limit::Silence => attempt.on_time_limit(now.clock),
                    Limit::RanOut => attempt.on_overload(now.clock),
                };
                if let Some(verdict) = verdict {
                    acquisitions.attempted(id, verdict, leases, cx, now);
                }
                // All nodes may have answered one that stood in line.
                cx.forget_if_over(id);
            }
            RoundKind::WriteBack { extension, .. } => {
                if let Some(verdict) = extension.on_time_limit(now.clock) {
                    acquisitions.settled(id, verdict, leases, cx, now);
                }
                cx.forget_if_over(id);
            }
            RoundKind::Extension {
                extension,
                is_narrow,
                ..
            } => {
                if *is_narrow {
                    cx.nodes.on_late(extension.votes());
                }
                if let Some(verdict) = extension.on_time_limit(now.clock) {
                    leases.extended(id, verdict, cx, now);
                }
            }
            RoundKind::Release { release, .. } => {
                if let Some(verdict) = release.on_time_limit(now.clock) {
                    leases::released(id, verdict, cx, now);
                }
                // Whatever is still owed to a node is its link's business.
                cx.rounds.forget(id);
            }
            RoundKind::Survey { .. } | RoundKind::Bless { .. } => watch::surveyed(id, cx, now),
            RoundKind::Open { .. } => watch::opening_over(id, cx, now),
            RoundKind::Read { .. } => cx.job_read(id, now),
            // A node that stood still tells later that it had no sign.
            RoundKind::Decided { .. } | RoundKind::Give { .. } | RoundKind::Sign => {}
            RoundKind::Recheck { .. } | RoundKind::Watch | RoundKind::Record | RoundKind::Probe => {
                cx.rounds.forget(id);
            }
        }
    }
}
