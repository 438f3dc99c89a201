/// A clock with a rate of its own: what it shows follows from the true time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// By how many millionths it is fast.
    fast: i64,
    /// What it showed when the world began, in microseconds.
    ahead: i64,
}

impl Clock {
    pub(crate) const fn new(fast: i64, ahead: i64) -> Self {
        Self { fast, ahead }
    }

    /// What it shows, in microseconds.
    pub(crate) fn reading(self, time: u64) -> u64 {
        let time = time.cast_signed();
        let gained = (time * self.fast).div_euclid(1_000_000);
        (time + gained + self.ahead).max(0).cast_unsigned()
    }

    /// The first true time at which it shows at least this, if it is not set meanwhile.
    pub(crate) fn when(self, reading: u64) -> u64 {
        let elapsed = i128::from(reading.cast_signed() - self.ahead);
        let guess = elapsed * 1_000_000 / i128::from(1_000_000 + self.fast);
        let mut time = u64::try_from(guess.max(0)).unwrap_or(u64::MAX / 2);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_reading_is_the_first_that_shows_it() {
        for fast in [-10_000, -77, 0, 3, 9_999] {
            for ahead in [0, 5, 1_800_000_000_000_000] {
                let clock = Clock::new(fast, ahead);
                for time in (0..30_000_000).step_by(777_777) {
                    let when = clock.when(clock.reading(time));
                    assert!(when <= time && clock.reading(when) == clock.reading(time));
                    assert!(when == 0 || clock.reading(when - 1) < clock.reading(time));
                }
            }
        }
    }
}
