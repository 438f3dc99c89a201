//! Three candidates in processes of their own, of which the leader is killed, frozen, cut off, or asked to end.
//!
//! `REDLOCK_ROUNDS=200 cargo test -p redlock-tests --test it -- elections --nocapture` does each of it 200 times.

use std::{collections::BTreeMap, env, time::Duration};

use redlock_core::{Leadership, Observer, Wait};
use redlock_tests::{
    ClientProcess, Connect, Event, History, Lead, Moment, Nodes, Proxies, Proxy, Random, Work,
    client, eventually, now, within,
};
use tokio::time::sleep;

const CLIENT: &str = env!("CARGO_BIN_EXE_redlock-test-client");
const ELECTION: &str = "importer";
const NODES: usize = 5;
const TTL: Duration = Duration::from_secs(2);
/// The longest pause of a candidate between two attempts.
const PAUSE: Duration = Duration::from_millis(250);
/// What a busy machine may add to a promised time.
const SLACK: Duration = Duration::from_secs(1);
/// The rounds of one history, of which each look reads all.
const ROUNDS: usize = 3;

/// A candidate, and its own way to each node.
struct Candidate {
    name: String,
    process: ClientProcess,
    network: Proxies,
}

impl Candidate {
    /// The ways to a random majority of the nodes.
    fn ways_to_majority(&self, random: &mut Random) -> impl Iterator<Item = &Proxy> {
        let first = random.below(NODES as u64) as usize;
        let ways = self.network.0.iter().cycle();
        ways.skip(first).take(NODES / 2 + 1)
    }
}

/// The candidates, which end with this value, and what they did.
struct Candidates<'a> {
    nodes: &'a Nodes,
    history: History,
    running: BTreeMap<u32, Candidate>,
    started: usize,
}

impl<'a> Candidates<'a> {
    fn of(nodes: &'a Nodes) -> Self {
        Self {
            nodes,
            history: History::new(),
            running: BTreeMap::new(),
            started: 0,
        }
    }

    async fn start(&mut self) {
        self.started += 1;
        let name = format!("candidate-{}", self.started);
        let network = Proxies::start(self.nodes.iter().map(|node| node.address())).await;
        let lead = Lead {
            history: self.history.file(&name),
            connect: Connect::to(network.urls(), TTL),
            election: ELECTION.to_owned(),
            candidate: name.clone(),
            period: Duration::from_millis(50),
        };
        let process = ClientProcess::start(CLIENT, &Work::Lead(lead));
        let candidate = Candidate {
            name,
            network,
            process,
        };
        self.running.insert(candidate.process.id(), candidate);
    }

    /// All terms so far, by their first event.
    fn terms(&self) -> Vec<Event> {
        let begins = |event: &Event| event.moment == Moment::Acquired && event.is_valid();
        let events = self.history.events();
        events.into_iter().filter(begins).collect()
    }

    /// Waits for a term after the first `terms` ones; returns its beginning.
    async fn next(&self, terms: usize) -> Event {
        let terms = eventually(
            "the next term",
            5 * TTL,
            || self.terms(),
            |begun| begun.len() > terms,
        )
        .await;
        terms.last().unwrap().clone()
    }

    /// The last event at which the leader knew its term to be valid.
    fn last_of(&self, term: &Event) -> Event {
        let is_of_it = |event: &Event| {
            (event.process, event.lease) == (term.process, term.lease) && event.is_valid()
        };
        let events = self.history.events().into_iter();
        let mut events = events.filter(is_of_it);
        events.next_back().expect("a term has an event")
    }

    /// Has all candidates end; returns the number of terms, of which no two overlap.
    async fn end(mut self) -> usize {
        for candidate in self.running.values() {
            candidate.process.terminate();
        }
        for (_, candidate) in std::mem::take(&mut self.running) {
            let _: u64 = candidate.process.finish(5 * TTL).await;
        }
        self.nodes.become_empty(TTL).await;
        self.history.assert_exclusive().len()
    }
}

/// Waits until an observer names this candidate.
async fn named(observer: &mut Observer, name: &str) {
    let names = |leader: Option<Leadership>| match leader.expect("the client is open") {
        Leadership::Leader { candidate, .. } => candidate.is_some_and(|of| of.as_str() == name),
        _ => false,
    };
    let look = async { while !names(observer.changed().await) {} };
    within("the observer's news", TTL / 3 + 2 * SLACK, look).await;
}

