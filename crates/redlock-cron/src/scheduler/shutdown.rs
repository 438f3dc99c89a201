//! The end of a scheduler, with grace.

use std::{pin::pin, time::Duration};

use tokio::{select, time::sleep};

use super::singleton_scheduler::SingletonScheduler;
use crate::ShutdownReport;

impl SingletonScheduler {
    /// Starts nothing more, waits for runs in flight up to `grace`, and drops those that are left.
    ///
    /// After the first poll, the scheduler starts nothing more, not even ticks that it is claiming.
    /// It reports ticks that come during the wait as [`Draining`](crate::Outcome::Draining): no other replica may be up.
    /// A run that is dropped releases its lease, so that other replicas can run the next tick; the run's own tick is
    /// not run again, unless the job is delivered [at least once](crate::Delivery::AtLeastOnce).
    /// The method returns some seconds after the grace at the latest, even if a run blocks its thread or the shutdown
    /// handler of tokio-cron-scheduler does not end.
    /// If a run awaits this method, both wait for each other until the grace is over: a run should spawn the call, and
    /// not await it.
    /// If calls overlap, runs in flight have until the end of the grace that is over first, so that a second call can
    /// shorten the wait; each call reports all runs that did not finish since it began.
    ///
    /// # Cancel safety
    ///
    /// After the first poll, the scheduler starts nothing more.
    /// If the future is dropped, runs in flight go on until they end or the scheduler is dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// # use redlock_cron::{BoxError, SingletonJob, SingletonScheduler};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), BoxError> {
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// # let jobs = SingletonScheduler::standalone(redlock).namespace("billing").replica("pod-7").build()?;
    /// # jobs.add(SingletonJob::cron("close-day", "0 0 2 * * *", "UTC", |_| async { Ok::<(), BoxError>(()) })).await?;
    /// use std::time::Duration;
    ///
    /// jobs.start().await?;
    /// // When the process is asked to end:
    /// let report = jobs.shutdown(Duration::from_secs(30)).await;
    /// for run in report.unfinished() {
    ///     eprintln!("{} of {} did not finish", run.job(), run.tick());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn shutdown(&self, grace: Duration) -> ShutdownReport {
        self.replica.tasks.drain();
        #[cfg(feature = "metrics")]
        self.jobs.measure_next();
        #[cfg(feature = "tokio-cron-scheduler")]
        if let Some(attached) = &self.attached {
            attached.end().await;
        }
        let is_started = self
            .is_started
            .try_lock()
            .is_ok_and(|is_started| *is_started);
        let mut ended = pin!(self.replica.tasks.shut_down(grace));
        loop {
            select! {
                biased;
                report = &mut ended => return report,
                // A tick that comes in the last run of a job is skipped, and the next replica does not report it.
                () = sleep(BETWEEN_WAKES) => {
                    if is_started {
                        self.jobs.wake();
                    }
                }
            }
        }
    }
}

/// How often a scheduler that waits for its runs looks for ticks.
const BETWEEN_WAKES: Duration = Duration::from_secs(1);
