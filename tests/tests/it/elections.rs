//! Three candidates in processes of their own, of which the leader is killed, frozen, or asked to end.

use std::{collections::BTreeMap, time::Duration};

use redlock_core::{Leadership, Observer};
use redlock_tests::{
    ClientProcess, Connect, Event, History, Lead, Moment, Nodes, Work, client, eventually, now,
    within,
};

const CLIENT: &str = env!("CARGO_BIN_EXE_redlock-test-client");
const ELECTION: &str = "importer";
const TTL: Duration = Duration::from_secs(2);
/// The longest pause of a candidate between two attempts.
const PAUSE: Duration = Duration::from_millis(250);
/// What a busy machine may add to a promised time.
const SLACK: Duration = Duration::from_secs(1);

/// The candidates, which end with this value, and what they did.
struct Candidates {
    connect: Connect,
    history: History,
    running: BTreeMap<u32, (String, ClientProcess)>,
    started: usize,
}

impl Candidates {
    fn of(nodes: &Nodes) -> Self {
        Self {
            connect: Connect::to(nodes.urls(), TTL),
            history: History::new(),
            running: BTreeMap::new(),
            started: 0,
        }
    }

    fn start(&mut self) {
        self.started += 1;
        let candidate = format!("candidate-{}", self.started);
        let lead = Lead {
            history: self.history.file(&candidate),
            connect: self.connect.clone(),
            election: ELECTION.to_owned(),
            candidate: candidate.clone(),
            period: Duration::from_millis(20),
        };
        let process = ClientProcess::start(CLIENT, &Work::Lead(lead));
        self.running.insert(process.id(), (candidate, process));
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

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn terms_do_not_overlap_and_follow_in_time_when_leaders_are_killed_frozen_and_asked_to_end() {
    let nodes = Nodes::start(5);
    let redlock = client(nodes.urls(), TTL).await;
    let mut observer = redlock.election(ELECTION).build().unwrap().observe();
    let mut candidates = Candidates::of(&nodes);
    (0..3).for_each(|_| candidates.start());
    let mut term = candidates.next(0).await;
    let mut took: BTreeMap<&str, Vec<Duration>> = BTreeMap::new();
    for how in ["kill", "shutdown", "freeze"].repeat(3) {
        let (name, leader) = candidates.running.remove(&term.process).unwrap();
        named(&mut observer, &name).await;
        let terms = candidates.terms().len();
        let begun = now();
        let frozen = match how {
            "kill" => {
                leader.kill();
                None
            }
            "freeze" => {
                leader.freeze();
                Some(leader)
            }
            _ => {
                leader.terminate();
                let led: u64 = leader.finish(5 * TTL).await;
                assert!(led > 0, "it has led");
                None
            }
        };
        let next = candidates.next(terms).await;
        let last = candidates.last_of(&term);
        let (from, limit) = match how {
            "shutdown" => (last.at, PAUSE),
            _ => {
                assert!(next.at > last.until, "{next:?} begins before {last:?} ends");
                (begun, TTL + PAUSE)
            }
        };
        let late = next.at - from;
        assert!(late < limit + SLACK, "{late:?} after a {how}");
        took.entry(how).or_default().push(late);
        if let Some(frozen) = frozen {
            frozen.thaw();
            candidates.running.insert(term.process, (name, frozen));
        } else {
            candidates.start();
        }
        term = next;
    }
    // The candidates that are left end, and resign if they lead.
    for (_, process) in candidates.running.values() {
        process.terminate();
    }
    for (_, (_, process)) in std::mem::take(&mut candidates.running) {
        let _: u64 = process.finish(5 * TTL).await;
    }
    nodes.become_empty(TTL).await;
    let terms = candidates.history.assert_exclusive();
    let took: BTreeMap<_, _> = took
        .into_iter()
        .map(|(how, all)| (how, median(all)))
        .collect();
    println!(
        "{} terms; to the next one, by the median: {took:?}",
        terms.len()
    );
    assert!(terms.len() > 9, "{terms:?}");
    // A leader that is asked to end does not leave the others waiting for its ttl.
    assert!(took["shutdown"] < took["kill"] / 2, "{took:?}");
}
