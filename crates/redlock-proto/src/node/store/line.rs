//! The line of each key: the callers that wait for it, in the order in which they came.

use std::{collections::HashMap, time::Duration};

use super::{Store, check_range, key::Wanted};
use crate::{
    Gift, InLine, Keyspace, LinePlace, Lock, LockMode, MarkState, NodeKey, NodeTime, OwnerId,
    Reply, Request, Verb, last_of_block, next_counter,
};

pub(super) type Lines = HashMap<NodeKey, Vec<Waiting>>;

/// A caller that waits in line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    /// Up to when it waits, in milliseconds since the epoch.
    until: u64,
    place: LinePlace,
    entry: InLine,
    /// The number of tokens to reserve for it.
    block: u32,
    owner: OwnerId,
}

/// The line of a request's key, and what the node knows when it carries out the request.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineCall<'a> {
    pub(super) keyspace: &'a Keyspace,
    pub(super) lock: &'a Lock,
    pub(super) state: Option<&'a MarkState>,
    pub(super) time: NodeTime,
}

impl Store {
    /// Returns the text of the line for a key, as a server has it at `time`.
    pub fn line(&self, keyspace: &Keyspace, key: &NodeKey, time: NodeTime) -> Option<String> {
        let line = self.lines.get(&keyspace.line(key))?;
        let text = line.iter().map(|waiting| waiting.to_wire()).collect();
        exists(line, time).then_some(text)
    }

    /// Returns the messages that it has published since the last time, each with the number of the client that it is for.
    pub fn take_messages(&mut self) -> Vec<(u64, Gift)> {
        std::mem::take(&mut self.messages)
    }

    /// Returns whether a request concerns a key that callers wait for in line.
    pub(super) fn is_awaited(
        &self,
        keyspace: &Keyspace,
        request: &Request,
        time: NodeTime,
    ) -> bool {
        let Request::Lock { lock, .. } = request else {
            return false;
        };
        !self.lines.is_empty()
            && request.looks_at_line()
            && self
                .lines
                .get(&keyspace.line(lock.keys.first()))
                .is_some_and(|line| exists(line, time))
    }

    /// Forgets the line for a key if its last caller waits no longer.
    pub(super) fn forget_line(&mut self, keyspace: &Keyspace, key: &NodeKey, time: NodeTime) {
        if !self.lines.is_empty() {
            let line = keyspace.line(key);
            if self
                .lines
                .get(&line)
                .is_some_and(|line| !exists(line, time))
            {
                self.lines.remove(&line);
            }
        }
    }

    /// Gives a free key to the first caller in line, if that one came before the caller that asks for it now.
    ///
    /// Returns for how long that one may keep its place, if it only does that.
    pub(super) fn give_to_earlier(
        &mut self,
        call: &LineCall<'_>,
        asks: &InLine,
    ) -> Option<Duration> {
        let is_earlier = |first: &Waiting| first.place < asks.place;
        let first = self.first_to_get(call, is_earlier)?;
        if first.entry.grant.is_zero() {
            return Some(Duration::from_millis(first.until - call.time.as_millis()));
        }
        self.give_if(call, is_earlier);
        None
    }

    /// Has a caller wait in line that was refused, and takes one out that has the key.
    pub(super) fn after_acquire(
        &mut self,
        call: &LineCall<'_>,
        asks: &InLine,
        wanted: &Wanted,
        reply: Reply,
    ) -> Reply {
        match reply {
            Reply::Held {
                remaining,
                counter,
                holder,
                is_shared: false,
            } if call.votes() => match self.enter(call, asks, wanted) {
                Some(ahead) => Reply::InLine {
                    remaining,
                    counter,
                    holder,
                    ahead,
                },
                None => reply,
            },
            Reply::Missing if asks.grant.is_zero() && call.votes() => {
                self.enter(call, asks, wanted);
                reply
            }
            Reply::Taken { .. } => {
                self.leave(call);
                reply
            }
            reply => reply,
        }
    }

    /// Takes the owner of a release out of the line, and gives the key to the first one there, if it is free.
    ///
    /// The answer is that one's client, and what it is told.
    pub(super) fn after_release(&mut self, call: &LineCall<'_>) -> Option<(u64, Gift)> {
        self.leave(call);
        self.give_if(call, |_| true)
    }

