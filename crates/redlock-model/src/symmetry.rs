//! One state for all that differ only in which client is which, and which node is which.
//!
//! Clients are alike, and so are nodes: what can be reached from a state can be reached, under other names,
//! from the state with the names exchanged.
//! So the search keeps one of them, the *canonical* one.
//!
//! To try every order would cost N! × K! encodings for each step.
//! Instead, clients are put in order by what does not depend on the order of the nodes; only among those
//! that this does not tell apart, every order is tried, as it is among the nodes that collect readings.
//! For each such order, the nodes are sorted by all that is known of them, and the smallest encoding is
//! canonical.

use std::cmp::Ordering;

use crate::{
    Scope,
    layout::Layout,
    state::{Client, Exchange, Node, Reading, Standing, State},
};

/// Finds canonical states.
#[derive(Debug)]
pub(crate) struct Symmetry {
    nodes: usize,
    clients: usize,
    /// By the number of things, every order of them.
    orders: Vec<Vec<Order>>,
}

/// The numbers of the things that come first, second and so on.
type Order = [usize; LONGEST];

const UNCHANGED: Order = [0, 1, 2, 3, 4];

/// By number, what tells one from others.
type Marks = [u64; LONGEST];

const LONGEST: usize = Scope::MAX_NODES;

const _: () = assert!(Scope::MAX_CLIENTS <= LONGEST, "an order of clients fits");

impl Symmetry {
    pub(crate) fn new(scope: Scope) -> Self {
        Self {
            nodes: scope.nodes(),
            clients: scope.clients(),
            orders: (0..=LONGEST).map(orders).collect(),
        }
    }

    /// The encoding of the canonical state.
    pub(crate) fn canonical(&self, state: &State, layout: &Layout) -> u128 {
        let mut marks: Marks = [0; LONGEST];
        for (client, mark) in marks[..self.clients].iter_mut().enumerate() {
            *mark = self.mark(state, client);
        }
        let mut by_mark = UNCHANGED;
        by_mark[..self.clients].sort_unstable_by_key(|client| marks[*client]);
        let (collecting, count) = collecting(&state.nodes[..self.nodes]);

        let mut smallest = u128::MAX;
        for order in &self.orders[self.clients] {
            let clients = order.map(|place| by_mark[place]);
            let is_needed = clients[..self.clients]
                .windows(2)
                .all(|pair| self.may_follow(state, &marks, pair[0], pair[1]));
            if !is_needed {
                continue;
            }
            for order in &self.orders[count] {
                let collecting = order.map(|place| collecting[place]);
                let nodes = self.sorted_nodes(state, &clients, &collecting[..count]);
                let renamed = self.rename(state, &clients, &nodes);
                smallest = smallest.min(layout.encode(&renamed));
            }
        }
        smallest
    }

    /// What tells a client from others, whatever the order of the nodes.
    fn mark(&self, state: &State, number: usize) -> u64 {
        let client = &state.clients[number];
        let nodes = state.nodes[..self.nodes].iter().zip(&client.at);
        // A sum, because a sum knows no order.
        let exchanges = nodes.fold(0u64, |sum, (node, exchange)| {
            let held = u64::from(node.is_held_by(number));
            sum.wrapping_add(scramble(
                facts(node) << 8 | exchange_code(*exchange) << 1 | held,
            ))
        });
        // The phase is on top, so that the order of clients means something to a reader.
        (client.phase as u64) << 61
            | u64::from(client.token) << 53
            | u64::from(client.before) << 45
            | u64::from(client.proposal) << 37
            | exchanges >> 27
    }

    /// Whether an order in which the one client is followed by the other must be tried.
    fn may_follow(&self, state: &State, marks: &Marks, one: usize, other: usize) -> bool {
        let (client, next) = (&state.clients[one], &state.clients[other]);
        let has_key = |client| {
            let mut nodes = state.nodes[..self.nodes].iter();
            nodes.any(|node| node.is_held_by(client))
        };
        match marks[one].cmp(&marks[other]) {
            Ordering::Less => true,
            Ordering::Greater => false,
            // Two that are equal in everything make no difference: one order will do.
            Ordering::Equal => one < other || client != next || has_key(one) || has_key(other),
        }
    }

