mod jobs;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use crate::{
    Facts, FencingToken, JobEntry, MarkState, NodeKey, NodeTime, NodeVerb, OwnerId, Quarantine,
    Reply, Request, RunId, Space, Standing, Verb, next_counter,
};

/// What a node does, as a model: the keys it has, and the effect of each call.
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
    /// Whether an operator vouches for marks that are missing.
    vouched: bool,
    keys: HashMap<NodeKey, Key>,
    marks: HashMap<NodeKey, Mark>,
    fences: HashMap<NodeKey, Counters>,
    /// The runs of each job, the newest first.
    jobs: HashMap<NodeKey, Vec<JobEntry>>,
    /// Since when it remembers them, in milliseconds since the epoch.
    horizons: HashMap<NodeKey, u64>,
    sweep_at: usize,
}

#[derive(Clone, Debug)]
struct Key {
    owner: OwnerId,
    /// In milliseconds since the epoch; the key is there up to and in this one.
    until: u64,
}

/// What a node remembers of its own past.
#[derive(Clone, Debug)]
struct Mark {
    run: RunId,
    policy: Arc<str>,
    /// How long it has been looked at, and when last, while it does not vote.
    quarantine: Option<Aging>,
}

#[derive(Clone, Copy, Debug)]
struct Aging {
    since: NodeTime,
    aged: u64,
    /// In milliseconds, as is `aged`.
    last: u64,
}

impl Aging {
    fn state(self, quarantine: &Quarantine) -> MarkState {
        let since = self.since;
        match millis(quarantine.length()).saturating_sub(self.aged) {
            0 => MarkState::Aged { since },
            left => MarkState::Quarantined {
                ready_in: Duration::from_millis(left),
                since,
            },
        }
    }
}

impl Mark {
    fn state(&self, quarantine: &Quarantine) -> MarkState {
        self.quarantine
            .map_or(MarkState::Voting, |aging| aging.state(quarantine))
    }
}

#[derive(Clone, Debug, Default)]
struct Counters {
    shards: BTreeMap<u16, u64>,
    floor: u64,
}

/// What a node says to one call.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a client must handle every part of it"
)]
pub struct Answer {
    /// Where it stands; `None` if it was only asked to let keys go, and did not look.
    pub standing: Option<Standing>,
    /// What became of each request; the error of one that ended with an error, and changed nothing.
    pub replies: Vec<Result<Reply, Arc<str>>>,
}

impl Store {
    /// A store without keys, in this run of its server.
    pub fn new(run: RunId) -> Self {
        Self {
            run,
            vouched: false,
            keys: HashMap::new(),
            marks: HashMap::new(),
            fences: HashMap::new(),
            jobs: HashMap::new(),
            horizons: HashMap::new(),
            sweep_at: 0,
        }
    }

    /// A store that votes at once, because nobody can have used it before.
    pub fn vouched_for(run: RunId) -> Self {
        Self {
            vouched: true,
            ..Self::new(run)
        }
    }

    /// Does what `requests` ask, in order and in one step, at `time` by the node's clock.
    pub fn call(&mut self, space: &Space, requests: &[Request], time: NodeTime) -> Answer {
        let only_releases = !requests.is_empty() && requests.iter().all(Request::is_release);
        let state = (!only_releases).then(|| self.look(space, time));
        let replies = requests
            .iter()
            .map(|request| {
                let buried = self.read(space, request, time);
                let unlike = matches!(state, Some(MarkState::Unlike { .. }));
                if unlike && !request.is_release() && !is_inspection(request) {
                    return Ok(Reply::Unlike);
                }
                match request {
                    Request::Lock { .. } | Request::Job { .. } if buried => Ok(Reply::Buried),
                    Request::Lock { verb, key, owner } => {
                        self.lock(space, *verb, key, *owner, time)
                    }
                    Request::Node(verb) => self.node(space, verb, state.as_ref()),
                    Request::Job { verb, job } => self.job(space, verb, job, time),
                }
            })
            .collect();
        Answer {
            standing: state.map(|state| Standing { state, time }),
            replies,
        }
    }

