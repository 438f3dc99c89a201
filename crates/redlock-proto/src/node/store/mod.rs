mod jobs;
mod key;
mod line;
mod lock;
mod mark;
mod slots;
mod transact;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use self::{
    key::{StoredKey, Wanted},
    line::{LineCall, Lines},
    mark::StoredMark,
};
use crate::{
    Answer, FencingToken, Gift, JobEntry, KeySet, Keyspace, Lock, LockMode, MarkState, NodeKey,
    NodeTime, NodeVerb, OwnerId, Reply, Request, RunId, Standing, Verb,
};

/// A node as a model: the keys it has, and the effect of each call.
///
/// In-memory and simulated nodes run this; on real servers a script does the same, and a test compares the
/// two on random sequences of calls.
/// Time is an argument here too, and it is the *node's* wall clock, not the client's.
///
/// Expired keys are forgotten when a request names them, and all of them whenever the store has doubled,
/// so that keys used once do not accumulate.
/// Until then a clock that is set back brings them back, as on a server.
#[derive(Clone, Debug)]
pub struct Store {
    run: RunId,
    /// Whose data it has: another's, once that was put in its place.
    data: Arc<str>,
    /// Whether an operator vouches for marks that are missing.
    vouched: bool,
    keys: HashMap<NodeKey, StoredKey>,
    marks: HashMap<NodeKey, StoredMark>,
    fences: HashMap<NodeKey, ShardCounters>,
    /// The numbers of slots, and up to when each is remembered, in milliseconds since the epoch.
    slots: HashMap<NodeKey, (u8, u64)>,
    /// The runs of each job, the newest first.
    jobs: HashMap<NodeKey, Vec<JobEntry>>,
    /// Since when it remembers them, in milliseconds since the epoch.
    horizons: HashMap<NodeKey, u64>,
    sweep_at: usize,
    lines: Lines,
    sweep_lines_at: usize,
    /// Up to when the signs of life of clients are remembered, in milliseconds since the epoch.
    signs: HashMap<NodeKey, u64>,
    /// The clients that subscribe to its messages; `None` if all do.
    subscribers: Option<Vec<u64>>,
    /// Whether its calls come from a user with the right to publish.
    may_publish: bool,
    /// What it has published, and to which clients.
    messages: Vec<(u64, Gift)>,
}

/// The fencing counters of a keyspace, by shard.
#[derive(Clone, Debug, Default)]
struct ShardCounters {
    shards: BTreeMap<u16, u64>,
    floor: u64,
}

impl Store {
    /// Makes a store without keys, in this run of its server.
    pub fn new(run: RunId) -> Self {
        Self {
            run,
            data: OWN.into(),
            vouched: false,
            keys: HashMap::new(),
            marks: HashMap::new(),
            fences: HashMap::new(),
            slots: HashMap::new(),
            jobs: HashMap::new(),
            horizons: HashMap::new(),
            sweep_at: 0,
            lines: Lines::new(),
            sweep_lines_at: 0,
            signs: HashMap::new(),
            subscribers: None,
            may_publish: true,
            messages: Vec::new(),
        }
    }

    /// Makes a store that votes at once, because no client can have used it before.
    pub fn vouched_for(run: RunId) -> Self {
        Self {
            vouched: true,
            ..Self::new(run)
        }
    }

    /// Does what `requests` ask, in order and in one step, at `time` by the node's clock.
    pub fn call(&mut self, keyspace: &Keyspace, requests: &[Request], time: NodeTime) -> Answer {
        let only_releases = !requests.is_empty() && requests.iter().all(Request::is_release);
        let is_awaited = |request| self.is_awaited(keyspace, request, time);
        let looks = !only_releases || requests.iter().any(is_awaited);
        let state = looks.then(|| self.look(keyspace, time));
        let replies = requests.iter().map(|request| {
            let reply = self.reply(keyspace, request, state.as_ref(), time);
            if !reply.as_ref().is_ok_and(|reply| reply.grants(request)) {
                self.undo(request);
            }
            reply
        });
        let replies = replies.collect();
        Answer {
            standing: state.map(|state| Standing {
                state,
                time,
                run: self.run.clone(),
            }),
            replies,
        }
    }

