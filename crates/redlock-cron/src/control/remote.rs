//! The control of a job from outside of its service: pause it, resume it, forget it.

use chrono::{DateTime, NaiveDate, Utc};
use redlock_core::{AcquireErrorKind, Forgotten, Redlock, ResourceKey};

use super::{
    ControlError,
    actions::OperatorCommand,
    backfills::BackfillRange,
    inspect,
    requests::{RequestKind, request},
};
use crate::{
    Action, InUse, SetupError,
    job::{JobId, JobNamespace},
    replica::{Claims, default_name},
};

/// Keeps all replicas from starting a job, as [`SingletonScheduler::pause`](crate::SingletonScheduler::pause) does,
/// without adding the job to a scheduler.
///
/// `namespace` is that of the scheduler which runs the job, and `name` is the job's name.
/// The call does not check that such a job exists: [`inspect`](crate::inspect) returns what the nodes remember of it.
///
/// # Errors
///
/// - [`InvalidName`](crate::ControlErrorKind::InvalidName): no job can have this namespace or this name.
/// - [`Unconfirmed`](crate::ControlErrorKind::Unconfirmed): no majority of the nodes has confirmed it.
///
/// # Cancel safety
///
/// If the future is dropped, the job may be paused or not.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use redlock_core::Redlock;
///
/// let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
/// redlock_cron::pause(&redlock, "billing", "close-day").await?;
/// let job = redlock_cron::inspect(&redlock, "billing", "close-day").await?;
/// assert_eq!(job.is_paused(), Some(true));
/// redlock_cron::resume(&redlock, "billing", "close-day").await?;
/// # Ok(())
/// # }
/// ```
pub async fn pause(redlock: &Redlock, namespace: &str, name: &str) -> Result<(), ControlError> {
    pause_with(redlock, namespace, name, &Action::default()).await
}

/// Keeps all replicas from starting a job as [`pause`] does, with the operator's name, a reason, and the time at which the
/// pause ends by itself.
///
/// [`JobMemory::pause`](crate::JobMemory::pause) returns them.
///
/// # Errors
///
/// As [`pause`]; and [`InvalidRange`](crate::ControlErrorKind::InvalidRange): the end is over, by the nodes' clocks.
///
/// # Cancel safety
///
/// As of [`pause`].
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// use redlock_cron::Action;
///
/// let action = Action::by("alice").reason("the ledger moves");
/// redlock_cron::pause_with(&redlock, "billing", "close-day", &action).await?;
/// # Ok(())
/// # }
/// ```
pub async fn pause_with(
    redlock: &Redlock,
    namespace: &str,
    name: &str,
    action: &Action,
) -> Result<(), ControlError> {
    command(redlock, namespace, name, OperatorCommand::Pause, action).await
}

/// Lets all replicas start a job again, from the next tick on, without adding it to a scheduler.
///
/// # Errors
///
/// As [`pause`].
///
/// # Cancel safety
///
/// If the future is dropped, the job may be resumed or not.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// redlock_cron::pause(&redlock, "billing", "close-day").await?;
/// redlock_cron::resume(&redlock, "billing", "close-day").await?;
/// let job = redlock_cron::inspect(&redlock, "billing", "close-day").await?;
/// assert_eq!(job.is_paused(), Some(false));
/// # Ok(())
/// # }
/// ```
pub async fn resume(redlock: &Redlock, namespace: &str, name: &str) -> Result<(), ControlError> {
    resume_with(redlock, namespace, name, &Action::default()).await
}

/// Lets all replicas start a job again as [`resume`] does, with the operator's name and a reason.
///
/// # Errors
///
/// As [`pause`].
///
/// # Cancel safety
///
/// As of [`resume`].
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// let action = redlock_cron::Action::by("alice").reason("the ledger has moved");
/// redlock_cron::resume_with(&redlock, "billing", "close-day", &action).await?;
/// # Ok(())
/// # }
/// ```
pub async fn resume_with(
    redlock: &Redlock,
    namespace: &str,
    name: &str,
    action: &Action,
) -> Result<(), ControlError> {
    command(redlock, namespace, name, OperatorCommand::Resume, action).await
}

