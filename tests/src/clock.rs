use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The time since the machine was started, which all processes on it agree on.
pub fn now() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(
        seconds.expect("the machine was started in the past"),
        nanos.expect("less than a second"),
    )
}
