//! The end of a command that nobody waits for any more.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Child;

use crate::signals;

/// Asks a command to end, and kills it when it has not after a while, or when somebody interrupts the wait.
pub(crate) async fn end(mut child: Child) {
    let pid = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
    let Some(pid) = pid else { return };
    // Nobody else waits for it, so the id is still its own.
    let _: Result<_, _> = kill_process(pid, Signal::TERM);
    tokio::select! {
        biased;
        _ = child.wait() => {}
        _ = signals::interrupted() => drop(child.kill().await),
        () = tokio::time::sleep(PATIENCE) => drop(child.kill().await),
    }
}

/// How long a command may take to end that was asked to.
const PATIENCE: Duration = Duration::from_secs(10);
