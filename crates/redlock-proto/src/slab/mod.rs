//! Slabs: what comes and goes is found by a number that says its place, and that is never taken for another's.

mod places;

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

/// Numbers for what comes and goes.
///
/// A number is a place, which others have had before and will have, and how many numbers were taken before it.
///
/// The caller returns each number exactly once, when nothing uses it any more; its place is not reused before.
#[derive(Clone, Debug, Default)]
struct Numbers {
    /// The free places.
    free: Vec<u32>,
    places: u32,
    taken: u64,
}

impl Numbers {
    /// Returns the number that is taken next.
    fn next(&self) -> u64 {
        let place = self.free.last().copied().unwrap_or(self.places);
        (self.taken << PLACE) | u64::from(place)
    }

    /// Takes a number.
    fn take(&mut self) -> u64 {
        let number = self.next();
        self.taken += 1;
        if self.free.pop().is_none() {
            self.places += 1;
        }
        number
    }

    /// Gives a number back that was taken.
    fn give_back(&mut self, number: u64) {
        self.free.push(place(number) as u32);
        if self.free.len() == self.places as usize && self.free.len() > FEW {
            // Nothing stays of a crowd.
            self.free = Vec::new();
            self.places = 0;
        }
    }
}

/// Returns the place that a number says.
const fn place(number: u64) -> usize {
    (number & LAST_PLACE) as usize
}

/// The number of bits of a number that are its place.
/// The others say how many numbers were taken before.
/// They do not come round again while anything still waits under a number whose place is free.
const PLACE: u32 = 32;
const LAST_PLACE: u64 = (1 << PLACE) - 1;

/// The number of places that are kept for ever.
const FEW: usize = 1_024;

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

    #[test]
    fn places_are_used_again_and_numbers_are_not() {
        let mut numbers = Numbers::default();
        let first = numbers.take();
        let second = numbers.take();
        assert_ne!(place(first), place(second));
        numbers.give_back(first);
        let third = numbers.take();
        assert_eq!(place(third), place(first));
        assert_ne!(third, first);
        assert_ne!(place(numbers.next()), place(second));
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
        assert_eq!(place(next), 0);
        assert!(!crowd.contains(&next));
    }
}
