use crate::Quorum;

/// The search for the floor of a node that lost its counters: no less than any token that was ever handed
/// out.
///
/// It is begun after the node's quarantine has ended and reads the greatest counter of every node, its own
/// floor included.
/// A token that was handed out is stored on a majority; of the nodes that vote, at most a minority does not
/// have it, so any majority of them knows it.
/// Read during the quarantine, the floor could miss a token whose attempt still counts the node's vote from
/// before.
#[derive(Clone, Debug)]
pub struct Survey {
    quorum: Quorum,
    node: usize,
    // invariant: one entry per node
    readings: Vec<Reading>,
}

/// What is known of one node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Reading {
    Pending,
    Counters { voting: bool, greatest: u64 },
    Failed,
}

/// The result of a [`Survey`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must handle every case")]
pub enum Floor {
    /// A majority that votes has been read: no token exceeds this.
    Known(u64),
    /// Fewer vote, since so many lost their counters, or restarted so that nobody can tell, that the others are no
    /// majority: no token *that a node which was read still knows* exceeds this, and the clock must stand in for the
    /// rest.
    Degraded(u64),
}

impl Survey {
    /// Makes a survey on behalf of this node.
    pub fn start(quorum: Quorum, node: usize) -> Self {
        Self {
            quorum,
            node,
            readings: vec![Reading::Pending; quorum.nodes()],
        }
    }

    /// Returns the node that the floor is for.
    pub const fn node(&self) -> usize {
        self.node
    }

    /// Takes in a node's greatest counter, and whether it votes.
    pub fn on_reading(&mut self, node: usize, voting: bool, greatest: u64) {
        if let Some(reading @ Reading::Pending) = self.readings.get_mut(node) {
            *reading = Reading::Counters { voting, greatest };
        }
    }

    /// Takes in that a node gave no answer.
    pub fn on_failure(&mut self, node: usize) {
        if let Some(reading @ Reading::Pending) = self.readings.get_mut(node) {
            *reading = Reading::Failed;
        }
    }

    /// Returns the floor, once enough is known.
    pub fn floor(&self) -> Option<Floor> {
        let (mut voters, mut others) = (0, 0);
        let mut greatest = 0;
        for (node, reading) in self.readings.iter().enumerate() {
            if let Reading::Counters {
                voting,
                greatest: seen,
            } = *reading
            {
                greatest = greatest.max(seen);
                if voting && node != self.node {
                    voters += 1;
                } else {
                    others += 1;
                }
            }
        }
        if voters >= self.quorum.majority() {
            return Some(Floor::Known(greatest));
        }
        // So many are known not to vote that the others are no majority.
        let hopeless = others > self.quorum.tolerated();
        let read = voters + others;
        let complete = !self.readings.contains(&Reading::Pending);
        (hopeless && complete && read >= self.quorum.majority())
            .then_some(Floor::Degraded(greatest))
    }

    /// Returns the floor if nothing more is waited for: of a majority of the nodes, whether or not they vote.
    ///
    /// For those who prefer that leases are available while the nodes stay away which could complete a voting majority:
    /// a token that only those know may be greater.
    pub fn floor_of_those_up(&self) -> Option<Floor> {
        let is_read = |reading: &&Reading| matches!(reading, Reading::Counters { .. });
        let read = self.readings.iter().filter(is_read).count();
        self.floor()
            .or_else(|| (read >= self.quorum.majority()).then(|| Floor::Degraded(self.greatest())))
    }

    /// Returns whether a node was read.
    pub fn has_read(&self, node: usize) -> bool {
        matches!(self.readings.get(node), Some(Reading::Counters { .. }))
    }

    /// Returns whether every node was read.
    pub fn has_read_all(&self) -> bool {
        (0..self.readings.len()).all(|node| self.has_read(node))
    }

    /// Returns whether every node was read, and none has ever counted: nothing was used before, or everything is lost.
    pub fn is_first_use(&self) -> bool {
        let unused = |reading: &Reading| matches!(reading, Reading::Counters { greatest: 0, .. });
        self.readings.iter().all(unused)
    }

    /// Returns the greatest counter that was read.
    pub fn greatest(&self) -> u64 {
        self.readings
            .iter()
            .map(|reading| match reading {
                Reading::Counters { greatest, .. } => *greatest,
                Reading::Pending | Reading::Failed => 0,
            })
            .max()
            .unwrap_or(0)
    }

    /// Returns whether no answer that is still to come is needed.
    pub fn is_decided(&self) -> bool {
        self.is_complete() || matches!(self.floor(), Some(Floor::Known(_)))
    }

    /// Returns whether every node has answered or failed.
    pub fn is_complete(&self) -> bool {
        !self.readings.contains(&Reading::Pending)
    }
}
