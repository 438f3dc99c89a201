//! Something that happens, and something that must not.

use std::fmt;

use crate::name::Name;

/// Something that happens.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Step {
    /// A claimant begins to claim a tick.
    Claim {
        by: usize,
        tick: u8,
    },
    /// A claim reaches a node.
    ArriveClaim {
        by: usize,
        node: usize,
    },
    /// A claimant counts the votes of these nodes, and asks them to remember the tick.
    Settle {
        by: usize,
        voters: u8,
    },
    /// A commit reaches a node.
    ArriveCommit {
        by: usize,
        node: usize,
    },
    /// The vote of this node has come after a claimant had counted others; it is asked to remember the tick too.
    Join {
        by: usize,
        node: usize,
    },
    /// A claimant will never start its tick.
    GiveUp {
        by: usize,
    },
    /// A withdrawal reaches a node.
    ArriveWithdrawal {
        by: usize,
        node: usize,
    },
    /// A claimant starts its tick.
    Start {
        by: usize,
    },
    Expire {
        node: usize,
    },
    GoOn {
        node: usize,
    },
    SetBack {
        node: usize,
    },
    Stray {
        node: usize,
    },
    Crash {
        node: usize,
    },
    Read {
        node: usize,
    },
    Open {
        node: usize,
    },
}

/// A tick that is started twice, which must never happen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct StartedTwice(pub(super) u8);

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Claim { by, tick } => write!(f, "{} claims tick {tick}", Name(by)),
            Self::ArriveClaim { by, node } => {
                write!(f, "the claim of {} reaches node {node}", Name(by))
            }
            Self::Settle { by, voters } => {
                write!(f, "{} counts the votes of nodes {voters:03b}", Name(by))
            }
            Self::ArriveCommit { by, node } => {
                write!(f, "the commit of {} reaches node {node}", Name(by))
            }
            Self::Join { by, node } => {
                write!(f, "{} counts the late vote of node {node} too", Name(by))
            }
            Self::GiveUp { by } => write!(f, "{} gives up", Name(by)),
            Self::ArriveWithdrawal { by, node } => {
                write!(f, "the withdrawal of {} reaches node {node}", Name(by))
            }
            Self::Start { by } => write!(f, "{} starts", Name(by)),
            Self::Expire { node } => write!(f, "the lock on node {node} expires"),
            Self::GoOn { node } => write!(f, "the clock of node {node} goes on"),
            Self::SetBack { node } => write!(f, "the clock of node {node} is set back"),
            Self::Stray { node } => {
                write!(f, "the clock of node {node} goes astray, or is right again")
            }
            Self::Crash { node } => write!(f, "node {node} loses its data"),
            Self::Read { node } => write!(f, "the clock of node {node} is read"),
            Self::Open { node } => write!(f, "node {node} hears that it votes"),
        }
    }
}

impl fmt::Display for StartedTwice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(tick) = self;
        write!(f, "tick {tick} is started twice")
    }
}