    /// Enters the line; returns how many wait before.
    fn enter(&mut self, call: &LineCall<'_>, asks: &InLine, wanted: &Wanted) -> Option<u32> {
        let Verb::Acquire { block, .. } = wanted.verb else {
            return None;
        };
        if asks.stay.is_zero() {
            return None;
        }
        let mut line = self.live(call);
        line.retain(|waiting| waiting.owner != wanted.owner && waiting.place != asks.place);
        if line.len() >= LONGEST {
            return None;
        }
        let before = line.iter().filter(|waiting| waiting.place < asks.place);
        let ahead = before.count();
        let at = line.partition_point(|waiting| waiting.place <= asks.place);
        let until = wanted.now + asks.stay_ms();
        line.insert(
            at,
            Waiting {
                until,
                place: asks.place,
                entry: *asks,
                block,
                owner: wanted.owner,
            },
        );
        self.put(call, line);
        u32::try_from(ahead).ok()
    }

    fn leave(&mut self, call: &LineCall<'_>) {
        let is_own = |waiting: &Waiting| waiting.owner == call.lock.owner;
        if self.lines.is_empty() {
            return;
        }
        let line = self.lines.get(&call.line());
        if line.is_some_and(|line| exists(line, call.time) && line.iter().any(is_own)) {
            let mut line = self.live(call);
            line.retain(|waiting| !is_own(waiting));
            self.put(call, line);
        }
    }

    fn give_if(
        &mut self,
        call: &LineCall<'_>,
        is_meant: impl Fn(&Waiting) -> bool,
    ) -> Option<(u64, Gift)> {
        let first = self.first_to_get(call, is_meant)?;
        let key = call.lock.keys.first();
        let mut line = self.live(call);
        line.retain(|waiting| waiting.owner != call.lock.owner);
        if first.entry.grant.is_zero() {
            return None;
        }
        let shard = call.lock.keys.first_shard().number();
        let stored = self.counter(call.keyspace, shard);
        let counter = next_counter(stored, 0, 0);
        let last = last_of_block(counter, first.block);
        check_range(last).ok()?;
        self.raise_counter(call.keyspace, shard, last);
        let InLine {
            round,
            grant,
            place: LinePlace { client, .. },
            ..
        } = first.entry;
        let wanted = Wanted {
            verb: Verb::Release { ttl: grant },
            mode: LockMode::Exclusive,
            owner: first.owner,
            now: call.time.as_millis(),
            may_have_it: false,
        };
        self.take(key, &wanted, grant);
        line.remove(0);
        self.put(call, line);
        let gift = Gift {
            round,
            counter,
            time: call.time,
            run: self.run.clone(),
        };
        self.messages.push((client, gift.clone()));
        Some((client, gift))
    }

    /// Returns the caller in line whose turn it is, if the key is free and it is meant.
    fn first_to_get(
        &self,
        call: &LineCall<'_>,
        is_meant: impl Fn(&Waiting) -> bool,
    ) -> Option<Waiting> {
        let is_held = self.keys.contains_key(call.lock.keys.first());
        if !call.votes() || self.lines.is_empty() || is_held {
            return None;
        }
        let mut line = self.live(call).into_iter();
        let first = line.find(|waiting| waiting.owner != call.lock.owner);
        first.filter(is_meant)
    }

    /// Returns the callers that wait still.
    fn live(&self, call: &LineCall<'_>) -> Vec<Waiting> {
        let now = call.time.as_millis();
        let line = self.lines.get(&call.line());
        let line = line.filter(|line| exists(line, call.time));
        let line = line.into_iter().flatten().copied();
        line.filter(|waiting| waiting.until > now).collect()
    }

    fn put(&mut self, call: &LineCall<'_>, line: Vec<Waiting>) {
        if self.lines.len() >= self.sweep_lines_at {
            self.lines.retain(|_, line| exists(line, call.time));
            self.sweep_lines_at = (2 * self.lines.len()).max(64);
        }
        if line.is_empty() {
            self.lines.remove(&call.line());
        } else {
            self.lines.insert(call.line(), line);
        }
    }
}

impl LineCall<'_> {
    fn votes(&self) -> bool {
        self.state == Some(&MarkState::Voting)
    }

    fn line(&self) -> NodeKey {
        self.keyspace.line(self.lock.keys.first())
    }
}

impl Waiting {
    fn to_wire(self) -> String {
        let Self {
            until,
            place: LinePlace { came, client },
            entry,
            block,
            owner,
        } = self;
        let (came, grant, round) = (came.as_micros(), entry.grant_ms(), entry.round);
        let owner = owner.to_wire();
        format!("{until} {came:016} {client:016x} {grant} {block} {round} {owner}\n")
    }
}

/// Returns whether a server has the line at `time`: it goes with its last caller.
pub(super) fn exists(line: &[Waiting], time: NodeTime) -> bool {
    let last = line.iter().map(|waiting| waiting.until).max();
    last.is_some_and(|last| last >= time.as_millis())
}

/// The number of callers that can wait in a line.
const LONGEST: usize = 64;
