/// Numbers for what comes and goes.
///
/// A number is a place, which others have had before and will have, and how many numbers were taken before it.
///
/// The caller returns each number exactly once, when nothing uses it any more; its place is not reused before.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers {
    /// The free places.
    free: Vec<u32>,
    places: u32,
    taken: u64,
}

impl Numbers {
    /// Returns the number that is taken next.
    pub(super) fn next(&self) -> u64 {
        let place = self.free.last().copied().unwrap_or(self.places);
        (self.taken << PLACE) | u64::from(place)
    }

    /// Takes a number.
    pub(super) fn take(&mut self) -> u64 {
        let number = self.next();
        self.taken += 1;
        if self.free.pop().is_none() {
            self.places += 1;
        }
        number
    }

    /// Gives a number back that was taken.
    pub(super) fn give_back(&mut self, number: u64) {
        self.free.push(place(number) as u32);
        if self.free.len() == self.places as usize && self.free.len() > FEW {
            // Nothing stays of a crowd.
            self.free = Vec::new();
            self.places = 0;
        }
    }
}

/// Returns the place that a number says.
pub(super) const fn place(number: u64) -> usize {
    (number & LAST_PLACE) as usize
}

/// The number of bits of a number that are its place.
/// The others say how many numbers were taken before.
/// They do not come round again while anything still waits under a number whose place is free.
const PLACE: u32 = 32;
const LAST_PLACE: u64 = (1 << PLACE) - 1;

/// The number of places that are kept for ever.
pub(super) const FEW: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

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
