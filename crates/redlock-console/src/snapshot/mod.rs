//! What one look at the nodes has found: the model that the page, `redlock top` and `redlock top --json` show.
//!
//! A program reads it as JSON.
//! Names of fields that end in `_ms` hold milliseconds: a moment counts from 1970, everything else is a span of time.
//! Moments of jobs and of actions are texts of RFC 3339 instead, as in all output of the command.
//! No part of it has the password of a node's URL, or the secret by which a holder releases its key.

mod actions;
mod detail;
mod jobs;
mod keys;
mod nodes;

use serde::{Deserialize, Serialize};

pub use self::{
    actions::ActionSnapshot,
    detail::{KeyAnswer, KeyDetail, KeyEvent, KeyEventKind},
    jobs::{BackfillSnapshot, JobSnapshot, PauseSnapshot, RegistrationSnapshot, RunSnapshot},
    keys::{
        CallerSnapshot, ElectionSnapshot, KeyKind, KeySnapshot, KeyStanding, LineSnapshot,
        TermSnapshot,
    },
    nodes::{
        FindingSnapshot, MarginStep, NodeSnapshot, RoundTrips, Severity, Verdict, VerdictState,
    },
};

/// The result of one look at the nodes, their keys and their jobs.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Snapshot {
    /// When the look was taken, by the clock of the machine that took it.
    pub at_ms: u64,
    /// The namespace of all keys, as it is called in output.
    pub namespace: String,
    /// The state of the whole in one sentence.
    pub verdict: Verdict,
    /// By how much this machine's clock is ahead of those of the nodes; `None` if the clocks of no majority agree.
    pub ahead_ms: Option<f64>,
    /// The nodes, in the order of the configuration.
    pub nodes: Vec<NodeSnapshot>,
    /// The number of nodes that voted, at each moment of the last hour at which it changed, the oldest first.
    ///
    /// It covers the time in which a viewer looked, and is empty in the output of a single look.
    pub margin: Vec<MarginStep>,
    /// The keys that are held, the most contended first: the longest line, then the longest wait, then the longest hold.
    ///
    /// The page has 200 of them at the most, as many as fit; `top --json` has all.
    pub keys: Vec<KeySnapshot>,
    /// How many keys there are that match the filter, of which `keys` has the first.
    pub keys_total: usize,
    /// The jobs that the nodes remember, by name: as many as fit on the page, and all in `top --json`.
    pub jobs: Vec<JobSnapshot>,
    /// How many jobs there are that match the filter, of which `jobs` has the first.
    pub jobs_total: usize,
    /// Why the jobs are as they were at an earlier look; `None` if they are as they are now.
    pub jobs_unknown: Option<String>,
    /// The elections that the operator has named: nodes cannot tell an election from another key.
    pub elections: Vec<ElectionSnapshot>,
    /// The findings of the doctor, the worst first; it looks less often than the rest does, once a minute.
    pub findings: Vec<FindingSnapshot>,
    /// When the doctor has looked; `None` if it has not yet.
    pub findings_at_ms: Option<u64>,
    /// What operators did in the namespace, the newest first: as many of the last hundred actions as fit.
    pub actions: Vec<ActionSnapshot>,
    /// Why the actions are not known; `None` if they are.
    pub actions_unknown: Option<String>,
}
