//! Both sides, and what a step does to them.

mod requests;

use std::{
    collections::{HashMap, HashSet, VecDeque},
    fmt::Debug,
    time::Duration,
};

use redlock_core::node::{Answer, NodeTime, Reply, Request, Store};
use redlock_proto::{JobVerb, MarkState, Verb};
use redlock_sandbox::Persistence;

use crate::differential::{
    cast::{self, PREFIXES, SPACES},
    look::{self, Difference},
    messages::{self, Messages},
    site::Site,
    step::{Ask, Step},
    tally::Tally,
};

/// A server and the model of it, at the same time by the same clock.
pub(crate) struct World<'a> {
    site: &'a mut Site,
    persistence: Persistence,
    store: Store,
    /// How often its data became another's.
    adopted: u32,
    /// What a server that writes to disk only when it is told to finds there.
    saved: Option<Store>,
    /// In microseconds since the epoch.
    now: u64,
    /// The beginning of each keyspace's quarantine, as it was last told.
    since: [NodeTime; SPACES],
    /// The rest of each keyspace's quarantine, as it was last told, in microseconds.
    ready_in: [u64; SPACES],
    /// The counters as they were last seen, by prefix and shard.
    counters: HashMap<(&'static str, usize), u64>,
    /// When the keys end that were written lately, in milliseconds since the epoch.
    ends: VecDeque<u64>,
    /// What the model has published since the messages were compared.
    messages: Messages,
    tally: &'a mut Tally,
}

impl<'a> World<'a> {
    /// Starts over, whatever happened to the server before.
    pub(crate) async fn begin(
        site: &'a mut Site,
        persistence: Persistence,
        seed: u64,
        tally: &'a mut Tally,
    ) -> Self {
        let now = NOON + seed % 7 * 333;
        site.forget();
        site.may_publish(true);
        site.set_clock(now);
        // A sequence that ended early has not listened to the end.
        site.heard().await;
        let mut store = Store::new(site.run());
        store.set_subscribers(0..cast::SUBSCRIBERS);
        Self {
            site,
            persistence,
            adopted: 0,
            store,
            saved: None,
            now,
            since: [NodeTime::default(); SPACES],
            ready_in: [0; SPACES],
            counters: HashMap::new(),
            ends: VecDeque::new(),
            messages: Messages::new(),
            tally,
        }
    }

    /// Takes one step on both sides.
    pub(crate) async fn step(&mut self, step: &Step) -> Result<(), Difference> {
        match step {
            Step::Call { keyspace, asks } => self.call(*keyspace, asks).await?,
            Step::Forward(by) => self.set_clock(self.now.saturating_add(micros(*by))),
            Step::Back(by) => self.set_clock(self.now.saturating_sub(micros(*by))),
            Step::ToEnd { which, micros } => {
                if let Some(end) = self.ends.get(*which) {
                    self.set_clock((end * 1_000).saturating_add_signed(*micros));
                }
            }
            Step::ToReady { keyspace, micros } => {
                let left = self.ready_in[*keyspace];
                self.set_clock((self.now + left).saturating_add_signed(*micros));
            }
            Step::Flush => {
                self.site.command(&["FLUSHALL"]);
                self.store.flush();
            }
            Step::Adopt => {
                self.site.command(&["DEBUG", "CHANGE-REPL-ID"]);
                self.adopted += 1;
                let copy = self.store.clone();
                self.store.take_data_of(&copy, &self.adopted.to_string());
            }
            Step::FlushScripts => {
                self.site.drop_scripts().await;
                self.set_may_publish(true);
            }
            Step::DropLocks => {
                for number in 0..cast::KEYS {
                    let key = cast::key(number);
                    self.site.command(&["DEL", key.as_str()]);
                }
                self.store.drop_locks();
            }
            Step::MayPublish(may_publish) => self.set_may_publish(*may_publish),
            Step::Restart => {
                self.compare_messages().await?;
                self.restart().await;
            }
            Step::Save => self.save(),
            Step::Reload => self.reload(),
            Step::Expire => {
                // It removes what has expired on its way.
                self.site.command(&["SCAN", "0", "COUNT", "10000"]);
                self.store.expire(self.time());
            }
            Step::Look => {
                look::compare(self.site, &self.store, self.time())?;
                self.compare_messages().await?;
            }
        }
        Ok(())
    }

    fn time(&self) -> NodeTime {
        NodeTime::from_micros(self.now)
    }

    fn set_clock(&mut self, now: u64) {
        self.now = now.max(EARLIEST);
        self.site.set_clock(self.now);
    }

    fn set_may_publish(&mut self, may_publish: bool) {
        self.site.may_publish(may_publish);
        self.store.set_may_publish(may_publish);
    }

    async fn restart(&mut self) {
        if self.persistence == Persistence::Memory {
            match &self.saved {
                Some(saved) => self.store = saved.clone(),
                None => self.store.flush(),
            }
        }
        self.site.restart().await;
        self.store.restart(self.site.run());
        self.set_may_publish(true);
        self.site.set_clock(self.now);
    }

    fn save(&mut self) {
        self.site.command(&["SAVE"]);
        self.saved = Some(self.store.clone());
    }

