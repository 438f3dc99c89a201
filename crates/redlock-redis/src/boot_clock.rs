//! The operating system's monotonic clock that also counts the time in suspend.

use std::time::Duration;

use redlock_proto::Instant;

/// Returns it as the clock of deadlines.
pub(crate) fn now() -> Instant {
    Instant::from_origin(since_boot())
}

/// Returns what it shows.
#[cfg(unix)]
pub fn since_boot() -> Duration {
    // Apple's CLOCK_MONOTONIC counts suspended time; elsewhere CLOCK_BOOTTIME is the one that does.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const ID: rustix::time::ClockId = rustix::time::ClockId::Boottime;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const ID: rustix::time::ClockId = rustix::time::ClockId::Monotonic;

    let time = rustix::time::clock_gettime(ID);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Returns what it shows.
#[cfg(not(unix))]
pub fn since_boot() -> Duration {
    // Windows' performance counter goes on during suspend, and it is what `Instant` reads there.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the client's clock on this platform"
    )]
    static ORIGIN: std::sync::LazyLock<std::time::Instant> =
        std::sync::LazyLock::new(std::time::Instant::now);
    ORIGIN.elapsed()
}
