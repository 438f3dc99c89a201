//! A scheduler of jobs, and its builder.

// In the order in which the documentation has the methods.
mod builder;
mod singleton_scheduler;

#[cfg(feature = "tokio-cron-scheduler")]
mod attached;
#[cfg(feature = "test-util")]
mod by_clock;
mod by_hand;
pub(crate) mod pulse;
mod shutdown;

use std::sync::Arc;

pub use self::{builder::SingletonSchedulerBuilder, singleton_scheduler::SingletonScheduler};
use crate::replica::Replica;
#[cfg(feature = "metrics")]
use crate::scheduler::pulse::Jobs;

/// The part that all handles of a scheduler share: its drop ends the scheduler.
struct LastHandle {
    replica: Arc<Replica>,
    #[cfg(feature = "metrics")]
    jobs: Arc<Jobs>,
}

impl Drop for LastHandle {
    fn drop(&mut self) {
        self.replica.tasks.abandon();
        #[cfg(feature = "metrics")]
        self.jobs.measure_next();
    }
}
