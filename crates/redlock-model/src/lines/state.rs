//! A world of callers in line at a moment, and its number.

use crate::three_nodes::{Bits, NODES, Order, least, set};

/// The most callers.
pub(super) const CALLERS: usize = 3;
/// The most callers of a world that counts tokens.
pub(super) const COUNTED: usize = 2;

#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct State {
    pub(super) nodes: [Node; NODES],
    /// In the order of their tickets: the first came first.
    pub(super) callers: [Caller; CALLERS],
    /// The greatest token that was handed out.
    pub(super) last: u8,
    /// How often nodes have lost their data.
    pub(super) crashes: u8,
    /// How often callers have asked again, where that is counted.
    pub(super) beats: u8,
}

#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Node {
    pub(super) key: Option<Owner>,
    /// The entries of each caller.
    pub(super) line: [Entries; CALLERS],
    /// The greater of its counter and its floor.
    pub(super) counter: u8,
    pub(super) is_quarantined: bool,
}

/// An owner of a caller: the present one, or the one before it, which the caller has given up.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct Owner {
    pub(super) by: usize,
    pub(super) is_old: bool,
}

/// The entries of a caller in the line of a node, by owner.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Entries {
    pub(super) now: Entry,
    pub(super) old: Entry,
}

#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(super) enum Entry {
    #[default]
    None,
    /// It waits at the caller's place.
    Waits,
    /// It waits before all others, because its caller is a holder.
    First,
    /// The client of its caller gives no sign of life.
    Ended,
}

#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Caller {
    pub(super) phase: Phase,
    /// Its token, once it is known.
    pub(super) token: u8,
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
    /// It has asked every node for the key, and waits in line where that has another owner.
    Waiting,
    /// It knows its token, and collects confirmations that it is stored.
    Confirming,
    /// It has a lease.
    Holding,
    /// It neither waits nor has a lease any more: it tells nodes so, or its process was killed.
    Over,
}

/// What has become of the present owner's acquire at a node.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(super) enum Request {
    /// It is on its way, or lost.
    #[default]
    Underway,
    /// The node has carried it out, and that is no vote, or none that still counts.
    Done,
    /// It is a vote with this counter.
    Vote(u8),
    /// The node has given the key to the owner, with this counter, and the message is on its way, or lost.
    Given(u8),
}

impl State {
    /// Returns a number that no other world has, but for those that differ only in which node is which.
    ///
    /// A world has tokens only if it has no third caller.
    pub(super) fn number(&self, has_tokens: bool) -> u128 {
        least(|order| self.number_in(order, has_tokens))
    }

    fn number_in(&self, order: Order, has_tokens: bool) -> u128 {
        let (callers, counter) = layout(has_tokens);
        let mut bits = Bits::default();
        let mut push = |value, width| bits.push(value, width);
        for node in order.map(|node| self.nodes[node]) {
            push(Owner::code(node.key), 3);
            push(node.counter, counter);
            push(node.is_quarantined.into(), 1);
            for entries in &node.line[..callers] {
                push(entries.now as u8, 2);
                push(entries.old as u8, 2);
            }
        }
        for caller in &self.callers[..callers] {
            push(caller.phase as u8, 3);
            push(caller.token, counter);
            for node in order {
                push(caller.counted >> node & 1, 1);
                push(caller.confirmed >> node & 1, 1);
                let (kind, counted) = caller.at[node].code();
                push(kind, 2);
                push(counted, counter);
            }
        }
        push(self.last, counter);
        push(self.crashes, 2);
        push(self.beats, 3);
        bits.0
    }

    /// Returns the world of such a number.
    pub(super) fn of(number: u128, has_tokens: bool) -> Self {
        let (callers, counter) = layout(has_tokens);
        let mut bits = Bits(number);
        let mut pop = |width| bits.pop(width);
        let mut state = Self {
            beats: pop(3),
            crashes: pop(2),
            last: pop(counter),
            ..Self::default()
        };
        for caller in state.callers[..callers].iter_mut().rev() {
            for node in (0..NODES).rev() {
                let counted = pop(counter);
                caller.at[node] = Request::of(pop(2), counted);
                caller.confirmed |= pop(1) << node;
                caller.counted |= pop(1) << node;
            }
            caller.token = pop(counter);
            caller.phase = match pop(3) {
                0 => Phase::Idle,
                1 => Phase::Waiting,
                2 => Phase::Confirming,
                3 => Phase::Holding,
                _ => Phase::Over,
            };
        }
        for node in state.nodes.iter_mut().rev() {
            for entries in node.line[..callers].iter_mut().rev() {
                entries.old = Entry::of(pop(2));
                entries.now = Entry::of(pop(2));
            }
            node.is_quarantined = pop(1) == 1;
            node.counter = pop(counter);
            node.key = Owner::of(pop(3));
        }
        state
    }

    /// Returns the first of the callers that wait.
    pub(super) fn first_waiting(&self) -> Option<usize> {
        let mut callers = self.callers.iter();
        callers.position(|caller| caller.phase == Phase::Waiting)
    }

    /// Returns whether a node still has something of the owner that a caller has given up.
    pub(super) fn has_old(&self, by: usize) -> bool {
        let old = Owner { by, is_old: true };
        self.nodes.iter().any(|node| node.has(old))
    }
}

