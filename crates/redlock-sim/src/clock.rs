/// A clock with a rate of its own: what it shows follows from the true time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// By how many millionths it is fast.
    fast: i64,
    /// By how many millionths it is fast in every other stretch of time.
    otherwise: i64,
    /// How long such a stretch is, in microseconds; 0 if its rate never changes.
    stretch: u64,
    /// What it showed when the world began, in microseconds.
    ahead: i64,
}

impl Clock {
    pub(crate) const fn new(fast: i64, ahead: i64) -> Self {
        Self {
            fast,
            otherwise: fast,
            stretch: 0,
            ahead,
        }
    }

    /// Changes its rate to `otherwise` and back, each time after so many microseconds.
    pub(crate) const fn changing(mut self, otherwise: i64, stretch: u64) -> Self {
        self.otherwise = otherwise;
        self.stretch = stretch;
        self
    }

    /// Returns what it shows, in microseconds.
    pub(crate) fn reading(self, time: u64) -> u64 {
        let time = time.cast_signed();
        let gained = match self.stretch.cast_signed() {
            0 => (time * self.fast).div_euclid(1_000_000),
            stretch => {
                let (rounds, rest) = (time / (2 * stretch), time % (2 * stretch));
                let first = rounds * stretch + rest.min(stretch);
                let gained = first * self.fast + (time - first) * self.otherwise;
                gained.div_euclid(1_000_000)
            }
        };
        (time + gained + self.ahead).max(0).cast_unsigned()
    }

    /// Returns the first true time at which it shows at least this, if it is not set meanwhile.
    pub(crate) fn when(self, reading: u64) -> u64 {
        let elapsed = i128::from(reading.cast_signed() - self.ahead);
        let guess = elapsed * 1_000_000 / i128::from(1_000_000 + self.fast);
        let mut time = u64::try_from(guess.max(0)).unwrap_or(u64::MAX / 2);
        if self.stretch > 0 {
            // Each step leaves a hundredth of what was missing, because no rate is further off.
            for _ in 0..MOST_STEPS {
                let missing = reading.cast_signed() - self.reading(time).cast_signed();
                time = time.saturating_add_signed(missing);
                if missing.unsigned_abs() <= 1 {
                    break;
                }
            }
        }
        while time > 0 && self.reading(time - 1) >= reading {
            time -= 1;
        }
        while self.reading(time) < reading {
            time += 1;
        }
        time
    }

    /// Sets it forward, or back.
    pub(crate) const fn step(&mut self, by: i64) {
        self.ahead += by;
    }
}

/// Enough for an error of a day to become one of less than a microsecond.
const MOST_STEPS: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_inverse(clock: Clock) {
        for time in (0..30_000_000).step_by(777_777) {
            let when = clock.when(clock.reading(time));
            assert!(when <= time && clock.reading(when) == clock.reading(time));
            assert!(when == 0 || clock.reading(when - 1) < clock.reading(time));
        }
    }

    #[test]
    fn the_time_of_a_reading_is_the_first_that_shows_it() {
        for fast in [-10_000, -77, 0, 3, 9_999] {
            for ahead in [0, 5, 1_800_000_000_000_000] {
                assert_inverse(Clock::new(fast, ahead));
                assert_inverse(Clock::new(fast, ahead).changing(-7_000, 50_000));
                assert_inverse(Clock::new(fast, ahead).changing(10_000, 1_900_001));
            }
        }
    }

    #[test]
    fn a_rate_that_changes_is_the_one_and_then_the_other() {
        let clock = Clock::new(10_000, 0).changing(-10_000, 1_000_000);
        let shown = [0, 1_000_000, 1_500_000, 2_000_000, 3_000_000].map(|time| clock.reading(time));
        assert_eq!(shown, [0, 1_010_000, 1_505_000, 2_000_000, 3_010_000]);
    }
}
