//! Time, CPU time and memory of this process.

use std::{
    fs,
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};

/// Reads the clock that all durations here are measured with.
#[expect(
    clippy::disallowed_methods,
    reason = "it measures how long something took, and no deadline of a lease rests on it"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Returns the CPU time that all threads of this process have used so far.
pub(crate) fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::from_secs(seconds) + Duration::from_nanos(time.tv_nsec.unsigned_abs())
}

/// Returns the bytes of memory that this process has in use, where the system says so in `/proc`.
pub(crate) fn memory() -> Option<u64> {
    resident(&fs::read_to_string("/proc/self/status").ok()?)
}

fn resident(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_is_read_from_the_status() {
        assert_eq!(
            resident("Name:\tx\nVmHWM:\t  12 kB\nVmRSS:\t    8164 kB\nRssAnon:\t 1 kB\n"),
            Some(8_359_936)
        );
        assert_eq!(resident("Name:\tx\n"), None);
    }

    #[test]
    fn work_takes_cpu_time() {
        let before = cpu();
        let started = now();
        while started.elapsed() < Duration::from_millis(20) {}
        assert!(cpu() > before);
    }
}
