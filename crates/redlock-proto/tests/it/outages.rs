//! A holder is warned a third of the time to live before the loss, whatever becomes of the nodes.

use std::{num::NonZeroUsize, time::Duration};

use redlock_proto::{
    Acquire, Client, ClientConfig, Effect, Entropy, FanOut, Instant, Keyspace, LockMode, Loss,
    NodeTime, NodeVerb, Notice, Now, OwnerId, Quarantine, Quorum, Request, RequestError,
    RetryPolicy, Store, Timing,
};

const OUTAGES: u64 = 1_000;

/// SplitMix64, by Sebastiano Vigna.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

impl Entropy for Random {
    fn owner(&mut self) -> OwnerId {
        OwnerId::from_random(
            (u128::from(self.next()) << 64 | u128::from(self.next())).to_be_bytes(),
        )
    }

    fn bits(&mut self) -> u64 {
        self.next()
    }
}

/// What becomes of a request during the outage.
#[derive(Clone, Copy, Debug)]
enum Outage {
    /// There is no answer.
    Silent,
    /// It fails at once.
    Refused,
    /// The node does it, and the answer is lost.
    Deaf,
}

struct World {
    client: Client,
    keyspace: Keyspace,
    nodes: Vec<Store>,
    random: Random,
    micros: u64,
    /// How late timers may be, in microseconds.
    late: u64,
    /// For each node, what is wrong with it.
    outage: Vec<Option<Outage>>,
    sent: Vec<(usize, u64, Request)>,
    deadline: Option<Instant>,
    told: Option<Instant>,
    lost: Option<Loss>,
}

impl World {
    fn new(seed: u64, ttl: Duration) -> Self {
        let mut random = Random(seed);
        let count = [1, 3, 3, 5][random.below(4) as usize];
        let keyspace = Keyspace::new("{bench}", Quarantine::new(2 * ttl, 0.01));
        let config = ClientConfig {
            quorum: Quorum::of(NonZeroUsize::new(count).expect("there are some")),
            keyspace: keyspace.clone(),
            retry: RetryPolicy::new(Duration::from_millis(10), Duration::from_millis(100))
                .expect("0 < 10 <= 100"),
            node_timeout: (ttl / 10).max(Duration::from_millis(50)),
            inspect_every: ClientConfig::INSPECT_EVERY,
            fan_out: FanOut::default(),
            most_unsent: 1024,
        };
        let stores = (0..count).map(|node| Store::vouched_for(node.to_string().as_str().into()));
        let mut world = Self {
            client: Client::new(config, Random(!seed)),
            keyspace,
            nodes: stores.collect(),
            random,
            micros: 0,
            late: u64::try_from(ttl.as_micros() / 30).expect("it is short"),
            outage: vec![None; count],
            sent: Vec::new(),
            deadline: None,
            told: None,
            lost: None,
        };
        for node in 0..count {
            let (time, now) = (world.time(), world.now());
            let hello = [Request::Node(NodeVerb::Inspect)];
            let answer = world.nodes[node].call(&world.keyspace, &hello, time);
            world.client.on_connected(node, answer, now.clock, now);
        }
        world.gather();
        world
    }

    fn time(&self) -> NodeTime {
        NodeTime::from_micros(self.micros + 1_000_000_000)
    }

    fn now(&self) -> Now {
        Now {
            clock: Instant::from_origin(Duration::from_micros(self.micros)),
            wall: self.time().as_micros(),
        }
    }

    fn gather(&mut self) {
        while let Some(effect) = self.client.poll_effect() {
            match effect {
                Effect::Send {
                    node,
                    round,
                    request,
                    ..
                } => self.sent.push((node, round, request)),
                Effect::Acquired { deadline, .. } | Effect::Extended { deadline, .. } => {
                    // A holder that was warned is warned again of the next danger, once the first is over.
                    self.told = None;
                    self.deadline = Some(deadline);
                }
                Effect::Notice(Notice::Endangered { .. }) => self.told = Some(self.now().clock),
                Effect::Lost { loss, .. } => self.lost = Some(loss),
                _ => {}
            }
        }
    }

