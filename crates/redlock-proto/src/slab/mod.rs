//! Slabs: what comes and goes is found by a number that says its index, and that is never taken for another's.

mod slab_map;

pub use self::slab_map::SlabMap;

/// Values that come and go, by numbers that the slab gives out.
///
/// A number is an index, and how many numbers were given out before: it finds its value at once, and never another.
#[derive(Clone, Debug)]
pub struct Slab<T> {
    numbers: Numbers,
    values: SlabMap<T>,
}

impl<T> Slab<T> {
    /// Returns the number that the next value will have.
    pub fn next(&self) -> u64 {
        self.numbers.next()
    }

    /// Adds a value; returns its number.
    pub fn add(&mut self, value: T) -> u64 {
        let number = self.numbers.take();
        self.values.insert(number, value);
        number
    }

    /// Returns the value of this number, if it is there.
    pub fn get(&self, number: u64) -> Option<&T> {
        self.values.get(number)
    }

    /// Returns the value of this number, if it is there.
    pub fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        self.values.get_mut(number)
    }

    /// Removes the value of this number; returns it, if it was there.
    pub fn remove(&mut self, number: u64) -> Option<T> {
        let value = self.values.remove(number)?;
        self.numbers.give_back(number);
        Some(value)
    }

    /// Returns how many values there are.
    pub const fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns all values, in an order that the same calls give again.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.values.iter().map(|(_, value)| value)
    }
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            numbers: Numbers::default(),
            values: SlabMap::default(),
        }
    }
}

/// Numbers for what comes and goes.
///
/// A number is an index, which others have had before and will have, and how many numbers were taken before it.
///
/// The caller returns each number exactly once, when nothing uses it any more; its index is not reused before.
#[derive(Clone, Debug, Default)]
struct Numbers {
    /// The free indices.
    free: Vec<u32>,
    indices: u32,
    taken: u64,
}

impl Numbers {
    /// Returns the number that is taken next.
    fn next(&self) -> u64 {
        let index = self.free.last().copied().unwrap_or(self.indices);
        (self.taken << INDEX_BITS) | u64::from(index)
    }

    /// Takes a number.
    fn take(&mut self) -> u64 {
        let number = self.next();
        self.taken += 1;
        if self.free.pop().is_none() {
            self.indices += 1;
        }
        number
    }

    /// Gives a number back that was taken.
    fn give_back(&mut self, number: u64) {
        self.free.push(index(number) as u32);
        if self.free.len() == self.indices as usize && self.free.len() > FEW {
            // Nothing stays of a crowd.
            self.free = Vec::new();
            self.indices = 0;
        }
    }
}

/// Returns the index that a number says.
const fn index(number: u64) -> usize {
    (number & INDEX_MASK) as usize
}

/// The number of bits of a number that are its index.
/// The others say how many numbers were taken before.
/// They do not come round again while anything still waits under a number whose index is free.
const INDEX_BITS: u32 = 32;
const INDEX_MASK: u64 = (1 << INDEX_BITS) - 1;

/// The number of indices that are kept for ever.
const FEW: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_removed_twice_leaves_one_index() {
        let mut slab = Slab::default();
        let first = slab.add("first");
        assert_eq!(slab.remove(first), Some("first"));
        assert_eq!(slab.remove(first), None);
        let (second, third) = (slab.add("second"), slab.add("third"));
        assert_eq!(slab.get(second), Some(&"second"));
        assert_eq!(slab.get(third), Some(&"third"));
        assert_eq!((slab.get(first), slab.len()), (None, 2));
    }

    #[test]
    fn indices_are_used_again_and_numbers_are_not() {
        let mut numbers = Numbers::default();
        let first = numbers.take();
        let second = numbers.take();
        assert_ne!(index(first), index(second));
        numbers.give_back(first);
        let third = numbers.take();
        assert_eq!(index(third), index(first));
        assert_ne!(third, first);
        assert_ne!(index(numbers.next()), index(second));
    }

    #[test]
    fn nothing_stays_of_a_crowd() {
        let mut numbers = Numbers::default();
        let crowd: Vec<_> = (0..10 * FEW).map(|_| numbers.take()).collect();
        for number in &crowd {
            numbers.give_back(*number);
        }
        assert_eq!(numbers.free.capacity(), 0);
        let next = numbers.take();
        assert_eq!(index(next), 0);
        assert!(!crowd.contains(&next));
    }
}
