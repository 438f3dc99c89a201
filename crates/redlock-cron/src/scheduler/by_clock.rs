//! Methods for a test that has set the scheduler's clock.

use std::sync::{Arc, Weak};

use chrono::{DateTime, TimeDelta, Utc};
use tokio::select;

use super::singleton_scheduler::SingletonScheduler;
use crate::{ControlError, TickReport, clock::Driven, replica::Replica, scheduler::pulse::Jobs};

impl SingletonScheduler {
    /// Lets time pass until this replica has dealt with the next tick of the job, and returns this replica's report of
    /// it; for tests, with a [clock](crate::SingletonSchedulerBuilder::clock) of their own.
    ///
    /// Everything else that is due up to then happens as well, on all replicas.
    /// When the method returns, a run that this replica started has ended and has released its lease.
    /// If that run was cut short and is to be started again, the report is about the first attempt.
    /// Runs of other ticks may go on.
    ///
    /// Each replica reports the tick: let several replicas advance together, with `tokio::join!`.
    ///
    /// # Errors
    ///
    /// - [`UnknownJob`](crate::ControlErrorKind::UnknownJob): this scheduler has no such job.
    /// - [`NoTick`](crate::ControlErrorKind::NoTick): no tick comes, because the schedule has ended, the scheduler was not
    ///   started, has ended, or has no clock of a test; or six hours have passed since the tick, and this replica has not
    ///   dealt with it.
    ///
    /// # Panics
    ///
    /// If tokio's time is not paused.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, time has passed up to that moment.
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_core::Redlock;
    /// use redlock_cron::{BoxError, JobClock, Outcome, SingletonJob, SingletonScheduler};
    /// use std::time::Duration;
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), BoxError> {
    /// let clock = JobClock::starting_at("2026-11-21T18:00:00Z".parse()?);
    /// let redlock = Redlock::builder().nodes(clock.nodes(3)).virtual_time().build().await?;
    /// let jobs = SingletonScheduler::standalone(redlock).namespace("billing").clock(&clock).build()?;
    /// let sweep = SingletonJob::every("sweep", Duration::from_secs(300), |_| async {
    ///     tokio::time::sleep(Duration::from_secs(3_600)).await;
    ///     Ok::<(), BoxError>(())
    /// });
    /// jobs.add(sweep.max_runtime(Duration::from_secs(60))).await?;
    /// jobs.start().await?;
    ///
    /// let report = jobs.advance_to_next_tick("sweep").await?;
    /// assert_eq!(report.outcome(), Outcome::TimedOut);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn advance_to_next_tick(&self, name: &str) -> Result<TickReport, ControlError> {
        let runner = self.runner(name)?;
        let never = |why| ControlError::no_tick(name, why);
        let Some(clock) = self.replica.clock.of_test() else {
            return Err(never("its scheduler goes by the machine's clock"));
        };
        if !*self.is_started.lock().await {
            return Err(never("its scheduler was not started"));
        }
        let tick = runner.job.schedule.next_after(clock.now());
        let tick = tick.ok_or_else(|| never("its schedule has ended"))?;
        let mut reports = self.replica.observer.listen();
        let dealt_with = async {
            while let Some(report) = reports.recv().await {
                if report.job() == name && (report.tick()..=report.last_tick()).contains(&tick) {
                    return Some(report);
                }
            }
            None
        };
        select! {
            biased;
            Some(report) = dealt_with => Ok(report),
            () = runner.job.ending.draining.cancelled() => Err(never("the job or its scheduler has ended")),
            () = clock.advance_to(tick + PATIENCE) => Err(never("it was not dealt with in six hours")),
        }
    }

    /// Adds this scheduler to the clock of a test.
    pub(super) fn register_at_clock(&self) {
        let Some(clock) = self.replica.clock.of_test() else {
            return;
        };
        clock.drives(Handles {
            replica: Arc::downgrade(&self.replica),
            jobs: Arc::downgrade(&self.jobs),
        });
    }
}

/// The handles of a scheduler that the clock of a test keeps.
struct Handles {
    replica: Weak<Replica>,
    jobs: Weak<Jobs>,
}

impl Driven for Handles {
    fn next(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let (replica, jobs) = self.replica.upgrade().zip(self.jobs.upgrade())?;
        if replica.tasks.is_busy() {
            return Some(now);
        }
        let next = jobs.next_tick().unwrap_or(DateTime::<Utc>::MAX_UTC);
        Some(next.checked_sub_signed(LEAD).unwrap_or(now))
    }

    fn is_undecided(&self, instant: DateTime<Utc>, now: DateTime<Utc>) -> bool {
        let jobs = self.jobs.upgrade();
        jobs.is_some_and(|jobs| jobs.all().iter().any(|job| job.is_asking(instant, now)))
    }
}

/// How long to wait for a tick that a run which never ends may hold up.
const PATIENCE: TimeDelta = TimeDelta::hours(6);

/// A tick is found a second and a half before it is due, and replicas look for ticks every second.
const LEAD: TimeDelta = TimeDelta::seconds(5);
