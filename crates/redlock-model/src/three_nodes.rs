//! Worlds of three nodes: their numbers, and sets of their nodes.

use std::num::NonZeroUsize;

use redlock_proto::{Floor, NodeOutcome, Quorum, RunId, Survey, Votes};

use crate::protocol::counters;

/// How many nodes there are.
pub(crate) const NODES: usize = 3;

/// Which node comes first, second and third.
pub(crate) type Order = [usize; NODES];

/// By the bits of nodes, something that is true of them.
pub(crate) type BySet<T> = [T; 1 << NODES];

/// Returns the least number that a world has in any order of its nodes.
///
/// Worlds that differ only in which node is which have the same.
pub(crate) fn least(number_in: impl Fn(Order) -> u128) -> u128 {
    ORDERS.into_iter().map(number_in).min().unwrap_or_default()
}

/// Values as the bits of one number; the last that was pushed is the first to be popped.
#[derive(Debug, Default)]
pub(crate) struct Bits(pub(crate) u128);

impl Bits {
    pub(crate) fn push(&mut self, value: u8, width: u32) {
        self.0 = self.0 << width | u128::from(value);
    }

    pub(crate) fn pop(&mut self, width: u32) -> u8 {
        let value = self.0 & ((1 << width) - 1);
        self.0 >>= width;
        u8::try_from(value).unwrap_or_default()
    }
}

/// Returns the quorum of the nodes.
pub(crate) fn quorum() -> Quorum {
    Quorum::of(NonZeroUsize::new(NODES).expect("there are nodes"))
}

/// Returns which sets of nodes win if they grant, as the protocol counts.
pub(crate) fn won() -> BySet<bool> {
    let mut won = [false; 1 << NODES];
    for set in sets() {
        let mut votes = Votes::new(quorum());
        for node in members(set) {
            votes.cast(node, NodeOutcome::Granted { counter: 1 });
        }
        won[usize::from(set)] = votes.is_won();
    }
    won
}

/// Returns the floor with which a node may vote again, by what all nodes know: of each whether it is quarantined, and its
/// counter.
pub(crate) fn floor(runs: &[RunId], node: usize, places: [(bool, u8); NODES]) -> Option<u8> {
    let mut survey = Survey::start(quorum(), node);
    for (of, (is_quarantined, counter)) in places.into_iter().enumerate() {
        let (run, kept) = (runs[of].clone(), counters(!is_quarantined));
        survey.on_reading(of, run, kept, counter.into());
    }
    match survey.floor() {
        Some(Floor::Known(floor)) => u8::try_from(floor).ok(),
        _ => None,
    }
}

/// Returns all sets of nodes, as bits.
pub(crate) fn sets() -> impl Iterator<Item = u8> {
    0..1 << NODES
}

/// Returns the nodes of a set.
pub(crate) fn members(set: u8) -> impl Iterator<Item = usize> {
    (0..NODES).filter(move |node| set >> node & 1 == 1)
}

/// Returns the set of these nodes.
pub(crate) fn set(members: impl Iterator<Item = usize>) -> u8 {
    members.fold(0, |set, node| set | 1 << node)
}

/// Returns a client's number as nodes know it, from 1.
pub(crate) fn number(by: usize) -> u8 {
    u8::try_from(by + 1).unwrap_or(u8::MAX)
}

const ORDERS: [Order; 6] = [
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
];
