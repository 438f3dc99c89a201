//! Slabs: what comes and goes is found by a number that says its place, and that is never taken for another's.

mod numbers;
mod places;

use self::numbers::Numbers;
pub use self::places::Places;

/// Values that come and go, by numbers that the slab gives out.
///
/// A number is a place, and how many numbers were given out before: it finds its value at once, and never another.
#[derive(Clone, Debug)]
pub struct Slab<T> {
    numbers: Numbers,
    places: Places<T>,
}

impl<T> Slab<T> {
    /// Returns the number that the next value will have.
    pub fn next(&self) -> u64 {
        self.numbers.next()
    }

    /// Adds a value; returns its number.
    pub fn add(&mut self, value: T) -> u64 {
        let number = self.numbers.take();
        self.places.insert(number, value);
        number
    }

    /// Returns the value of this number, if it is there.
    pub fn get(&self, number: u64) -> Option<&T> {
        self.places.get(number)
    }

    /// Returns the value of this number, if it is there.
    pub fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        self.places.get_mut(number)
    }

    /// Removes the value of this number; returns it, if it was there.
    pub fn remove(&mut self, number: u64) -> Option<T> {
        let value = self.places.remove(number)?;
        self.numbers.give_back(number);
        Some(value)
    }

    /// Returns how many values there are.
    pub const fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns all values, in an order that the same calls give again.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.places.iter().map(|(_, value)| value)
    }
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            numbers: Numbers::default(),
            places: Places::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_removed_twice_leaves_one_place() {
        let mut slab = Slab::default();
        let first = slab.add("first");
        assert_eq!(slab.remove(first), Some("first"));
        assert_eq!(slab.remove(first), None);
        let (second, third) = (slab.add("second"), slab.add("third"));
        assert_eq!(slab.get(second), Some(&"second"));
        assert_eq!(slab.get(third), Some(&"third"));
        assert_eq!((slab.get(first), slab.len()), (None, 2));
    }
}
