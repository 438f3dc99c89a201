//! Clients, the nodes that they share, and what each has asked of them.

mod nodes;

use std::{num::NonZeroUsize, time::Duration};

use redlock_proto::{
    Acquire, Backlog, Client, ClientConfig, Effect, Entropy, FanOut, Instant, KeySet, Keyspace,
    Lock, LockMode, NodeAnswer, NodeKey, NodeTime, NodeVerb, NotAfter, Notice, Now, OwnerId,
    Quarantine, Quorum, Reply, Request, RequestError, RetryPolicy, Series, Store, Tick, TickClaim,
    Timing, Verb, Window, Word,
};

pub(crate) const MS: Duration = Duration::from_millis(1);
pub(crate) const TTL: Duration = Duration::from_secs(1);
pub(crate) const EARLY: Duration = Duration::from_millis(200);
pub(crate) const START_WITHIN: Duration = Duration::from_secs(30);

/// When it all begins, in milliseconds since the epoch.
const NOON: u64 = 1_795_262_400_000;
const LIMIT: Duration = Duration::from_millis(200);

pub(crate) struct Bench {
    pub(crate) nodes: Vec<Store>,
    /// By how many milliseconds the clock of each is ahead.
    ahead: Vec<i64>,
    /// Which of them answers at each address.
    at: Vec<usize>,
    peers: Vec<Peer>,
    /// What clients use that are made from now on.
    keyspace: Keyspace,
    ms: u64,
    wait: Duration,
    /// What claims must not follow from now on.
    pub(crate) not_after: Option<NotAfter>,
    next_id: u64,
    pub(crate) mode: LockMode,
    /// Whether leases are renewed that are acquired from now on.
    pub(crate) renew: bool,
    /// How long acquisitions bear with an outage from now on.
    pub(crate) quorum_wait: Option<Duration>,
    /// How long leases are for that are acquired from now on, and may be held.
    pub(crate) ttl: Duration,
    pub(crate) max_hold: Option<Duration>,
}

struct Peer {
    client: Client,
    sent: Vec<Sent>,
    seen: Vec<Effect>,
    last: u64,
    /// The nodes that it is not connected to.
    down: Vec<bool>,
    notices: Vec<Notice>,
}

/// A request that is on its way to a node, and its round.
pub(crate) type Sent = (usize, u64, Request);

/// Owners that are counted up.
struct Counting(u8, u8);

impl Entropy for Counting {
    fn owner(&mut self) -> OwnerId {
        self.1 += 1;
        let mut owner = [self.0; 16];
        owner[0] = self.1;
        OwnerId::from_random(owner)
    }

    fn bits(&mut self) -> u64 {
        0
    }
}

impl Bench {
    /// Makes two clients that ask all nodes at once; the nodes' clocks agree.
    pub(crate) fn new(nodes: usize) -> Self {
        Self::with_clocks(&vec![0; nodes])
    }

    pub(crate) fn with_clocks(ahead: &[i64]) -> Self {
        Self::with(ahead, Quarantine::new(2 * TTL, 0.01))
    }

    pub(crate) fn with(ahead: &[i64], quarantine: Quarantine) -> Self {
        Self::with_fan_out(ahead, quarantine, FanOut::All)
    }

    /// Makes two clients as production has them.
    pub(crate) fn adaptive(nodes: usize) -> Self {
        let quarantine = Quarantine::new(2 * TTL, 0.01);
        Self::with_fan_out(&vec![0; nodes], quarantine, FanOut::default())
    }

    /// Makes two clients that ask a majority first, also for renewals.
    pub(crate) fn narrow(nodes: usize) -> Self {
        let quarantine = Quarantine::new(2 * TTL, 0.01);
        Self::with_fan_out(&vec![0; nodes], quarantine, FanOut::Majority)
    }

    /// Makes two clients for each of which this many requests may wait to be sent to a node.
    pub(crate) fn with_most_unsent(nodes: usize, quarantine: Quarantine, most: usize) -> Self {
        let mut config = config(nodes, quarantine, FanOut::All);
        config.most_unsent = most;
        Self::of(&vec![0; nodes], &config)
    }