    /// Forgets everything, as `FLUSHALL` does.
    pub fn flush(&mut self) {
        self.keys.clear();
        self.marks.clear();
        self.fences.clear();
        self.jobs.clear();
        self.horizons.clear();
        self.vouched = false;
    }

    /// Forgets the lock keys, as an operator does who deletes them.
    pub fn drop_locks(&mut self) {
        self.keys.retain(|key, _| is_tomb(key));
    }

    /// Forgets every key that has expired, as a server does when it has time.
    pub fn expire(&mut self, time: NodeTime) {
        let now = time.as_millis();
        self.keys.retain(|_, held| held.until >= now);
    }

    /// Begins another run of the server, which still has its data.
    pub fn restart(&mut self, run: RunId) {
        self.run = run;
        self.vouched = false;
    }

    /// The number of lock keys that are there at `time`.
    pub fn locks(&self, time: NodeTime) -> usize {
        let now = time.as_millis();
        let live = |(key, held): &(&NodeKey, &Key)| held.until >= now && !is_tomb(key);
        self.keys.iter().filter(live).count()
    }

    /// Who has this key at `time`.
    pub fn holder(&self, key: &NodeKey, time: NodeTime) -> Option<OwnerId> {
        let held = self.keys.get(key)?;
        (held.until >= time.as_millis()).then_some(held.owner)
    }

    /// Which run of the server it is.
    pub const fn run(&self) -> &RunId {
        &self.run
    }

    /// Looks at the mark: where the node stands in this space.
    fn look(&mut self, space: &Space, time: NodeTime) -> MarkState {
        let now = time.as_millis();
        let quarantine = space.quarantine();
        let policy = quarantine.to_wire();
        let begin = Aging {
            since: time,
            aged: 0,
            last: now,
        };
        let Some(mark) = self.marks.get_mut(space.mark()) else {
            let mark = Mark {
                run: self.run.clone(),
                policy: policy.into(),
                quarantine: (!self.vouched).then_some(begin),
            };
            let state = mark.state(quarantine);
            self.marks.insert(space.mark().clone(), mark);
            return state;
        };
        if *mark.policy != *policy {
            return MarkState::Unlike {
                theirs: Arc::clone(&mark.policy),
            };
        }
        if mark.run != self.run {
            mark.run = self.run.clone();
            if !quarantine.trusts_persistence() {
                mark.quarantine = Some(begin);
                return mark.state(quarantine);
            }
        }
        if let Some(aging) = &mut mark.quarantine {
            let step = millis(quarantine.step());
            aging.aged += now.saturating_sub(aging.last).min(step);
            aging.last = now;
        }
        mark.state(quarantine)
    }

    /// Reads the keys of a request, and forgets those that have expired; whether the request comes from a
    /// buried owner and must not take a key.
    fn read(&mut self, space: &Space, request: &Request, time: NodeTime) -> bool {
        let now = time.as_millis();
        match request {
            Request::Node(_) => false,
            Request::Job { verb, .. } => self.read_for_job(space, verb, now),
            Request::Lock { verb, key, owner } => {
                self.is_there(key, now);
                match verb {
                    Verb::Acquire { .. } | Verb::Heal { .. } => {
                        self.is_there(&space.tomb(*owner), now)
                    }
                    Verb::Extend { .. } | Verb::Release { .. } | Verb::Bury { .. } => false,
                }
            }
        }
    }

    fn is_there(&mut self, key: &NodeKey, now: u64) -> bool {
        let until = self.keys.get(key).map(|held| held.until);
        let is_over = until.is_some_and(|until| until < now);
        if is_over {
            self.keys.remove(key);
        }
        until.is_some() && !is_over
    }