/// Asks the runs of a job that go on to end, on whichever replica they are.
///
/// A run learns of it within about four seconds: [`Run::stopping`](crate::Run::stopping) resolves, and a second later the
/// run is dropped.
/// Its outcome is [`Cancelled`](crate::Outcome::Cancelled), with the name and the reason as its
/// [note](crate::PastRun::note).
/// A run that begins later goes on, also one of the same tick; a run that blocks its thread does not end.
///
/// # Errors
///
/// As [`pause`].
///
/// # Cancel safety
///
/// If the future is dropped, the runs may be asked to end or not.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// let action = redlock_cron::Action::by("alice").reason("it reads the wrong ledger");
/// redlock_cron::stop(&redlock, "billing", "close-day", &action).await?;
/// # Ok(())
/// # }
/// ```
pub async fn stop(
    redlock: &Redlock,
    namespace: &str,
    name: &str,
    action: &Action,
) -> Result<(), ControlError> {
    command(redlock, namespace, name, OperatorCommand::Stop, action).await
}

/// Ends the [backfill](request_backfill) of a job: no further tick of it is started.
///
/// A run that goes on is not ended: [`stop`] does that.
///
/// # Errors
///
/// As [`pause`].
///
/// # Cancel safety
///
/// If the future is dropped, the backfill may be ended or not.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// let action = redlock_cron::Action::by("alice").reason("the range was wrong");
/// redlock_cron::cancel_backfill(&redlock, "billing", "close-day", &action).await?;
/// # Ok(())
/// # }
/// ```
pub async fn cancel_backfill(
    redlock: &Redlock,
    namespace: &str,
    name: &str,
    action: &Action,
) -> Result<(), ControlError> {
    let end = OperatorCommand::CancelBackfill;
    command(redlock, namespace, name, end, action).await
}

async fn command(
    redlock: &Redlock,
    namespace: &str,
    name: &str,
    command: OperatorCommand,
    action: &Action,
) -> Result<(), ControlError> {
    let id = id(namespace, name).map_err(|error| ControlError::invalid(name, &error))?;
    let (claims, ttl) = (claims(redlock), redlock.ttl());
    command.remember(&claims, &id, ttl, action).await
}

/// Asks all replicas for a run of a job, which one of them starts, without adding the job to a scheduler.
///
/// `namespace` is that of the scheduler which runs the job, and `name` is the job's name.
/// The call does not check that such a job exists: [`inspect`](crate::inspect) returns what the nodes remember of it.
/// Returns the moment of the request, by the nodes' clocks; [`JobMemory::requested`](crate::JobMemory::requested)
/// returns its run.
///
/// A replica notices the request within about three seconds, and claims it like a tick, so one replica starts it.
/// A replica that [declines](crate::SingletonJob::only_if) it, or has no [place](crate::SingletonSchedulerBuilder::max_runs)
/// for it, leaves it to others and asks again.
/// If no replica has started the run within [`REQUEST_LIFETIME`](crate::REQUEST_LIFETIME), none starts it later.
///
/// The job's [overlap policy](crate::Overlap) applies: if a run goes on, of whatever kind, the request is skipped and
/// recorded as [`Overlapping`](crate::Outcome::Overlapping), waits for the end of that run for up to
/// `REQUEST_LIFETIME`, or ends that run.
/// The run uses up no tick, starts though the job is paused, and is not started again if it is cut short, like a run by
/// [`trigger_now`](crate::SingletonScheduler::trigger_now).
///
/// # Errors
///
/// - [`InvalidName`](crate::ControlErrorKind::InvalidName): no job can have this namespace or this name.
/// - [`TooManyRequests`](crate::ControlErrorKind::TooManyRequests): 32 requests for runs of the job wait already.
/// - [`Unconfirmed`](crate::ControlErrorKind::Unconfirmed): no majority of the nodes has confirmed the request; a
///   replica may start the run or not.
///
/// # Cancel safety
///
/// If the future is dropped, a replica may start the run or not.
///
/// # Examples
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use redlock_core::Redlock;
/// use redlock_cron::{BoxError, SingletonJob, SingletonScheduler};
/// use std::time::Duration;
///
/// let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
/// let jobs = SingletonScheduler::standalone(redlock.clone()).namespace("billing").build()?;
/// jobs.add(SingletonJob::cron("close-day", "0 0 2 * * *", "UTC", |_| async { Ok::<(), BoxError>(()) })).await?;
/// jobs.start().await?;
///
/// // In another process, with a client of the same nodes:
/// let moment = redlock_cron::request_run(&redlock, "billing", "close-day").await?;
/// loop {
///     let job = redlock_cron::inspect(&redlock, "billing", "close-day").await?;
///     match job.requested(moment) {
///         Some(run) if run.outcome().is_some() => break println!("{run}"),
///         _ => tokio::time::sleep(Duration::from_millis(100)).await,
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub async fn request_run(
    redlock: &Redlock,
    namespace: &str,
    name: &str,
) -> Result<DateTime<Utc>, ControlError> {
    let id = id(namespace, name).map_err(|error| ControlError::invalid(name, &error))?;
    request(&claims(redlock), &id, redlock.ttl(), RequestKind::Run).await
}

