//! What a recorder of metrics, which is an application's code, must not do to a client.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit, set_default_local_recorder,
};
use redlock_core::{Lease, Wait};

use crate::paused_time::fixtures::{
    Faults, FaultyNode, SECOND, client, client_of, faulty, settle, soon,
};

type Sees = dyn Fn(&str, f64) + Send + Sync;

/// Passes each change of a metric to a function, by the metric's name, with its new value or by how much it changes.
#[derive(Clone)]
pub(crate) struct Watch {
    name: Arc<str>,
    sees: Arc<Sees>,
}

impl Watch {
    pub(crate) fn new(sees: impl Fn(&str, f64) + Send + Sync + 'static) -> Self {
        Self {
            name: "".into(),
            sees: Arc::new(sees),
        }
    }

    fn of(&self, key: &Key) -> Arc<Self> {
        Arc::new(Self {
            name: key.name().into(),
            sees: Arc::clone(&self.sees),
        })
    }

    fn sees(&self, value: f64) {
        (self.sees)(&self.name, value);
    }
}

impl Recorder for Watch {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.of(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.of(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.of(key))
    }
}

impl CounterFn for Watch {
    fn increment(&self, by: u64) {
        self.sees(by as f64);
    }

    fn absolute(&self, _: u64) {
        self.sees(f64::NAN);
    }
}

impl GaugeFn for Watch {
    fn increment(&self, by: f64) {
        self.sees(by);
    }

    fn decrement(&self, by: f64) {
        self.sees(-by);
    }

    fn set(&self, value: f64) {
        self.sees(value);
    }
}

impl HistogramFn for Watch {
    fn record(&self, value: f64) {
        self.sees(value);
    }
}

#[tokio::test(start_paused = true)]
async fn a_recorder_that_panics_costs_no_lease() {
    let nodes = faulty(3);
    let panics = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&panics);
    let recorder = Watch::new(move |name, _| {
        count.fetch_add(1, Ordering::SeqCst);
        panic!("a mistake in the recorder, which was told of {name}");
    });
    let recording = set_default_local_recorder(&recorder);
    let redlock = client(&nodes).await;
    let guard = redlock.acquire("key").await.unwrap();
    drop(recording);
    tokio::time::sleep(60 * SECOND).await;
    assert!(guard.lease().is_held(), "{:?}", guard.lease());
    soon(guard.release()).await.unwrap();
    soon(redlock.acquire("key"))
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    assert!(panics.load(Ordering::SeqCst) > 10);
}

