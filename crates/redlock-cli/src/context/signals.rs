//! The signals that end the command, and those that it passes on to one that it runs.

use std::{
    future::{pending, poll_fn},
    io,
    task::Poll,
};

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};

use crate::exit::Exit;

/// The signals that this process gets and is not ended by.
#[derive(Debug)]
pub(crate) struct Signals {
    kinds: Vec<(Signal, tokio::signal::unix::Signal)>,
}

impl Signals {
    /// Catches the signals that are passed on to a command, from now on, except the ignored ones.
    ///
    /// A program that is started later has the system's own answers to them again.
    pub(crate) fn new() -> io::Result<Self> {
        Self::of(&[
            Signal::INT,
            Signal::TERM,
            Signal::HUP,
            Signal::QUIT,
            Signal::USR1,
            Signal::USR2,
            Signal::WINCH,
        ])
    }

    fn of(kinds: &[Signal]) -> io::Result<Self> {
        let ignored = ignored();
        let wanted = kinds
            .iter()
            .filter(|kind| ignored >> (kind.as_raw() - 1) & 1 == 0);
        let caught = wanted.map(|kind| {
            let number = SignalKind::from_raw(kind.as_raw());
            Ok((*kind, signal(number)?))
        });
        Ok(Self {
            kinds: caught.collect::<io::Result<_>>()?,
        })
    }

    /// Waits for the next of them.
    ///
    /// # Cancel safety
    ///
    /// None is lost.
    pub(crate) async fn next(&mut self) -> Signal {
        poll_fn(|cx| {
            for (kind, signal) in &mut self.kinds {
                if signal.poll_recv(cx).is_ready() {
                    return Poll::Ready(*kind);
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Waits for the next that ends a process which does not catch it: all but a change of the window.
    ///
    /// # Cancel safety
    ///
    /// None of those is lost.
    pub(crate) async fn interrupted(&mut self) -> Exit {
        loop {
            let signal = self.next().await;
            if signal != Signal::WINCH {
                return Exit::Signal(u8::try_from(signal.as_raw()).unwrap_or(u8::MAX));
            }
        }
    }
}

/// Returns the signals that this process was started to ignore, as by `nohup`, as a mask: bit 0 is that of signal 1.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

/// Waits until a signal interrupts the command or asks it to end, and returns the exit for that signal.
pub(crate) async fn interrupted() -> Exit {
    match Signals::of(&[Signal::INT, Signal::TERM, Signal::HUP]) {
        Ok(mut signals) => signals.interrupted().await,
        // The system's own answer to them ends the process.
        Err(_) => pending().await,
    }
}