    fn with_fan_out(ahead: &[i64], quarantine: Quarantine, fan_out: FanOut) -> Self {
        Self::of(ahead, &config(ahead.len(), quarantine, fan_out))
    }

    fn of(ahead: &[i64], config: &ClientConfig) -> Self {
        let run = |node: usize| node.to_string().as_str().into();
        let nodes = (0..ahead.len()).map(|node| Store::vouched_for(run(node)));
        let peer = |number| Peer {
            client: Client::new(config.clone(), Counting(number, 0)),
            sent: Vec::new(),
            seen: Vec::new(),
            last: 0,
            down: vec![false; ahead.len()],
            notices: Vec::new(),
        };
        let mut bench = Self {
            nodes: nodes.collect(),
            ahead: ahead.to_vec(),
            at: (0..ahead.len()).collect(),
            peers: vec![peer(1), peer(2)],
            keyspace: config.keyspace.clone(),
            ms: 0,
            wait: Duration::ZERO,
            not_after: None,
            next_id: 1,
            mode: LockMode::Exclusive,
            renew: true,
            quorum_wait: None,
            ttl: TTL,
            max_hold: None,
        };
        for peer in 0..2 {
            for node in 0..ahead.len() {
                bench.connect(peer, node);
            }
            bench.peers[peer].seen.clear();
            bench.peers[peer].notices.clear();
        }
        bench
    }

    /// Replaces the second client by one that has another policy.
    pub(crate) fn deploy(&mut self, quarantine: Quarantine) {
        let config = config(self.nodes.len(), quarantine, FanOut::All);
        self.keyspace = config.keyspace.clone();
        self.peers[1].client = Client::new(config, Counting(3, 0));
        for node in 0..self.nodes.len() {
            self.connect(1, node);
        }
    }

    /// Connects a client to a node.
    pub(crate) fn connect(&mut self, peer: usize, node: usize) {
        let (at, now) = (self.at[node], self.now());
        let time = self.time(at);
        let hello = [Request::Node(NodeVerb::Inspect)];
        let answer = self.nodes[at].call(&self.keyspace, &hello, time);
        let Peer { client, down, .. } = &mut self.peers[peer];
        down[node] = false;
        client.on_connected(node, answer, now.clock, now);
        self.gather(peer);
    }

    /// Lets `ms` milliseconds pass, in which a client does all that it has to, and nodes answer at once.
    pub(crate) fn live(&mut self, peer: usize, ms: u64) {
        let end = self.ms + ms;
        while self.ms < end {
            self.answer_all(peer);
            self.pass(5);
            let now = self.now();
            self.peers[peer].client.on_timer(now);
            self.gather(peer);
        }
        self.answer_all(peer);
    }

    /// Tells a client that it awaits an answer of this node to a call that was written now.
    pub(crate) fn awaits(&mut self, peer: usize, node: usize) {
        self.report_backlog(peer, node, 0, Some(self.ms));
    }

    /// Tells a client how many requests wait to be sent to a node, and since when an answer of it is awaited.
    pub(crate) fn report_backlog(
        &mut self,
        peer: usize,
        node: usize,
        unsent: usize,
        since: Option<u64>,
    ) {
        let awaited = since.map(|ms| Instant::from_origin(Duration::from_millis(ms)));
        let backlog = Backlog { unsent, awaited };
        self.peers[peer].client.on_backlog(node, backlog);
    }

    /// Lets a client vouch for all nodes.
    pub(crate) fn bless(&mut self, peer: usize) {
        let now = self.now();
        self.peers[peer].client.bless(1, now);
        self.gather(peer);
        self.answer_all(peer);
    }

    /// Returns where each node stands, as a client knows it.
    pub(crate) fn standing(&self, peer: usize) -> Vec<NodeAnswer> {
        self.peers[peer].client.standing(self.now())
    }

    pub(crate) fn ms(&self) -> u64 {
        self.ms
    }

    pub(crate) fn job() -> NodeKey {
        "{bench}:job:books".into()
    }