/// An alert counts the callers that found a lock held until their wait ended.
#[tokio::test(start_paused = true)]
async fn who_finds_a_slot_is_counted_once_however_many_were_tried() {
    let nodes = faulty(3);
    let acquires = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&acquires);
    let recorder = Watch::new(move |name, _| {
        if name == "redlock_acquire_total" {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    let recording = set_default_local_recorder(&recorder);
    let redlock = client(&nodes).await;
    let slots = || redlock.slots("reports", 8).unwrap();
    let mut held = Vec::new();
    for _ in 0..6 {
        held.push(slots().acquire().await.unwrap());
    }
    for _ in 0..20 {
        slots().acquire().await.unwrap().release().await.unwrap();
    }
    drop(recording);
    assert_eq!(acquires.load(Ordering::SeqCst), 26);
}

#[tokio::test(start_paused = true)]
async fn a_confirmed_deadline_is_the_leases_before_it_is_counted() {
    let nodes = faulty(3);
    let watched: Arc<Mutex<Option<Lease>>> = Arc::default();
    let seen: Arc<Mutex<Vec<Duration>>> = Arc::default();
    let (lease, left) = (Arc::clone(&watched), Arc::clone(&seen));
    let recorder = Watch::new(move |name, _| {
        if name == "redlock_extend_total"
            && let Some(lease) = &*lease.lock().unwrap()
        {
            left.lock().unwrap().push(lease.remaining());
        }
    });
    let recording = set_default_local_recorder(&recorder);
    let redlock = client(&nodes).await;
    let guard = redlock.acquire("key").await.unwrap();
    drop(recording);
    let whole = guard.lease().remaining();
    *watched.lock().unwrap() = Some(guard.lease().clone());
    tokio::time::sleep(60 * SECOND).await;
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    assert!(!seen.is_empty());
    for left in seen {
        assert!(left > whole * 9 / 10, "{left:?} of {whole:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn gauges_of_nodes_are_what_the_client_says_that_knows_most_and_end_with_the_last() {
    let told: Arc<Mutex<HashMap<String, Vec<f64>>>> = Arc::default();
    let all = Arc::clone(&told);
    let recorder = Watch::new(move |name, value| {
        let mut all = all.lock().unwrap();
        all.entry(name.to_owned()).or_default().push(value);
    });
    let since = |name: &str| {
        let mut told = told.lock().unwrap();
        told.insert(name.to_owned(), Vec::new()).unwrap_or_default()
    };
    let nodes = faulty(3);
    let build = |nodes: &[FaultyNode]| client_of(nodes).namespace("gauges").build();
    let recording = set_default_local_recorder(&recorder);
    let redlock = build(&nodes).await.unwrap();
    settle().await;
    // The first call over each connection counts as any other.
    assert_eq!(since("redlock_node_requests_total").len(), nodes.len());
    tokio::time::sleep(2 * SECOND).await;
    assert_eq!(since("redlock_node_up").last(), Some(&1.0));
    assert_eq!(since("redlock_quorum_margin").last(), Some(&1.0));
    assert!(since("redlock_clock_offset_seconds")[0].is_nan());

    // Another client, which is given up before it has reached a node.
    let black_hole = Faults::BLACK_HOLE;
    let mut same = faulty(3);
    for (same, node) in same.iter_mut().zip(&nodes) {
        same.node = node.node.clone();
        same.set(black_hole);
    }
    let other = tokio::time::timeout(SECOND / 10, build(&same)).await;
    assert!(other.is_err());
    drop(recording);
    tokio::time::sleep(2 * SECOND).await;
    let (up, margin) = (since("redlock_node_up"), since("redlock_quorum_margin"));
    assert!(up.len() >= 3 && up.iter().all(|up| *up == 1.0), "{up:?}");
    assert!(margin.iter().all(|margin| *margin == 1.0), "{margin:?}");

    // One that stays away is down at the next look.
    nodes[0].set(black_hole);
    tokio::time::sleep(10 * SECOND).await;
    assert!(since("redlock_node_up").contains(&0.0));

    redlock.close().await;
    drop(redlock);
    settle().await;
    for name in [
        "redlock_node_up",
        "redlock_node_votes",
        "redlock_quorum_margin",
        "redlock_clock_offset_seconds",
        "redlock_node_clock_offset_seconds",
        "redlock_nodes",
    ] {
        let last = since(name).last().copied();
        assert!(last.is_some_and(f64::is_nan), "{name}: {last:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_is_told_for_as_long_as_it_leads_and_its_terms_are_counted() {
    let leader = Arc::new(Mutex::new(0.0));
    let terms = Arc::new(Mutex::new(0.0));
    let (leads, won) = (Arc::clone(&leader), Arc::clone(&terms));
    let recorder = Watch::new(move |name, by| match name {
        "redlock_leader" => *leads.lock().unwrap() += by,
        "redlock_terms_total" => *won.lock().unwrap() += by,
        _ => {}
    });
    let told = || (*leader.lock().unwrap(), *terms.lock().unwrap());
    let nodes = faulty(3);
    let recording = set_default_local_recorder(&recorder);
    let redlock = client(&nodes).await;
    let build = |preferred: bool| redlock.election("importer").preferred(preferred).build();
    let (election, other) = (build(false).unwrap(), build(true).unwrap());
    drop(recording);
    let lock = redlock.acquire("report").await.unwrap();
    assert_eq!(told(), (0.0, 0.0), "a lock is no term");
    let term = election.lead_with(Wait::Never).await.unwrap();
    assert_eq!(term.class(), Some("importer"));
    assert_eq!(told(), (1.0, 1.0));
    assert!(other.lead_with(Wait::UpTo(SECOND)).await.is_err());
    assert_eq!(told(), (1.0, 1.0), "one that asks does not lead");
    term.resign().await.unwrap();
    assert_eq!(told(), (0.0, 1.0));
    let term = election.lead_with(Wait::Never).await.unwrap();
    assert_eq!(told(), (1.0, 2.0));
    for node in &nodes {
        node.set(Faults::BLACK_HOLE);
    }
    // Though no task looks at the term.
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!(told(), (0.0, 2.0));
    drop((term, lock));
    assert_eq!(told(), (0.0, 2.0));
}

/// It waits for as long as another candidate leads, which is no contention.
#[tokio::test(start_paused = true)]
async fn a_follower_of_an_election_is_no_caller_that_waits() {
    let nodes = faulty(3);
    let leader = client(&nodes).await.election("importer").build().unwrap();
    let term = leader.lead_with(Wait::Never).await.unwrap();
    let counted = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&counted);
    let waits = [
        "redlock_waiters",
        "redlock_wait_duration_seconds",
        "redlock_acquire_duration_seconds",
    ];
    let recorder = Watch::new(move |name, _| {
        count.fetch_add(u64::from(waits.contains(&name)), Ordering::SeqCst);
    });
    let _recording = set_default_local_recorder(&recorder);
    let redlock = client(&nodes).await;
    let follower = redlock.election("importer").build().unwrap();
    let refused = follower.lead_with(Wait::UpTo(SECOND)).await;
    assert!(refused.is_err());
    assert_eq!(counted.load(Ordering::SeqCst), 0);
    drop(redlock.acquire("another").await.unwrap());
    assert_eq!(counted.load(Ordering::SeqCst), 4);
    drop(term);
}
