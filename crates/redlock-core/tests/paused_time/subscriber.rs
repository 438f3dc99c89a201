//! What a subscriber of the log, which is an application's code, must not do to a client.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tracing::{
    Event, Metadata, Subscriber,
    span::{Attributes, Id, Record},
    subscriber::set_default,
};

use crate::fixtures::{Faults, SECOND, client, faulty, soon};

/// A subscriber of the log whose code panics at each event.
struct Panicking(Arc<AtomicU64>);

impl Subscriber for Panicking {
    fn enabled(&self, of: &Metadata<'_>) -> bool {
        of.is_event()
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.0.fetch_add(1, Ordering::SeqCst);
        panic!("a mistake in the subscriber, which was told of {event:?}");
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_that_panics_costs_no_lease() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let guard = redlock.acquire("key").await.unwrap();
    let panics = Arc::new(AtomicU64::new(0));
    let listening = set_default(Panicking(Arc::clone(&panics)));
    for faults in [Faults::BLACK_HOLE, Faults::default()] {
        nodes[0].set(faults);
        tokio::time::sleep(60 * SECOND).await;
    }
    // Two, so that there is no majority for a moment.
    nodes[..2]
        .iter()
        .for_each(|node| node.set(Faults::BLACK_HOLE));
    tokio::time::sleep(5 * SECOND).await;
    nodes[..2]
        .iter()
        .for_each(|node| node.set(Faults::default()));
    tokio::time::sleep(5 * SECOND).await;
    drop(listening);
    assert!(panics.load(Ordering::SeqCst) > 4, "{panics:?}");
    drop(guard);
    drop(soon(redlock.acquire("key")).await.unwrap());
}

/// The first event must not keep the scope from ending the second lease.
#[tokio::test(start_paused = true)]
async fn a_scope_whose_guards_outlive_it_ends_all_leases_though_a_subscriber_panics() {
    let redlock = client(&faulty(3)).await;
    let panics = Arc::new(AtomicU64::new(0));
    let listening = set_default(Panicking(Arc::clone(&panics)));
    let guards = redlock.scope(async {
        let one = redlock.acquire("one").await.unwrap();
        (one, redlock.acquire("two").await.unwrap())
    });
    let guards = guards.await;
    drop(listening);
    assert_eq!(panics.load(Ordering::SeqCst), 2);
    assert!(!guards.0.is_held() && !guards.1.is_held());
}