    /// The nodes in the order of all that is known of them, under these orders of the clients and of the
    /// nodes that collect readings.
    fn sorted_nodes(&self, state: &State, clients: &Order, collecting: &[usize]) -> Order {
        let mut columns: Marks = [0; LONGEST];
        for (number, column) in columns[..self.nodes].iter_mut().enumerate() {
            let node = &state.nodes[number];
            let mut put = |bits: u64, width: u32| *column = *column << width | bits;
            for collector in collecting {
                put((*collector == number).into(), 1);
                put(reading_code(state.nodes[*collector].readings[number]), 6);
            }
            put(facts(node), 12);
            for client in &clients[..self.clients] {
                put(node.is_held_by(*client).into(), 1);
                put(exchange_code(state.clients[*client].at[number]), 6);
            }
        }
        let mut order = UNCHANGED;
        order[..self.nodes].sort_unstable_by_key(|node| columns[*node]);
        order
    }

    /// The state in which the clients and nodes come in these orders.
    fn rename(&self, state: &State, clients: &Order, nodes: &Order) -> State {
        let mut renamed = State {
            crashes: state.crashes,
            ..State::default()
        };
        let mut places = [0; LONGEST];
        for (place, client) in clients[..self.clients].iter().enumerate() {
            places[*client] = place as u8;
            let from = &state.clients[*client];
            let to = &mut renamed.clients[place];
            *to = Client { at: to.at, ..*from };
            for (place, node) in nodes[..self.nodes].iter().enumerate() {
                to.at[place] = from.at[*node];
            }
        }
        for (place, node) in nodes[..self.nodes].iter().enumerate() {
            let from = &state.nodes[*node];
            let to = &mut renamed.nodes[place];
            *to = Node {
                key: from.key.map(|client| places[usize::from(client)]),
                readings: to.readings,
                ..*from
            };
            if from.standing != Standing::Voting {
                for (place, node) in nodes[..self.nodes].iter().enumerate() {
                    to.readings[place] = from.readings[*node];
                }
            }
        }
        renamed
    }
}

/// The nodes on whose behalf others were read, and how many they are.
fn collecting(nodes: &[Node]) -> (Order, usize) {
    let (mut order, mut count) = (UNCHANGED, 0);
    for (number, node) in nodes.iter().enumerate() {
        if node.readings.iter().any(Option::is_some) {
            order[count] = number;
            count += 1;
        }
    }
    (order, count)
}

/// What is true of a node whatever the names, in 12 bits.
fn facts(node: &Node) -> u64 {
    (node.standing as u64) << 10 | u64::from(node.floor) << 5 | u64::from(node.counter)
}

/// What was read, in 6 bits.
fn reading_code(reading: Option<Reading>) -> u64 {
    reading.map_or(0, |Reading { voting, known }| {
        1 + 2 * u64::from(known) + u64::from(voting)
    })
}

/// How far a client is with a node, in 6 bits.
fn exchange_code(exchange: Exchange) -> u64 {
    match exchange {
        Exchange::Over => 0,
        Exchange::Asked => 1,
        Exchange::Writing => 2,
        Exchange::Stored => 3,
        Exchange::Vote(counter) => 4 + u64::from(counter),
    }
}

fn scramble(bits: u64) -> u64 {
    let bits = (bits ^ bits >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (bits ^ bits >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// Every order of `count` things.
fn orders(count: usize) -> Vec<Order> {
    let mut orders = vec![[0; LONGEST]];
    for last in 0..count {
        orders = orders
            .iter()
            .flat_map(|order| {
                (0..=last).map(|place| {
                    let mut longer = *order;
                    longer.copy_within(place..last, place + 1);
                    longer[place] = last;
                    longer
                })
            })
            .collect();
    }
    orders
}
