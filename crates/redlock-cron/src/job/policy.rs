use serde::Deserialize;

/// The policy for a tick that comes while a run of the job goes on, on whichever replica.
///
/// A run that makes up for a missed tick, or that is started again, is the scheduler's own doing, and no tick that is
/// due is skipped for it: the tick waits for its end, for as long as `start_within` allows, or `catch_up_window` with
/// [`Missed::All`].
///
/// # Examples
///
/// ```
/// # use redlock_cron::{BoxError, Run, SingletonScheduler};
/// # async fn close_books(_run: Run) -> Result<(), BoxError> { Ok(()) }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// use redlock_cron::{Overlap, SingletonJob};
/// use std::time::Duration;
///
/// // Only the newest matters: a run that still goes on is told to stop, and dropped a second later.
/// let job = SingletonJob::every("publish-prices", Duration::from_secs(60), |run| async move {
///     tokio::select! {
///         () = run.stopping() => Err("a newer one is due".into()),
///         () = async { /* publish */ } => Ok::<(), BoxError>(()),
///     }
/// })
/// .overlap(Overlap::CancelOther);
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// # SingletonScheduler::standalone(redlock).namespace("billing").build()?.add(job).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq)]
#[non_exhaustive]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// It is skipped after a second, and reported as [`Overlapping`](crate::Outcome::Overlapping).
    ///
    /// It is not used up: a replica that comes to it later, but within `start_within`, may still start it.
    #[default]
    Skip,
    /// It waits for the end of the run, for as long as `start_within` allows.
    Wait,
    /// The run is told to stop, and dropped a second later; then the tick is started.
    ///
    /// The replica with the run learns of it within a second.
    CancelOther,
    /// Both go on at the same time, each under a lock of its own.
    ///
    /// Fencing tokens of such runs have no order.
    Allow,
    /// Up to so many runs go on at the same time, on all replicas together: from 2 to 64.
    /// A tick that comes while as many go on is skipped as with [`Skip`](Self::Skip).
    ///
    /// Each run has one of so many [slots](redlock_core::Slots) besides the lock of its tick, and is over for it when its
    /// lease of either is lost.
    /// [`Run::lease`](crate::Run::lease) is that of the tick, so a run that blocks its thread does not see that it has lost
    /// its slot.
    /// All replicas must say the same number: those that say more can start more.
    /// Fencing tokens of such runs have no order.
    UpTo(usize),
}

/// The policy for ticks that nobody started when they were due: because no replica was up, or none had a majority.
///
/// The nodes remember the newest tick that was claimed; what came after it was missed.
/// Ticks that came while a run went on were not.
/// A job of which the nodes know nothing has missed nothing.
///
/// # Examples
///
/// ```
/// # use redlock_cron::{BoxError, Run, SingletonScheduler};
/// # async fn close_books(_run: Run) -> Result<(), BoxError> { Ok(()) }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// use redlock_cron::{Missed, SingletonJob};
///
/// let job = SingletonJob::cron("close-day", "0 0 2 * * *", "UTC", close_books)
///     .missed(Missed::All { max: 7 });
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// # SingletonScheduler::standalone(redlock).namespace("billing").build()?.add(job).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq)]
#[non_exhaustive]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Missed {
    /// They are passed over, and reported by the replica that starts the next one.
    #[default]
    Skip,
    /// The newest of them is started, if it is not older than `catch_up_window`.
    Latest,
    /// They are started one after another, the oldest first, if they are not older than `catch_up_window`; of more
    /// than `max`, the newest.
    ///
    /// Ticks that are due meanwhile are started after those that were missed, each at its turn, whatever the
    /// [overlap](Overlap) policy says: so if runs take longer than the time between ticks, the job stays behind by up
    /// to `max` ticks.
    /// Those that are left out are reported as [`Missed`](crate::Outcome::Missed).
    All {
        /// The most that wait for their start: from 1 to 100,000.
        max: usize,
    },
}

