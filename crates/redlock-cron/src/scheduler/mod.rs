//! A scheduler of jobs, and its builder.

// In the order in which the documentation has the methods.
mod builder;
mod singleton_scheduler;

#[cfg(feature = "test-util")]
mod by_clock;
mod by_hand;
mod ending;

use std::sync::{Arc, OnceLock, atomic::Ordering};

use tokio_cron_scheduler::JobScheduler;

pub use self::{builder::SingletonSchedulerBuilder, singleton_scheduler::SingletonScheduler};
#[cfg(feature = "metrics")]
use crate::pulse::Jobs;
use crate::replica::Replica;

/// The part that all handles of a scheduler share: its drop ends the scheduler.
struct LastHandle {
    /// The tokio-cron-scheduler that this scheduler makes for itself, if it does: it has no jobs of the application.
    scheduler: Option<Arc<OnceLock<JobScheduler>>>,
    replica: Arc<Replica>,
    #[cfg(feature = "metrics")]
    jobs: Arc<Jobs>,
}

impl Drop for LastHandle {
    fn drop(&mut self) {
        self.replica.tasks.abandon();
        #[cfg(feature = "metrics")]
        self.jobs.tell_next();
        if let Some(scheduler) = self.scheduler.as_ref().and_then(|own| own.get())
            && let Ok(scheduler) = scheduler.scheduler.try_read()
        {
            // It would look at its jobs for as long as the process lives.
            scheduler.shutdown.store(true, Ordering::Relaxed);
        }
    }
}