impl Node {
    /// Returns whether it has the key for an owner, or an entry.
    pub(super) fn has(&self, owner: Owner) -> bool {
        self.key == Some(owner) || self.entry(owner) != Entry::None
    }

    pub(super) fn entry(&self, owner: Owner) -> Entry {
        let entries = self.line[owner.by];
        if owner.is_old {
            entries.old
        } else {
            entries.now
        }
    }

    pub(super) fn entry_mut(&mut self, owner: Owner) -> &mut Entry {
        let entries = &mut self.line[owner.by];
        if owner.is_old {
            &mut entries.old
        } else {
            &mut entries.now
        }
    }

    /// Returns the owners in line, the first one first, but for holders, which are before these.
    pub(super) fn in_line(&self) -> impl Iterator<Item = Owner> {
        let node = *self;
        owners().filter(move |owner| node.entry(*owner) != Entry::None)
    }
}

impl Owner {
    /// Returns its number, from 1.
    pub(super) fn number(self) -> u8 {
        Self::code(Some(self))
    }

    fn code(owner: Option<Self>) -> u8 {
        let at = owner.and_then(|owner| owners().position(|other| other == owner));
        at.map_or(0, crate::three_nodes::number)
    }

    /// Returns the owner of such a number, if there is one.
    pub(super) fn of(code: u8) -> Option<Self> {
        owners().nth(usize::from(code).checked_sub(1)?)
    }
}

/// Returns all owners, in the order of their places.
pub(super) fn owners() -> impl Iterator<Item = Owner> {
    (0..CALLERS).flat_map(|by| [true, false].map(|is_old| Owner { by, is_old }))
}

impl Entry {
    /// Returns its number in the order in which a node gives its key; a caller that waits no longer is the last.
    pub(super) const fn rank(self) -> u8 {
        match self {
            Self::First => 0,
            Self::None | Self::Waits => 1,
            Self::Ended => 2,
        }
    }

    const fn of(code: u8) -> Self {
        match code {
            0 => Self::None,
            1 => Self::Waits,
            2 => Self::First,
            _ => Self::Ended,
        }
    }
}

impl Caller {
    /// Returns the nodes whose votes it has, as bits.
    pub(super) fn votes(&self) -> u8 {
        set((0..NODES).filter(|node| matches!(self.at[*node], Request::Vote(_))))
    }

    /// Returns whether it counts what this node has told it, or may still come to count it.
    pub(super) fn counts(&self, node: usize) -> bool {
        (self.counted | self.confirmed) >> node & 1 == 1
            || matches!(self.at[node], Request::Vote(_))
    }

    /// Forgets what it counts no longer.
    pub(super) fn forget_votes(&mut self) {
        for at in &mut self.at {
            if *at != Request::Underway {
                *at = Request::Done;
            }
        }
    }
}

impl Request {
    const fn code(self) -> (u8, u8) {
        match self {
            Self::Underway => (0, 0),
            Self::Done => (1, 0),
            Self::Vote(counter) => (2, counter),
            Self::Given(counter) => (3, counter),
        }
    }

    const fn of(kind: u8, counter: u8) -> Self {
        match kind {
            0 => Self::Underway,
            1 => Self::Done,
            2 => Self::Vote(counter),
            _ => Self::Given(counter),
        }
    }
}

/// Returns how many callers there may be, and the width of a counter.
const fn layout(has_tokens: bool) -> (usize, u32) {
    if has_tokens {
        (COUNTED, 4)
    } else {
        (CALLERS, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_world_has_one_number_whichever_node_is_which() {
        let node = Node {
            key: Some(Owner {
                by: 1,
                is_old: true,
            }),
            line: [
                Entries {
                    now: Entry::First,
                    old: Entry::Waits,
                },
                Entries {
                    now: Entry::Ended,
                    old: Entry::Ended,
                },
                Entries::default(),
            ],
            counter: 13,
            is_quarantined: true,
        };
        let caller = Caller {
            phase: Phase::Over,
            token: 9,
            counted: 0b101,
            confirmed: 0b100,
            at: [Request::Vote(14), Request::Done, Request::Given(3)],
        };
        let mut state = State {
            last: 12,
            crashes: 2,
            beats: 7,
            ..State::default()
        };
        state.nodes[1] = node;
        state.callers[1] = caller;
        assert_eq!(State::of(state.number_in([0, 1, 2], true), true), state);
        let mut other = State {
            nodes: Default::default(),
            ..state
        };
        other.nodes[0] = node;
        other.callers[1] = Caller {
            counted: 0b110,
            confirmed: 0b100,
            at: [Request::Done, Request::Vote(14), Request::Given(3)],
            ..caller
        };
        assert_eq!(
            state.number(true),
            other.number(true),
            "only nodes have other names"
        );
    }

    #[test]
    fn a_world_without_tokens_has_a_third_caller() {
        let mut state = State::default();
        state.nodes[2].key = Some(Owner {
            by: 2,
            is_old: false,
        });
        state.nodes[2].line[2].old = Entry::Waits;
        state.callers[2].phase = Phase::Over;
        state.callers[2].at = [Request::Vote(0), Request::Given(0), Request::Done];
        assert_eq!(State::of(state.number_in([0, 1, 2], false), false), state);
    }
}
