use std::{
    collections::HashMap,
    sync::{LazyLock, Mutex, PoisonError},
    time::Duration,
};

use redlock_proto::{Instant, NodeTime};
use redlock_redis::since_boot;
use tokio::runtime::{Handle, Id};

/// The clock that deadlines are counted on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Clock {
    /// The operating system's monotonic clock that also counts the time in suspend.
    ///
    /// `std::time::Instant` stops during suspend on Linux: a laptop or virtual machine that sleeps
    /// through its lease would go on believing in it.
    Boot,
    /// tokio's clock, for tests with paused time.
    Tokio {
        /// When the first such client of the runtime was built.
        origin: tokio::time::Instant,
    },
}

impl Clock {
    /// Returns tokio's clock, the same for all clients of the runtime: what they write on the nodes is compared.
    pub(crate) fn of_runtime(runtime: &Handle) -> Self {
        static ORIGINS: LazyLock<Mutex<HashMap<Id, tokio::time::Instant>>> =
            LazyLock::new(Mutex::default);
        // Nothing panics while the lock is held.
        let mut origins = ORIGINS.lock().unwrap_or_else(PoisonError::into_inner);
        let origin = origins.entry(runtime.id());
        let origin = *origin.or_insert_with(tokio::time::Instant::now);
        Self::Tokio { origin }
    }

    pub(crate) fn now(self) -> Instant {
        match self {
            Self::Boot => Instant::from_origin(since_boot()),
            Self::Tokio { origin } => Instant::from_origin(origin.elapsed()),
        }
    }

    pub(crate) fn is_virtual(self) -> bool {
        matches!(self, Self::Tokio { .. })
    }

    /// Returns the wall clock, in microseconds since the Unix epoch.
    pub(crate) fn wall(self) -> u64 {
        match self {
            Self::Boot => since_epoch(),
            Self::Tokio { origin } => SOME_DAY + micros(origin.elapsed()),
        }
    }
}

/// Tells whether tokio's time is paused while the operating system's goes on.
#[derive(Debug)]
pub(crate) struct PauseDetector {
    real: std::time::Instant,
    tokio: tokio::time::Instant,
}

impl PauseDetector {
    #[expect(
        clippy::disallowed_methods,
        reason = "it is what tokio's own clock reads while that goes on"
    )]
    fn real() -> std::time::Instant {
        std::time::Instant::now()
    }

    pub(crate) fn start() -> Self {
        Self {
            real: Self::real(),
            tokio: tokio::time::Instant::now(),
        }
    }

    /// Returns whether tokio's time has stood still since the start, or has jumped ahead.
    ///
    /// It reads the same clock, so between the readings of that clock it can do neither.
    pub(crate) fn is_paused(&self) -> bool {
        let tokio = self.tokio.elapsed();
        let real = Self::real().saturating_duration_since(self.real);
        tokio > real || (tokio.is_zero() && real > Duration::from_micros(1))
    }
}

/// Returns the clock of nodes in memory: the same for all of them, on tokio's time, and the wall clock when it is first
/// looked at.
pub(crate) fn node_time() -> NodeTime {
    #[expect(
        clippy::disallowed_methods,
        reason = "an origin for differences of tokio's clock, which may be paused"
    )]
    static ORIGIN: LazyLock<(std::time::Instant, u64)> =
        LazyLock::new(|| (std::time::Instant::now(), since_epoch()));
    let (origin, wall) = *ORIGIN;
    // A clock that was paused before this was first called is behind.
    let now = tokio::time::Instant::now().into_std() + AN_HOUR;
    let elapsed = micros(now.saturating_duration_since(origin));
    NodeTime::from_micros((wall + elapsed).saturating_sub(micros(AN_HOUR)))
}

/// Returns what the wall clock shows, in microseconds since 1970: fencing tokens are close to it, and nodes in memory begin with it.
fn since_epoch() -> u64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "no deadline and no exclusion rests on it"
    )]
    let now = std::time::SystemTime::now();
    let since = now.duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, micros)
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

const AN_HOUR: Duration = Duration::from_secs(3_600);

/// A day in 2025 to count from, where the time of day must not matter.
const SOME_DAY: u64 = 1_750_000_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    // Shows: G5.
    #[test]
    fn the_clock_goes_forward() {
        let before = Clock::Boot.now();
        assert!(before > Instant::ORIGIN);
        assert!(Clock::Boot.now() >= before);
    }

    #[tokio::test(start_paused = true)]
    async fn clients_in_virtual_time_have_one_clock_whenever_they_are_built() {
        let first = Clock::of_runtime(&Handle::current());
        tokio::time::sleep(AN_HOUR).await;
        let second = Clock::of_runtime(&Handle::current());
        assert_eq!((first.now(), first.wall()), (second.now(), second.wall()));
        assert_eq!(second.wall(), SOME_DAY + micros(AN_HOUR));
    }
}