    fn lock(
        &mut self,
        space: &Space,
        verb: Verb,
        key: &NodeKey,
        owner: OwnerId,
        time: NodeTime,
    ) -> Result<Reply, Arc<str>> {
        let now = time.as_millis();
        let held = self.keys.get(key);
        let is_owner = held.is_some_and(|held| held.owner == owner);
        let remaining = held.map(|held| Duration::from_millis((held.until - now).max(1)));
        let asked = match verb {
            Verb::Acquire { shard, .. } => self.counter(space, shard.number()),
            _ => 0,
        };
        let refused = match remaining {
            Some(remaining) => Reply::Held {
                remaining: Some(remaining),
                counter: asked,
            },
            None => Reply::Missing,
        };
        Ok(match verb {
            Verb::Acquire {
                ttl,
                shard,
                proposal,
                block,
            } => {
                if held.is_some() {
                    return Ok(refused);
                }
                let floor = self.fences.get(space.fence()).map_or(0, |f| f.floor);
                let counter = next_counter(asked, floor, proposal);
                let last = counter.saturating_add(u64::from(block.max(1)) - 1);
                check_range(last)?;
                self.set_counter(space, shard.number(), last);
                self.take(key, owner, ttl, now);
                Reply::Taken { counter }
            }
            Verb::Extend { ttl, write_back } => {
                if !is_owner {
                    return Ok(refused);
                }
                if let Some((shard, counter)) = write_back {
                    check_range(counter)?;
                    self.raise_counter(space, shard.number(), counter);
                }
                self.take(key, owner, ttl, now);
                Reply::Done
            }
            Verb::Heal {
                ttl,
                shard,
                counter,
            } => {
                if held.is_some() && !is_owner {
                    return Ok(refused);
                }
                check_range(counter)?;
                self.raise_counter(space, shard.number(), counter);
                self.take(key, owner, ttl, now);
                Reply::Done
            }
            Verb::Release { .. } | Verb::Bury { .. } => {
                if is_owner {
                    self.keys.remove(key);
                }
                if let Verb::Bury { ttl } = verb {
                    self.take(&space.tomb(owner), owner, ttl, now);
                }
                match is_owner {
                    true => Reply::Done,
                    false => refused,
                }
            }
        })
    }

    fn node(
        &mut self,
        space: &Space,
        verb: &NodeVerb,
        state: Option<&MarkState>,
    ) -> Result<Reply, Arc<str>> {
        Ok(match verb {
            NodeVerb::Tick => Reply::Done,
            NodeVerb::Inspect => Reply::Facts(Facts {
                run: self.run.clone(),
                version: Facts::OLDEST,
                is_master: true,
                is_cluster: false,
                eviction: None,
                appends: true,
            }),
            NodeVerb::Survey => Reply::Greatest(self.greatest(space)),
            NodeVerb::Open {
                floor,
                since,
                horizon,
            } => {
                let opens = match state {
                    Some(MarkState::Aged { since: began }) => began == since,
                    Some(MarkState::Quarantined { since: began, .. }) => {
                        horizon.is_none() && began == since
                    }
                    _ => false,
                };
                if !opens {
                    return Ok(Reply::Missing);
                }
                check_range(*floor)?;
                let counters = self.fences.entry(space.fence().clone()).or_default();
                counters.floor = counters.floor.max(*floor);
                if let Some(horizon) = horizon {
                    self.remember_since(space, *horizon);
                }
                if let Some(mark) = self.marks.get_mut(space.mark()) {
                    mark.quarantine = None;
                }
                Reply::Done
            }
        })
    }

    fn take(&mut self, key: &NodeKey, owner: OwnerId, ttl: Duration, now: u64) {
        if self.keys.len() >= self.sweep_at {
            self.keys.retain(|_, held| held.until >= now);
            self.sweep_at = (2 * self.keys.len()).max(64);
        }
        let until = now + millis(ttl).max(1);
        self.keys.insert(key.clone(), Key { owner, until });
    }

