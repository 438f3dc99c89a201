//! The memory of a job, for programs and in a line.

use redlock_core::Redlock;
use redlock_cron::{JobMemory, PastRun, inspect};
use serde::Serialize;

use super::Job;
use crate::{exit::Failure, output::millis};

/// What a majority of the nodes remembers of a job.
#[derive(Clone, Debug)]
pub(crate) struct Memory(pub(super) JobMemory);

impl Memory {
    /// Asks the nodes.
    pub(super) async fn of(client: &Redlock, job: &Job) -> Result<Self, Failure> {
        let memory = inspect(client, &job.namespace, &job.name).await;
        memory
            .map(Self)
            .map_err(|error| Failure::wrong(error.to_string()))
    }

    /// Returns whether nothing is remembered of it, as far as nodes have answered.
    pub(super) fn is_empty(&self) -> bool {
        let never_ran = self.0.watermark().is_none() && self.0.runs().is_empty();
        never_ran && self.0.is_paused() != Some(true)
    }

    /// Returns whether the job's lock is held.
    pub(super) fn is_locked(&self) -> bool {
        self.0.free_in().is_some_and(|left| !left.is_zero())
    }

    pub(crate) fn last(&self) -> Option<&PastRun> {
        self.0.runs().first()
    }

    /// Returns how things stand, in a word or two.
    pub(crate) fn state(&self) -> String {
        let state = match (self.0.running(), self.0.is_paused()) {
            (Some(run), Some(true)) => format!("paused, runs on {}", run.replica()),
            (Some(run), _) => format!("runs on {}", run.replica()),
            (None, Some(true)) => "paused".to_owned(),
            (None, _) if self.is_locked() => "locked".to_owned(),
            (None, _) if self.0.free_in().is_none() => return "unknown".to_owned(),
            (None, Some(false)) => "idle".to_owned(),
            (None, None) => "idle, paused or not".to_owned(),
        };
        if self.0.is_known() {
            state
        } else {
            format!("{state}, a part is missing")
        }
    }

    pub(crate) fn to_json(&self) -> Json {
        Json {
            known: match (self.is_empty(), self.0.is_known()) {
                (false, _) => Some(true),
                (true, true) => Some(false),
                (true, false) => None,
            },
            complete: self.0.is_known(),
            paused: self.0.is_paused(),
            running_on: self.0.running().map(|run| run.replica().to_owned()),
            newest_tick: self.0.watermark().map(|tick| tick.to_rfc3339()),
            locked_ms: self.0.free_in().map(millis),
            runs: self.0.runs().iter().map(Run::of).collect(),
        }
    }
}

/// Returns a run in a line.
pub(super) fn line(run: &PastRun) -> String {
    let line = run.to_string();
    // The nodes remember how long a run took to the millisecond.
    match line.strip_suffix(" after 0ns") {
        Some(line) => format!("{line} after less than 1 ms"),
        None => line,
    }
}

/// The same for programs.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Json {
    /// Whether anything is remembered of it; missing where too few nodes answered.
    known: Option<bool>,
    /// Whether enough nodes answered all that was asked.
    complete: bool,
    paused: Option<bool>,
    running_on: Option<String>,
    newest_tick: Option<String>,
    locked_ms: Option<f64>,
    runs: Vec<Run>,
}

#[derive(Clone, Debug, Serialize)]
struct Run {
    tick: String,
    attempt: u32,
    by_hand: bool,
    replica: String,
    outcome: Option<String>,
    took_ms: Option<f64>,
}

impl Run {
    fn of(run: &PastRun) -> Self {
        Self {
            tick: run.tick().to_rfc3339(),
            attempt: run.attempt(),
            by_hand: run.is_manual(),
            replica: run.replica().to_owned(),
            outcome: run.outcome().map(str::to_owned),
            took_ms: run.took().map(millis),
        }
    }
}
