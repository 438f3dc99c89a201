use super::{FEW, index};

/// Values that go by the numbers of a [`Slab`](super::Slab).
///
/// They stay together however far their indices are apart, so that a few of a hundred thousand numbers need little memory.
/// A number that no slab gave out may be a high index, and each index below it needs four bytes.
#[derive(Clone, Debug)]
pub struct SlabMap<T> {
    /// Where the entry of each index is, if it has one.
    ///
    /// It is not looked after when an entry goes: the entry that is found by it says whose it is.
    at: Vec<u32>,
    entries: Vec<Option<(u64, T)>>,
    /// The entries that are free: values stay where they are when others go.
    free: Vec<u32>,
}

impl<T> SlabMap<T> {
    /// Has a value go by this number; returns the one that did before.
    pub fn insert(&mut self, number: u64, value: T) -> Option<T> {
        let index = index(number);
        if let Some((at, _)) = self.at(index) {
            let before = self.entries[at].replace((number, value));
            return before.map(|(_, before)| before);
        }
        if self.at.len() <= index {
            self.at.resize(index + 1, 0);
        }
        if let Some(at) = self.free.pop() {
            self.at[index] = at;
            self.entries[at as usize] = Some((number, value));
        } else {
            // invariant: there are at most as many entries as indices, and an index has 32 bits of a number
            self.at[index] = self.entries.len() as u32;
            self.entries.push(Some((number, value)));
        }
        None
    }

    /// Returns the value of this number, if there is one.
    pub fn get(&self, number: u64) -> Option<&T> {
        let (_, value) = self.entries[self.find(number)?].as_ref()?;
        Some(value)
    }

    /// Returns the value of this number, if there is one.
    pub fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        let at = self.find(number)?;
        let (_, value) = self.entries[at].as_mut()?;
        Some(value)
    }

    /// Returns whether there is a value of this number.
    pub fn contains(&self, number: u64) -> bool {
        self.find(number).is_some()
    }

    /// Removes the value of this number; returns it, if there was one.
    pub fn remove(&mut self, number: u64) -> Option<T> {
        let at = self.find(number)?;
        let (_, value) = self.entries[at].take()?;
        self.free.push(at as u32);
        if self.is_empty() && self.entries.len() > FEW {
            // The entries of a crowd are freed, and `at` is kept: a single value that comes and goes would allocate it
            // each time.
            self.entries = Vec::new();
            self.free = Vec::new();
        }
        Some(value)
    }

    /// Returns how many values there are.
    pub const fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Returns whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns all values with their numbers, in an order that the same calls give again.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.entries
            .iter()
            .flatten()
            .map(|(number, value)| (*number, value))
    }

    /// Returns all values with their numbers, in an order that the same calls give again.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut T)> {
        let entries = self.entries.iter_mut().flatten();
        entries.map(|(number, value)| (*number, value))
    }

    fn find(&self, number: u64) -> Option<usize> {
        let (at, known) = self.at(index(number))?;
        (known == number).then_some(at)
    }

    /// Returns where the entry of an index is, and its number.
    fn at(&self, at_index: usize) -> Option<(usize, u64)> {
        let at = *self.at.get(at_index)? as usize;
        let (number, _) = self.entries.get(at)?.as_ref()?;
        (index(*number) == at_index).then_some((at, *number))
    }
}

impl<T> Default for SlabMap<T> {
    fn default() -> Self {
        Self {
            at: Vec::new(),
            entries: Vec::new(),
            free: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;
    use crate::slab::Numbers;

    #[test]
    fn a_number_that_was_given_back_is_not_that_of_the_next_value_at_its_index() {
        let (mut numbers, mut indices) = (Numbers::default(), SlabMap::default());
        let first = numbers.take();
        indices.insert(first, "first");
        assert_eq!(indices.remove(first), Some("first"));
        numbers.give_back(first);
        let second = numbers.take();
        indices.insert(second, "second");
        assert_eq!(index(first), index(second));
        assert_eq!(indices.get(first), None);
        assert_eq!(indices.remove(first), None);
        assert_eq!(indices.get(second), Some(&"second"));
    }

    #[test]
    fn values_need_the_memory_of_as_many_as_there_were_at_once() {
        let (mut numbers, mut indices) = (Numbers::default(), SlabMap::default());
        for _ in 0..10 * FEW {
            numbers.take();
        }
        for _ in 0..100 {
            let number = numbers.take();
            indices.insert(number, [0_u64; 1_000]);
            indices.remove(number);
        }
        assert_eq!(indices.entries.len(), 1);
        let kept = numbers.take();
        indices.insert(kept, [0_u64; 1_000]);
        for _ in 0..100 {
            let number = numbers.take();
            indices.insert(number, [0_u64; 1_000]);
            indices.remove(number);
        }
        assert_eq!((indices.len(), indices.entries.len()), (1, 2));
    }

    proptest! {
        /// The same as a map, whatever comes and goes.
        #[test]
        fn values_are_found_by_their_numbers(ops in prop::collection::vec(0..100_usize, 0..300)) {
            let (mut numbers, mut indices) = (Numbers::default(), SlabMap::default());
            let (mut map, mut gone) = (HashMap::new(), Vec::new());
            let mut live: Vec<u64> = Vec::new();
            for (count, op) in ops.into_iter().enumerate() {
                match op {
                    0..40 => live.push(numbers.take()),
                    40..60 if !live.is_empty() => {
                        let number = live[op % live.len()];
                        prop_assert_eq!(indices.insert(number, count), map.insert(number, count));
                    }
                    60..75 if !live.is_empty() => {
                        let number = live[op % live.len()];
                        prop_assert_eq!(indices.remove(number), map.remove(&number));
                    }
                    _ if !live.is_empty() => {
                        let number = live.swap_remove(op % live.len());
                        prop_assert_eq!(indices.remove(number), map.remove(&number));
                        numbers.give_back(number);
                        gone.push(number);
                    }
                    _ => {}
                }
                for number in live.iter().chain(&gone) {
                    prop_assert_eq!(indices.get(*number), map.get(number));
                    prop_assert_eq!(indices.contains(*number), map.contains_key(number));
                }
                prop_assert_eq!(indices.len(), map.len());
                let all: HashMap<_, _> = indices.iter().map(|(number, value)| (number, *value)).collect();
                prop_assert_eq!(&all, &map);
            }
        }
    }
}