/// The times from the end of leaders to the next term, by how they ended.
#[derive(Default)]
struct Took(BTreeMap<&'static str, Vec<Duration>>);

impl Took {
    fn note(&mut self, how: &'static str, time: Duration) {
        self.0.entry(how).or_default().push(time);
    }

    fn median(&self, how: &str) -> Duration {
        let mut times = self.0[how].clone();
        times.sort_unstable();
        times[times.len() / 2]
    }

    /// Prints the figures, and checks that none is beyond what is promised by more than a busy machine may add.
    fn judge(&self) {
        let mut worst = Duration::ZERO;
        for (how, times) in &self.0 {
            let promised = if *how == "shutdown" {
                PAUSE
            } else {
                TTL + PAUSE
            };
            let beyond = times.iter().map(|time| time.saturating_sub(promised));
            let late = beyond.clone().filter(|beyond| !beyond.is_zero()).count();
            let most = beyond.max().unwrap_or_default();
            worst = worst.max(most);
            eprintln!(
                "{} of {how}: the next leads after {:?} by the median, {:?} at most; {late} beyond {promised:?}, by {most:?} at most",
                times.len(),
                self.median(how),
                times.iter().max().copied().unwrap_or_default(),
            );
        }
        assert!(worst < SLACK, "{worst:?} beyond the promise");
        // A leader that is asked to end does not leave the others waiting for its ttl.
        assert!(self.median("shutdown") < self.median("kill") / 2);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn terms_do_not_overlap_and_follow_in_time_however_leaders_end() {
    let rounds = env::var("REDLOCK_ROUNDS").map_or(ROUNDS, |rounds| rounds.parse().unwrap());
    let nodes = Nodes::start(NODES);
    let redlock = client(nodes.urls(), TTL).await;
    let mut observer = redlock.election(ELECTION).build().unwrap().observe();
    let (mut took, mut terms) = (Took::default(), 0);
    for first in (0..rounds).step_by(ROUNDS) {
        let rounds = ROUNDS.min(rounds - first);
        let of_these = several_rounds(rounds, &nodes, &mut observer, &mut took).await;
        assert!(of_these > 4 * rounds, "{of_these} terms");
        terms += of_these;
    }
    eprintln!("{terms} terms, of which no two overlap");
    took.judge();
}

/// Ends leaders in each way, so many times; returns the number of their terms.
async fn several_rounds(
    rounds: usize,
    nodes: &Nodes,
    observer: &mut Observer,
    took: &mut Took,
) -> usize {
    let mut random = Random::new();
    let mut candidates = Candidates::of(nodes);
    for _ in 0..3 {
        candidates.start().await;
    }
    let mut term = candidates.next(0).await;
    for how in ["kill", "shutdown", "freeze", "cut"].repeat(rounds) {
        let leader = candidates.running.remove(&term.process).unwrap();
        named(observer, &leader.name).await;
        // At any moment between two renewals.
        sleep(random.below_duration(TTL / 3)).await;
        let terms = candidates.terms().len();
        let begun = now();
        let stays = match how {
            "kill" => {
                leader.process.kill();
                None
            }
            "shutdown" => {
                leader.process.terminate();
                let led: u64 = leader.process.finish(5 * TTL).await;
                assert!(led > 0, "it has led");
                None
            }
            "freeze" => {
                leader.process.freeze();
                Some(leader)
            }
            _ => {
                leader
                    .ways_to_majority(&mut random)
                    .for_each(Proxy::cut_off);
                Some(leader)
            }
        };
        let next = candidates.next(terms).await;
        let last = candidates.last_of(&term);
        if how == "shutdown" {
            took.note(how, next.at - last.at);
        } else {
            assert!(next.at > last.until, "{next:?} begins before {last:?} ends");
            took.note(how, next.at - begun);
        }
        match stays {
            Some(leader) => {
                if how == "freeze" {
                    leader.process.thaw();
                }
                leader.network.0.iter().for_each(Proxy::let_through);
                candidates.running.insert(term.process, leader);
            }
            None => candidates.start().await,
        }
        term = next;
    }
    candidates.end().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn observers_learn_of_a_leader_in_time_while_a_node_stands_still() {
    let nodes = Nodes::start(3);
    let redlock = client(nodes.urls(), TTL).await;
    let election = |name: &str| redlock.election(ELECTION).candidate(name).build().unwrap();
    let mut observer = client(nodes.urls(), TTL)
        .await
        .election(ELECTION)
        .build()
        .unwrap()
        .observe();
    assert_eq!(observer.changed().await, Some(Leadership::None));
    nodes.freeze(0..1);
    for name in ["web-1", "web-2", "web-3"] {
        let term = election(name).lead_with(Wait::UpTo(TTL)).await.unwrap();
        let begun = now();
        named(&mut observer, name).await;
        let took = now() - begun;
        // A look that waits for the node takes longer than its connection may take, a second.
        assert!(took < TTL / 3 + Duration::from_millis(250), "{took:?}");
        term.resign().await.unwrap();
    }
    nodes.thaw(0..1);
}
