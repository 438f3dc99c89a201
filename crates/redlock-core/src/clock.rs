use std::time::Duration;

use redlock_proto::Instant;

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
        /// When the client was built.
        origin: tokio::time::Instant,
    },
}

impl Clock {
    pub(crate) fn now(self) -> Instant {
        match self {
            Self::Boot => Instant::from_origin(since_boot()),
            Self::Tokio { origin } => Instant::from_origin(origin.elapsed()),
        }
    }
}

#[cfg(unix)]
fn since_boot() -> Duration {
    // Apple's CLOCK_MONOTONIC counts suspended time; elsewhere CLOCK_BOOTTIME is the one that does.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const ID: rustix::time::ClockId = rustix::time::ClockId::Boottime;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const ID: rustix::time::ClockId = rustix::time::ClockId::Monotonic;

    let time = rustix::time::clock_gettime(ID);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(not(unix))]
fn since_boot() -> Duration {
    use std::sync::LazyLock;

    // Windows' performance counter goes on during suspend, and it is what `Instant` reads there.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the client's clock on this platform"
    )]
    static ORIGIN: LazyLock<std::time::Instant> = LazyLock::new(std::time::Instant::now);
    ORIGIN.elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_goes_forward() {
        let before = Clock::Boot.now();
        assert!(before > Instant::ORIGIN);
        assert!(Clock::Boot.now() >= before);
    }
}
