//! The agenda of a world, in order of time.

use std::{cmp::Ordering, collections::BinaryHeap};

use crate::setup::Micros;

/// Something that is due.
#[derive(Clone, Copy, Debug)]
pub(super) enum Due {
    /// The first call that is on its way over a connection reaches the node.
    Arrive { link: usize, conn: u32 },
    /// A call whose connection is gone reaches the node all the same.
    ArriveLate { call: u32, serial: u32 },
    /// The first answer on its way back over a connection reaches the client.
    Answer { link: usize, conn: u32 },
    /// A client notices that a connection is gone.
    Lost { link: usize, conn: u32 },
    /// A link looks at its clock.
    Link { link: usize, life: u32 },
    /// A client hears what a link has told it.
    News { link: usize, life: u32 },
    /// A client hears what a node publishes for it, from now on.
    Listens {
        client: usize,
        node: usize,
        life: u32,
    },
    /// A client hears that one of its callers was given a key.
    Gift {
        client: usize,
        life: u32,
        message: u32,
    },
    /// An informant, or a server beside its calls, does something.
    Naming { message: u32 },
    /// A client hears of an informant, or of a server's mark.
    Told { link: usize, message: u32 },
    /// A client's session with a named server has something to do.
    Watch { link: usize, message: u32 },
    /// A client's own timer.
    Timer { client: usize, life: u32 },
    /// A client's user does something about a key.
    Act {
        client: usize,
        key: usize,
        stamp: u32,
    },
    /// A caller of a client comes for a key.
    Come {
        client: usize,
        key: usize,
        life: u32,
    },
    /// A caller that waits for its turn looks whether it has it, or its wait is over.
    Caller { client: usize, waiter: u64 },
    /// A client that stood still goes on.
    Wake { client: usize, life: u32 },
    /// A client's successor begins.
    Begin { client: usize, life: u32 },
    /// A node comes back.
    Restart { node: usize },
    /// A node's clock is set right.
    Right { node: usize },
    /// A fault, by its place in the list.
    Fault { index: usize },
    /// An operator blesses the nodes.
    Bless,
    /// Everything is repaired.
    Repair,
    /// What was broken has mended.
    Settle,
    /// Whether every key was acquired is looked at, and clients are closed.
    Close { last: bool },
    /// The world ends.
    End,
}

impl Due {
    /// Returns the client that must be awake for it.
    pub(super) const fn client(self, nodes: usize) -> Option<usize> {
        match self {
            Self::Answer { link, .. }
            | Self::Lost { link, .. }
            | Self::Link { link, .. }
            | Self::News { link, .. }
            | Self::Told { link, .. }
            | Self::Watch { link, .. } => Some(link / nodes),
            Self::Timer { client, .. }
            | Self::Listens { client, .. }
            | Self::Gift { client, .. }
            | Self::Act { client, .. }
            | Self::Come { client, .. }
            | Self::Caller { client, .. } => Some(client),
            _ => None,
        }
    }

    /// In which order a client that wakes deals with what has come: messages, then timers, then its user.
    pub(super) const fn rank(self) -> u8 {
        match self {
            Self::Answer { .. }
            | Self::Lost { .. }
            | Self::News { .. }
            | Self::Listens { .. }
            | Self::Gift { .. }
            | Self::Told { .. } => 0,
            Self::Link { .. } | Self::Watch { .. } => 1,
            Self::Timer { .. } => 2,
            _ => 3,
        }
    }

    /// Returns a number that tells it from others, for the trace.
    pub(super) const fn code(self) -> u64 {
        let (kind, of) = match self {
            Self::Arrive { link, .. } => (1, link),
            Self::ArriveLate { call, .. } => (2, call as usize),
            Self::Answer { link, .. } => (3, link),
            Self::Lost { link, .. } => (4, link),
            Self::Link { link, .. } => (5, link),
            Self::Come { client, key, .. } => (6, client * 8 + key),
            Self::Caller { client, .. } => (20, client),
            Self::Timer { client, .. } => (7, client),
            Self::Act { client, key, .. } => (8, client * 8 + key),
            Self::Wake { client, .. } => (9, client),
            Self::Begin { client, .. } => (10, client),
            Self::Restart { node } => (11, node),
            Self::Fault { index } => (12, index),
            Self::Bless => (13, 0),
            Self::Repair => (14, 0),
            Self::Close { .. } => (15, 0),
            Self::End => (16, 0),
            Self::News { link, .. } => (17, link),
            Self::Settle => (18, 0),
            Self::Right { node } => (19, node),
            Self::Listens { client, .. } => (21, client),
            Self::Gift { client, .. } => (22, client),
            Self::Naming { message } => (23, message as usize),
            Self::Told { link, .. } => (24, link),
            Self::Watch { link, .. } => (25, link),
        };
        (of as u64) << 8 | kind
    }
}

/// What is due, the earliest first; of one moment, what was added first.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    due: BinaryHeap<Entry>,
    added: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: Micros,
    number: u64,
    due: Due,
}

impl Agenda {
    pub(super) fn add(&mut self, at: Micros, due: Due) {
        self.added += 1;
        let number = self.added;
        self.due.push(Entry { at, number, due });
    }

    pub(super) fn next(&mut self) -> Option<(Micros, Due)> {
        self.due.pop().map(|entry| (entry.at, entry.due))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}
