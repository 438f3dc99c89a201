//! The jobs in a snapshot, as the nodes remember them.

use serde::{Deserialize, Serialize};

/// The memory of the nodes of a job.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct JobSnapshot {
    /// The namespace of its scheduler, a slash, and its name.
    pub job: String,
    /// Whether anything is remembered of it; `None` if too few nodes answered.
    pub known: Option<bool>,
    /// Whether enough nodes answered all that was asked.
    pub complete: bool,
    /// How it stands in a word or two, such as `idle`, `paused`, `runs on pod-7`, `gone`.
    pub state: String,
    /// Whether it is paused; `None` if too few nodes say so.
    pub paused: Option<bool>,
    /// The pause that goes on.
    pub pause: Option<PauseSnapshot>,
    /// The replica of the run that goes on; the newest, if runs may overlap.
    pub running_on: Option<String>,
    /// What its schedulers have registered; `None` if none has.
    pub registered: Option<RegistrationSnapshot>,
    /// The next tick, of RFC 3339; `None` if it is not known, if there is none, and if no scheduler has the job any more.
    pub next_tick: Option<String>,
    /// The same as a moment.
    pub next_tick_ms: Option<f64>,
    /// The ticks after the next one, as moments: three at the most, and none if the nodes do not know the schedule.
    #[serde(default)]
    pub later_ticks_ms: Vec<f64>,
    /// The newest tick that was claimed.
    pub newest_tick: Option<String>,
    /// The newest tick whose run returned without an error.
    pub last_success: Option<String>,
    /// The time until its lock is free unless it is renewed: zero if it is, and `None` if that is not known.
    pub locked_ms: Option<f64>,
    /// How many due ticks no replica has claimed, as far as its runs go back; `None` if it was not looked for, as in a list of
    /// many jobs.
    pub missed: Option<u64>,
    /// The last backfill.
    pub backfill: Option<BackfillSnapshot>,
    /// The last runs, the newest first: twenty at the most on the page of all jobs.
    pub runs: Vec<RunSnapshot>,
}

/// A pause of a job.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PauseSnapshot {
    /// Its begin.
    pub since: String,
    /// Its end, by the nodes' clocks; `None` if it lasts until an operator ends it.
    pub until: Option<String>,
    /// The operator.
    pub by: Option<String>,
    /// The reason.
    pub reason: Option<String>,
}

/// The registration of a job by its schedulers.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RegistrationSnapshot {
    /// The moment of the registration.
    pub at: String,
    /// The replica that registered it last.
    pub replica: String,
    /// The pattern, `every 300 s`, or `once` with the instant.
    pub pattern: String,
    /// The time zone of the pattern.
    pub zone: Option<String>,
    /// The schedule in words, such as `at 02:00:00 in Europe/Berlin`; `None` if the nodes had no room for all of it.
    pub schedule: Option<String>,
    /// The policies in words; `None` if the nodes had no room for them.
    pub policies: Option<String>,
    /// Whether no replica has registered it for a week.
    pub gone: bool,
}

/// A run of a job, or a tick that was claimed and not started.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RunSnapshot {
    /// The tick, or the moment of the request for the run.
    pub tick: String,
    /// The number of the run among those of its tick: 1 is the first.
    pub attempt: u32,
    /// Whether an operator or a program has requested it.
    pub by_hand: bool,
    /// Whether it belongs to a backfill.
    pub backfill: bool,
    /// The replica.
    pub replica: String,
    /// How it ended, such as `ok`, `failed` or `dropped`; `None` if its end is not recorded.
    pub outcome: Option<String>,
    /// Why it was not started, in words; `None` if it was.
    pub not_started: Option<String>,
    /// How long it ran, if it has ended.
    pub took_ms: Option<f64>,
    /// The text of its error, or the operator that stopped it, if the nodes remember it.
    pub note: Option<String>,
}

/// A backfill of a job.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct BackfillSnapshot {
    /// The moment of its request.
    pub asked: String,
    /// The replica that has counted its ticks.
    pub replica: String,
    /// The number of its ticks.
    pub ticks: u64,
    /// The number of these that were claimed.
    pub begun: usize,
    /// Whether an operator has cancelled it.
    pub cancelled: bool,
}
