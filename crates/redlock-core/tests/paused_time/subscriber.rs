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
