use std::collections::BTreeSet;

use crate::{Quorum, RunId};

/// The search for the floor of a node that lost its counters: no less than any token that was ever handed
/// out.
///
/// It is begun after the node's quarantine has ended and reads the greatest counter of every node, its own
/// floor included.
/// A token that was handed out is stored on a majority; of the nodes that vote, at most a minority does not
/// have it, so any majority of them knows it.
/// Read during the quarantine, the floor could miss a token whose attempt still counts the node's vote from
/// before.
///
/// A server that answers as several nodes counts once: by the first of them that kept its counters, or else by the first.
/// The others of these nodes are *duplicates*.
/// A duplicate counts as lost, because no further server is waited for there.
/// It does not if the node may have a server of its own: the client has known that, or has seen no majority beside it.
#[derive(Clone, Debug)]
pub struct Survey {
    quorum: Quorum,
    node: usize,
    // invariant: one entry per node
    readings: Vec<CounterReading>,
    /// The nodes whose addresses have led to other servers.
    moved: BTreeSet<usize>,
}

/// The state of the counters that a node has stored.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must say which it is")]
pub enum Counters {
    /// It votes as far as its mark goes, and nothing else says that it may have lost any.
    Kept,
    /// It does not vote: it lost them, may have lost them, or serves clients that were given another policy.
    ///
    /// It may have lost them if it was started again, or is not what a node should be.
    Lost,
    /// The node does not show it: it was not examined, or it is a replica, which has the counters of another server.
    Unknown,
}

/// The reading of one node's counters.
#[derive(Clone, Debug, Eq, PartialEq)]
enum CounterReading {
    Pending,
    Read {
        run: RunId,
        counters: Counters,
        greatest: u64,
    },
    Failed,
}

/// The result of a [`Survey`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must handle every case")]
pub enum Floor {
    /// A majority that votes has been read: no token exceeds this.
    Known(u64),
    /// Fewer vote: no token *that a node which was read still knows* exceeds this, and the clock must stand in for the
    /// rest.
    ///
    /// Too many nodes lost their counters, or may have lost them in a restart, for the others to be a majority.
    Degraded(u64),
}

impl Survey {
    /// Makes a survey on behalf of this node.
    pub fn start(quorum: Quorum, node: usize) -> Self {
        Self {
            quorum,
            node,
            readings: vec![CounterReading::Pending; quorum.nodes()],
            moved: BTreeSet::new(),
        }
    }

    /// Returns the node that the floor is for.
    pub const fn node(&self) -> usize {
        self.node
    }

    /// Takes in a node's greatest counter, which run of a server has answered, and whether that one has all its counters.
    pub fn on_reading(&mut self, node: usize, run: RunId, counters: Counters, greatest: u64) {
        if let Some(reading @ CounterReading::Pending) = self.readings.get_mut(node) {
            *reading = CounterReading::Read {
                run,
                counters,
                greatest,
            };
        }
    }

    /// Takes in that the client knows a node as another server than the one that has answered for it.
    ///
    /// So neither this node nor another one of that server is a duplicate for good.
    pub fn on_moved(&mut self, node: usize) {
        self.moved.insert(node);
    }

    /// Takes in that a node gave no answer.
    pub fn on_failure(&mut self, node: usize) {
        if let Some(reading @ CounterReading::Pending) = self.readings.get_mut(node) {
            *reading = CounterReading::Failed;
        }
    }

    /// Returns the floor, once enough is known.
    pub fn floor(&self) -> Option<Floor> {
        let (mut voters, mut lost) = (0, 0);
        for (node, counters) in self.servers() {
            match counters {
                Counters::Kept if node != self.node => voters += 1,
                Counters::Kept | Counters::Lost => lost += 1,
                Counters::Unknown => {}
            }
        }
        if voters >= self.quorum.majority() {
            return Some(Floor::Known(self.greatest()));
        }
        // Too many are known not to vote for the others to be a majority.
        let hopeless = lost + self.duplicates() > self.quorum.tolerated();
        (hopeless && self.is_complete() && voters + lost >= self.quorum.majority())
            .then(|| Floor::Degraded(self.greatest()))
    }

