//! The traffic on one connection.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use super::{LinkConfig, Op};
use crate::Instant;

/// What waits to be sent over one connection, and what waits for its answer.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    pub(super) queue: VecDeque<Op>,
    /// Since when each request in the queue waits, releases aside.
    pub(super) waiting: VecDeque<Instant>,
    // By the order in which they were sent, so the first is the oldest.
    in_flight: BTreeMap<u64, InFlight>,
    idle_since: Instant,
}

/// A call that was sent.
#[derive(Debug)]
pub(super) struct InFlight {
    /// When, on the client's clock.
    pub(super) sent: Instant,
    pub(super) ops: Vec<Op>,
}

impl Traffic {
    pub(super) const fn on_connected(&mut self, now: Instant) {
        self.idle_since = now;
    }

    /// Adds a request behind those that wait.
    pub(super) fn push(&mut self, op: Op, now: Instant) {
        if !op.request.is_release() {
            self.waiting.push_back(now);
        }
        self.queue.push_back(op);
    }

    /// Adds releases before those that wait; they may overtake, as each is its owner's last request.
    pub(super) fn push_front(&mut self, releases: Vec<Op>) {
        for release in releases.into_iter().rev() {
            self.queue.push_front(release);
        }
    }

    /// Takes what travels in the next call: nothing in a heartbeat, `None` if there is no next call.
    pub(super) fn next_ops(&mut self, config: &LinkConfig, now: Instant) -> Option<Vec<Op>> {
        if self.queue.is_empty() {
            let is_idle = self.in_flight.is_empty() && self.idle_since + config.heartbeat <= now;
            return is_idle.then(Vec::new);
        }
        if self.in_flight.len() >= config.calls {
            return None;
        }
        let plain = self.queue.iter().take(config.plain_requests_per_call);
        let plain = plain.take_while(|op| op.request.is_plain()).count();
        let take = self.queue.len().min(config.requests_per_call).max(plain);
        let ops: Vec<Op> = self.queue.drain(..take).collect();
        let requests = ops.iter().filter(|op| !op.request.is_release());
        self.waiting.drain(..requests.count());
        Some(ops)
    }

    pub(super) fn sent(&mut self, call: u64, in_flight: InFlight) {
        self.in_flight.insert(call, in_flight);
    }

    /// Takes a call that was answered, or has failed.
    pub(super) fn take_answered(&mut self, call: u64, now: Instant) -> Option<InFlight> {
        let call = self.in_flight.remove(&call)?;
        self.idle_since = now;
        Some(call)
    }

    /// Takes all that is left when the connection is lost: what was sent, and what was not.
    pub(super) fn take_all(&mut self) -> (Vec<Op>, VecDeque<Op>) {
        let Self {
            queue, in_flight, ..
        } = std::mem::take(self);
        let sent = in_flight.into_values().flat_map(|call| call.ops);
        (sent.collect(), queue)
    }

    /// Returns how long the oldest call has waited for its answer.
    pub(super) fn silence(&self, now: Instant) -> Duration {
        let oldest = self.in_flight.first_key_value();
        oldest.map_or(Duration::ZERO, |(_, call)| now.saturating_since(call.sent))
    }

    /// Returns when something is to be looked at, if nothing happens before.
    pub(super) fn next_check(&self, config: &LinkConfig, now: Instant) -> Instant {
        let Some((_, oldest)) = self.in_flight.first_key_value() else {
            return self.idle_since + config.heartbeat;
        };
        let lags_at = oldest.sent + config.lag_after;
        if now < lags_at {
            lags_at
        } else {
            oldest.sent + config.give_up_after
        }
    }

    pub(super) fn queue(&self) -> impl Iterator<Item = &Op> {
        self.queue.iter()
    }

    /// Returns how many requests wait to be sent, or for their answer.
    pub(super) fn len(&self) -> usize {
        let sent = self.in_flight.values().map(|call| call.ops.len());
        self.queue.len() + sent.sum::<usize>()
    }
}