/// Asks all replicas to run the ticks of a job from `from` to `to` again, or for the first time, for example after an
/// outage.
///
/// `namespace` is that of the scheduler which runs the job, and `name` is the job's name.
/// Both ends belong to the range.
/// The call does not check that such a job exists: [`inspect`](crate::inspect) returns what the nodes remember of it.
/// Returns the moment of the request, by the nodes' clocks; [`JobMemory::backfill`](crate::JobMemory::backfill) returns
/// what has come of it.
///
/// Within [`REQUEST_LIFETIME`](crate::REQUEST_LIFETIME), a replica finds the ticks by the job's own schedule and zone, or
/// no replica does so later.
/// It starts none of them if there are more than [`MOST_BACKFILLED`](crate::MOST_BACKFILLED).
/// Then the replicas claim the ticks, the oldest first, for up to a day; each tick is started on one replica, under the
/// job's lock, with a fencing token of its own, and its run has [`Trigger::Backfill`](crate::Trigger::Backfill).
///
/// A tick of which the nodes remember a run that ended well is not started again; [`request_rerun`] starts it.
/// They remember ten runs of ticks and the last backfills; an older tick is started, whether it has run or not.
/// A tick that no replica has started, and that is still to be made up for, is started once: as one of the backfill.
///
/// Ticks that are due go first, whatever the job's [overlap policy](crate::Overlap) is, and a tick of the backfill waits
/// for the end of a run.
/// A tick of the backfill also waits for the next tick that is due if its run would not end before, as far as it takes as
/// long as the last one; it waits for one such tick at most.
/// So a job whose runs take longer than the time between its ticks loses some of these to the backfill.
/// A [pause](crate::pause()) of the job holds the backfill up, and its end lets it go on.
/// Another backfill of the job ends it, and so does [`cancel_backfill`]: no further tick of it is started.
/// A run that is cut short is not started again; another request for the same range starts it.
/// If the nodes may have forgotten what was claimed since the request, because each of them was restarted, for example, the
/// replicas report all ticks that are left as [`Forgotten`](crate::Outcome::Forgotten), and another request starts them.
///
/// # Errors
///
/// - [`InvalidName`](crate::ControlErrorKind::InvalidName): no job can have this namespace or this name.
/// - [`InvalidRange`](crate::ControlErrorKind::InvalidRange): `from` is after `to` or before 1970, or `to` is in the
///   future, by the nodes' clocks; nothing was done.
/// - [`Unconfirmed`](crate::ControlErrorKind::Unconfirmed): no majority of the nodes has confirmed the request; a
///   replica may begin the backfill or not.
///
/// # Cancel safety
///
/// If the future is dropped, a replica may begin the backfill or not.
///
/// # Examples
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use redlock_core::Redlock;
/// use redlock_cron::{BoxError, SingletonJob, SingletonScheduler};
/// use std::time::Duration;
///
/// let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
/// let jobs = SingletonScheduler::standalone(redlock.clone()).namespace("billing").build()?;
/// jobs.add(SingletonJob::cron("close-day", "0 0 2 * * *", "UTC", |_| async { Ok::<(), BoxError>(()) })).await?;
/// jobs.start().await?;
///
/// // In another process, with a client of the same nodes:
/// let (from, to) = ("2026-03-01T00:00:00Z".parse()?, "2026-03-03T23:59:59Z".parse()?);
/// let moment = redlock_cron::request_backfill(&redlock, "billing", "close-day", from, to).await?;
/// loop {
///     let job = redlock_cron::inspect(&redlock, "billing", "close-day").await?;
///     match job.backfill() {
///         Some(backfill) if backfill.moment() == moment && backfill.runs().len() == 3 => break,
///         _ => tokio::time::sleep(Duration::from_millis(100)).await,
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub async fn request_backfill(
    redlock: &Redlock,
    namespace: &str,
    name: &str,
    from: DateTime<Utc>,
    to: DateTime<Utc>,
) -> Result<DateTime<Utc>, ControlError> {
    let range = BackfillRange::new(from, to);
    request_range(redlock, namespace, name, range).await
}

