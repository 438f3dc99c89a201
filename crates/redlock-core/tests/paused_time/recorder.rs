//! What a recorder of metrics, which is an application's code, must not do to a client.

use std::{
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
use redlock_core::Lease;

use crate::fixtures::{SECOND, client, faulty, soon};

/// Passes each change of a metric to a function, by the metric's name.
#[derive(Clone)]
struct Watch {
    name: Arc<str>,
    sees: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Watch {
    fn new(sees: impl Fn(&str) + Send + Sync + 'static) -> Self {
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

    fn sees(&self) {
        (self.sees)(&self.name);
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
    fn increment(&self, _: u64) {
        self.sees();
    }

    fn absolute(&self, _: u64) {
        self.sees();
    }
}

impl GaugeFn for Watch {
    fn increment(&self, _: f64) {
        self.sees();
    }

    fn decrement(&self, _: f64) {
        self.sees();
    }

    fn set(&self, _: f64) {
        self.sees();
    }
}

impl HistogramFn for Watch {
    fn record(&self, _: f64) {
        self.sees();
    }
}

#[tokio::test(start_paused = true)]
async fn a_recorder_that_panics_costs_no_lease() {
    let nodes = faulty(3);
    let panics = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&panics);
    let recorder = Watch::new(move |name| {
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

#[tokio::test(start_paused = true)]
async fn a_confirmed_deadline_is_the_leases_before_it_is_counted() {
    let nodes = faulty(3);
    let watched: Arc<Mutex<Option<Lease>>> = Arc::default();
    let seen: Arc<Mutex<Vec<Duration>>> = Arc::default();
    let (lease, left) = (Arc::clone(&watched), Arc::clone(&seen));
    let recorder = Watch::new(move |name| {
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
