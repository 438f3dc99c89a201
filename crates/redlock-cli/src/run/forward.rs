//! The signals that are passed on to the command, or end this process while there is none.

use std::io;

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};

use crate::exit::Exit;

/// The signals that this process gets and is not ended by.
#[derive(Debug)]
pub(super) struct Signals {
    kinds: Vec<(Signal, tokio::signal::unix::Signal)>,
}

impl Signals {
    /// Catches the signals from now on, except the ignored ones.
    ///
    /// A program that is started later has the system's own answers to them again.
    pub(super) fn new() -> io::Result<Self> {
        let kinds = [
            Signal::INT,
            Signal::TERM,
            Signal::HUP,
            Signal::QUIT,
            Signal::USR1,
            Signal::USR2,
            Signal::WINCH,
        ];
        let ignored = crate::signals::ignored();
        let wanted = kinds
            .into_iter()
            .filter(|kind| ignored >> (kind.as_raw() - 1) & 1 == 0);
        let caught = wanted.map(|kind| {
            let number = SignalKind::from_raw(kind.as_raw());
            Ok((kind, signal(number)?))
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
    pub(super) async fn next(&mut self) -> Signal {
        std::future::poll_fn(|cx| {
            for (kind, signal) in &mut self.kinds {
                if signal.poll_recv(cx).is_ready() {
                    return std::task::Poll::Ready(*kind);
                }
            }
            std::task::Poll::Pending
        })
        .await
    }

    /// Waits for the next that ends a process which does not catch it: all but a change of the window.
    ///
    /// # Cancel safety
    ///
    /// None of those is lost.
    pub(super) async fn interrupted(&mut self) -> Exit {
        loop {
            let signal = self.next().await;
            if signal != Signal::WINCH {
                return Exit::Signal(u8::try_from(signal.as_raw()).unwrap_or(u8::MAX));
            }
        }
    }
}
