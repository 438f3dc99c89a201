//! The log, under targets that stay as they are: `redlock::node`, `redlock::quorum` and `redlock::lease`.

use std::sync::Arc;

use redlock_proto::{Majority, Notice};

use crate::names::NodeNames;
use crate::{FencingToken, Lease, LossReason};

const NODE: &str = "redlock::node";
const QUORUM: &str = "redlock::quorum";
const LEASE: &str = "redlock::lease";

/// Which client of the process says it, and in which namespace it is.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) client: u64,
    pub(crate) namespace: Arc<str>,
}

/// An event with its origin.
///
/// A field with spaces is a text, which subscribers quote, and no `Display`, which they do not.
macro_rules! event {
    ($level:ident, $target:expr, $origin:expr, $($field:tt)*) => {
        tracing::$level!(
            target: $target,
            client = $origin.client,
            namespace = &*$origin.namespace,
            $($field)*
        )
    };
}

impl Origin {
    pub(super) fn node_down(&self, node: &str, reason: &str) {
        event!(warn, NODE, self, node, reason, "node is down");
    }

    /// There is a connection to a node, after it was down or at another server than before.
    pub(super) fn node_up(&self, node: &str, server: Option<&str>, is_back: bool) {
        if is_back {
            event!(info, NODE, self, node, server, "node is back");
        } else {
            event!(info, NODE, self, node, server, "node is up");
        }
    }

    pub(super) fn lost(&self, lease: &Lease, cause: LossReason) {
        let (class, token) = (lease.class(), lease.token().get());
        event!(
            warn,
            LEASE,
            self,
            class,
            token,
            cause = cause.to_string(),
            "a lease was lost before its release: another may hold what it was on"
        );
    }

    pub(crate) fn outlives_its_scope(&self, class: &str, token: FencingToken) {
        let token = token.get();
        event!(
            warn,
            LEASE,
            self,
            class,
            token,
            "a guard outlives its scope, which has ended: nobody can rely on the lease any more"
        );
    }

    /// The node's messages to this client are not heard.
    pub(super) fn cannot_listen(&self, node: &str, reason: &str) {
        event!(
            debug,
            NODE,
            self,
            node,
            reason,
            "node cannot tell callers that it is their turn: they ask again after random pauses"
        );
    }

    /// Tells what an operator should know; a lease is looked up by its number.
    pub(super) fn notice<'a>(
        &self,
        notice: &Notice,
        names: &NodeNames,
        lease: impl FnOnce(u64) -> Option<&'a Lease>,
    ) {
        let name = |node: usize| &*names[node].name;
        let server = |node: usize| names[node].server();
        match notice {
            Notice::Votes { node } => {
                let (node, server) = (name(*node), server(*node));
                let server = server.as_deref();
                event!(info, NODE, self, node, server, "node votes");
            }
            Notice::DoesNotVote {
                node,
                reason,
                forgot,
            } => {
                let (node, server) = (name(*node), server(*node));
                let server = server.as_deref();
                let cause = forgot.map(|forgot| forgot.to_string());
                event!(
                    warn,
                    NODE,
                    self,
                    node,
                    server,
                    reason = reason.to_string(),
                    cause,
                    "node does not vote"
                );
            }
            Notice::FirstStart { nodes, ready_in } => {
                let (nodes, seconds) = (*nodes, ready_in.as_secs_f64().ceil());
                let namespace = &*self.namespace;
                event!(
                    warn,
                    QUORUM,
                    self,
                    nodes,
                    "first start of namespace {namespace}, or all of its nodes have restarted: locks in {seconds} s; fencing \
                     tokens begin at the wall clock; if the nodes are new, do not wait: `redlock bless`"
                );
            }
            Notice::RefusesWrites { node, reason } => {
                let node = name(*node);
                event!(
                    warn,
                    NODE,
                    self,
                    node,
                    reason = &**reason,
                    "node refuses to write"
                );
            }
            Notice::Writes { node } => {
                event!(info, NODE, self, node = name(*node), "node writes again");
            }
            Notice::Majority { is, votes, needed } => {
                self.majority(*is, *votes, *needed, names.len());
            }
            Notice::FencingDegraded {
                node,
                is_first_use: true,
            } => event!(
                info,
                QUORUM,
                self,
                node = name(*node),
                "fencing tokens begin at the wall clock, as on a first start"
            ),
            Notice::FencingDegraded { node, .. } => event!(
                warn,
                QUORUM,
                self,
                node = name(*node),
                "too few nodes have kept their fencing counters: the wall clock stands in, so that a token may be \
                 smaller than one before"
            ),
            Notice::Endangered { lease: id } => {
                if let Some(lease) = lease(*id) {
                    let (class, token) = (lease.class(), lease.token().get());
                    let left = lease.remaining();
                    event!(
                        warn,
                        LEASE,
                        self,
                        class,
                        token,
                        ?left,
                        "a lease is in danger: no majority has confirmed its renewal; look at the nodes"
                    );
                }
            }
            Notice::ExtensionFailed { lease: id } => {
                if let Some(lease) = lease(*id) {
                    let (class, token) = (lease.class(), lease.token().get());
                    event!(
                        debug,
                        LEASE,
                        self,
                        class,
                        token,
                        "no majority confirmed an extension; the lease keeps its deadline"
                    );
                }
            }
            _ => {}
        }
    }

    fn majority(&self, is: Majority, votes: usize, needed: usize, nodes: usize) {
        macro_rules! say {
            ($level:ident, $text:literal) => {
                event!($level, QUORUM, self, votes, needed, nodes, $text)
            };
        }
        match is {
            Majority::Lost => say!(
                warn,
                "majority lost: nothing is acquired or renewed until more nodes vote: bring back those that are down, and see why \
                 the others do not"
            ),
            Majority::Regained => say!(info, "majority regained"),
            Majority::AtRisk => say!(
                warn,
                "majority at risk: it is lost with one more node; restart none of those that vote"
            ),
            Majority::Safe => say!(info, "majority safe again"),
        }
    }
}
