//! A world of leases at a moment, and its number.

use crate::three_nodes::{Bits, NODES, Order, least, set};

/// The most clients.
pub(super) const CLIENTS: usize = 3;

#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct State {
    pub(super) nodes: [Node; NODES],
    pub(super) clients: [Client; CLIENTS],
    /// How often nodes have lost their data.
    pub(super) crashes: u8,
}

#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Node {
    pub(super) key: Key,
    /// The greater of its counter and its floor.
    pub(super) counter: u8,
    pub(super) is_quarantined: bool,
}

/// The clients that have the key on a node: the exclusive one as a number from 1 or 0, the others as bits of a set.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Key {
    pub(super) alone: u8,
    pub(super) shared: u8,
}

#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Client {
    pub(super) phase: Phase,
    /// Whether it shares the key, though it acquired it alone.
    pub(super) is_downgraded: bool,
    /// Its token, once it is known.
    pub(super) token: u8,
    /// The greatest token that was handed out before it began.
    pub(super) before: u8,
    /// The nodes on which its lease rests, or whose votes it has counted, as bits.
    pub(super) counted: u8,
    /// The nodes that have confirmed its token, or its extension, as bits.
    pub(super) confirmed: u8,
    pub(super) at: [Request; NODES],
}

#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(super) enum Phase {
    #[default]
    Idle,
    /// It has asked every node for the key, and collects votes.
    Acquiring,
    /// It knows its token, and collects confirmations that it is stored.
    Confirming,
    /// It has a lease.
    Holding,
    /// It has none any more; its requests may still arrive.
    Over,
    /// It never had one, and will not; its requests may still arrive.
    Failed,
}

/// What has become of a client's acquire at a node.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(super) enum Request {
    /// It is on its way, was refused, or is lost.
    #[default]
    Underway,
    /// It was granted, which counts no longer, or never did.
    Void,
    /// It was granted, and is a vote with this counter.
    Vote(u8),
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
            push(node.key.alone, 2);
            push(node.key.shared, 3);
            push(node.counter, 4);
            push(node.is_quarantined.into(), 1);
        }
        for client in self.clients {
            push(client.phase as u8, 3);
            push(client.is_downgraded.into(), 1);
            push(client.token, 4);
            push(client.before, 4);
            for node in order {
                push(client.counted >> node & 1, 1);
                push(client.confirmed >> node & 1, 1);
                push(client.at[node].code(), 4);
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
        for client in state.clients.iter_mut().rev() {
            for node in (0..NODES).rev() {
                client.at[node] = Request::of(pop(4));
                client.confirmed |= pop(1) << node;
                client.counted |= pop(1) << node;
            }
            client.before = pop(4);
            client.token = pop(4);
            client.is_downgraded = pop(1) == 1;
            client.phase = match pop(3) {
                0 => Phase::Idle,
                1 => Phase::Acquiring,
                2 => Phase::Confirming,
                3 => Phase::Holding,
                4 => Phase::Over,
                _ => Phase::Failed,
            };
        }
        for node in state.nodes.iter_mut().rev() {
            node.is_quarantined = pop(1) == 1;
            node.counter = pop(4);
            node.key.shared = pop(3);
            node.key.alone = pop(2);
        }
        state
    }

    /// Returns the clients that have or had a lease.
    pub(super) fn finished(&self) -> impl Iterator<Item = (usize, &Client)> {
        let clients = self.clients.iter().enumerate();
        clients.filter(|(_, client)| matches!(client.phase, Phase::Holding | Phase::Over))
    }
}

impl Client {
    /// Returns the nodes whose votes it has, as bits.
    pub(super) fn votes(&self) -> u8 {
        set((0..NODES).filter(|node| matches!(self.at[*node], Request::Vote(_))))
    }

    /// Returns whether it counts, or may still come to count, what this node has told it.
    pub(super) fn counts(&self, node: usize) -> bool {
        (self.counted | self.confirmed) >> node & 1 == 1
            || matches!(self.at[node], Request::Vote(_))
    }

    /// Has no lease, and forgets what it counts no longer.
    pub(super) fn end(&mut self) {
        self.phase = match self.phase {
            Phase::Holding => Phase::Over,
            _ => Phase::Failed,
        };
        self.before = 0;
        self.counted = 0;
        self.confirmed = 0;
        self.forget_votes();
    }

    pub(super) fn forget_votes(&mut self) {
        for at in &mut self.at {
            if matches!(at, Request::Vote(_)) {
                *at = Request::Void;
            }
        }
    }
}

impl Request {
    /// Returns its number; the counter of a vote is from 1 to 14.
    const fn code(self) -> u8 {
        match self {
            Self::Underway => 0,
            Self::Void => 1,
            Self::Vote(counter) => 1 + counter,
        }
    }

    const fn of(code: u8) -> Self {
        match code {
            0 => Self::Underway,
            1 => Self::Void,
            code => Self::Vote(code - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_keeps_the_whole_world() {
        let node = Node {
            key: Key {
                alone: 0,
                shared: 0b101,
            },
            counter: 9,
            is_quarantined: true,
        };
        let client = Client {
            phase: Phase::Holding,
            is_downgraded: true,
            token: 9,
            before: 8,
            counted: 0b101,
            confirmed: 0b100,
            at: [Request::Vote(14), Request::Void, Request::Underway],
        };
        let mut state = State::default();
        state.nodes[1] = node;
        state.clients[2] = client;
        state.crashes = 1;
        assert_eq!(State::of(state.number_in([0, 1, 2])), state);
        let mut other = State::default();
        other.nodes[0] = node;
        other.clients[2] = Client {
            counted: 0b110,
            confirmed: 0b100,
            at: [Request::Void, Request::Vote(14), Request::Underway],
            ..client
        };
        other.crashes = 1;
        assert_eq!(
            state.number(),
            other.number(),
            "only nodes have other names"
        );
    }
}