/// Asks all replicas to run the ticks of a job from `from` to `to` again, also those of which a run has ended well.
///
/// It is a [backfill](request_backfill) otherwise; with one instant as both ends, it runs one tick again.
///
/// # Errors
///
/// As [`request_backfill`].
///
/// # Cancel safety
///
/// As of [`request_backfill`].
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// let tick = "2026-03-01T02:00:00Z".parse()?;
/// redlock_cron::request_rerun(&redlock, "billing", "close-day", tick, tick).await?;
/// # Ok(())
/// # }
/// ```
pub async fn request_rerun(
    redlock: &Redlock,
    namespace: &str,
    name: &str,
    from: DateTime<Utc>,
    to: DateTime<Utc>,
) -> Result<DateTime<Utc>, ControlError> {
    let range = BackfillRange::new(from, to).map(BackfillRange::again);
    request_range(redlock, namespace, name, range).await
}

/// Asks all replicas to run the ticks of some days again, or for the first time: one to five days of the zone of the job's
/// pattern, and of UTC for a job without one.
///
/// It is a [backfill](request_backfill) otherwise, or with `again` a [rerun](request_rerun).
/// The replicas know the zone: a day has the ticks of which [`Run::local_date`](crate::Run::local_date) is that day, up to
/// the moment of the request.
///
/// # Errors
///
/// As [`request_backfill`]; [`InvalidRange`](crate::ControlErrorKind::InvalidRange) also if there is no day, or more than
/// five, or if a day has not begun in any zone.
///
/// # Cancel safety
///
/// As of [`request_backfill`].
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let redlock = redlock_core::Redlock::builder().in_memory_nodes(3).build().await?;
/// let day = "2026-03-01".parse()?;
/// redlock_cron::request_backfill_of_days(&redlock, "billing", "close-day", [day], false).await?;
/// # Ok(())
/// # }
/// ```
pub async fn request_backfill_of_days(
    redlock: &Redlock,
    namespace: &str,
    name: &str,
    days: impl IntoIterator<Item = NaiveDate>,
    again: bool,
) -> Result<DateTime<Utc>, ControlError> {
    let range = BackfillRange::days(days);
    let range = range.map(|range| if again { range.again() } else { range });
    request_range(redlock, namespace, name, range).await
}

async fn request_range(
    redlock: &Redlock,
    namespace: &str,
    name: &str,
    range: Result<BackfillRange, &'static str>,
) -> Result<DateTime<Utc>, ControlError> {
    let id = id(namespace, name).map_err(|error| ControlError::invalid(name, &error))?;
    let range = range.map_err(|why| ControlError::invalid_range(name, why))?;
    let mut claims = claims(redlock);
    let Some(now) = redlock.node_time().await else {
        let why = "too few nodes say what time it is; nothing was done";
        return Err(ControlError::unconfirmed(name, why.to_owned()));
    };
    if range.ends_after(now.into()) {
        let why = "its end is in the future, by the nodes' clocks";
        return Err(ControlError::invalid_range(name, why));
    }
    claims.replica = range.to_string();
    request(&claims, &id, redlock.ttl(), RequestKind::Backfill).await
}

/// Returns the claims of a process that runs no jobs.
fn claims(redlock: &Redlock) -> Claims {
    Claims::outside(redlock, default_name())
}

