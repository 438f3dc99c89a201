//! Late votes: nodes that never had the key of a lease are asked for it, so that the lease outlives the loss of others.

use std::{sync::Arc, time::Duration};

use super::{
    super::{Now, context::Context, rounds::RoundKind},
    Leases, WonLease,
};
use crate::{InLine, LinePlace, Request, Verb};

impl Leases {
    /// Asks the connected nodes that never had the key of a lease for it, as the attempt would have.
    ///
    /// What they answer counts as any late vote does, and whatever is asked of them next comes behind it.
    pub(super) fn spread(&mut self, lease: u64, cx: &mut Context, now: Now) {
        self.spread_past(None, lease, cx, now);
    }

    /// Does the same with a `wish`: a node refuses an owner without one while the wish of another owner is left there.
    ///
    /// Only the script knows wishes, and costs a node more than a transaction.
    pub(super) fn spread_past(
        &mut self,
        wish: Option<Duration>,
        lease: u64,
        cx: &mut Context,
        now: Now,
    ) {
        let client = cx.number();
        let Some(held) = self.held.get_mut(lease) else {
            return;
        };
        let is_alone = |node: usize| cx.nodes.same_server(node).is_none();
        let may_answer = |node: &usize| cx.nodes.is_up(*node) && is_alone(*node);
        let lacks = |node: &usize| held.state.lacks(*node) && may_answer(node);
        let nodes: Vec<usize> = cx.nodes.all().filter(lacks).collect();
        // It need not hear of its turn: it asks again, and finds that it has the key.
        let line = held.first_in_line(cx.rounds.next(), client);
        let late = held.late_acquire(wish, line);
        let Some(request) = late.filter(|_| !nodes.is_empty()) else {
            return;
        };
        for node in &nodes {
            held.state.on_asked(*node);
        }
        let kind = RoundKind::Give { lease };
        let round = cx.start_round(kind, cx.config.node_timeout, now);
        for node in nodes {
            cx.send(node, round, request.clone());
        }
    }

    /// Asks a node that was connected for the keys of the leases that it never had.
    ///
    /// Leases that were not handed out yet, as `is_awaited` says, are spread once they are.
    pub(in super::super) fn on_connected(
        &mut self,
        node: usize,
        is_awaited: impl Fn(u64) -> bool,
        cx: &mut Context,
        now: Now,
    ) {
        let leases = self.held.iter();
        let lacks = |held: &WonLease| held.state.lacks(node);
        let leases = leases.filter(|(lease, held)| lacks(held) && !is_awaited(*lease));
        let leases: Vec<u64> = leases.map(|(lease, _)| lease).collect();
        for lease in leases {
            self.spread(lease, cx, now);
        }
    }

    /// Takes in that a node was lost: the connection to it, or its vote.
    ///
    /// Leases that it has the key of, and that other nodes were not asked for yet, are spread now.
    pub(in super::super) fn on_node_lost(
        &mut self,
        node: usize,
        is_awaited: impl Fn(u64) -> bool,
        cx: &mut Context,
        now: Now,
    ) {
        let mut hurried = Vec::new();
        for (lease, held) in self.held.iter_mut() {
            if !is_awaited(lease)
                && let Some(action) = held.state.on_node_lost(node)
            {
                hurried.push((lease, action));
            }
        }
        for (lease, action) in hurried {
            self.follow(lease, Some(action), cx, now);
        }
    }
}

impl WonLease {
    /// Returns the entry of the holder in the line at a node that another attempt has taken: before all that wait.
    ///
    /// An attempt that cannot win lets the key of that node go, and the holder gets it.
    /// The key lasts for the ttl, which is longer than it takes to the next renewal.
    fn first_in_line(&self, round: u64, client: u64) -> InLine {
        let timing = self.state.timing();
        InLine {
            place: LinePlace::of_holder(client),
            round,
            grant: timing.key_ttl(),
            stay: timing.grant() + timing.lock_delay(),
            at_once: false,
            signs: false,
        }
    }

    /// Returns what a node is asked that never had the key: the same as in the attempt, with the token that it was won with.
    fn late_acquire(&self, wish: Option<Duration>, line: InLine) -> Option<Request> {
        let tokens = self.tokens?;
        let (first, last) = (tokens.first().get(), tokens.last().get());
        Some(Request::Lock {
            verb: Verb::Acquire {
                ttl: self.state.timing().key_ttl(),
                proposal: first,
                block: u32::try_from(last - first + 1).unwrap_or(u32::MAX),
                wish,
                line: wish.is_none().then_some(line),
            },
            lock: Arc::clone(&self.lock),
        })
    }
}
