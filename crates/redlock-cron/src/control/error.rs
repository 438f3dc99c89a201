use std::{error::Error, fmt};

use redlock_core::NodeReport;

use crate::{InUse, SetupError, replica::lines};

/// The error of a pause, a resume, a trigger, a backfill, a look at a job, or a deletion of its records.
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
/// use redlock_cron::ControlErrorKind;
///
/// let error = jobs.pause("close-month").await.unwrap_err();
/// assert_eq!((error.kind(), error.job()), (ControlErrorKind::UnknownJob, "close-month"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ControlError {
    kind: ControlErrorKind,
    job: String,
    message: String,
}

/// The kind of a [`ControlError`], which tells whether the caller or the operator must act.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ControlErrorKind {
    /// The scheduler has no such job: the caller must name another one.
    UnknownJob,
    /// No job can have this name: the caller must correct it.
    InvalidName,
    /// No majority of the nodes has confirmed the action: the operator must look at the nodes.
    ///
    /// The action may or may not have been done; to repeat it is safe.
    Unconfirmed,
    /// As many requests for runs of the job wait as the nodes can remember: nothing was done, and the caller may ask again when
    /// one of them has been started.
    TooManyRequests,
    /// The job runs, its lock is held, or this scheduler has it: the caller must wait for the end, or remove the job
    /// first.
    InUse,
    /// The range of a backfill has no instant, or is not over: the caller must correct it.
    InvalidRange,
    /// No tick of the job comes, or the replica does not deal with it: the caller, a test, must be changed.
    NoTick,
}

impl ControlError {
    pub(crate) fn unknown(job: &str) -> Self {
        let message = "this scheduler has no such job".into();
        Self::new(ControlErrorKind::UnknownJob, job, message)
    }

    pub(crate) fn invalid(job: &str, why: &SetupError) -> Self {
        Self::new(ControlErrorKind::InvalidName, job, why.to_string())
    }

    pub(crate) fn invalid_range(job: &str, why: &str) -> Self {
        Self::new(ControlErrorKind::InvalidRange, job, why.to_owned())
    }

    pub(crate) fn unconfirmed(job: &str, message: String) -> Self {
        Self::new(ControlErrorKind::Unconfirmed, job, message)
    }

    pub(crate) fn too_many_requests(job: &str, waiting: usize) -> Self {
        let message = format!("{waiting} requests for its runs wait already; nothing was done");
        Self::new(ControlErrorKind::TooManyRequests, job, message)
    }

    /// Makes the error of a job that is not forgotten.
    pub(crate) fn kept(job: &str, why: &InUse, nodes: &[NodeReport]) -> Self {
        match why {
            InUse::Unknown => {
                let message = format!("{why}\n{}", lines(nodes));
                Self::new(ControlErrorKind::Unconfirmed, job, message)
            }
            _ => Self::in_use(job, why),
        }
    }

    pub(crate) fn in_use(job: &str, why: impl fmt::Display) -> Self {
        Self::new(ControlErrorKind::InUse, job, why.to_string())
    }

    #[cfg(feature = "test-util")]
    pub(crate) fn no_tick(job: &str, why: &str) -> Self {
        let message = format!("no tick comes: {why}");
        Self::new(ControlErrorKind::NoTick, job, message)
    }

    fn new(kind: ControlErrorKind, job: &str, message: String) -> Self {
        let job = job.to_owned();
        Self { kind, job, message }
    }

    /// Returns the kind, which tells whether the caller or the operator must act.
    pub fn kind(&self) -> ControlErrorKind {
        self.kind
    }

    /// Returns the job.
    pub fn job(&self) -> &str {
        &self.job
    }
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "job {:?}: {}", self.job, self.message)
    }
}

impl Error for ControlError {}
