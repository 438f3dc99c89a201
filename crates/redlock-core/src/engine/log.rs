//! What the log says, under targets that stay as they are: `redlock::node`, `redlock::quorum` and `redlock::lease`.

use std::sync::Arc;

use redlock_proto::{Loss, Majority, Notice};

use crate::{LossReason, lease::LeaseShared};

const NODE: &str = "redlock::node";
const QUORUM: &str = "redlock::quorum";
const LEASE: &str = "redlock::lease";

pub(super) fn is_down(node: &str, reason: &str) {
    tracing::warn!(target: NODE, node, reason, "node is down");
}

pub(super) fn is_back(node: &str) {
    tracing::info!(target: NODE, node, "node is back");
}

pub(super) fn lost(lease: &LeaseShared, loss: Loss) {
    let (class, token, cause) = (lease.class(), lease.token().get(), LossReason::from(loss));
    tracing::warn!(target: LEASE, class, token, %cause, "a lease was lost before its release");
}

/// Tells what an operator should know; a lease is looked up by its number.
pub(super) fn notice<'a>(
    notice: &Notice,
    names: &[Arc<str>],
    lease: impl FnOnce(u64) -> Option<&'a LeaseShared>,
) {
    match notice {
        Notice::Votes { node } => {
            tracing::info!(target: NODE, node = &*names[*node], "node votes");
        }
        Notice::DoesNotVote {
            node,
            reason,
            forgot,
        } => {
            let (node, cause) = (&*names[*node], forgot.map(tracing::field::display));
            tracing::warn!(target: NODE, node, %reason, cause, "node does not vote");
        }
        Notice::RefusesWrites { node, reason } => {
            let node = &*names[*node];
            tracing::warn!(target: NODE, node, %reason, "node refuses to write");
        }
        Notice::Writes { node } => {
            tracing::info!(target: NODE, node = &*names[*node], "node writes again");
        }
        Notice::Majority { is, votes, needed } => majority(*is, *votes, *needed, names.len()),
        Notice::FencingDegraded {
            node,
            is_first_use: true,
        } => tracing::info!(
            target: QUORUM,
            node = &*names[*node],
            "no node has counted fencing tokens yet: they begin at the wall clock"
        ),
        Notice::FencingDegraded { node, .. } => tracing::warn!(
            target: QUORUM,
            node = &*names[*node],
            "too few nodes have kept their fencing counters: the wall clock stands in, so that a token may be \
             smaller than one before"
        ),
        Notice::Endangered { lease: id } => {
            if let Some(lease) = lease(*id) {
                let (class, token) = (lease.class(), lease.token().get());
                let left = lease.remaining();
                tracing::warn!(
                    target: LEASE,
                    class,
                    token,
                    ?left,
                    "a lease is in danger: no majority has confirmed its renewal"
                );
            }
        }
        Notice::ExtensionFailed => tracing::debug!(
            target: LEASE,
            "no majority confirmed an extension; the lease keeps its deadline"
        ),
        _ => {}
    }
}

fn majority(is: Majority, votes: usize, needed: usize, nodes: usize) {
    match is {
        Majority::Lost => tracing::warn!(
            target: QUORUM,
            votes,
            needed,
            nodes,
            "majority lost: nothing is acquired or renewed until more nodes vote"
        ),
        Majority::Regained => {
            tracing::info!(target: QUORUM, votes, needed, nodes, "majority regained");
        }
        Majority::AtRisk => tracing::warn!(
            target: QUORUM,
            votes,
            needed,
            nodes,
            "majority at risk: it is lost with one more node"
        ),
        Majority::Safe => {
            tracing::info!(target: QUORUM, votes, needed, nodes, "majority safe again");
        }
    }
}
