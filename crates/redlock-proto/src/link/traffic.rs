//! The traffic on one connection.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use super::LinkConfig;
use crate::{Instant, Lock, LockMode, OwnerId, Request, Shard, Verb};

/// What waits to be sent over one connection, and what waits for its answer.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    pub(super) queue: VecDeque<QueuedRequest>,
    /// Since when each request in the queue waits, releases aside.
    pub(super) waiting: VecDeque<Instant>,
    // By the order in which they were sent, so the first is the oldest.
    in_flight: BTreeMap<u64, CallInFlight>,
    idle_since: Instant,
    /// Whether the node keeps requests waiting for longer than it may.
    pub(super) lags: bool,
}

/// A call that was sent.
#[derive(Debug)]
pub(super) struct CallInFlight {
    /// A reading of the client's clock before its first byte was sent.
    pub(super) sent: Instant,
    /// A reading after the call was handed over to be written; `None` before that.
    pub(super) written: Option<Instant>,
    pub(super) ops: Vec<QueuedRequest>,
    pub(super) is_transaction: bool,
}

impl Traffic {
    pub(super) const fn on_connected(&mut self, now: Instant) {
        self.idle_since = now;
    }

    /// Adds a request behind those that wait.
    pub(super) fn push(&mut self, op: QueuedRequest, now: Instant) {
        if !op.request.is_release() {
            self.waiting.push_back(now);
        }
        self.queue.push_back(op);
    }

    /// Adds releases before those that wait; they may overtake, as each is its owner's last request.
    pub(super) fn push_front(&mut self, releases: Vec<QueuedRequest>) {
        for release in releases.into_iter().rev() {
            self.queue.push_front(release);
        }
    }

    /// Adds requests before those that wait, to be asked again in calls that are no transactions; `may_have_run` if the
    /// transaction may have carried them out.
    pub(super) fn ask_again(&mut self, ops: Vec<QueuedRequest>, may_have_run: bool, now: Instant) {
        let since = self.waiting.front().map_or(now, |since| *since.min(&now));
        for op in ops.into_iter().rev() {
            self.waiting.push_front(since);
            self.queue.push_front(QueuedRequest {
                must_look_first: true,
                may_have_run: op.may_have_run || may_have_run,
                ..op
            });
        }
    }

    /// Takes what travels in the next call, and whether that is a transaction: nothing in a heartbeat, `None` if there is no
    /// next call.
    ///
    /// The node can carry out as a transaction what is plain and of different keys, if it `votes`; if it does not, what
    /// only releases keys.
    pub(super) fn next_ops(
        &mut self,
        votes: bool,
        config: &LinkConfig,
        now: Instant,
    ) -> Option<(Vec<QueuedRequest>, bool)> {
        if self.queue.is_empty() {
            let is_idle = self.in_flight.is_empty() && self.idle_since + config.heartbeat <= now;
            return is_idle.then(|| (Vec::new(), false));
        }
        if self.in_flight.len() >= config.calls {
            return None;
        }
        let fits_transaction = |op: &&QueuedRequest| {
            let request = &op.request;
            request.is_plain() && !op.must_look_first && (votes || request.is_release())
        };
        let most = self.queue.iter().take(config.plain_requests_per_call);
        let mut keys = DistinctKeys::default();
        let fitting = most.clone().take_while(fits_transaction).enumerate();
        let is_new = |(index, op): &(usize, &QueuedRequest)| {
            keys.add(&op.request, most.clone().take(*index))
        };
        let fitting = fitting.take_while(is_new).count();
        let take = if fitting > 0 {
            fitting
        } else {
            let others = most.take_while(|op| !fits_transaction(op));
            let plain = others.clone().take_while(|op| op.request.is_plain());
            others
                .take(config.requests_per_call)
                .count()
                .max(plain.count())
        };
        // A node that hears of a release hears of the end of its run in the same step; the end may have been said twice.
        let pairs = self.queue.iter().zip(self.queue.iter().skip(1));
        let is_cut = |(end, behind): &(&QueuedRequest, &QueuedRequest)| {
            let is_of_run = matches!(end.request, Request::Job { .. });
            is_of_run && end.request.is_release() && behind.request.is_release()
        };
        let more = pairs.skip(take - 1).take(2).take_while(is_cut).count();
        let take = take + more;
        let ops: Vec<QueuedRequest> = self.queue.drain(..take).collect();
        let requests = ops.iter().filter(|op| !op.request.is_release());
        self.waiting.drain(..requests.count());
        Some((ops, fitting > 0))
    }

    pub(super) fn sent(
        &mut self,
        call: u64,
        sent: Instant,
        ops: Vec<QueuedRequest>,
        is_transaction: bool,
    ) {
        let in_flight = CallInFlight {
            sent,
            written: None,
            ops,
            is_transaction,
        };
        self.in_flight.insert(call, in_flight);
    }

    /// Returns whether something was sent on an owner's behalf that a late acquire would undo, or its release waits to be
    /// sent.
    ///
    /// A plain extension is nothing of that kind, unless the owner shares the key by now.
    pub(super) fn is_followed(&self, owner: OwnerId) -> bool {
        let is_plain = |verb: &Verb, lock: &Lock| {
            let is_extension =
                matches!(verb, Verb::Extend { write_back, .. } if write_back.is_none());
            is_extension && lock.mode == LockMode::Exclusive
        };
        let is_its = |op: &&QueuedRequest| match &op.request {
            Request::Lock { verb, lock } => lock.owner == owner && !is_plain(verb, lock),
            _ => false,
        };
        let mut sent = self.in_flight.values().flat_map(|call| &call.ops);
        let mut unsent = self.queue.iter().filter(is_its);
        sent.any(|op| is_its(&op)) || unsent.any(|op| op.request.is_release())
    }

