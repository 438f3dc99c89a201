use std::{fmt, time::Duration};

/// A scheduled instant of a job, in whole milliseconds since the Unix epoch.
///
/// It is the instant in the schedule, never the time of a wake-up, so that all replicas use the same tick.
///
/// ```
/// use redlock_proto::Tick;
///
/// let two_o_clock = Tick::from_millis(1_795_226_400_000).unwrap();
/// assert!(two_o_clock < Tick::from_millis(1_795_226_401_000).unwrap());
/// assert_eq!(Tick::from_millis(u64::MAX), None);
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Tick(
    // invariant: not after MAX
    u64,
);

impl Tick {
    /// The last one, in the year 9999: nodes store ticks as digits of one length and subtract them as doubles.
    pub const MAX: Self = Self(253_402_300_799_999);

    /// Returns the tick at this number of milliseconds since the epoch; `None` beyond [`MAX`](Self::MAX).
    pub const fn from_millis(millis: u64) -> Option<Self> {
        if millis > Self::MAX.0 {
            None
        } else {
            Some(Self(millis))
        }
    }

    /// Returns the milliseconds since the epoch.
    pub const fn as_millis(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Tick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}

/// The window in which a tick may be claimed, by the clocks of the nodes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Window {
    // In whole milliseconds, as nodes count; invariant: not more than LONGEST
    early: u64,
    start_within: u64,
}

impl Window {
    /// A year: what is longer is cut down to it.
    pub const LONGEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);

    /// Makes the window from `early` before the tick to `start_within` after it, in whole milliseconds.
    ///
    /// All replicas of a job must agree on `early`: see [`NoClaim::Forgot`](crate::NoClaim::Forgot).
    pub fn new(early: Duration, start_within: Duration) -> Self {
        let ms = |duration: Duration| {
            let millis = duration.min(Self::LONGEST).as_millis();
            u64::try_from(millis).unwrap_or(u64::MAX)
        };
        Self {
            early: ms(early),
            start_within: ms(start_within),
        }
    }

    /// Returns by how much a clock may be before the tick.
    pub const fn early(&self) -> Duration {
        Duration::from_millis(self.early)
    }

    /// Returns by how much a clock may be after the tick.
    pub const fn start_within(&self) -> Duration {
        Duration::from_millis(self.start_within)
    }

    /// Returns by how much a clock that shows `now` milliseconds is too early for the tick.
    pub(crate) fn too_early(&self, tick: Tick, now: u64) -> Option<Duration> {
        let by = tick.0.saturating_sub(now.saturating_add(self.early));
        (by > 0).then(|| Duration::from_millis(by))
    }

    /// Returns by how much it is too late.
    pub(crate) fn too_late(&self, tick: Tick, now: u64) -> Option<Duration> {
        let by = now.saturating_sub(tick.0.saturating_add(self.start_within));
        (by > 0).then(|| Duration::from_millis(by))
    }

    /// Returns whether a node that remembers nothing from before its clock showed `horizon` milliseconds may have
    /// forgotten that the tick was claimed: until then it could be.
    pub(crate) fn forgets(&self, tick: Tick, horizon: u64) -> bool {
        tick.0 <= horizon.saturating_add(self.early)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Shows: T4.1.
    #[test]
    fn a_window_is_open_up_to_and_in_its_last_millisecond() {
        let window = Window::new(Duration::from_millis(5), Duration::from_millis(30));
        let tick = Tick::from_millis(1_000).unwrap();
        let by = |ms| Some(Duration::from_millis(ms));
        let early: Vec<_> = [994, 995].map(|now| window.too_early(tick, now)).into();
        assert_eq!(early, [by(1), None]);
        let late: Vec<_> = [1_030, 1_031].map(|now| window.too_late(tick, now)).into();
        assert_eq!(late, [None, by(1)]);
    }

    // Shows: T4.1.
    #[test]
    fn whoever_forgot_what_was_before_may_have_forgotten_what_could_be_claimed_then() {
        let window = Window::new(Duration::from_millis(5), Duration::from_millis(30));
        let tick = Tick::from_millis(1_000).unwrap();
        assert!(window.forgets(tick, 995));
        assert!(!window.forgets(tick, 994));
        // Exactly then it could not be claimed yet.
        assert!(window.too_early(tick, 994).is_some());
    }

    #[test]
    fn the_longest_window_is_a_year() {
        let window = Window::new(Duration::MAX, Duration::MAX);
        assert_eq!(window.early(), Window::LONGEST);
        assert_eq!(window.start_within(), Window::LONGEST);
        assert_eq!(window.too_early(Tick::MAX, 0).map(|_| ()), Some(()));
        assert_eq!(window.too_late(Tick::MAX, u64::MAX).map(|_| ()), Some(()));
    }
}
