use std::{error::Error, fmt, time::Duration};

use redlock_core::RunRecord;

/// The error of a scheduler that could not be built or started, or of a job that could not be added.
///
/// It names the field at fault and the values that are valid.
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
/// use redlock_cron::SetupErrorKind;
///
/// let never = SingletonJob::cron("report", "0 0 0 30 2 *", "UTC", |_| async { Ok::<(), BoxError>(()) });
/// let error = jobs.add(never).await.unwrap_err();
/// assert_eq!(error.kind(), SetupErrorKind::NeverFires);
/// assert_eq!((error.job(), error.field()), (Some("report"), "pattern"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SetupError {
    kind: SetupErrorKind,
    field: &'static str,
    message: String,
    job: Option<String>,
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// The kind of a [`SetupError`].
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum SetupErrorKind {
    /// A value is not valid: change the field that [`SetupError::field`] names.
    Misuse,
    /// Two settings of the job contradict each other: change one of them.
    Contradiction,
    /// The pattern is valid, but no instant matches it, such as 30 February: change the pattern.
    ///
    /// A job whose last tick has passed, because its pattern names a year, is no error.
    NeverFires,
    /// The scheduler already has a job of that name: names must differ.
    Duplicate,
    /// Another replica ran the job under another schedule or other policies; see
    /// [`refuse_disagreement`](crate::SingletonSchedulerBuilder::refuse_disagreement).
    Disagreement,
    /// The scheduler was shut down: build another one.
    Closed,
    /// The scheduler was started before, or tokio-cron-scheduler has refused, whose error is the source then.
    Scheduler,
}

impl SetupError {
    pub(crate) fn misuse(field: &'static str, message: impl Into<String>) -> Self {
        Self::new(SetupErrorKind::Misuse, field, message)
    }

    pub(crate) fn contradiction(field: &'static str, message: impl Into<String>) -> Self {
        Self::new(SetupErrorKind::Contradiction, field, message)
    }

    pub(crate) fn never_fires(plan: &impl fmt::Display) -> Self {
        let message = format!("{plan} matches no instant; it must match at least one");
        Self::new(SetupErrorKind::NeverFires, "pattern", message)
    }

    pub(crate) fn duplicate() -> Self {
        let message = "the scheduler has a job of this name; each job needs one of its own";
        Self::new(SetupErrorKind::Duplicate, "name", message)
    }

    pub(crate) fn disagreement(run: &RunRecord, tick: &str, within: Duration) -> Self {
        let message = format!(
            "{} ran the tick of {tick} under another schedule or other policies; services must not \
             share a namespace, and replicas must agree: give each service its own, or stop all \
             replicas of the other configuration for {within:?}",
            run.replica
        );
        Self::new(SetupErrorKind::Disagreement, "namespace", message)
    }

    pub(crate) fn closed() -> Self {
        Self::new(SetupErrorKind::Closed, "scheduler", "it was shut down")
    }

    pub(crate) fn started_before() -> Self {
        let message = "it was started before";
        Self::new(SetupErrorKind::Scheduler, "scheduler", message)
    }

    #[cfg(feature = "tokio-cron-scheduler")]
    pub(crate) fn scheduler(what: &str, source: tokio_cron_scheduler::JobSchedulerError) -> Self {
        let error = Self::new(SetupErrorKind::Scheduler, "scheduler", what);
        Self {
            source: Some(source.into()),
            ..error
        }
    }

    fn new(kind: SetupErrorKind, field: &'static str, message: impl Into<String>) -> Self {
        Self {
            kind,
            field,
            message: message.into(),
            job: None,
            source: None,
        }
    }

    /// Names the job at fault.
    pub(crate) fn of_job(self, job: &str) -> Self {
        Self {
            job: Some(job.to_owned()),
            ..self
        }
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> SetupErrorKind {
        self.kind
    }

    /// Returns the field at fault, such as `pattern` or `start_within`.
    pub fn field(&self) -> &str {
        self.field
    }

    /// Returns the job at fault, if the error is about one.
    pub fn job(&self) -> Option<&str> {
        self.job.as_deref()
    }
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(job) = &self.job {
            write!(f, "job {job:?}: ")?;
        }
        write!(f, "{}: {}", self.field, self.message)
    }
}

impl Error for SetupError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| &**source as _)
    }
}