    /// Notes that all calls were handed over to be written by `now`.
    pub(super) fn on_written(&mut self, now: Instant) {
        let calls = self.in_flight.values_mut().rev();
        for call in calls.take_while(|call| call.written.is_none()) {
            call.written = Some(now);
        }
    }

    /// Takes a call that was answered, or has failed.
    pub(super) fn take_answered(&mut self, call: u64, now: Instant) -> Option<CallInFlight> {
        let call = self.in_flight.remove(&call)?;
        self.idle_since = now;
        self.lags = false;
        Some(call)
    }

    /// Takes all that is left when the connection is lost: what was sent, and what was not.
    pub(super) fn take_all(&mut self) -> (Vec<QueuedRequest>, VecDeque<QueuedRequest>) {
        let Self {
            queue, in_flight, ..
        } = std::mem::take(self);
        let sent = in_flight.into_values().flat_map(|call| call.ops);
        (sent.collect(), queue)
    }

    /// Returns when the oldest call without an answer was written.
    fn oldest(&self) -> Option<Instant> {
        self.in_flight.first_key_value()?.1.written
    }

    /// Returns since when the node has said nothing although a call waits for its answer; `None` if none was written.
    pub(super) fn awaited(&self) -> Option<Instant> {
        Some(self.oldest()?.max(self.idle_since))
    }

    /// Returns how long the oldest call has waited for its answer.
    pub(super) fn silence(&self, now: Instant) -> Duration {
        self.oldest()
            .map_or(Duration::ZERO, |written| now.saturating_since(written))
    }

    /// Judges whether the node lags, by what it had answered at `now`; returns for how long it has kept requests waiting
    /// if it does.
    ///
    /// A node that answers gets more time: its requests may have waited in this client.
    pub(super) fn lag(&self, config: &LinkConfig, now: Instant) -> Option<Duration> {
        let waited = |since: Option<Instant>| since.map(|since| now.saturating_since(since));
        let silent = waited(self.awaited()).filter(|silent| *silent >= config.lag_after);
        let queued = waited(self.waiting.front().copied());
        let queued = queued.filter(|queued| *queued >= config.give_up_after);
        silent.max(queued)
    }

    /// Returns when something is to be looked at, if nothing happens before.
    pub(super) fn next_check(&self, config: &LinkConfig) -> Instant {
        let Some((_, oldest)) = self.in_flight.first_key_value() else {
            return self.idle_since + config.heartbeat;
        };
        let written = oldest.written.unwrap_or(oldest.sent);
        let gives_up_at = written + config.give_up_after;
        if self.lags {
            return gives_up_at;
        }
        let silent_at = written.max(self.idle_since) + config.lag_after;
        let queued = self.waiting.front();
        let queued_at = queued.map_or(gives_up_at, |since| *since + config.give_up_after);
        gives_up_at.min(silent_at).min(queued_at)
    }

    pub(super) fn queue(&self) -> impl Iterator<Item = &QueuedRequest> {
        self.queue.iter()
    }

    /// Returns how many requests wait to be sent, or for their answer.
    pub(super) fn len(&self) -> usize {
        let sent = self.in_flight.values().map(|call| call.ops.len());
        self.queue.len() + sent.sum::<usize>()
    }
}

/// A request on its way to a node.
#[derive(Clone, Debug)]
pub(super) struct QueuedRequest {
    pub(super) request: Request,
    /// The round that wants to know what becomes of it.
    pub(super) round: u64,
    /// For a release: until when it is worth repeating.
    pub(super) pending_until: Option<Instant>,
    /// Whether it has failed before.
    pub(super) is_repeated: bool,
    /// Whether it is asked in a call that is no transaction.
    pub(super) must_look_first: bool,
    /// Whether a transaction may have carried it out.
    pub(super) may_have_run: bool,
}

/// The shards of the keys of a call so far.
#[derive(Default)]
struct DistinctKeys([u64; Shard::COUNT as usize / 64]);

impl DistinctKeys {
    /// Adds the key of a plain request, unless a request before has it; returns whether none has.
    fn add<'r>(
        &mut self,
        request: &Request,
        mut before: impl Iterator<Item = &'r QueuedRequest>,
    ) -> bool {
        let Request::Lock { lock, .. } = request else {
            return false;
        };
        let (key, shard) = (lock.keys.first(), lock.keys.first_shard().number());
        let (word, bit) = (&mut self.0[usize::from(shard / 64)], 1 << (shard % 64));
        let has_key = |op: &QueuedRequest| matches!(&op.request, Request::Lock { lock, .. } if lock.keys.first() == key);
        let is_new = *word & bit == 0 || !before.any(has_key);
        *word |= bit;
        is_new
    }
}

impl QueuedRequest {
    /// Makes one of a request that the client made at `now`.
    pub(super) fn new(round: u64, request: Request, now: Instant) -> Self {
        // The key of a release has expired by then.
        let pending_until = request.worth_repeating_for().map(|ttl| now + ttl);
        Self {
            request,
            round,
            pending_until,
            is_repeated: false,
            must_look_first: false,
            may_have_run: false,
        }
    }

    /// Takes the form that another connection needs.
    pub(super) fn be_for_another_connection(&mut self) {
        self.request = self.request.clone().over_another_connection();
    }

    /// Returns whether the key that it releases has expired.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.pending_until.is_none_or(|until| until <= now)
    }
}
