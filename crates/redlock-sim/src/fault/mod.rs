//! The faults of a world and their times: drawn before the world begins.

mod clocks;
mod draw;
mod naming;
mod oddities;
mod one_gone;

pub(crate) use self::{
    draw::draw,
    naming::{Failover, NamingFault},
};
use crate::setup::Micros;

/// Something that goes wrong at a moment.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// A node ends and comes back after a while.
    Crash {
        node: usize,
        down: Micros,
        data: Data,
    },
    /// Another process takes a node's place, and no connection notices.
    Replace { node: usize, data: Data },
    /// A node keeps a copy of its data, to come back with.
    Snapshot { node: usize },
    /// A node's data is replaced by the copy that it keeps, and its run stays; the identity of the data shows it, or
    /// nothing does.
    Rewind { node: usize, shows: bool },
    /// A node is told to forget everything.
    Flush { node: usize },
    /// A node stands still, and does everything late.
    Freeze { node: usize, length: Micros },
    /// A node stands still in the middle of the next call that it is asked to do, when it has read its clock.
    Seize { node: usize, length: Micros },
    /// Operations fail on a node for a while, and others of the same call do not.
    Fail {
        node: usize,
        failing: Failing,
        length: Micros,
    },
    /// A connection breaks.
    Cut {
        client: usize,
        node: usize,
        fate: Fate,
        /// How long it takes the client to notice.
        unnoticed: Micros,
    },
    /// Nothing gets through, in these directions.
    Hole {
        client: usize,
        node: usize,
        out: bool,
        back: bool,
        length: Micros,
    },
    /// A client's address of a node leads to another, over the connection that stands and those after it.
    Route {
        client: usize,
        node: usize,
        to: usize,
    },
    /// A client stands still.
    Pause { client: usize, length: Micros },
    /// A client stands still as soon as it has asked nodes for something, before it hears of it.
    Stumble { client: usize, length: Micros },
    /// A client ends without a word, and perhaps another takes its place.
    Kill {
        client: usize,
        successor: Option<Micros>,
    },
    /// A node's clock is set.
    Step { node: usize, by: i64 },
    /// A node's clock is far behind for a while.
    Stray {
        node: usize,
        back: Micros,
        length: Micros,
    },
    /// As soon as a node is told to vote, it stands still for a while, and its clock is far behind when it goes on.
    Waver {
        node: usize,
        back: Micros,
        length: Micros,
    },
    /// A client's wall clock is set.
    StepWall { client: usize, by: i64 },
    /// Something happens to the informants of a node, or because of them.
    Naming { node: usize, what: NamingFault },
}

/// What is left of a node's data.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Data {
    Kept,
    Lost,
    /// What it had when it was copied last; nothing if it never was.
    Stale,
}

/// Which operations fail.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Failing {
    /// Any of them, now and then.
    Some,
    /// Those that may take memory.
    Growth,
    /// All that write.
    All,
}

/// What becomes of requests that are on their way over a connection that breaks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Fate {
    Dropped,
    /// They arrive after this time all the same, whatever is sent over the next connection.
    Late(Micros),
}

/// Faults with their moments.
type Faults = Vec<(Micros, Fault)>;