    /// The counter as an acquire would raise it: never below the floor.
    fn counter(&self, space: &Space, shard: u16) -> u64 {
        let Some(counters) = self.fences.get(space.fence()) else {
            return 0;
        };
        let stored = counters.shards.get(&shard).copied().unwrap_or(0);
        stored.max(counters.floor)
    }

    fn greatest(&self, space: &Space) -> u64 {
        let Some(counters) = self.fences.get(space.fence()) else {
            return 0;
        };
        let greatest = counters.shards.values().copied().max().unwrap_or(0);
        greatest.max(counters.floor)
    }

    fn set_counter(&mut self, space: &Space, shard: u16, value: u64) {
        let counters = self.fences.entry(space.fence().clone()).or_default();
        counters.shards.insert(shard, value);
    }

    fn raise_counter(&mut self, space: &Space, shard: u16, value: u64) {
        let counters = self.fences.entry(space.fence().clone()).or_default();
        let stored = counters.shards.entry(shard).or_default();
        *stored = (*stored).max(value);
    }
}

fn is_tomb(key: &NodeKey) -> bool {
    key.as_str().contains("}:tomb:")
}

/// Whether a request only looks, so that clients of another policy may make it.
const fn is_inspection(request: &Request) -> bool {
    matches!(
        request,
        Request::Node(NodeVerb::Tick | NodeVerb::Inspect | NodeVerb::Survey)
    )
}