    fn reload(&mut self) {
        // It would not tell its file of commands which keys had expired.
        if self.persistence == Persistence::Memory {
            self.site.command(&["DEBUG", "RELOAD"]);
            self.saved = Some(self.store.clone());
            self.store.expire(self.time());
        }
    }

    async fn call(&mut self, number: usize, asks: &[Ask]) -> Result<(), Difference> {
        let keyspace = cast::keyspace(number);
        let requests: Vec<_> = asks.iter().map(|ask| self.request(number, ask)).collect();
        let (expected, answer) = if self.site.transacts && are_for_a_transaction(&requests) {
            self.tally.transactions += 1;
            let done = self.store.transact(&keyspace, &requests, self.time());
            let answer = self.site.transact(&keyspace, &requests).await;
            (done.judge(&keyspace, &requests), answer)
        } else {
            let expected = self.store.call(&keyspace, &requests, self.time());
            (expected, self.site.call(&keyspace, &requests).await)
        };
        for (client, gift) in self.store.take_messages() {
            self.tally.add_gift();
            if client < cast::SUBSCRIBERS {
                let channel = messages::channel(number, client);
                self.messages.entry(channel).or_default().push(gift);
            }
        }
        self.remember(number, asks, &requests, &expected);
        self.tally.add(&expected);
        match answer {
            Ok(answer) if alike(&expected, &answer) => Ok(()),
            Ok(answer) => Err(self.difference(&expected, &answer)),
            Err(error) => Err(self.difference(&expected, &error)),
        }
    }

    /// Compares the messages since the last time, in order.
    async fn compare_messages(&mut self) -> Result<(), Difference> {
        let published = std::mem::take(&mut self.messages);
        look::compare_messages(&published, &self.site.heard().await)
    }

    fn difference(&self, expected: &Answer, answer: &impl Debug) -> Difference {
        let time = self.time();
        Difference(format!(
            "at {time}\n  the model answers  {expected:?}\n  the server answers {answer:?}"
        ))
    }

    /// Notes what later steps refer to.
    fn remember(&mut self, keyspace: usize, asks: &[Ask], requests: &[Request], answer: &Answer) {
        let state = answer.standing.as_ref().map(|standing| &standing.state);
        if let Some(MarkState::Quarantined { since, .. } | MarkState::Aged { since }) = state {
            self.since[keyspace] = *since;
        }
        if let Some(MarkState::Quarantined { ready_in, .. }) = state {
            self.ready_in[keyspace] = micros(*ready_in);
        }
        for ((ask, request), reply) in asks.iter().zip(requests).zip(&answer.replies) {
            if let (
                Ask::Acquire { keys, .. },
                Ok(
                    Reply::Taken { counter }
                    | Reply::Held { counter, .. }
                    | Reply::InLine { counter, .. },
                ),
            ) = (ask, reply)
            {
                for key in keys.first..keys.first + keys.count {
                    let shard = cast::shard_of(key % cast::KEYS);
                    self.counters.insert((PREFIXES[keyspace], shard), *counter);
                }
            }
            if let (
                Ask::Claim { key, .. },
                Ok(Reply::Claimed { counter, .. } | Reply::Held { counter, .. }),
            ) = (ask, reply)
            {
                let shard = cast::shard_of(*key);
                self.counters.insert((PREFIXES[keyspace], shard), *counter);
            }
            if let (
                Request::Lock {
                    verb:
                        Verb::Acquire { ttl, .. }
                        | Verb::Extend { ttl, .. }
                        | Verb::Heal { ttl, .. }
                        | Verb::Tombstone { ttl },
                    ..
                }
                | Request::Job {
                    verb: JobVerb::Claim { ttl, .. } | JobVerb::Commit { ttl, .. },
                    ..
                },
                Ok(Reply::Taken { .. } | Reply::Claimed { .. } | Reply::Done),
            ) = (request, reply)
            {
                let ttl = micros(*ttl) / 1_000;
                self.ends.push_front(self.now / 1_000 + ttl);
                self.ends.truncate(6);
            }
        }
    }
}

/// Returns whether the answers are the same, but for the server info that a model lacks.
fn alike(expected: &Answer, answer: &Answer) -> bool {
    let mut pairs = expected.replies.iter().zip(&answer.replies);
    expected.standing == answer.standing
        && expected.replies.len() == answer.replies.len()
        && pairs.all(|pair| match pair {
            (Ok(Reply::ServerInfo(expected)), Ok(Reply::ServerInfo(server_info))) => {
                expected.run == server_info.run
            }
            (expected, reply) => expected == reply,
        })
}

/// Returns whether requests are plain, and for different keys.
fn are_for_a_transaction(requests: &[Request]) -> bool {
    let mut keys = HashSet::new();
    let mut all = requests.iter();
    !requests.is_empty()
        && all.all(|request| match request {
            Request::Lock { lock, .. } => request.is_plain() && keys.insert(lock.keys.first()),
            _ => false,
        })
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).expect("steps are short")
}

/// In November 2023, at the start of a second.
const NOON: u64 = 1_700_049_600_000_000;
/// Steps backwards end here.
const EARLIEST: u64 = NOON - 1_000_000_000_000;
