//! One key as each node has it, and its life from the moment on at which its page was opened.

use serde::{Deserialize, Serialize};

use super::{KeySnapshot, KeyStanding};

/// All that is known of one key: its page.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct KeyDetail {
    /// When the look was taken.
    pub at_ms: u64,
    /// The resource, as it was asked for.
    pub name: String,
    /// Whether it is held, as all nodes together say.
    pub state: KeyStanding,
    /// The same in a sentence.
    pub sentence: String,
    /// The key; `None` if no node has it.
    pub key: Option<KeySnapshot>,
    /// What each node says, in the order of the configuration.
    pub nodes: Vec<KeyAnswer>,
    /// What was seen of its life since its page was opened, the newest first: 100 events at the most.
    pub timeline: Vec<KeyEvent>,
}

/// What one node says of a key.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct KeyAnswer {
    /// The name of the node.
    pub node: String,
    /// The address of its server at this moment, if others name it.
    pub server: Option<String>,
    /// Whether it has the key; a node without a vote that lacks it does not know.
    pub state: KeyStanding,
    /// The label of the holder there.
    pub holder: Option<String>,
    /// The time after which the key is free there; `None` if it never expires, or is not held.
    pub remaining_ms: Option<f64>,
    /// Whether the node votes.
    pub votes: bool,
    /// Why it does not count; `None` if it does.
    pub why: Option<String>,
}

/// A change in the life of a key, as two looks one after the other have found it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct KeyEvent {
    /// The moment of the look that found it.
    pub at_ms: u64,
    /// What has happened.
    pub kind: KeyEventKind,
    /// The label of the holder concerned, if it has one.
    pub holder: Option<String>,
    /// The same in a sentence.
    pub words: String,
}

/// What has happened to a key between two looks.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "snake_case")]
pub enum KeyEventKind {
    /// It was free, and has a holder.
    Granted,
    /// Its holder has extended the lease.
    Extended,
    /// Another holder of the same process has it: handed over without a release.
    HandedOver,
    /// The nodes gave it to the first caller in line.
    Given,
    /// Another holder has it, and was not in line.
    Taken,
    /// Its holder has released it, or lost it to its time to live; a caller may not wait for it.
    Freed,
    /// Its time to live has ended without a renewal.
    Expired,
    /// Its holder has fewer nodes than a majority.
    Lost,
    /// A caller has come to wait in line.
    Joined,
    /// A caller has left the line without the key.
    Left,
    /// Too few nodes have answered to say.
    Unknown,
}
