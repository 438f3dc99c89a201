use std::{collections::BTreeSet, error::Error, fmt, time::Duration};

use chrono::{DateTime, NaiveDate, Utc};
use futures_util::{FutureExt, future::BoxFuture};

use super::settings::JobSettings;
use crate::{Missed, Run, Schedule, SetupError, Zone, schedule::ScheduleSource};

/// A cron job of which each tick is started on one replica.
///
/// Replicas that add a job under the same name to schedulers of the same namespace have the same job; they must give it
/// the same pattern and zone.
/// [`SingletonScheduler::add`](crate::SingletonScheduler::add) checks the job.
///
/// # A run that panics
///
/// A panic ends the run and nothing else.
/// The lease is released, the tick is reported as [`Panicked`](crate::Outcome::Panicked), and the next tick is due as
/// usual.
/// The run is not [tried again](Self::tries) and not [delivered again](Self::delivery).
/// If panics abort the process, the run counts as cut short by a crash.
///
/// # Examples
///
/// ```
/// use redlock_cron::{Run, SingletonJob};
/// use std::time::Duration;
///
/// let job = SingletonJob::cron("close-day", "0 0 2 * * *", chrono_tz::Europe::Berlin, |run: Run| async move {
///     println!("closing the books of {}", run.tick());
///     Ok::<(), std::io::Error>(())
/// })
/// .start_within(Duration::from_secs(10));
/// ```
///
/// A run may also be a call of a [`tower`](https://docs.rs/tower) service, with layers for time limits, retries or
/// tracing; it holds its lease until the call's future ends:
///
/// ```
/// use redlock_cron::{BoxError, Run, SingletonJob};
/// use std::time::Duration;
/// use tower::{ServiceBuilder, ServiceExt, service_fn};
///
/// let service = ServiceBuilder::new()
///     .timeout(Duration::from_secs(60))
///     .service(service_fn(|run: Run| async move {
///         println!("closes the books of {}", run.local_date());
///         Ok::<(), BoxError>(())
///     }));
/// let job = SingletonJob::cron("close-day", "0 0 2 * * *", "Europe/Berlin", move |run| service.clone().oneshot(run));
/// ```
#[must_use = "a job does nothing until it is added to a scheduler"]
pub struct SingletonJob {
    pub(crate) name: String,
    pub(crate) plan: ScheduleSource,
    /// The days that are left out of it.
    pub(crate) except: BTreeSet<NaiveDate>,
    pub(crate) settings: JobSettings<Option<Duration>>,
    pub(crate) work: Work,
    pub(crate) condition: Option<Condition>,
}

/// The error that a job's own error becomes.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// The function that a run calls.
pub(crate) type Work = Box<dyn Fn(Run) -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync>;

/// Whether a replica asks for a tick.
pub(crate) type Condition = Box<dyn Fn(DateTime<Utc>) -> bool + Send + Sync>;

