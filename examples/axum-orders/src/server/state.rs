use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use redlock_core::FencingToken;
use redlock_tower::RequestLease;
use tokio_util::task::TaskTracker;

use crate::store::Store;

/// What the handlers share; a clone is another handle to it.
#[derive(Clone, Debug)]
pub(crate) struct App {
    pub(crate) store: Store,
    /// Payments that have begun: each is carried through, even if its client hangs up.
    pub(crate) payments: TaskTracker,
    pub(crate) counters: Arc<Counters>,
    fenced: bool,
}

/// What a replica counts since its start.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) banks_asked: Counter,
    /// Writes that the fence has refused.
    pub(crate) late_writes_refused: Counter,
}

impl App {
    pub(crate) fn new(store: Store, fenced: bool) -> Self {
        Self {
            store,
            payments: TaskTracker::new(),
            counters: Arc::default(),
            fenced,
        }
    }

    /// The token that a request's writes go under.
    ///
    /// Only this example has none, when it is started without its layer or its fence; elsewhere a handler takes
    /// a [`RequestLease`], and a request that reaches it without one is answered with 500.
    pub(crate) fn token(&self, lease: Option<&RequestLease>) -> Option<FencingToken> {
        lease.filter(|_| self.fenced).map(|lease| lease.token())
    }
}

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add_one(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
