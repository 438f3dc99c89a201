use std::sync::Arc;

use chrono::{DateTime, Utc};

/// What a shutdown, or the removal of a job, left undone.
#[derive(Clone, Debug, Default)]
#[must_use = "it says which runs did not finish"]
pub struct ShutdownReport {
    pub(crate) unfinished: Vec<UnfinishedRun>,
}

/// A run that had not finished when the grace of the shutdown, or of its job's removal, was over.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnfinishedRun {
    pub(crate) job: Arc<str>,
    pub(crate) tick: DateTime<Utc>,
    pub(crate) dropped: bool,
}

impl ShutdownReport {
    /// Returns whether every run that was in flight finished by itself.
    pub fn is_clean(&self) -> bool {
        self.unfinished.is_empty()
    }

    /// Returns the runs that did not.
    pub fn unfinished(&self) -> &[UnfinishedRun] {
        &self.unfinished
    }
}

impl UnfinishedRun {
    /// Returns the job's name.
    pub fn job(&self) -> &str {
        &self.job
    }

    /// Returns the scheduled instant.
    pub fn tick(&self) -> DateTime<Utc> {
        self.tick
    }

    /// Returns whether it was dropped, or ended when it was told to stop; if not, it blocks its thread and goes on.
    pub fn was_dropped(&self) -> bool {
        self.dropped
    }
}