fn check_range(counter: u64) -> Result<(), Arc<str>> {
    match counter > FencingToken::MAX.get() {
        true => Err("the fencing counter is beyond its range".into()),
        false => Ok(()),
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NodeVerb, Shard};

    const TTL: Duration = Duration::from_secs(10);

    fn space() -> Space {
        Space::new("{test}", Quarantine::new(2 * TTL, 0.01))
    }

    fn at(ms: u64) -> NodeTime {
        NodeTime::from_micros(ms * 1_000)
    }

    fn owner(owner: u8) -> OwnerId {
        OwnerId::from_random([owner; 16])
    }

    fn request(verb: Verb, by: u8) -> Request {
        Request::Lock {
            verb,
            key: "key".into(),
            owner: owner(by),
        }
    }

    fn acquire(proposal: u64) -> Verb {
        Verb::Acquire {
            ttl: TTL,
            shard: Shard::of(&"key".into()),
            proposal,
            block: 1,
        }
    }

    const EXTEND: Verb = Verb::Extend {
        ttl: TTL,
        write_back: None,
    };
    const RELEASE: Verb = Verb::Release { ttl: TTL };

    fn ask(store: &mut Store, request: Request, time: NodeTime) -> Reply {
        let mut answer = store.call(&space(), &[request], time);
        answer.replies.remove(0).expect("the request is in range")
    }

    fn voting() -> Store {
        Store::vouched_for("run".into())
    }

    fn state(store: &mut Store, time: NodeTime) -> MarkState {
        let standing = store.call(&space(), &[], time).standing;
        standing.expect("an empty call looks").state
    }

    fn open(store: &mut Store, since: NodeTime, time: NodeTime) -> Reply {
        told(store, since, Some(time), time)
    }

    fn bless(store: &mut Store, since: NodeTime, time: NodeTime) -> Reply {
        told(store, since, None, time)
    }

    fn told(
        store: &mut Store,
        since: NodeTime,
        horizon: Option<NodeTime>,
        time: NodeTime,
    ) -> Reply {
        let floor = 1_000;
        let open = NodeVerb::Open {
            floor,
            since,
            horizon,
        };
        ask(store, Request::Node(open), time)
    }

    /// Looks every half step until `until`.
    fn age(store: &mut Store, from: u64, until: u64) -> MarkState {
        let half = millis(space().quarantine().step()) / 2;
        let mut last = state(store, at(from));
        let mut time = from;
        while time + half <= until {
            time += half;
            last = state(store, at(time));
        }
        last
    }

    #[test]
    fn a_key_is_one_owners_up_to_its_last_millisecond() {
        let mut store = voting();
        let taken = ask(&mut store, request(acquire(5), 1), at(0));
        assert_eq!(taken, Reply::Taken { counter: 5 });
        let held = |ms| Reply::Held {
            remaining: Some(Duration::from_millis(ms)),
            counter: 5,
        };
        assert_eq!(
            ask(&mut store, request(acquire(1), 2), at(3_000)),
            held(7_000)
        );
        assert_eq!(ask(&mut store, request(acquire(1), 2), at(10_000)), held(1));
        let taken = ask(&mut store, request(acquire(1), 2), at(10_001));
        assert_eq!(taken, Reply::Taken { counter: 6 });
    }

    #[test]
    fn a_clock_that_is_set_back_brings_back_what_no_request_has_named_since() {
        let mut store = voting();
        let named = ["named", "unnamed", "unnamed too"].map(NodeKey::from);
        for key in &named {
            let take = Request::Lock {
                verb: acquire(1),
                key: key.clone(),
                owner: owner(1),
            };
            ask(&mut store, take, at(0));
        }
        let there = |store: &Store| named.each_ref().map(|k| store.holder(k, at(5)).is_some());
        let release = Request::Lock {
            verb: RELEASE,
            key: "named".into(),
            owner: owner(2),
        };
        ask(&mut store, release, at(10_001));
        assert_eq!(there(&store), [false, true, true]);
        store.expire(at(10_001));
        assert_eq!(there(&store), [false, false, false]);
    }

    #[test]
    fn s04_extending_a_missing_key_does_not_create_it() {
        let mut store = voting();
        assert_eq!(ask(&mut store, request(EXTEND, 1), at(0)), Reply::Missing);
        assert_eq!(store.locks(at(0)), 0);
    }

    #[test]
    fn s21_a_key_is_not_touched_for_another_owner() {
        let mut store = voting();
        ask(&mut store, request(acquire(5), 1), at(0));
        let heal = Verb::Heal {
            ttl: 5 * TTL,
            shard: Shard::of(&"key".into()),
            counter: 99,
        };
        for verb in [RELEASE, EXTEND, heal, Verb::Bury { ttl: TTL }] {
            let held = Reply::Held {
                remaining: Some(Duration::from_secs(8)),
                counter: 0,
            };
            assert_eq!(ask(&mut store, request(verb, 2), at(2_000)), held);
        }
        assert_eq!(ask(&mut store, request(RELEASE, 1), at(2_000)), Reply::Done);
        assert_eq!(
            ask(&mut store, request(RELEASE, 1), at(2_000)),
            Reply::Missing
        );
    }

    #[test]
    fn s28_a_buried_owner_takes_nothing_any_more() {
        let mut store = voting();
        let bury = request(Verb::Bury { ttl: TTL }, 1);
        assert_eq!(ask(&mut store, bury, at(0)), Reply::Missing);
        assert_eq!(
            ask(&mut store, request(acquire(5), 1), at(9_000)),
            Reply::Buried
        );
        let other = ask(&mut store, request(acquire(5), 2), at(9_000));
        assert_eq!(other, Reply::Taken { counter: 5 });
    }

    #[test]
    fn s15_a_node_that_forgot_does_not_vote_for_longer_than_the_longest_lease() {
        let mut store = voting();
        assert_eq!(state(&mut store, at(0)), MarkState::Voting);
        store.flush();
        let length = millis(space().quarantine().length());
        assert!(matches!(
            age(&mut store, 1_000, 1_000 + length - 1),
            MarkState::Quarantined { .. }
        ));
        let since = at(1_000);
        let aged = age(&mut store, 1_000 + length - 1, 1_000 + length + 400);
        assert_eq!(aged, MarkState::Aged { since });
        let time = at(1_000 + length + 400);
        assert_eq!(open(&mut store, at(999), time), Reply::Missing);
        assert_eq!(open(&mut store, since, time), Reply::Done);
        assert_eq!(state(&mut store, time), MarkState::Voting);
        let taken = ask(&mut store, request(acquire(5), 1), time);
        assert_eq!(taken, Reply::Taken { counter: 1_001 });
    }

    #[test]
    fn s16_a_node_with_anothers_mark_does_not_vote() {
        let mut store = voting();
        state(&mut store, at(0));
        store.restart("promoted".into());
        assert!(matches!(
            state(&mut store, at(1)),
            MarkState::Quarantined { .. }
        ));
        let trusting = Space::new(
            "{trusting}",
            Quarantine::new(2 * TTL, 0.01).trusting_persistence(),
        );
        let voting_in = |store: &mut Store| {
            let standing = store.call(&trusting, &[], at(1)).standing;
            standing.expect("it looked").state == MarkState::Voting
        };
        let mut persistent = voting();
        assert!(voting_in(&mut persistent));
        persistent.restart("again".into());
        assert!(voting_in(&mut persistent), "it has its data");
        persistent.flush();
        assert!(!voting_in(&mut persistent), "it has lost its data");
    }

    #[test]
    fn s13_a_clock_that_is_set_forward_does_not_end_the_quarantine() {
        let mut store = Store::new("run".into());
        state(&mut store, at(0));
        let ready_in = |state| match state {
            MarkState::Quarantined { ready_in, .. } => ready_in,
            other => panic!("{other:?}"),
        };
        let before = ready_in(state(&mut store, at(1)));
        let after = ready_in(state(&mut store, at(3_600_000)));
        assert_eq!(before - after, space().quarantine().step());
        let back = ready_in(state(&mut store, at(5)));
        assert_eq!(back, after);
    }

    #[test]
    fn an_operator_may_vouch_for_a_node() {
        let mut store = Store::new("run".into());
        state(&mut store, at(7));
        assert_eq!(open(&mut store, at(7), at(8)), Reply::Missing);
        assert_eq!(bless(&mut store, at(7), at(8)), Reply::Done);
        assert_eq!(state(&mut store, at(9)), MarkState::Voting);
    }

    #[test]
    fn clients_with_another_longest_time_to_live_are_refused() {
        let mut store = voting();
        state(&mut store, at(0));
        let shorter = Space::new("{test}", Quarantine::new(TTL, 0.01));
        let answer = store.call(&shorter, &[request(acquire(1), 1)], at(1));
        let theirs = "20000".into();
        assert_eq!(
            answer.standing.map(|s| s.state),
            Some(MarkState::Unlike { theirs })
        );
        assert_eq!(answer.replies, [Ok(Reply::Unlike)]);
        assert_eq!(store.locks(at(1)), 0);
    }

    #[test]
    fn a_counter_beyond_its_range_is_an_error_and_takes_nothing() {
        let mut store = voting();
        let beyond = request(acquire(FencingToken::MAX.get() + 1), 1);
        let answer = store.call(&space(), &[beyond], at(0));
        assert!(answer.replies[0].is_err());
        assert_eq!(store.locks(at(0)), 0);
        let last = request(acquire(FencingToken::MAX.get()), 1);
        assert!(matches!(ask(&mut store, last, at(0)), Reply::Taken { .. }));
    }

    #[test]
    fn l09_keys_used_once_do_not_accumulate() {
        let mut store = voting();
        for key in 0..100_000u64 {
            let request = Request::Lock {
                verb: Verb::Acquire {
                    ttl: Duration::from_millis(50),
                    shard: Shard::of(&"key".into()),
                    proposal: 1,
                    block: 1,
                },
                key: key.to_string().into(),
                owner: owner(1),
            };
            assert!(matches!(
                ask(&mut store, request, at(key)),
                Reply::Taken { .. }
            ));
            let kept = store.keys.len();
            assert!(kept <= 200, "{kept} keys are kept");
        }
    }
}
