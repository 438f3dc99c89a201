use std::time::Duration;

use serde::Deserialize;

/// The policy for a tick that comes during a run of the job, on any replica.
///
/// No due tick is skipped because of a run that makes up for a missed tick, or that is started again.
/// The tick waits for the end of such a run, for as long as `start_within` allows, or `catch_up_window` with
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
    /// The tick is skipped after a second, and reported as [`Overlapping`](crate::Outcome::Overlapping).
    ///
    /// The tick is not used up: a replica that reaches it later, but within `start_within`, may still start it.
    #[default]
    Skip,
    /// The tick waits for the end of the run, for as long as `start_within` allows.
    Wait,
    /// The run is told to stop, and dropped a second later; then the tick is started.
    ///
    /// The replica with the run learns of it within a second.
    CancelOther,
    /// Both runs go on at the same time, each under a lock of its own.
    ///
    /// Fencing tokens of such runs have no order.
    Allow,
    /// Up to this number of runs go on at the same time, on all replicas together: from 2 to 64.
    /// A tick that comes while this number of runs goes on is skipped, as with [`Skip`](Self::Skip).
    ///
    /// Each run holds one of this number of [slots](redlock_core::Slots) besides the lock of its tick, and ends when
    /// its lease of either is lost.
    /// [`Run::lease`](crate::Run::lease) is the lease of the tick, so a run that blocks its thread does not see the
    /// loss of its slot.
    /// Set the same number on all replicas: the nodes refuse a replica with another number while runs of others go on,
    /// and for a time to live after them.
    /// Fencing tokens of such runs have no order.
    UpTo(usize),
}

/// The policy for ticks that no replica started when they were due: because no replica was up, or none had a majority.
///
/// The nodes remember the newest tick that was claimed; the ticks after it were missed.
/// Ticks that came during a run were not missed, unless they waited for its end and no replica started them then.
/// A job that the nodes do not know has missed nothing.
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
    /// Missed ticks are left out, and the replica that starts the next tick reports them.
    #[default]
    Skip,
    /// The newest missed tick is started, if it is not older than `catch_up_window`.
    Latest,
    /// The missed ticks are started one after another, the oldest first, if they are not older than `catch_up_window`;
    /// of more than `max` ticks, the newest `max` are started.
    ///
    /// Ticks that are due meanwhile are started after the missed ticks, in order, whatever the [overlap](Overlap)
    /// policy is.
    /// So if runs take longer than the time between ticks, the job stays behind by up to `max` ticks.
    /// The replica that starts the next tick reports those that are left out as [`Missed`](crate::Outcome::Missed), if the
    /// nodes remember an earlier run of the job; no other replica reports them.
    All {
        /// The greatest number of ticks that wait for their start: from 1 to 100,000.
        max: usize,
    },
}

/// The policy for a tick whose run did not end by itself.
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
    /// The tick is not started again: a replica that crashes in a run, or right before it, loses that tick.
    #[default]
    AtMostOnce,
    /// Another replica starts the tick again if its run was cut short by a crash, a lost lease, a shutdown or a removal
    /// of its job.
    ///
    /// It is not started again after a run that returned an error, panicked, took too long or was cancelled, because such a
    /// run has ended by itself: [`tries`](crate::SingletonJob::tries) calls the job again within its run.
    /// Nor does this start a tick that no replica has started: [`Missed`] is the policy for those, and a tick that the nodes
    /// may have [forgotten](crate::Outcome::Forgotten) is not started at all.
    /// When a majority of the nodes loses its data, the tick of a run that is cut short gets no further attempt, because no
    /// node knows of the run, and the replicas report the tick as `Forgotten`.
    /// So a tick's work may be done twice, and may be left undone: look at runs that failed, and at what was
    /// [given up](crate::Outcome::GivenUp).
    ///
    /// With a [`max_runtime`](crate::SingletonJob::max_runtime), it may do so for long enough for all attempts: for the
    /// time in which the tick may be started first, and `max_runtime` and `ttl` for each further attempt.
    /// Without one, it may do so for a day, and no less than `catch_up_window`.
    ///
    /// The other replicas check whether a run was cut short: once a second, and every five seconds after a minute and a
    /// half.
    /// A replica that did not get to ask for the tick checks it as well, until the next tick is due.
    /// A run without a recorded end was cut short when its lease is over: its process crashed, or stands still.
    /// The next attempt then waits for ten seconds, twenty after the second such run, forty after the third, and so on, but
    /// for half of what is left of this time at most.
    /// So a tick that kills its process does not kill one replica right after the other.
    /// No replica claims a later tick before this is decided, even if all replicas were down meanwhile.
    /// The tick is started again first, until a run ends by itself, all its attempts are used, or it is too late for
    /// another one.
    /// A tick that gets no further attempt is [given up](crate::Outcome::GivenUp), which one replica reports.
    /// An attempt is used once it is claimed, though its replica may find then that it must not begin.
    /// A run that a shutdown or a removal of its job ended uses up no attempt, so that replicas may be replaced in any order;
    /// a tick has fifty runs at most.
    /// With [`Overlap::CancelOther`] a later tick ends the attempts, because only the newest tick matters.
    AtLeastOnce {
        /// The greatest number of attempts of one tick, from two to ten; runs that a shutdown ended do not count.
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
    /// The scheduler drops the run's future before another replica can have the lease.
    #[default]
    Abort,
    /// The run goes on, and must stop by itself when [`Run::stopping`](crate::Run::stopping) tells it to.
    ///
    /// Until it stops, another replica may run the job at the same time.
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
    /// The tick was due.
    Schedule,
    /// The tick had been missed.
    CatchUp,
    /// An earlier run of the tick had not ended by itself.
    Retry,
    /// An operator or the program asked for the run.
    Manual,
    /// The tick is one of a [backfill](crate::request_backfill), and was due before.
    Backfill,
}

