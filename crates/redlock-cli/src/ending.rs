//! The end of a command that no verb waits for any longer.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Child;

use crate::signals;

/// Asks a command to end, and kills it if it has not ended after `PATIENCE`, or when a signal interrupts the wait.
pub(crate) async fn end(mut child: Child) {
    let pid = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
    let Some(pid) = pid else { return };
    // No other task waits for the command, so the id is still its own.
    let _: Result<_, _> = kill_process(pid, Signal::TERM);
    tokio::select! {
        biased;
        _ = child.wait() => {}
        _ = signals::interrupted() => drop(child.kill().await),
        () = tokio::time::sleep(PATIENCE) => drop(child.kill().await),
    }
}

/// How long a command may take to end after the request to end.
const PATIENCE: Duration = Duration::from_secs(10);
