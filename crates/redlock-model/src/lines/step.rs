//! Something that happens, and something that must not.

use std::fmt;

use super::state::{Entry, Owner, State};
use crate::{name::Name, three_nodes::members};

/// Something that happens.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Step {
    /// A caller asks every node for the key.
    Start { by: usize },
    /// A caller's acquire reaches a node.
    Acquire { by: usize, node: usize },
    /// A caller hears the message of a node that gave it the key.
    Hear { by: usize, node: usize },
    /// A caller asks every node again, as a fresh owner at the same place.
    AskAgain { by: usize },
    /// The release of an owner reaches a node.
    Release { owner: Owner, node: usize },
    /// A caller counts the votes of these nodes.
    Settle { by: usize, counted: u8 },
    /// A caller hears of this vote after it had counted others.
    Join { by: usize, node: usize },
    /// A node is asked to confirm a token, and the caller hears that it did.
    Confirm { by: usize, node: usize },
    /// These nodes confirm an extension.
    Extend { by: usize, confirmed: u8 },
    /// A holder asks a node that lacks its key for it.
    AskLate { by: usize, node: usize },
    /// A caller's lease is over, or it gives up.
    End { by: usize },
    /// A node has no sign of life any more of the client of a caller.
    SignEnds { by: usize, node: usize },
    /// The key of a node ends by its time to live.
    Expire { node: usize },
    /// A node loses its data.
    Crash { node: usize },
    /// A node takes its floor, and votes again.
    Open { node: usize, floor: u8 },
}

/// Something that must never happen, and did.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Breach {
    NotAlone {
        by: usize,
        other: usize,
    },
    NotGreater {
        by: usize,
        token: u8,
        before: u8,
    },
    /// A node has given its key to a caller, and another waits there that is before it.
    Overtaken {
        by: usize,
        other: usize,
    },
    /// A node has given its key to a caller whose client gave no sign of life.
    GivenWithoutSign {
        by: usize,
        node: usize,
    },
    /// Nothing that callers and nodes do by themselves leads to a lease of the first caller that waits.
    Stuck {
        by: usize,
    },
}

impl Breach {
    /// Returns the breach if a node has given its key to a caller though another waits there that is before it.
    pub(super) fn of_order(state: &State, step: Step, next: &State) -> Option<Self> {
        for (node, (before, after)) in state.nodes.iter().zip(&next.nodes).enumerate() {
            let Some(owner) = after.key else { continue };
            let by = owner.by;
            if before.key.is_some_and(|holder| holder.by == by) {
                continue;
            }
            let asks = matches!(
                step,
                Step::Acquire { by: asks, .. } | Step::AskLate { by: asks, .. } if asks == by
            );
            if before.entry(owner) == Entry::Ended && !asks {
                return Some(Self::GivenWithoutSign { by, node });
            }
            let entry = match step {
                Step::AskLate { by: late, .. } if late == by => Entry::First,
                _ => before.entry(owner),
            };
            let place = (entry.rank(), by);
            let mut others = after.in_line().filter(|other| other.by != by);
            let other = others.find(|other| {
                let entry = after.entry(*other);
                entry != Entry::Ended && (entry.rank(), other.by) < place
            });
            if let Some(Owner { by: other, .. }) = other {
                return Some(Self::Overtaken { by, other });
            }
        }
        None
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Start { by } => write!(f, "{} asks for the key", Name(by)),
            Self::Acquire { by, node } => {
                write!(f, "the acquire of {} reaches node {node}", Name(by))
            }
            Self::Hear { by, node } => {
                write!(f, "{} hears that node {node} gave it the key", Name(by))
            }
            Self::AskAgain { by } => write!(f, "{} asks again, as a fresh owner", Name(by)),
            Self::Release { owner, node } => {
                let before = if owner.is_old {
                    " as the owner before"
                } else {
                    ""
                };
                let by = Name(owner.by);
                write!(f, "the release of {by}{before} reaches node {node}")
            }
            Self::Settle { by, counted } => {
                write!(f, "{} counts nodes {}", Name(by), named(counted))
            }
            Self::Extend { by, confirmed } => {
                write!(
                    f,
                    "nodes {} extend the lease of {}",
                    named(confirmed),
                    Name(by)
                )
            }
            Self::Join { by, node } => write!(f, "{} counts node {node} too", Name(by)),
            Self::Confirm { by, node } => write!(f, "node {node} confirms {}", Name(by)),
            Self::AskLate { by, node } => {
                write!(f, "{} asks node {node} for the key of its lease", Name(by))
            }
            Self::End { by } => write!(f, "{} has no lease any more, or gives up", Name(by)),
            Self::SignEnds { by, node } => {
                write!(f, "node {node} has no sign of life of {}", Name(by))
            }
            Self::Expire { node } => write!(f, "the key of node {node} ends"),
            Self::Crash { node } => write!(f, "node {node} loses its data"),
            Self::Open { node, floor } => {
                write!(f, "node {node} votes again, with the floor {floor}")
            }
        }
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NotAlone { by, other } => {
                write!(f, "{} has the key beside {}", Name(by), Name(other))
            }
            Self::NotGreater { by, token, before } => {
                let by = Name(by);
                write!(
                    f,
                    "{by} has token {token}, and {before} was handed out before"
                )
            }
            Self::Overtaken { by, other } => {
                let (by, other) = (Name(by), Name(other));
                write!(
                    f,
                    "a node has given its key to {by}, and {other} waits before"
                )
            }
            Self::GivenWithoutSign { by, node } => {
                let by = Name(by);
                write!(
                    f,
                    "node {node} has given its key to {by} without a sign of life"
                )
            }
            Self::Stuck { by } => {
                write!(f, "there is no way for {} to be the next", Name(by))
            }
        }
    }
}

fn named(nodes: u8) -> String {
    let nodes: Vec<String> = members(nodes).map(|node| node.to_string()).collect();
    nodes.join(" and ")
}
