//! The nodes in a snapshot, the verdict on all of them, and the findings of the doctor.

use serde::{Deserialize, Serialize};

/// The state of the whole in one sentence, with advice if something is wrong.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Verdict {
    /// How bad it is.
    pub state: VerdictState,
    /// The number of nodes that vote.
    pub votes: usize,
    /// The number of nodes that must grant a lease.
    pub majority: usize,
    /// The number of nodes.
    pub nodes: usize,
    /// Such as `5 of 5 nodes vote; 3 are needed.`
    pub sentence: String,
    /// What to do; `None` if nothing is wrong.
    pub advice: Option<String>,
}

/// How the whole stands.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "snake_case")]
pub enum VerdictState {
    /// No node has said yet where it stands.
    #[default]
    Unknown,
    /// All nodes vote.
    Ok,
    /// A majority votes, and a node does not.
    Degraded,
    /// No further node can be missed.
    Critical,
    /// Too few nodes vote: nothing can be locked.
    NoQuorum,
}

/// The result of one look at a node.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct NodeSnapshot {
    /// Its name: the address without credentials, or where its server is asked for.
    pub node: String,
    /// The address of its server at this moment, if Sentinels or a Cluster name it.
    pub server: Option<String>,
    /// Whether it votes.
    pub votes: bool,
    /// Why it does not vote, in words; `None` if it votes.
    pub why: Option<String>,
    /// After how long it votes, if it is only quarantined.
    pub ready_in_ms: Option<f64>,
    /// How long it took to answer at this look; `None` if it did not.
    pub round_trip_ms: Option<f64>,
    /// How long it took to answer in the last hour, as far as a viewer looked.
    pub round_trips: RoundTrips,
    /// By how much its clock is ahead of the one in the middle of the nodes'; `None` if it did not tell.
    pub clock_ahead_ms: Option<f64>,
    /// The version of its server, such as `redis 7.2.4`; `None` if it did not tell.
    pub version: Option<String>,
    /// How long its server has run.
    pub up_ms: Option<f64>,
    /// The memory that its data takes, in bytes.
    pub memory_bytes: Option<u64>,
    /// The memory that its data may take, in bytes; `None` also if there is no limit.
    pub memory_limit_bytes: Option<u64>,
    /// The number of connections to it.
    pub connections: Option<u64>,
    /// Why its keys are not known; `None` if they are.
    pub keys_unknown: Option<String>,
}

/// How long a node took to answer, over the last hour at the most.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RoundTrips {
    /// The time within which half of the last sixty answers came; `None` if there was none.
    pub p50_ms: Option<f64>,
    /// The time within which nearly all of the last sixty answers came; `None` if there was none.
    pub p99_ms: Option<f64>,
    /// The longest of each minute in which a viewer looked, the oldest first; `None` for a minute without an answer.
    pub by_minute_ms: Vec<Option<f64>>,
}

/// How many nodes voted from a moment on.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct MarginStep {
    /// The moment of the look that found it.
    pub at_ms: u64,
    /// The number of nodes that voted; `None` from the end of a look until the begin of the next, a time without viewers.
    pub votes: Option<usize>,
}

/// What a check of the doctor has found, and what to do about it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FindingSnapshot {
    /// How much it matters.
    pub level: Severity,
    /// Which check it was: a name that stays as it is.
    pub check: String,
    /// The node; `None` for all of them together.
    pub node: Option<String>,
    /// What was found, in words.
    pub found: String,
    /// What to do.
    pub advice: String,
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[expect(clippy::exhaustive_enums, reason = "a note, a warning or a failure")]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Nothing is wrong, but a user may want to know it.
    Note,
    /// It works, and something should be changed.
    Warning,
    /// It does not work, or is not safe.
    Failure,
}

impl Severity {
    /// Returns a failure if it is one, or else a warning.
    pub(crate) const fn failure_if(is_failure: bool) -> Self {
        match is_failure {
            true => Self::Failure,
            false => Self::Warning,
        }
    }
}