    /// Returns the tick `ms` milliseconds after the beginning.
    pub(crate) fn tick(ms: u64) -> Tick {
        Tick::from_millis(NOON + ms).expect("it is valid")
    }

    fn time(&self, node: usize) -> NodeTime {
        let ms = (NOON + self.ms).saturating_add_signed(self.ahead[node]);
        NodeTime::from_micros(ms * 1_000)
    }

    fn now(&self) -> Now {
        Now {
            clock: Instant::from_origin(Duration::from_millis(self.ms)),
            wall: (NOON + self.ms) * 1_000,
        }
    }

    pub(crate) fn due(&mut self, peer: usize) {
        let now = self.now();
        self.peers[peer].client.on_timer(now);
        self.gather(peer);
    }

    pub(crate) fn value(&self, node: usize) -> Option<String> {
        self.nodes[node].value(&Self::lock(), self.time(node))
    }

    pub(crate) fn pass(&mut self, ms: u64) {
        self.ms += ms;
    }

    /// Lets a client acquire the lock of the job.
    pub(crate) fn acquire(&mut self, peer: usize) {
        self.acquire_key(peer, Self::lock().as_str());
    }

    pub(crate) fn acquire_key(&mut self, peer: usize, key: &str) {
        self.acquire_keys(peer, &[key]);
    }

    pub(crate) fn acquire_keys(&mut self, peer: usize, keys: &[&str]) {
        let (now, mut request) = (self.now(), self.request());
        let keys = keys.iter().map(|key| NodeKey::from(*key));
        request.keys = KeySet::new(keys).expect("they are a few");
        let id = self.start(peer);
        self.peers[peer].client.acquire(id, request, now);
        self.gather(peer);
    }

    /// Lets a client release what it acquired last.
    pub(crate) fn release(&mut self, peer: usize) {
        let (now, id) = (self.now(), self.peers[peer].last);
        self.peers[peer].client.release(id, None, now);
        self.gather(peer);
    }

    /// Lets a client extend what it acquired last.
    pub(crate) fn extend(&mut self, peer: usize) {
        let (now, id) = (self.now(), self.peers[peer].last);
        self.peers[peer].client.extend(id, 9, now);
        self.gather(peer);
    }

    /// Parks what a client acquired last.
    pub(crate) fn park(&mut self, peer: usize) {
        let Peer { client, last, .. } = &mut self.peers[peer];
        client.park(*last);
        self.gather(peer);
    }

    /// Lets a client share what it acquired last.
    pub(crate) fn downgrade(&mut self, peer: usize, ask: u64) {
        let (now, id) = (self.now(), self.peers[peer].last);
        self.peers[peer].client.downgrade(id, ask, now);
        self.gather(peer);
    }

