//! What a subscriber of the log, which is an application's code, must not do to a client.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use redlock_core::{AcquireOptions, Redlock, Renewal, VirtualProcess};
use tracing::{
    Event, Metadata, Subscriber,
    span::{Attributes, Id, Record},
    subscriber::DefaultGuard,
};

use crate::paused_time::fixtures::{Faults, SECOND, client, faulty, listens, soon};

/// What a subscriber is told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Told {
    Event,
    New,
    Record,
    Enter,
    Exit,
    Close,
}

/// A subscriber whose code panics each time that it is told one thing.
struct Panicking {
    /// The only span of which it wants to hear, if it wants to hear of spans and not of events.
    span: Option<&'static str>,
    at: Told,
    panics: Arc<AtomicU64>,
}

impl Panicking {
    /// Listens to the events of this thread; the number is how often it has panicked.
    fn at_events() -> (DefaultGuard, Arc<AtomicU64>) {
        Self::listens(None, Told::Event)
    }

    /// Listens to the spans of this name in this thread.
    fn in_span(name: &'static str, at: Told) -> (DefaultGuard, Arc<AtomicU64>) {
        Self::listens(Some(name), at)
    }

    fn listens(span: Option<&'static str>, at: Told) -> (DefaultGuard, Arc<AtomicU64>) {
        let panics = Arc::default();
        let subscriber = Self {
            span,
            at,
            panics: Arc::clone(&panics),
        };
        (listens(subscriber), panics)
    }

    fn is_told(&self, what: Told) {
        if self.at == what {
            self.panics.fetch_add(1, Ordering::SeqCst);
            panic!(
                "a mistake in the subscriber, at {what:?} of {:?}",
                self.span
            );
        }
    }
}

impl Subscriber for Panicking {
    fn enabled(&self, of: &Metadata<'_>) -> bool {
        match self.span {
            None => of.is_event(),
            Some(name) => of.is_span() && of.name() == name,
        }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        self.is_told(Told::New);
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {
        self.is_told(Told::Record);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {
        self.is_told(Told::Event);
    }

    fn enter(&self, _: &Id) {
        self.is_told(Told::Enter);
    }

    fn exit(&self, _: &Id) {
        self.is_told(Told::Exit);
    }

    fn try_close(&self, _: Id) -> bool {
        self.is_told(Told::Close);
        true
    }
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_that_panics_costs_no_lease() {
    let nodes = faulty(3);
    let redlock = client(&nodes).await;
    let guard = redlock.acquire("key").await.unwrap();
    let (listening, panics) = Panicking::at_events();
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
    assert!(guard.is_held(), "{:?}", guard.lease());
    drop(guard);
    drop(soon(redlock.acquire("key")).await.unwrap());
}

/// Whatever it is told of whichever span: of an acquire, of a lease and of the calls to nodes.
#[tokio::test(start_paused = true)]
async fn a_subscriber_that_panics_in_a_span_costs_no_lease() {
    for name in ["redlock.acquire", "redlock.hold", "redlock.node"] {
        for at in [
            Told::New,
            Told::Record,
            Told::Enter,
            Told::Exit,
            Told::Close,
        ] {
            let nodes = faulty(3);
            let redlock = client(&nodes).await;
            let earlier = redlock.acquire("earlier").await.unwrap();
            let (listening, panics) = Panicking::in_span(name, at);
            let guard = redlock.acquire("key").await.unwrap();
            // An error is recorded.
            nodes[0].set(Faults::CUT);
            tokio::time::sleep(10 * SECOND).await;
            nodes[0].heal();
            tokio::time::sleep(60 * SECOND).await;
            for lease in [earlier.lease(), guard.lease()] {
                assert!(lease.is_held(), "{at:?} of {name}: {lease:?}");
            }
            soon(guard.release()).await.unwrap();
            drop(soon(redlock.acquire("key")).await.unwrap());
            drop(listening);
            let never = match at {
                // Only what is lost is recorded of a lease, and nothing runs in its span.
                Told::Record | Told::Enter | Told::Exit => name == "redlock.hold",
                _ => false,
            };
            let panics = panics.load(Ordering::SeqCst);
            assert_eq!(panics == 0, never, "{at:?} of {name}: {panics}");
        }
    }
}

/// The first event must not keep the scope from ending the second lease.
#[tokio::test(start_paused = true)]
async fn a_scope_whose_guards_outlive_it_ends_all_leases_though_a_subscriber_panics() {
    for listens in [
        Panicking::at_events,
        || Panicking::in_span("redlock.hold", Told::Record),
        || Panicking::in_span("redlock.hold", Told::Close),
    ] {
        let redlock = client(&faulty(3)).await;
        let (listening, panics) = listens();
        let guards = redlock.scope(async {
            let one = redlock.acquire("one").await.unwrap();
            (one, redlock.acquire("two").await.unwrap())
        });
        let (one, two) = guards.await;
        assert!(!one.is_held() && !two.is_held());
        drop((one, two));
        drop(listening);
        assert_eq!(panics.load(Ordering::SeqCst), 2);
        for key in ["one", "two"] {
            drop(soon(redlock.acquire(key)).await.unwrap());
        }
    }
}

/// Counts the warnings about leases.
struct Counting(Arc<AtomicU64>);

impl Subscriber for Counting {
    fn enabled(&self, of: &Metadata<'_>) -> bool {
        of.is_event() && of.target() == "redlock::lease" && *of.level() == tracing::Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The holder may see the end of its time before the client does, and let the lease go at once.
#[tokio::test(start_paused = true)]
async fn a_loss_is_logged_once_whoever_sees_it_first() {
    for sees_it_first in [true, false] {
        let process = VirtualProcess::new();
        let redlock = Redlock::builder()
            .in_memory_nodes(3)
            .virtual_process(&process)
            .build()
            .await
            .unwrap();
        let options = AcquireOptions::new().renewal(Renewal::Manual);
        let guard = redlock.acquire_with("key", options).await.unwrap();
        let warnings = Arc::default();
        let listening = listens(Counting(Arc::clone(&warnings)));
        if sees_it_first {
            process.freeze();
        }
        tokio::time::sleep(60 * SECOND).await;
        assert!(!guard.is_held());
        drop(guard);
        process.thaw();
        tokio::time::sleep(SECOND).await;
        drop(listening);
        assert_eq!(warnings.load(Ordering::SeqCst), 1, "{sees_it_first}");
    }
}
