//! The signals that end the command.

use tokio::{
    select,
    signal::unix::{SignalKind, signal},
};

use crate::exit::Exit;

/// Returns the signals that this process was started to ignore, as by `nohup`, as a mask: bit 0 is that of signal 1.
pub(crate) fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

fn is_ignored(kind: SignalKind) -> bool {
    ignored() >> (kind.as_raw_value() - 1) & 1 == 1
}

/// Waits for a signal; for ever if it is to be ignored.
async fn caught(kind: SignalKind) {
    if is_ignored(kind) {
        return std::future::pending().await;
    }
    match signal(kind) {
        Ok(mut signal) => drop(signal.recv().await),
        // The system's own answer to it ends the process.
        Err(_) => std::future::pending().await,
    }
}

/// Waits until a signal interrupts the command or asks it to end, and returns the exit for that signal.
pub(crate) async fn interrupted() -> Exit {
    select! {
        () = caught(SignalKind::interrupt()) => Exit::Signal(2),
        () = caught(SignalKind::terminate()) => Exit::Signal(15),
        () = caught(SignalKind::hangup()) => Exit::Signal(1),
    }
}
