//! The line of each key: the callers that wait for it, in the order in which they came.

use std::{collections::HashMap, time::Duration};

use super::{Store, check_range, key::Wanted};
use crate::{
    Gift, InLine, Keyspace, LinePlace, Lock, LockMode, MarkState, NodeKey, NodeTime, NodeVerb,
    OwnerId, Reply, Request, Verb, last_of_block, next_counter,
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

/// What becomes of a free key.
#[derive(Clone, Debug)]
enum FreeKey {
    /// It is given to a caller of this client.
    Given(u64, Gift),
    /// It is kept for a caller that only keeps its place, up to this time at most, in milliseconds since the epoch.
    Keeps(u64),
    None,
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

    /// Says which clients subscribe to its messages from now on; before that, all do.
    pub fn set_subscribers(&mut self, clients: impl IntoIterator<Item = u64>) {
        self.subscribers = Some(clients.into_iter().collect());
    }

    /// Says whether its calls come from a user with the right to publish; before that, they do.
    pub const fn set_may_publish(&mut self, may_publish: bool) {
        self.may_publish = may_publish;
    }

    /// Returns the time until the sign of life of a client ends, if it has one at `time`.
    pub fn sign_remaining(
        &self,
        keyspace: &Keyspace,
        client: u64,
        time: NodeTime,
    ) -> Option<Duration> {
        let until = self.signs.get(&keyspace.sign(client))?;
        let left = until.checked_sub(time.as_millis())?;
        Some(Duration::from_millis(left))
    }

    /// Remembers that a client is alive.
    pub(super) fn sign(&mut self, keyspace: &Keyspace, client: u64, time: NodeTime) -> Reply {
        let until = time.as_millis() + super::millis(NodeVerb::SIGN);
        match self.signs.insert(keyspace.sign(client), until) {
            Some(_) => Reply::Done,
            None => Reply::Missing,
        }
    }

    /// Returns whether it remembers a sign of life of a client, and forgets one that has ended.
    pub(super) fn has_sign(&mut self, keyspace: &Keyspace, client: u64, time: NodeTime) -> bool {
        let sign = keyspace.sign(client);
        let until = self.signs.get(&sign).copied();
        let is_there = until.is_some_and(|until| until >= time.as_millis());
        if !is_there {
            self.signs.remove(&sign);
        }
        is_there
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
        match self.give_if(call, Some(asks)) {
            FreeKey::Keeps(until) => Some(Duration::from_millis(until - call.time.as_millis())),
            FreeKey::Given(..) | FreeKey::None => None,
        }
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
        match self.give_if(call, None) {
            FreeKey::Given(client, gift) => Some((client, gift)),
            FreeKey::Keeps(_) | FreeKey::None => None,
        }
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
        while let Some(first) = line.first()
            && first.place < asks.place
            && self.is_dead(call, first)
        {
            line.remove(0);
        }
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

    /// Gives the key to the caller in line whose turn it is, if the key is free and that one is before the caller that
    /// asks, or the key was released.
    ///
    /// Callers before that one whose clients are gone are passed over.
    fn give_if(&mut self, call: &LineCall<'_>, asks: Option<&InLine>) -> FreeKey {
        let key = call.lock.keys.first();
        if !call.votes() || self.lines.is_empty() || self.keys.contains_key(key) {
            return FreeKey::None;
        }
        let mut line = self.live(call);
        line.retain(|waiting| waiting.owner != call.lock.owner);
        let mut turn = FreeKey::None;
        let mut is_changed = false;
        while let Some(first) = line.first().copied() {
            if !self.is_dead(call, &first) {
                if asks.is_some_and(|asks| asks.place <= first.place) {
                    break;
                }
                if first.entry.grant.is_zero() {
                    turn = FreeKey::Keeps(first.until);
                    break;
                }
                match self.give(call, &first) {
                    Some(_) if asks.is_none() && first.entry.signs && !self.may_publish => {
                        self.keys.remove(key);
                        break;
                    }
                    Some(gift) if self.is_heard(&first) => {
                        let client = first.place.client;
                        self.publish(client, gift.clone());
                        turn = FreeKey::Given(client, gift);
                    }
                    Some(_) => {
                        self.keys.remove(key);
                    }
                    None => break,
                }
            }
            line.remove(0);
            is_changed = true;
            if let FreeKey::Given(..) = turn {
                break;
            }
        }
        if is_changed {
            self.tell_first(call, line.first(), &turn);
            self.put(call, line);
        }
        turn
    }

    /// Gives the key to a caller in line.
    fn give(&mut self, call: &LineCall<'_>, first: &Waiting) -> Option<Gift> {
        let key = call.lock.keys.first();
        let shard = call.lock.keys.first_shard().number();
        let stored = self.counter(call.keyspace, shard);
        let counter = next_counter(stored, 0, 0);
        let last = last_of_block(counter, first.block);
        check_range(last).ok()?;
        self.raise_counter(call.keyspace, shard, last);
        let InLine { round, grant, .. } = first.entry;
        let wanted = Wanted {
            verb: Verb::Release { ttl: grant },
            mode: LockMode::Exclusive,
            owner: first.owner,
            now: call.time.as_millis(),
            may_have_it: false,
        };
        self.take(key, &wanted, grant);
        let gift = Gift {
            round,
            counter,
            time: call.time,
            run: self.run.clone(),
        };
        Some(gift)
    }

    /// Tells the caller that is the first from now on, unless it came so lately that it asks again soon.
    fn tell_first(&mut self, call: &LineCall<'_>, first: Option<&Waiting>, turn: &FreeKey) {
        if let (Some(first), FreeKey::Given(..)) = (first, turn)
            && let LinePlace { came, client } = first.place
            && first.entry.signs
            && call.time.as_micros() > came.as_micros() + InLine::YOUNG_MICROS
        {
            let told = Gift {
                round: first.entry.round,
                counter: 0,
                time: call.time,
                run: self.run.clone(),
            };
            self.publish(client, told);
        }
    }

    fn publish(&mut self, client: u64, gift: Gift) {
        if self.may_publish {
            self.messages.push((client, gift));
        }
    }

    /// Returns whether the client of a caller in line gives signs of life no longer.
    fn is_dead(&mut self, call: &LineCall<'_>, waiting: &Waiting) -> bool {
        waiting.entry.signs && !self.has_sign(call.keyspace, waiting.place.client, call.time)
    }

    /// Returns whether a message to a caller in line is heard, as far as the node can tell.
    fn is_heard(&self, waiting: &Waiting) -> bool {
        let subscribers = self.subscribers.as_ref();
        let subscribers = subscribers.filter(|_| waiting.entry.signs && self.may_publish);
        subscribers.is_none_or(|subscribers| subscribers.contains(&waiting.place.client))
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
        let (came, grant, round) = (came.as_micros(), entry.grant_ms(), entry.round_to_wire());
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