    fn acquire(&mut self, ttl: Duration) {
        let now = self.now();
        let request = Acquire {
            mode: LockMode::Exclusive,
            keys: "key".into(),
            timing: Timing::new(ttl, 0.01, ttl / 10).expect("enough is left"),
            renew: true,
            max_hold: None,
            tokens: 1,
            fairness: redlock_proto::Fairness::Cohort,
            came: now.clock,
            wait_until: now.clock + ttl,
            quorum_wait: None,
            label: None,
        };
        self.client.acquire(1, request, now);
        self.gather();
    }

    /// Answers everything that was sent, as far as the outages of nodes allow.
    fn answer(&mut self) {
        while !self.sent.is_empty() {
            for (node, round, request) in std::mem::take(&mut self.sent) {
                let now = self.now();
                let reason = || "it is down".into();
                let outage = self.outage[node];
                if !matches!(outage, None | Some(Outage::Deaf)) {
                    if matches!(outage, Some(Outage::Refused)) {
                        let results = [(round, Err(RequestError::not_executed(reason())))];
                        self.client.on_answer(node, None, results, now.clock, now);
                    }
                    continue;
                }
                let time = self.time();
                let answer = self.nodes[node].call(&self.keyspace, &[request], time);
                if outage.is_none() {
                    let replies = answer.replies.into_iter();
                    let results = replies.map(|reply| (round, Ok(reply.expect("it is in range"))));
                    let standing = answer.standing;
                    self.client
                        .on_answer(node, standing, results, now.clock, now);
                } else if self.random.below(2) == 0 {
                    let results = [(round, Err(RequestError::unknown(reason())))];
                    self.client.on_answer(node, None, results, now.clock, now);
                }
            }
            self.gather();
        }
    }

    /// Goes on to the next timer, which may be late, or for `most` microseconds.
    fn step(&mut self, most: u64) {
        let next = self.client.next_timer().map_or(u64::MAX, |at| {
            let wait = at.saturating_since(self.now().clock);
            u64::try_from(wait.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX)
        });
        self.micros += if next <= most {
            next + self.random.below(self.late)
        } else {
            most
        };
        let now = self.now();
        self.client.on_timer(now);
        self.gather();
        self.answer();
    }

    fn pass(&mut self, micros: u64) {
        let until = self.micros + micros;
        while self.micros < until && self.lost.is_none() {
            self.step(until - self.micros);
        }
    }
}

#[test]
fn every_outage_is_told_a_third_of_the_time_to_live_before_the_loss() {
    for seed in 0..OUTAGES {
        let mut random = Random(seed << 32);
        let ttl = Duration::from_millis(100 + random.below(20_000));
        let mut world = World::new(seed, ttl);
        world.acquire(ttl);
        world.answer();
        assert!(world.deadline.is_some(), "seed {seed}: it is held");
        let micros = u64::try_from(ttl.as_micros()).expect("it is short");
        world.pass(random.below(3 * micros));
        assert_eq!(
            (world.told, world.lost),
            (None, None),
            "seed {seed}: all is well"
        );

        // A short one, which is over before it matters, or is not; and then one that lasts.
        for lasts in [random.below(micros), 10 * micros] {
            let healthy = random.below(world.nodes.len().div_ceil(2) as u64) as usize;
            for node in healthy..world.nodes.len() {
                let kinds = [Outage::Silent, Outage::Refused, Outage::Deaf];
                world.outage[node] = Some(kinds[random.below(3) as usize]);
            }
            world.pass(lasts);
            if world.lost.is_none() {
                world.outage.fill(None);
                world.pass(random.below(micros));
            }
        }
        assert_eq!(world.lost, Some(Loss::Expired), "seed {seed}");
        let (deadline, told) = (world.deadline.expect("it was held"), world.told);
        let told = told.unwrap_or_else(|| panic!("seed {seed}: nobody was told"));
        let left = deadline.saturating_since(told);
        assert!(left >= ttl / 3, "seed {seed}: {left:?} of {ttl:?}");
    }
}