    /// Returns the number of a client's next acquisition, and notes it as its last.
    fn start(&mut self, peer: usize) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.peers[peer].last = id;
        id
    }

    fn request(&self) -> Acquire {
        Acquire {
            mode: self.mode,
            keys: Self::lock().into(),
            timing: Timing::new(self.ttl, 0.01, 50 * MS).expect("it is valid"),
            renew: self.renew,
            max_hold: self.max_hold,
            tokens: 1,
            fairness: redlock_proto::Fairness::Cohort,
            came: self.now().clock,
            wait_until: self.now().clock + self.wait,
            quorum_wait: self.quorum_wait,
            label: None,
        }
    }

    pub(crate) fn lock() -> NodeKey {
        "{bench}:lock:books".into()
    }

    /// Lets a client claim the tick at `tick` milliseconds after the beginning.
    pub(crate) fn claim(&mut self, peer: usize, tick: u64) {
        let (now, request) = (self.now(), self.request());
        let claim = TickClaim {
            job: Self::job(),
            series: Series::TICKS,
            tick: Self::tick(tick),
            attempt: 1,
            window: Window::new(EARLY, START_WITHIN),
            fingerprint: 7,
            replica: Word::new(&format!("replica-{peer}")).expect("it is valid"),
            not_after: self.not_after.clone(),
        };
        let id = self.start(peer);
        self.peers[peer].client.claim(id, request, claim, now);
        self.gather(peer);
    }

    /// Sets how long claims wait from now on; they do not before.
    pub(crate) fn wait(&mut self, wait: Duration) {
        self.wait = wait;
    }

    /// Runs a client's timers, up to `ms` milliseconds after the beginning.
    pub(crate) fn run_until(&mut self, peer: usize, ms: u64) {
        while self.ms < ms {
            self.pass(1);
            let now = self.now();
            self.peers[peer].client.on_timer(now);
            self.gather(peer);
        }
    }

    pub(crate) fn abandon(&mut self, peer: usize) {
        let (now, id) = (self.now(), self.peers[peer].last);
        self.peers[peer].client.abandon(id, now);
        self.gather(peer);
    }

    /// Ends the run of the last tick that a client claimed.
    pub(crate) fn finish(&mut self, peer: usize) {
        self.finish_as(peer, "ok");
    }

    pub(crate) fn finish_as(&mut self, peer: usize, outcome: &str) {
        let (now, id) = (self.now(), self.peers[peer].last);
        let client = &mut self.peers[peer].client;
        client.finish(
            id,
            Word::new(outcome).expect("it is valid"),
            12 * MS,
            None,
            now,
        );
        client.release(id, None, now);
        self.gather(peer);
    }

    pub(crate) fn read(&mut self, peer: usize, ask: u64) {
        let (now, job) = (self.now(), Self::job());
        let lock = Self::lock();
        self.peers[peer]
            .client
            .read_job(ask, &job, &lock, None, now);
        self.gather(peer);
    }

    fn gather(&mut self, peer: usize) {
        let now = self.now();
        let peer = &mut self.peers[peer];
        while let Some(effect) = peer.client.poll_effect() {
            match effect {
                Effect::Send { node, round, .. } if peer.down[node] => {
                    let result = [(round, Err(RequestError::not_executed("cut".into())))];
                    peer.client.on_answer(node, None, result, now.clock, now);
                }
                Effect::Send {
                    node,
                    round,
                    request,
                    ..
                } => peer.sent.push((node, round, request)),
                Effect::Notice(notice) => peer.notices.push(notice),
                other => peer.seen.push(other),
            }
        }
    }

    /// Returns how many requests of a client wait for their outcome, with one for each round that awaits none.
    pub(crate) fn open_requests(&self, peer: usize) -> usize {
        self.peers[peer].client.open_requests()
    }

    /// Takes the notices of a client for an operator since the last call.
    pub(crate) fn notices(&mut self, peer: usize) -> Vec<Notice> {
        std::mem::take(&mut self.peers[peer].notices)
    }

    /// Takes the other effects of a client since the last call, besides sending.
    pub(crate) fn seen(&mut self, peer: usize) -> Vec<Effect> {
        std::mem::take(&mut self.peers[peer].seen)
    }

    /// Returns the requests of a client that a node has not answered.
    pub(crate) fn unanswered(&self, peer: usize, node: usize) -> impl Iterator<Item = &Request> {
        let sent = self.peers[peer].sent.iter();
        sent.filter(move |(to, ..)| *to == node)
            .map(|(.., request)| request)
    }

    /// Takes what a client has sent, which never arrives.
    pub(crate) fn sent(&mut self, peer: usize) -> Vec<Sent> {
        std::mem::take(&mut self.peers[peer].sent)
    }

    /// Drops what a client has sent to a node, which never arrives.
    pub(crate) fn drop_sent(&mut self, peer: usize, node: usize) {
        self.peers[peer].sent.retain(|(to, ..)| *to != node);
    }
}

/// Returns the configuration of a client with this many nodes.
fn config(nodes: usize, quarantine: Quarantine, fan_out: FanOut) -> ClientConfig {
    ClientConfig {
        quorum: Quorum::of(NonZeroUsize::new(nodes).expect("it is valid")),
        keyspace: Keyspace::new("{bench}", quarantine),
        retry: RetryPolicy::new(5 * MS, 50 * MS).expect("it is valid"),
        node_timeout: LIMIT,
        inspect_every: ClientConfig::INSPECT_EVERY,
        fan_out,
        most_unsent: 1024,
    }
}