    /// Returns the servers that were read, each by the node that counts for it, and whether they have their counters.
    fn servers(&self) -> impl Iterator<Item = (usize, Counters)> {
        let read = self.read();
        let counts = move |(node, run, _): &(usize, &RunId, Counters)| self.counting(run) == *node;
        read.filter(counts)
            .map(|(node, _, counters)| (node, counters))
    }

    /// Returns how many nodes are duplicates that no server is waited for at.
    fn duplicates(&self) -> usize {
        let is_duplicate = |(node, run, counters): &(usize, &RunId, Counters)| {
            let of = self.counting(run);
            // Two votes of a Cluster are on one server, each with counters of its own.
            let is_lost = *counters == Counters::Lost && self.has_kept(of);
            let has_moved = || self.moved.iter().any(|node| self.run(*node) == Some(*run));
            of != *node && (is_lost || !has_moved())
        };
        self.read().filter(is_duplicate).count()
    }

    /// Returns the node that counts for a server that was read: the first that kept its counters, or else the first.
    fn counting(&self, run: &RunId) -> usize {
        let is_same = |node: &usize| self.run(*node) == Some(run);
        let mut nodes = (0..self.readings.len()).filter(is_same);
        let first = nodes.clone().next().unwrap_or(0);
        nodes.find(|node| self.has_kept(*node)).unwrap_or(first)
    }

    fn has_kept(&self, node: usize) -> bool {
        self.readings
            .get(node)
            .is_some_and(CounterReading::has_kept)
    }

    fn run(&self, node: usize) -> Option<&RunId> {
        self.readings.get(node)?.run()
    }

    fn read(&self) -> impl Iterator<Item = (usize, &RunId, Counters)> {
        let readings = self.readings.iter().enumerate();
        readings.filter_map(|(node, reading)| match reading {
            CounterReading::Read { run, counters, .. } => Some((node, run, *counters)),
            CounterReading::Pending | CounterReading::Failed => None,
        })
    }

    /// Returns the floor if nothing more is waited for: of a majority of the nodes, whether or not they vote.
    ///
    /// Under `Quarantine::guessing_floors`, leases stay available by it while the nodes are away that could complete a
    /// voting majority.
    /// A token that only those nodes know may be greater.
    pub(crate) fn floor_of_those_up(&self) -> Option<Floor> {
        let is_read = |(_, counters): &(usize, Counters)| *counters != Counters::Unknown;
        let read = self.servers().filter(is_read).count();
        self.floor()
            .or_else(|| (read >= self.quorum.majority()).then(|| Floor::Degraded(self.greatest())))
    }

    /// Returns whether a node was read.
    pub(crate) fn has_read(&self, node: usize) -> bool {
        matches!(self.readings.get(node), Some(CounterReading::Read { .. }))
    }

    /// Returns whether every node was read, and each is a server of its own.
    pub(crate) fn has_read_all(&self) -> bool {
        self.servers().count() == self.readings.len()
    }

    /// Returns whether every node was read, and none has ever counted: nothing was used before, or everything is lost.
    pub fn is_first_use(&self) -> bool {
        self.has_read_all() && self.greatest() == 0
    }

    /// Returns the greatest counter that was read.
    pub fn greatest(&self) -> u64 {
        let read = self.readings.iter().map(|reading| match reading {
            CounterReading::Read { greatest, .. } => *greatest,
            CounterReading::Pending | CounterReading::Failed => 0,
        });
        read.max().unwrap_or(0)
    }

    /// Returns whether no answer that is still to come is needed.
    pub(crate) fn is_decided(&self) -> bool {
        self.is_complete() || matches!(self.floor(), Some(Floor::Known(_)))
    }

    /// Returns whether every node has answered or failed.
    pub fn is_complete(&self) -> bool {
        !self.readings.contains(&CounterReading::Pending)
    }
}

impl CounterReading {
    const fn run(&self) -> Option<&RunId> {
        match self {
            Self::Read { run, .. } => Some(run),
            Self::Pending | Self::Failed => None,
        }
    }

    const fn has_kept(&self) -> bool {
        let Self::Read { counters, .. } = self else {
            return false;
        };
        matches!(counters, Counters::Kept)
    }
}
