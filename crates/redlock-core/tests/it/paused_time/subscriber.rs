//! What a subscriber of the log hears of a lost lease.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use redlock_core::{AcquireOptions, Redlock, Renewal, VirtualProcess};
use tracing::{
    Event, Metadata, Subscriber,
    span::{Attributes, Id, Record},
};

use crate::paused_time::fixtures::{SECOND, listens};

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