/// The policy for a tick whose run did not end by itself: to start it again, or not.
///
/// # Examples
///
/// ```
/// # use redlock_cron::{BoxError, Run, SingletonScheduler};
/// # async fn close_books(_run: Run) -> Result<(), BoxError> { Ok(()) }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// use redlock_cron::{Delivery, SingletonJob};
/// use std::time::Duration;
///
/// let job = SingletonJob::cron("send-invoices", "0 0 6 1 * *", "UTC", |run| async move {
///     // What an earlier attempt did is found under the tick, and not done again.
///     println!("attempt {} of the invoices of {}", run.attempt(), run.local_date());
///     Ok::<(), BoxError>(())
/// })
/// .delivery(Delivery::AtLeastOnce { max_attempts: 3 })
/// .max_runtime(Duration::from_secs(600));
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// # SingletonScheduler::standalone(redlock).namespace("billing").build()?.add(job).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq)]
#[non_exhaustive]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Delivery {
    /// It is not started again: a replica that crashes in a run, or right before it, loses that tick.
    #[default]
    AtMostOnce,
    /// It is started again by another replica, within [`retry_within`](crate::SingletonJob::retry_within), if its run was
    /// cut short by a crash, a lost lease, a shutdown or a removal of its job.
    ///
    /// The others look whether a run was cut short: once a second, and every five seconds after a minute and a half.
    /// A run that nobody has ended was cut short when its lease is over.
    /// No later tick is claimed before that is settled, also if all replicas were down in between: the tick is started
    /// again first, until a run ends by itself, it had all its attempts, or it is too late for another.
    /// With [`Overlap::CancelOther`] a later tick ends the attempts, because only the newest matters.
    ///
    /// A run that returned an error or panicked did end by itself, and so did one that was too long or cancelled.
    AtLeastOnce {
        /// The most runs of one tick, two at least and ten at most.
        max_attempts: u32,
    },
}

/// The policy for a run whose lease is lost.
///
/// # Examples
///
/// ```
/// # use redlock_cron::{BoxError, Run, SingletonScheduler};
/// # async fn close_books(_run: Run) -> Result<(), BoxError> { Ok(()) }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// use redlock_cron::{OnLost, SingletonJob};
///
/// let job = SingletonJob::cron("close-day", "0 0 2 * * *", "UTC", |run| async move {
///     tokio::task::spawn_blocking(move || {
///         // A thread cannot be dropped: it asks before each step.
///         for _page in 0..3 {
///             if run.is_stopping() || !run.lease().is_held() {
///                 return Err("the lease was lost".into());
///             }
///         }
///         Ok::<(), BoxError>(())
///     })
///     .await?
/// })
/// .on_lost(OnLost::Signal);
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// # SingletonScheduler::standalone(redlock).namespace("billing").build()?.add(job).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq)]
#[non_exhaustive]
#[serde(rename_all = "snake_case")]
pub enum OnLost {
    /// Its future is dropped before another replica can have the lease.
    #[default]
    Abort,
    /// It goes on, and must stop by itself: [`Run::stopping`](crate::Run::stopping) says so.
    ///
    /// Until it does, another replica may run the job beside it.
    Signal,
}

/// The reason for which a run was started.
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
/// use redlock_cron::Trigger;
///
/// let report = jobs.trigger_now("close-day").await?;
/// assert_eq!(report.trigger(), Trigger::Manual);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Trigger {
    /// Its tick was due.
    Schedule,
    /// Its tick had been missed.
    CatchUp,
    /// An earlier run of its tick had not ended by itself.
    Retry,
    /// Somebody asked for it.
    Manual,
}

impl Trigger {
    /// Returns whether the run makes up for one that did not come, or was cut short.
    pub(crate) fn is_making_up(self) -> bool {
        matches!(self, Self::CatchUp | Self::Retry)
    }
}