impl Trigger {
    /// Returns whether the run makes up for one that did not come, was cut short, or is wanted again.
    pub(crate) fn is_making_up(self) -> bool {
        matches!(self, Self::CatchUp | Self::Retry | Self::Backfill)
    }
}

/// The number of calls of the job that a run makes while they return errors, and the pauses between them.
///
/// # Examples
///
/// ```
/// use redlock_cron::{BoxError, Run, SingletonJob, Tries};
/// use std::time::Duration;
///
/// let job = SingletonJob::cron("send-report", "0 0 6 * * *", "UTC", |run: Run| async move {
///     println!("try {} of the report of {}", run.try_number(), run.local_date());
///     Ok::<(), BoxError>(())
/// })
/// .tries(Tries::up_to(4).backoff(Duration::from_secs(5), Duration::from_secs(60)))
/// .max_runtime(Duration::from_secs(600));
/// ```
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Tries {
    #[serde(rename = "up_to")]
    pub(crate) most: u32,
    #[serde(default = "first", with = "humantime_serde")]
    pub(crate) first: Duration,
    #[serde(default = "longest", with = "humantime_serde")]
    pub(crate) longest: Duration,
}

impl Tries {
    /// Allows up to `most` calls of the job in a run, including the first: from 1 to 1,000.
    ///
    /// The pause before the second call is up to a second, and each further pause is twice as long, up to a minute; see
    /// [`backoff`](Self::backoff).
    pub fn up_to(most: u32) -> Self {
        Self {
            most,
            first: first(),
            longest: longest(),
        }
    }

    /// Sets the pause before the second call, and the longest pause: from a millisecond to a day.
    ///
    /// Default: a second, and a minute.
    /// Each pause is twice as long as the one before.
    /// A random part of its second half is left out, so that jobs which fail together do not all try again at the same
    /// moment.
    pub fn backoff(self, first: Duration, longest: Duration) -> Self {
        Self {
            first,
            longest,
            ..self
        }
    }

    /// Returns the longest pause after `tries` tries; `None` if there is no further try.
    pub(crate) fn pause_after(&self, tries: u32) -> Option<Duration> {
        let doubled = self
            .first
            .saturating_mul(2_u32.saturating_pow(tries.saturating_sub(1)));
        (tries < self.most).then(|| doubled.min(self.longest))
    }
}

impl Default for Tries {
    /// Allows one call.
    fn default() -> Self {
        Self::up_to(1)
    }
}

fn first() -> Duration {
    Duration::from_secs(1)
}

fn longest() -> Duration {
    Duration::from_secs(60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_until_no_try_is_left() {
        let seconds = Duration::from_secs;
        let tries = Tries::up_to(6).backoff(seconds(2), seconds(10));
        let pauses: Vec<_> = (1..8)
            .map(|tries_made| tries.pause_after(tries_made))
            .collect();
        let expected = [2, 4, 8, 10, 10].map(|pause| Some(seconds(pause)));
        assert_eq!(pauses[..5], expected);
        assert_eq!(pauses[5..], [None, None]);
        assert_eq!(Tries::up_to(1).pause_after(1), None);
        let many = Tries::up_to(1_000).backoff(seconds(1), seconds(86_400));
        assert_eq!(many.pause_after(999), Some(seconds(86_400)));
    }
}
