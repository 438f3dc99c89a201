//! The processes below a warden, on systems that do not show them: only its group can be reached.

use rustix::process::{Pid, Signal};

/// Kills none; returns that some may be left.
pub(super) fn kill_below(_: Pid) -> bool {
    false
}

/// Reaches none.
pub(super) fn signal_those_who_left(_: Pid, _: Signal) {}

/// Returns none: there is no subreaper, so a warden has no children but the command.
pub(super) fn zombies_of(_: Pid) -> Vec<Pid> {
    Vec::new()
}
