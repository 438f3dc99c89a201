//! The signals that end the command.

use tokio::{
    select,
    signal::unix::{SignalKind, signal},
};

use crate::exit::Exit;

/// Waits until somebody interrupts the command, or asks it to end.
pub(crate) async fn interrupted() -> Exit {
    let (Ok(mut interrupt), Ok(mut terminate), Ok(mut hang_up)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
        signal(SignalKind::hangup()),
    ) else {
        // The system's own answer to these signals ends the process.
        return std::future::pending().await;
    };
    select! {
        _ = interrupt.recv() => Exit::Signal(2),
        _ = terminate.recv() => Exit::Signal(15),
        _ = hang_up.recv() => Exit::Signal(1),
    }
}
