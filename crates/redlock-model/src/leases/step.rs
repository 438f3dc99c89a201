//! Something that happens, and something that must not.

use std::fmt;

use redlock_proto::LockMode;

use super::node::{Ask, What};
use crate::name::Name;

/// Something that happens.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Step {
    /// A client asks every node for the key.
    Start { by: usize },
    /// An acquire reaches a node.
    Acquire { by: usize, node: usize },
    /// An acquire reaches a node as a transaction.
    Transact { by: usize, node: usize },
    /// A client counts the votes of these nodes.
    Settle { by: usize, counted: u8 },
    /// A client hears of this vote after it had counted others.
    Join { by: usize, node: usize },
    /// A node is asked to confirm a token or an extension, and the client hears that it did.
    Confirm {
        by: usize,
        node: usize,
        mode: LockMode,
    },
    /// A client shares its key from now on.
    Downgrade { by: usize },
    /// Something reaches a node, and the client never hears of it.
    Ask { node: usize, ask: Ask },
    /// A client's lease is over, or it gives up.
    End { by: usize },
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
    /// Another had the key alone between a shared lease and the one that upgrades it.
    Between {
        by: usize,
        other: usize,
    },
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Start { by } => write!(f, "{} asks for the key", Name(by)),
            Self::Acquire { by, node } => {
                write!(f, "the acquire of {} reaches node {node}", Name(by))
            }
            Self::Transact { by, node } => {
                write!(f, "a transaction of {} reaches node {node}", Name(by))
            }
            Self::Settle { by, counted } => {
                let nodes = (0..8).filter(|node| counted >> node & 1 == 1);
                let nodes: Vec<String> = nodes.map(|node: u8| node.to_string()).collect();
                write!(f, "{} counts nodes {}", Name(by), nodes.join(" and "))
            }
            Self::Join { by, node } => write!(f, "{} counts node {node} too", Name(by)),
            Self::Confirm { by, node, mode } => {
                write!(f, "node {node} confirms {} as {}", Name(by), named(mode))
            }
            Self::Downgrade { by } => write!(f, "{} shares the key from now on", Name(by)),
            Self::Ask { node, ask } => {
                let what = match ask.what {
                    What::Acquire => "an acquire",
                    What::Transact => "a transaction",
                    What::Extend(0) => "an extension",
                    What::Extend(_) => "a write-back",
                    What::Heal(_) => "a healing",
                    What::Release => "a release",
                };
                let (by, mode) = (Name(ask.by), named(ask.mode));
                write!(f, "{what} of {by} as {mode} reaches node {node}, unheard")
            }
            Self::End { by } => write!(f, "{} has no lease any more", Name(by)),
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
                let (by, other) = (Name(by), Name(other));
                write!(f, "{by} has the key beside {other}, and one of them alone")
            }
            Self::Between { by, other } => {
                let (by, other) = (Name(by), Name(other));
                write!(
                    f,
                    "{by} is upgraded, and {other} had the key alone since it was shared"
                )
            }
            Self::NotGreater { by, token, before } => {
                let by = Name(by);
                write!(
                    f,
                    "{by} has token {token}, and {before} was handed out before"
                )
            }
        }
    }
}

const fn named(mode: LockMode) -> &'static str {
    match mode {
        LockMode::Exclusive => "a writer",
        LockMode::Shared => "a reader",
        LockMode::Upgrade { .. } => "a reader that is upgraded",
    }
}
