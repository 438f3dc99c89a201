use std::{sync::Arc, time::Duration};

use chrono::{DateTime, NaiveDate, Utc};
use chrono_tz::Tz;
use redlock_core::{FencingToken, Lease};
use tokio_util::sync::CancellationToken;

use crate::Trigger;

/// The run that a job is asked to do: its tick, its attempt and its lease.
///
/// # Examples
///
/// ```
/// # use redlock_cron::{BoxError, Run, SingletonScheduler};
/// # async fn close_books(_run: Run) -> Result<(), BoxError> { Ok(()) }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// use redlock_cron::{Run, SingletonJob};
///
/// let job = SingletonJob::cron("close-day", "0 0 2 * * *", "Europe/Berlin", |run: Run| async move {
///     println!("{} of {}, {:?} after it was due", run.name(), run.local_tick(), run.lag());
///     println!("{:?}: attempt {}, try {}", run.trigger(), run.attempt(), run.try_number());
///     // Belongs to its day, however late it is, and refuses what comes after a later run.
///     let (day, token) = (run.local_date(), run.fencing_token());
///     let work = async move { println!("UPDATE books SET closed = {day}, fence = {token}") };
///     tokio::select! {
///         () = run.stopping() => Err("it was told to stop".into()),
///         () = work => Ok::<(), BoxError>(()),
///     }
/// });
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// # SingletonScheduler::standalone(redlock).namespace("billing").build()?.add(job).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Run {
    pub(crate) name: Arc<str>,
    pub(crate) tick: DateTime<Utc>,
    pub(crate) zone: Tz,
    pub(crate) local_date: NaiveDate,
    pub(crate) trigger: Trigger,
    pub(crate) attempt: u32,
    pub(crate) try_number: u32,
    pub(crate) lag: Duration,
    pub(crate) lease: Lease,
    pub(crate) stop: CancellationToken,
}

impl Run {
    /// Returns the job's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the scheduled instant, which is the same on every replica, however late the run is.
    ///
    /// Derive the day or the hour of the work from the tick, and not from the time of day: after a delay past midnight,
    /// the tick still belongs to yesterday.
    pub fn tick(&self) -> DateTime<Utc> {
        self.tick
    }

    /// Returns the zone of the job's pattern; UTC for jobs without a pattern, which are due at
    /// [intervals](crate::SingletonJob::every) or [once](crate::SingletonJob::once).
    pub fn zone(&self) -> Tz {
        self.zone
    }

    /// Returns the [tick](Self::tick) as clocks in the job's [zone](Self::zone) show it.
    pub fn local_tick(&self) -> DateTime<Tz> {
        self.tick.with_timezone(&self.zone)
    }

    /// Returns the day of the [tick](Self::tick) in the job's [zone](Self::zone).
    ///
    /// In UTC it is often another day: at two in the morning in Tokyo, UTC still has the day before.
    /// A fixed time that does not exist, because clocks go forward, keeps its day: in America/Nuuk, 23:30 of 28 March
    /// 2026 is due at midnight, when [`local_tick`](Self::local_tick) is on 29 March, and this returns 28 March.
    pub fn local_date(&self) -> NaiveDate {
        self.local_date
    }

    /// Returns the reason for which the run was started.
    pub fn trigger(&self) -> Trigger {
        self.trigger
    }

    /// Returns the number of the run among the runs of its tick: 1 is the first, and there is no other unless the job's
    /// [`delivery`](crate::Delivery) allows it.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Returns the number of this call of the job in its run: 1 is the first, and there is no other unless the job's
    /// [`tries`](crate::SingletonJob::tries) allow it.
    pub fn try_number(&self) -> u32 {
        self.try_number
    }

    /// Returns how long after the tick the run was started, on this replica's clock.
    pub fn lag(&self) -> Duration {
        self.lag
    }

    /// Returns the fencing token of the run, which is greater than that of every earlier run of the job.
    ///
    /// Pass it to the resource that the run writes to, and let the resource refuse older tokens; see
    /// [`Fence`](redlock_core::Fence).
    /// If runs may overlap ([`Overlap::Allow`](crate::Overlap::Allow), [`Overlap::UpTo`](crate::Overlap::UpTo)), their
    /// tokens have no order.
    pub fn fencing_token(&self) -> FencingToken {
        self.lease.token()
    }

    /// Returns a view of the lease that the run holds.
    ///
    /// The scheduler drops the run if the lease is lost.
    /// It cannot drop work that blocks its thread: such work must ask [`Lease::is_held`] before each step that matters.
    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Returns whether the run was told to stop; see [`stopping`](Self::stopping).
    pub fn is_stopping(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Waits until the run should end.
    /// That is a second before the scheduler drops the run: because the run takes too long, because the next tick
    /// [cancels](crate::Overlap::CancelOther) it, or because the grace of a shutdown or of its job's
    /// [removal](crate::SingletonScheduler::remove) is over.
    /// With [`OnLost::Signal`](crate::OnLost::Signal), it is also the moment at which the lease is lost.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    ///
    /// # Examples
    ///
    /// ```
    /// # use redlock_cron::{BoxError, Run, SingletonScheduler};
    /// # async fn close_books(_run: Run) -> Result<(), BoxError> { Ok(()) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), BoxError> {
    /// use redlock_cron::{Run, SingletonJob};
    ///
    /// let job = SingletonJob::cron("close-day", "0 0 2 * * *", "UTC", |run: Run| async move {
    ///     tokio::select! {
    ///         () = run.stopping() => Err("it was told to stop".into()), // a second to save what is done
    ///         () = async { /* close the books */ } => Ok::<(), BoxError>(()),
    ///     }
    /// });
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// # SingletonScheduler::standalone(redlock).namespace("billing").build()?.add(job).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn stopping(&self) {
        self.stop.cancelled().await;
    }
}