    /// Does what a request asks, in this state.
    fn reply(
        &mut self,
        keyspace: &Keyspace,
        request: &Request,
        state: Option<&MarkState>,
        time: NodeTime,
    ) -> Result<Reply, Arc<str>> {
        let tombstoned = self.read(keyspace, request, time);
        let unlike = matches!(state, Some(MarkState::PolicyMismatch { .. }));
        if unlike && !request.is_release() && !is_inspection(request) {
            return Ok(Reply::PolicyMismatch);
        }
        match request {
            Request::Lock { .. } | Request::Job { .. } if tombstoned => Ok(Reply::Tombstoned),
            Request::Lock { verb, lock } => {
                let Lock { mode, keys, owner } = &**lock;
                let call = LineCall {
                    keyspace,
                    lock,
                    state,
                    time,
                };
                let wanted = Wanted {
                    verb: slots::without_wish(*verb, *mode, keys),
                    mode: *mode,
                    owner: *owner,
                    now: time.as_millis(),
                    may_have_it: request.is_transactable(),
                };
                if !request.looks_at_line() {
                    return self.lock(keyspace, keys, &wanted);
                }
                match verb {
                    Verb::Acquire {
                        line: Some(asks), ..
                    } => {
                        let kept = self.give_to_earlier(&call, asks);
                        let is_free = !self.keys.contains_key(keys.first());
                        let reply = match kept {
                            Some(_) => Reply::Held {
                                remaining: kept,
                                counter: self.counter(keyspace, keys.first_shard().number()),
                                holder: None,
                                is_shared: false,
                            },
                            None if asks.grant.is_zero() && is_free => Reply::Missing,
                            None => self.lock(keyspace, keys, &wanted)?,
                        };
                        Ok(self.after_acquire(&call, asks, &wanted, reply))
                    }
                    _ => {
                        let reply = self.lock(keyspace, keys, &wanted);
                        let passed = self.after_release(&call);
                        reply.map(|reply| match passed {
                            Some((client, gift)) => Reply::Passed {
                                was_held: reply.is_done(),
                                client,
                                round: gift.round,
                                counter: gift.counter,
                            },
                            None => reply,
                        })
                    }
                }
            }
            Request::Node(NodeVerb::Sign { client }) => Ok(self.sign(keyspace, *client, time)),
            Request::Node(verb) => self.node(keyspace, verb, state),
            Request::Job { verb, job } => self.job(keyspace, verb, job, time),
        }
    }

    /// Returns whether it has a mark, without which it cannot have voted.
    pub fn has_marks(&self) -> bool {
        !self.marks.is_empty()
    }

    /// Forgets everything, as `FLUSHALL` does.
    pub fn flush(&mut self) {
        self.keys.clear();
        self.marks.clear();
        self.fences.clear();
        self.slots.clear();
        self.lines.clear();
        self.signs.clear();
        self.jobs.clear();
        self.horizons.clear();
        self.vouched = false;
    }

    /// Has the data of another store instead of its own, in the same run, as a master that was a replica meanwhile.
    ///
    /// `data` is the identity of the data from now on, which no store had before: servers call it the replication id.
    pub fn take_data_of(&mut self, other: &Self, data: &str) {
        *self = Self {
            run: self.run.clone(),
            data: data.into(),
            vouched: false,
            subscribers: self.subscribers.clone(),
            may_publish: self.may_publish,
            ..other.clone()
        };
    }

    /// Forgets the lock keys, as if an operator deleted them.
    pub fn drop_locks(&mut self) {
        self.keys.retain(|key, _| is_tomb(key));
    }

    /// Forgets one lock key, as if an operator deleted it.
    pub fn drop_lock(&mut self, key: &NodeKey) {
        self.keys.remove(key);
    }

    /// Forgets every key that has expired, as a server does when it has time.
    pub fn expire(&mut self, time: NodeTime) {
        let now = time.as_millis();
        self.keys.retain(|_, held| held.until() >= now);
        self.slots.retain(|_, (_, until)| *until >= now);
        self.lines.retain(|_, line| line::exists(line, time));
        self.signs.retain(|_, until| *until >= now);
    }

    /// Begins another run of the server, which still has its data.
    pub fn restart(&mut self, run: RunId) {
        self.run = run;
        self.vouched = false;
    }

    /// Returns the number of lock keys that are there at `time`.
    pub fn locks(&self, time: NodeTime) -> usize {
        let now = time.as_millis();
        let live = |(key, held): &(&NodeKey, &StoredKey)| held.until() >= now && !is_tomb(key);
        self.keys.iter().filter(live).count()
    }

    /// Returns the exclusive owner of this key at `time`.
    pub fn holder(&self, key: &NodeKey, time: NodeTime) -> Option<OwnerId> {
        let held = self.keys.get(key)?;
        let is_there = held.until() >= time.as_millis();
        held.owner().filter(|_| is_there)
    }

    /// Returns the owners of this key at `time`, and the mode of each.
    pub fn holders(
        &self,
        key: &NodeKey,
        time: NodeTime,
    ) -> impl Iterator<Item = (OwnerId, LockMode)> {
        let held = self.keys.get(key).into_iter();
        held.flat_map(move |held| held.holders(time.as_millis()))
    }