/// Deletes what the nodes remember of a job that no scheduler has any more: its newest tick, its last runs, and whether
/// it is paused.
///
/// `namespace` is that of the scheduler which ran the job, and `name` is the job's name.
/// The client asks the nodes first, and refuses if the job runs, if its lock is held, or if too few nodes say whether that
/// is so.
/// [`JobMemory::in_use`](crate::JobMemory::in_use) returns the reason of such a refusal before the call.
/// The client holds the lock of the job while the nodes forget, so no run begins meanwhile, unless runs of the job may
/// overlap ([`Overlap::Allow`](crate::Overlap::Allow), [`Overlap::UpTo`](crate::Overlap::UpTo)).
///
/// [Remove](crate::SingletonScheduler::remove) the job from all schedulers first.
/// A scheduler that still has the job would make the nodes remember it again.
/// That scheduler might also start the last tick a second time, as long as the tick may be
/// [started](crate::SingletonJob::start_within), [made up for](crate::SingletonJob::catch_up_window) or [started
/// again](crate::Delivery::AtLeastOnce).
/// For the same reason, wait for this time before you add a job of this name again.
/// No API tells whether a scheduler of another process still has the job.
///
/// [`Forgotten::nodes`] names the nodes that did not answer.
/// Repeat the call when they answer again, because a node that remembers the job tells all clients.
///
/// # Errors
///
/// - [`InvalidName`](crate::ControlErrorKind::InvalidName): no job can have this namespace or this name.
/// - [`Unconfirmed`](crate::ControlErrorKind::Unconfirmed): too few nodes say whether the job runs; nothing was done.
/// - [`InUse`](crate::ControlErrorKind::InUse): the job runs, or its lock is held; nothing was done.
///
/// # Cancel safety
///
/// If the future is dropped, any of the nodes may have forgotten the job.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use redlock_core::Redlock;
///
/// let redlock = Redlock::builder().in_memory_nodes(3).build().await?;
/// redlock_cron::pause(&redlock, "billing", "close-day").await?;
/// let forgotten = redlock_cron::dangerous_forget(&redlock, "billing", "close-day").await?;
/// assert!(forgotten.is_whole(), "{:?}", forgotten.nodes());
/// let job = redlock_cron::inspect(&redlock, "billing", "close-day").await?;
/// assert_eq!(job.is_paused(), Some(false));
/// # Ok(())
/// # }
/// ```
pub async fn dangerous_forget(
    redlock: &Redlock,
    namespace: &str,
    name: &str,
) -> Result<Forgotten, ControlError> {
    let invalid = |error| ControlError::invalid(name, &error);
    let resource = remembered_under(namespace, name).map_err(invalid)?;
    let look = async || inspect(redlock, namespace, name).await.map_err(invalid);
    let memory = look().await?;
    if let Some(why) = memory.in_use() {
        return Err(ControlError::kept(name, &why, memory.nodes()));
    }
    // While this client holds the lock of the job, no replica claims a tick, unless runs may overlap.
    let outside = redlock.clone().outside_scopes();
    let guard = outside.try_acquire(&resource).await;
    let guard = guard.map_err(|error| match error.kind() {
        AcquireErrorKind::Contended | AcquireErrorKind::AlreadyHeld => {
            ControlError::in_use(name, InUse::Locked)
        }
        _ => ControlError::unconfirmed(name, error.to_string()),
    })?;
    let now = look().await?;
    if !now.is_known() {
        return Err(ControlError::kept(name, &InUse::Unknown, now.nodes()));
    }
    if !now.has_the_runs_of(&memory) {
        let why = "it has run since the nodes were asked; take it out of all schedulers first";
        return Err(ControlError::in_use(name, why));
    }
    let forgotten = redlock.dangerous_forget_jobs(&[resource]).await;
    if let Err(error) = guard.release().await {
        // The lock ends by its time to live.
        tracing::debug!(target: crate::TARGET, job = name, error = error.to_string(), "release");
    }
    Ok(forgotten)
}

/// Returns the resource under which nodes have the record of a job, which is also the lock of its runs unless they may
/// overlap.
///
/// This is for operators' tools, which get its name on a node from
/// [`NodeKeys::job`](redlock_core::NodeKeys::job).
///
/// # Errors
///
/// The namespace or the name is not valid.
///
/// # Examples
///
/// ```
/// let resource = redlock_cron::remembered_under("billing", "close-day")?;
/// let keys = redlock_core::Redlock::builder().namespace("redlock").node_keys()?;
/// println!("UNLINK {}", keys.job(&resource)); // on every node
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub fn remembered_under(namespace: &str, name: &str) -> Result<ResourceKey, SetupError> {
    Ok(id(namespace, name)?.job_key())
}

/// Returns the namespace and the name of the job whose record has this resource; `None` also for a long name, which is
/// stored as a hash.
///
/// # Examples
///
/// ```
/// let job = redlock_cron::job_remembered_under("redlock-cron-job:billing/close-day");
/// assert_eq!(job, Some(("billing", "close-day")));
/// ```
pub fn job_remembered_under(resource: &str) -> Option<(&str, &str)> {
    JobId::of_key(resource)
}

fn id(namespace: &str, name: &str) -> Result<JobId, SetupError> {
    JobId::new(JobNamespace::new(namespace)?, name)
}
