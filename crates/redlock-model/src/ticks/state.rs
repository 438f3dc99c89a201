//! A world of claims at a moment, and its number.

use crate::three_nodes::{Bits, NODES, Order, least};

/// The most claimants.
pub(super) const CLAIMANTS: usize = 3;

#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct State {
    pub(super) nodes: [Node; NODES],
    pub(super) claimants: [Claimant; CLAIMANTS],
    /// How often nodes have lost their data.
    pub(super) crashes: u8,
}

/// A node; claimants, ticks and clocks are numbers from 1 where they may be missing.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Node {
    /// The claimant that has the lock.
    pub(super) lock: u8,
    /// The runs that it remembers, the newest first: the claimant and the tick.
    pub(super) runs: [(u8, u8); 2],
    pub(super) clock: u8,
    pub(super) is_astray: bool,
    pub(super) is_quarantined: bool,
    /// What a client has read on its clock since it was quarantined, and one more.
    pub(super) read: u8,
    /// One more than its horizon.
    pub(super) horizon: u8,
}

#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Claimant {
    /// The tick that it claims, if it has begun.
    pub(super) tick: u8,
    pub(super) phase: Phase,
    /// The nodes that are asked to remember the tick, as bits.
    pub(super) voters: u8,
    pub(super) at: [Request; NODES],
}

#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(super) enum Phase {
    #[default]
    Claiming,
    Committing,
    Started,
    /// It has given up and will never start; nodes that remember its tick are told to forget it.
    GivenUp,
}

/// What has become of a claimant's request to a node.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(super) enum Request {
    /// It is on its way, or lost.
    #[default]
    Underway,
    /// It was refused, or granted by a node that does not vote.
    Void,
    /// It was granted, and is a vote.
    Vote,
    /// The commit was confirmed.
    Confirmed,
}

impl State {
    /// Returns a number that no other world has, but for those that differ only in which node is which.
    pub(super) fn number(&self) -> u128 {
        least(|order| self.number_in(order))
    }

    fn number_in(&self, order: Order) -> u128 {
        let mut bits = Bits::default();
        let mut push = |value, width| bits.push(value, width);
        for node in order.map(|node| self.nodes[node]) {
            push(node.lock, 2);
            for (by, tick) in node.runs {
                push(by, 2);
                push(tick, 2);
            }
            push(node.clock, 2);
            push(node.is_astray.into(), 1);
            push(node.is_quarantined.into(), 1);
            push(node.read, 3);
            push(node.horizon, 3);
        }
        for claimant in self.claimants {
            push(claimant.tick, 2);
            push(claimant.phase as u8, 2);
            for node in order {
                push(claimant.voters >> node & 1, 1);
                push(claimant.at[node] as u8, 2);
            }
        }
        push(self.crashes, 2);
        bits.0
    }

    /// Returns the world of such a number.
    pub(super) fn of(number: u128) -> Self {
        let mut bits = Bits(number);
        let mut pop = |width| bits.pop(width);
        let mut state = Self {
            crashes: pop(2),
            ..Self::default()
        };
        for claimant in state.claimants.iter_mut().rev() {
            for node in (0..NODES).rev() {
                claimant.at[node] = match pop(2) {
                    0 => Request::Underway,
                    1 => Request::Void,
                    2 => Request::Vote,
                    _ => Request::Confirmed,
                };
                claimant.voters |= pop(1) << node;
            }
            claimant.phase = match pop(2) {
                0 => Phase::Claiming,
                1 => Phase::Committing,
                2 => Phase::Started,
                _ => Phase::GivenUp,
            };
            claimant.tick = pop(2);
        }
        for node in state.nodes.iter_mut().rev() {
            node.horizon = pop(3);
            node.read = pop(3);
            node.is_quarantined = pop(1) == 1;
            node.is_astray = pop(1) == 1;
            node.clock = pop(2);
            for run in node.runs.iter_mut().rev() {
                run.1 = pop(2);
                run.0 = pop(2);
            }
            node.lock = pop(2);
        }
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_keeps_the_whole_world() {
        let node = Node {
            lock: 3,
            runs: [(2, 2), (1, 1)],
            clock: 2,
            is_astray: true,
            is_quarantined: true,
            read: 3,
            horizon: 1,
        };
        let claimant = Claimant {
            tick: 2,
            phase: Phase::Committing,
            voters: 0b101,
            at: [Request::Vote, Request::Void, Request::Confirmed],
        };
        let mut state = State::default();
        state.nodes[1] = node;
        state.claimants[2] = claimant;
        state.crashes = 1;
        assert_eq!(State::of(state.number_in([0, 1, 2])), state);
        let other = State {
            nodes: [node, Node::default(), Node::default()],
            claimants: [
                Claimant::default(),
                Claimant::default(),
                Claimant {
                    voters: 0b110,
                    at: [Request::Void, Request::Vote, Request::Confirmed],
                    ..claimant
                },
            ],
            crashes: 1,
        };
        assert_eq!(
            state.number(),
            other.number(),
            "only nodes have other names"
        );
    }
}