    /// Returns the value under which a server has this key at `time`.
    pub fn value(&self, key: &NodeKey, time: NodeTime) -> Option<String> {
        let held = self.keys.get(key)?;
        (held.until() >= time.as_millis()).then(|| held.to_wire())
    }

    /// Returns the time until this key ends, if it is there at `time`.
    pub fn remaining(&self, key: &NodeKey, time: NodeTime) -> Option<Duration> {
        let left = self.keys.get(key)?.until().checked_sub(time.as_millis())?;
        Some(Duration::from_millis(left))
    }

    /// Returns which run of the server it is.
    pub const fn run(&self) -> &RunId {
        &self.run
    }

    /// Reads the keys of a request, and forgets those that have expired; whether the request comes from a
    /// tombstoned owner and must not take a key.
    fn read(&mut self, keyspace: &Keyspace, request: &Request, time: NodeTime) -> bool {
        let now = time.as_millis();
        match request {
            Request::Node(NodeVerb::Sign { client }) => {
                self.has_sign(keyspace, *client, time);
                false
            }
            Request::Node(_) => false,
            Request::Job { verb, .. } => self.read_for_job(keyspace, verb, now),
            Request::Lock { verb, lock } => {
                let Lock { mode, keys, owner } = &**lock;
                for key in keys {
                    self.expire_key(key.key(), now);
                }
                if request.looks_at_line() {
                    self.forget_line(keyspace, keys.first(), time);
                }
                if !request.is_release() {
                    slots::forget(&mut self.slots, (keys, *mode), now);
                }
                match verb {
                    Verb::Acquire { .. } | Verb::Heal { .. } => {
                        self.expire_key(&keyspace.tombstone(*owner), now)
                    }
                    Verb::Extend { .. } | Verb::Release { .. } | Verb::Tombstone { .. } => false,
                }
            }
        }
    }

    /// Removes the key of an acquire that is refused, if a transaction has taken it for this owner.
    fn undo(&mut self, request: &Request) {
        if let Request::Lock { verb, lock } = request
            && matches!(verb, Verb::Acquire { .. })
            && request.is_transactable()
            && let Some(held) = self.keys.get(lock.keys.first())
            && held.owner() == Some(lock.owner)
        {
            self.keys.remove(lock.keys.first());
        }
    }

    /// Removes the key if its time is over; returns whether it is still there.
    fn expire_key(&mut self, key: &NodeKey, now: u64) -> bool {
        let until = self.keys.get(key).map(StoredKey::until);
        let is_over = until.is_some_and(|until| until < now);
        if is_over {
            self.keys.remove(key);
        }
        until.is_some() && !is_over
    }

    /// Returns the counter as an acquire would raise it: never below the floor.
    fn counter(&self, keyspace: &Keyspace, shard: u16) -> u64 {
        let Some(counters) = self.fences.get(keyspace.fence()) else {
            return 0;
        };
        let stored = counters.shards.get(&shard).copied().unwrap_or(0);
        stored.max(counters.floor)
    }

    /// Returns the greatest of the counters of these keys.
    fn counter_of_all(&self, keyspace: &Keyspace, keys: &KeySet) -> u64 {
        let counters = keys
            .iter()
            .map(|key| self.counter(keyspace, key.shard().number()));
        counters.max().unwrap_or(0)
    }

    fn greatest(&self, keyspace: &Keyspace) -> u64 {
        let Some(counters) = self.fences.get(keyspace.fence()) else {
            return 0;
        };
        let greatest = counters.shards.values().copied().max().unwrap_or(0);
        greatest.max(counters.floor)
    }

    fn raise_counter(&mut self, keyspace: &Keyspace, shard: u16, value: u64) {
        let counters = self.fences.entry(keyspace.fence().clone()).or_default();
        let stored = counters.shards.entry(shard).or_default();
        *stored = (*stored).max(value);
    }
}

/// The identity of a store's data, as long as it is its own.
const OWN: &str = "own";

fn is_tomb(key: &NodeKey) -> bool {
    key.as_str().contains("}:tomb:")
}

/// Returns whether a request only looks, so that clients of another policy may make it.
const fn is_inspection(request: &Request) -> bool {
    matches!(
        request,
        Request::Node(NodeVerb::Look | NodeVerb::Inspect | NodeVerb::Survey)
    )
}

fn check_range(counter: u64) -> Result<(), Arc<str>> {
    if counter > FencingToken::MAX.get() {
        Err("the fencing counter is beyond its range".into())
    } else {
        Ok(())
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
