//! The end of the warden by the kernel: a process that is stopped cannot look at a clock.

use nix::{
    sys::{
        signal::{SigEvent, SigevNotify, Signal},
        time::TimeSpec,
        timer::{Expiration, Timer, TimerSetTimeFlags},
    },
    time::ClockId,
};

/// A timer that kills this process, and with it the command, unless it is set again or dropped.
pub(super) struct LastResort(Option<Timer>);

impl LastResort {
    /// Makes a timer that is not set; where the system has none left, it never is.
    pub(super) fn new() -> Self {
        let kill = SigEvent::new(SigevNotify::SigevSignal {
            signal: Signal::SIGKILL,
            si_value: 0,
        });
        Self(Timer::new(ClockId::CLOCK_BOOTTIME, kill).ok())
    }

    /// Sets it to this time, in milliseconds since the machine was started.
    pub(super) fn set(&mut self, at: u64) {
        let at = TimeSpec::from_duration(std::time::Duration::from_millis(at));
        if let Some(timer) = &mut self.0 {
            let flags = TimerSetTimeFlags::TFD_TIMER_ABSTIME;
            // It fails for no time that a lease has.
            let _: Result<_, _> = timer.set(Expiration::OneShot(at), flags);
        }
    }
}
