//! The spans and metrics of callers of slots: each is one caller, however many slots it asks for.

use std::{
    collections::HashMap,
    fmt::Debug,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use futures_util::poll;
use metrics::set_default_local_recorder;
use redlock_core::{AcquireErrorKind, AcquireOptions, Redlock, SlotGuard, Wait};
use tracing::{
    Event, Metadata, Subscriber,
    field::Field,
    span::{Attributes, Id, Record},
};

use crate::paused_time::{
    fixtures::{Faults, FaultyNode, MS, SECOND, client, faulty, listens},
    recorder::Watch,
};

/// The sums of what a client has told of its metrics, by their names.
#[derive(Clone, Default)]
struct Figures(Arc<Mutex<HashMap<String, f64>>>);

impl Figures {
    /// Returns a client whose metrics these are.
    async fn of(nodes: &[FaultyNode]) -> (Redlock, Self) {
        let figures = Self::default();
        let all = figures.clone();
        let recorder = Watch::new(move |name, value| {
            let mut all = all.0.lock().expect("nothing panics with it");
            // Durations are of real time: how many there are is what can be said here.
            let value = if name.ends_with("_seconds") {
                1.0
            } else {
                value
            };
            *all.entry(name.to_owned()).or_default() += value;
        });
        let recording = set_default_local_recorder(&recorder);
        let redlock = client(nodes).await;
        // The metrics of a class are there from its first acquire on.
        let guard = redlock
            .slots("reports", 1)
            .expect("one is valid")
            .acquire()
            .await;
        drop(guard.expect("the nodes are up"));
        drop(redlock.acquire("plain").await.expect("the nodes are up"));
        drop(recording);
        figures.0.lock().expect("nothing panics with it").clear();
        // What a holder of one slot has said is remembered for a time to live.
        tokio::time::sleep(60 * SECOND).await;
        (redlock, figures)
    }

    fn get(&self, name: &str) -> f64 {
        let figures = self.0.lock().expect("nothing panics with it");
        figures.get(name).copied().unwrap_or_default()
    }
}

async fn all_slots(of: &Redlock, count: usize) -> Vec<SlotGuard> {
    let slots = of.slots("reports", count).expect("so many are valid");
    let mut held = Vec::new();
    for _ in 0..count {
        held.push(slots.try_acquire().await.expect("they are free"));
    }
    held
}

#[tokio::test(start_paused = true)]
async fn a_slot_that_the_caller_holds_or_cannot_ask_for_is_refused_uncounted() {
    let nodes = faulty(3);
    let (redlock, figures) = Figures::of(&nodes).await;
    let slots = redlock.slots("reports", 1).unwrap();
    let guard = slots.acquire().await.unwrap();
    assert_eq!(figures.get("redlock_acquire_total"), 1.0);
    let again = guard.guard().run(slots.acquire()).await.unwrap();
    assert_eq!(again.unwrap_err().kind(), AcquireErrorKind::AlreadyHeld);
    let misused = AcquireOptions::new().ttl(Duration::from_nanos(1));
    let misused = slots.acquire_with(misused).await.unwrap_err();
    assert_eq!(misused.kind(), AcquireErrorKind::Misuse);
    assert_eq!(figures.get("redlock_acquire_total"), 1.0);
    assert_eq!(figures.get("redlock_acquire_duration_seconds"), 1.0);
    assert_eq!(figures.get("redlock_waiters"), 0.0);
}

#[tokio::test(start_paused = true)]
async fn the_parts_of_a_search_for_a_slot_are_no_retries() {
    let nodes = faulty(3);
    let (redlock, figures) = Figures::of(&nodes).await;
    let other = client(&nodes).await;
    let held = all_slots(&other, 8).await;
    let slots = redlock.slots("reports", 8).unwrap();
    let refused = slots.acquire().await.unwrap_err();
    assert_eq!(refused.kind(), AcquireErrorKind::Contended);
    assert_eq!(figures.get("redlock_acquire_retries_total"), 0.0);
    assert_eq!(figures.get("redlock_acquire_total"), 1.0);
    drop(held);
    let _plain = other.acquire("plain").await.unwrap();
    redlock.acquire("plain").await.unwrap_err();
    assert!(figures.get("redlock_acquire_retries_total") > 1.0);
}

#[tokio::test(start_paused = true)]
async fn a_caller_of_slots_has_waited_once_it_has_a_turn_at_one_whatever_nodes_say() {
    let wait = "redlock_wait_duration_seconds";
    let nodes = faulty(3);
    let (redlock, figures) = Figures::of(&nodes).await;
    let slots = redlock.slots("reports", 2).unwrap();
    nodes
        .iter()
        .for_each(|node| node.set(Faults::late_replies(100 * MS)));
    let mut acquire = pin!(slots.acquire());
    assert!(poll!(&mut acquire).is_pending());
    assert_eq!(figures.get(wait), 1.0);
    drop(acquire.await.unwrap());
    assert_eq!(figures.get(wait), 1.0);
    nodes.iter().for_each(FaultyNode::heal);

    // Another process has both: the caller has its turn, and asks nodes in vain.
    let other = client(&nodes).await;
    tokio::time::sleep(SECOND).await;
    let held = all_slots(&other, 2).await;
    slots.acquire().await.unwrap_err();
    assert_eq!(figures.get(wait), 2.0);
    drop(held);
    tokio::time::sleep(SECOND).await;

    // This process has both: the caller has no turn, as one of a lock would have none.
    let _held = all_slots(&redlock, 2).await;
    let before = figures.get(wait);
    let short = AcquireOptions::new().wait(Wait::UpTo(SECOND));
    slots.acquire_with(short).await.unwrap_err();
    assert_eq!(figures.get(wait), before);
}

/// A subscriber that notes which spans of acquires are made, by their number, and what is recorded of them.
#[derive(Clone, Default)]
struct Acquires(Arc<Mutex<Vec<(u64, &'static str)>>>);

impl Acquires {
    fn notes(&self) -> MutexGuard<'_, Vec<(u64, &'static str)>> {
        self.0.lock().expect("nothing panics with it")
    }
}

impl Subscriber for Acquires {
    fn enabled(&self, of: &Metadata<'_>) -> bool {
        of.is_span() && of.name() == "redlock.acquire"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        let mut notes = self.notes();
        let number = notes.last().map_or(1, |(number, _)| number + 1);
        notes.push((number, "new"));
        Id::from_u64(number)
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        let number = id.into_u64();
        values.record(&mut |field: &Field, _: &dyn Debug| {
            self.notes().push((number, field.name()));
        });
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test(start_paused = true)]
async fn a_call_for_a_slot_has_one_span() {
    let nodes = faulty(3);
    let (redlock, other) = (client(&nodes).await, client(&nodes).await);
    let mut held = all_slots(&other, 8).await;
    let seen = Acquires::default();
    let listening = listens(seen.clone());
    let slots = redlock.slots("reports", 8).unwrap();
    let release = async {
        tokio::time::sleep(SECOND).await;
        held.pop();
    };
    let (slot, ()) = tokio::join!(slots.acquire(), release);
    drop(slot.unwrap());
    drop(redlock.acquire("plain").await.unwrap());
    drop(listening);
    let notes = ["new", "attempts", "token", "result"];
    let [slot, plain] = [1, 2].map(|number| notes.map(|note| (number, note)));
    assert_eq!(*seen.notes(), [slot, plain].concat());
}
