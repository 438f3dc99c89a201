//! The states that were reached, and from where.

/// The states that were reached, numbered in the order in which they were, each with the number of the
/// state it was first reached from.
///
/// The numbers are found by open addressing: a slot holds one and, to tell most strangers without a look at
/// their state, the half of the hash that also says where the slot is.
#[derive(Debug)]
pub(crate) struct Seen {
    states: Vec<u128>,
    parents: Vec<u32>,
    // invariant: a power of two of them, and some are empty
    slots: Vec<u64>,
}

/// A slot that holds nothing; no state has this number.
const EMPTY: u64 = u64::MAX;

impl Seen {
    /// The most states there can be.
    pub(crate) const MOST: usize = 1 << 31;

    pub(crate) fn new() -> Self {
        Self {
            states: Vec::new(),
            parents: Vec::new(),
            slots: vec![EMPTY; 1 << 10],
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.states.len()
    }

    pub(crate) fn get(&self, number: usize) -> Option<u128> {
        self.states.get(number).copied()
    }

    /// Adds a state that was reached from the one with the number `parent`; `false` if it was there.
    pub(crate) fn insert(&mut self, state: u128, parent: u32) -> bool {
        let tag = tag(state);
        let slot = self.slot(state, tag);
        if self.slots[slot] != EMPTY {
            return false;
        }
        self.slots[slot] = u64::from(tag) << 32 | self.states.len() as u64;
        self.states.push(state);
        self.parents.push(parent);
        // Two thirds full is as fast as it gets for the memory.
        if self.states.len() * 3 > self.slots.len() * 2 {
            self.grow();
        }
        true
    }

    /// Returns the number of a state that was reached.
    pub(crate) fn find(&self, state: u128) -> Option<usize> {
        let entry = self.slots[self.slot(state, tag(state))];
        (entry != EMPTY).then(|| half(entry) as usize)
    }

    /// Returns the slot of a state, or the one that it would have.
    fn slot(&self, state: u128, tag: u32) -> usize {
        let mut slot = self.first_slot(tag);
        while self.slots[slot] != EMPTY {
            if half(self.slots[slot] >> 32) == tag
                && self.states[half(self.slots[slot]) as usize] == state
            {
                break;
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        slot
    }

    /// The states on the way to this one, from the first.
    pub(crate) fn path(&self, mut number: usize) -> Vec<u128> {
        let mut path = vec![self.states[number]];
        while number > 0 {
            number = self.parents[number] as usize;
            path.push(self.states[number]);
        }
        path.reverse();
        path
    }

    /// The bytes that all of it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.states.capacity() * size_of::<u128>()
            + self.parents.capacity() * size_of::<u32>()
            + self.slots.capacity() * size_of::<u64>()
    }

    fn grow(&mut self) {
        let longer = vec![EMPTY; 2 * self.slots.len()];
        for entry in std::mem::replace(&mut self.slots, longer) {
            if entry != EMPTY {
                let mut slot = self.first_slot(half(entry >> 32));
                while self.slots[slot] != EMPTY {
                    slot = (slot + 1) & (self.slots.len() - 1);
                }
                self.slots[slot] = entry;
            }
        }
    }

    fn first_slot(&self, tag: u32) -> usize {
        // The upper bits of the tag, so that neighbours stay neighbours when the table grows.
        let bits = self.slots.len().trailing_zeros();
        ((u64::from(tag) << bits) >> 32) as usize
    }
}

/// The lower half.
fn half(entry: u64) -> u32 {
    (entry & u64::from(u32::MAX)) as u32
}

fn tag(state: u128) -> u32 {
    let (high, low) = ((state >> 64) as u64, state as u64);
    let mut hash = (low ^ high.rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ hash >> 32 ^ high).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (hash >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_added_once_and_its_path_is_known() {
        let mut seen = Seen::new();
        let state = |number: u128| (number << 77) | (number * 3);
        // Enough states for a few to share the same half of a hash.
        const COUNT: u32 = 300_000;
        for number in 0..COUNT {
            let parent = number.saturating_sub(1) / 2 * 2;
            assert!(seen.insert(state(number.into()), parent));
        }
        for number in 0..COUNT {
            assert!(!seen.insert(state(number.into()), 0), "{number} was there");
            assert_eq!(seen.find(state(number.into())), Some(number as usize));
        }
        assert_eq!(seen.len(), COUNT as usize);
        assert_eq!(seen.find(state(COUNT.into())), None);
        assert_eq!(seen.path(5), [0, 2, 4, 5].map(state));
    }
}