impl SingletonJob {
    /// Makes a job that is due whenever `pattern` matches the local time of `zone`.
    ///
    /// * `name` has 1 to 128 bytes, is unique in its scheduler and the same on all replicas.
    /// * `pattern` has the fields second, minute, hour, day of month, month, day of week and, optionally, year;
    ///   a day must match both day fields.
    ///   The guide lists [what a field may have](crate::guide::schedules).
    /// * `zone` is an IANA zone or the name of one.
    ///   When clocks go forward, a fixed time that does not exist is due at the first instant after the gap.
    ///   When clocks go back, a fixed time that exists twice is due at its first instant.
    ///   A pattern with `*`, a range or a step of several values in the second, minute or hour goes by the clock: it has
    ///   ticks in both passes of the repeated hour and none in the gap.
    /// * `work` is called for each run; the scheduler drops its future if the run's lease is lost.
    ///   It must not block its thread.
    ///
    /// # Examples
    ///
    /// ```
    /// # use redlock_cron::{BoxError, Run, SingletonScheduler};
    /// # async fn close_books(_run: Run) -> Result<(), BoxError> { Ok(()) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), BoxError> {
    /// use redlock_cron::SingletonJob;
    ///
    /// // At two in the morning of every day, in Berlin.
    /// let job = SingletonJob::cron("close-day", "0 0 2 * * *", "Europe/Berlin", close_books);
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// # SingletonScheduler::standalone(redlock).namespace("billing").build()?.add(job).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn cron<F, W, E>(
        name: impl Into<String>,
        pattern: impl Into<String>,
        zone: impl Into<Zone>,
        work: W,
    ) -> Self
    where
        W: Fn(Run) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError>,
    {
        let (pattern, zone) = (pattern.into(), zone.into());
        Self::new(
            name.into(),
            ScheduleSource::Cron { pattern, zone },
            boxed(work),
        )
    }

    /// Makes a job that is due at every multiple of `interval` since the Unix epoch, whenever the job was added.
    ///
    /// * `name` and `work` are as for [`cron`](Self::cron).
    /// * `interval` is whole seconds, up to 365 days.
    ///
    /// # Examples
    ///
    /// ```
    /// # use redlock_cron::{BoxError, Run, SingletonScheduler};
    /// # async fn close_books(_run: Run) -> Result<(), BoxError> { Ok(()) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), BoxError> {
    /// use redlock_cron::SingletonJob;
    /// use std::time::Duration;
    ///
    /// // At :00, :05, :10 and so on, whenever the service was deployed.
    /// let job = SingletonJob::every("sweep", Duration::from_secs(300), |run| async move {
    ///     println!("sweeps for {}", run.tick());
    ///     Ok::<(), std::io::Error>(())
    /// });
    /// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
    /// # SingletonScheduler::standalone(redlock).namespace("billing").build()?.add(job).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn every<F, W, E>(name: impl Into<String>, interval: Duration, work: W) -> Self
    where
        W: Fn(Run) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError>,
    {
        Self::new(name.into(), ScheduleSource::Every(interval), boxed(work))
    }

    /// Makes a job that is due once, at `instant`.
    ///
    /// * `name` and `work` are as for [`cron`](Self::cron).
    /// * `instant` is the same on all replicas: take it from the configuration or a database, and not from the clock.
    ///   A fraction of a second is dropped.
    ///
    /// Its policy for [missed](Self::missed) ticks is [`Missed::Latest`] by default, because no later tick would report
    /// the missed one.
    /// If no replica was up at the instant, the tick is started when a replica comes up within
    /// [`catch_up_window`](Self::catch_up_window), a day by default, even if the nodes do not know the job.
    /// The nodes remember that the tick was started, so a replica that is deployed later does not start it again.
    /// Under a name that was used before, an instant is started only if it is later than the newest tick of that name.
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_cron::{BoxError, SingletonJob};
    ///
    /// let at = "2026-12-24T18:00:00Z".parse().unwrap();
    /// let job = SingletonJob::once("send-greetings-2026", at, |_| async { Ok::<(), BoxError>(()) });
    /// ```
    pub fn once<F, W, E>(name: impl Into<String>, instant: DateTime<Utc>, work: W) -> Self
    where
        W: Fn(Run) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError>,
    {
        let job = Self::new(name.into(), ScheduleSource::Once(instant), boxed(work));
        job.missed(Missed::Latest)
    }

    /// Returns the schedule of the job, before a scheduler has the job.
    ///
    /// # Errors
    ///
    /// The pattern, the zone or the interval is not valid.
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_cron::{BoxError, SingletonJob};
    ///
    /// let job = SingletonJob::cron("close-day", "0 0 2 * * *", "UTC", |_| async { Ok::<(), BoxError>(()) });
    /// let from = "2026-11-21T12:00:00Z".parse().unwrap();
    /// let next: Vec<_> = job.schedule()?.ticks_after(from).take(2).map(|tick| tick.to_string()).collect();
    /// assert_eq!(next, ["2026-11-22 02:00:00 UTC", "2026-11-23 02:00:00 UTC"]);
    /// # Ok::<(), redlock_cron::SetupError>(())
    /// ```
    pub fn schedule(&self) -> Result<Schedule, SetupError> {
        Ok(self.plan.schedule()?.except(self.except.iter().copied()))
    }

    fn new(name: String, plan: ScheduleSource, work: Work) -> Self {
        Self {
            name,
            plan,
            except: BTreeSet::new(),
            settings: JobSettings::default(),
            work,
            condition: None,
        }
    }
}

impl fmt::Debug for SingletonJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SingletonJob")
            .field("name", &self.name)
            .field("plan", &self.plan)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

pub(super) fn boxed<F, W, E>(work: W) -> Work
where
    W: Fn(Run) -> F + Send + Sync + 'static,
    F: Future<Output = Result<(), E>> + Send + 'static,
    E: Into<BoxError>,
{
    Box::new(move |run| {
        let done = work(run);
        async move { done.await.map_err(Into::into) }.boxed()
    })
}
