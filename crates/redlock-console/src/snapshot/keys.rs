//! The keys and elections in a snapshot, and the callers that wait for them.

use serde::{Deserialize, Serialize};

/// A key that some node has.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct KeySnapshot {
    /// The resource, as the application names it; `sha256:…` for a name that is too long for a node.
    pub key: String,
    /// What the key is for.
    pub kind: KeyKind,
    /// The label of the owner on the most nodes, or words for all that share it; `None` if it has no label.
    pub holder: Option<String>,
    /// The number of nodes that have the key for this owner.
    pub votes: usize,
    /// Whether these are a majority, so that the key is held.
    pub held: bool,
    /// The moment at which the owner asked for it, by the owner's clock; `None` if the nodes do not know, as for shared keys.
    pub held_since_ms: Option<f64>,
    /// The time after which the key is free unless it is renewed; `None` if it never expires.
    pub remaining_ms: Option<f64>,
    /// The callers of all processes that wait in line; `None` if too few nodes have answered.
    pub line: Option<LineSnapshot>,
    /// Whether a caller waits to hold a shared key exclusively; such a caller is not in line.
    pub exclusive_awaited: bool,
    /// How often it was found with another holder than at the look before.
    pub changed_hands: u64,
    /// Why it is held, and when it ends without a renewal or a release, in a sentence or two.
    pub why: String,
}

/// What a key is for.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "snake_case")]
pub enum KeyKind {
    /// One owner has it.
    #[default]
    Exclusive,
    /// Readers share it.
    Shared,
    /// One of several places of a resource: its name ends in `#` and the number of the place.
    Slot,
    /// The lock of a job's runs.
    Job,
}

/// The callers that a majority of the nodes has in line for a key.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LineSnapshot {
    /// How many they are.
    pub callers: usize,
    /// How long the one has waited that came first; `None` if none waits.
    pub longest_ms: Option<f64>,
    /// The callers in the order of their places: the first twenty on the page, and all in `top --json`.
    pub clients: Vec<CallerSnapshot>,
}

/// A caller that waits in line.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CallerSnapshot {
    /// The number of its client, in hexadecimal digits.
    pub client: String,
    /// The label under which it asks for the key, if it has one.
    pub label: Option<String>,
    /// How long it has waited, by the node in the middle.
    pub waits_ms: f64,
}

/// An election: a key that a leader holds, and for which candidates wait in line.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ElectionSnapshot {
    /// Its name.
    pub name: String,
    /// Whether it has a leader.
    pub state: KeyStanding,
    /// The label of the leader, if it has one.
    pub leader: Option<String>,
    /// The moment at which the term was asked for, by the leader's clock.
    pub since_ms: Option<f64>,
    /// The time after which the term ends unless it is renewed.
    pub remaining_ms: Option<f64>,
    /// The candidates in line; `None` if too few nodes have answered.
    pub candidates: Option<LineSnapshot>,
    /// The terms of the last day that a look saw, the newest first: 50 at the most.
    pub terms: Vec<TermSnapshot>,
}

/// A term of a leader, as looks have seen it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TermSnapshot {
    /// The label of the leader, if it has one.
    pub leader: Option<String>,
    /// Its begin: by the leader's clock, or else the moment of the first look that saw it.
    pub since_ms: f64,
    /// The moment of the first look that no longer saw it; `None` if it goes on.
    pub until_ms: Option<f64>,
}

/// Whether a key is held, as all nodes together say.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[expect(clippy::exhaustive_enums, reason = "it is held, free, or not known")]
#[serde(rename_all = "snake_case")]
pub enum KeyStanding {
    /// A majority has it for one owner.
    Held,
    /// A majority that votes does not have it.
    Free,
    /// Neither can be said.
    #[default]
    Unknown,
}
