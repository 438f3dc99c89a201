//! The terminal, which one process group at a time can read from and be interrupted by.

use std::{
    io::{IsTerminal, stdin, stdout},
    os::unix::process::CommandExt,
    process::Command,
};

use rustix::{
    process::{Pid, getpgrp},
    termios::{tcgetpgrp, tcsetpgrp},
};

/// Lets a group have the terminal, if this process has it for input and output; else others of its pipeline use it.
///
/// Returns whether it was passed on.
pub(super) fn lend(group: Pid) -> bool {
    stdout().is_terminal() && pass(group)
}

/// Gives the terminal back to a group, if this process' group still has it.
pub(super) fn give_back(group: Pid) {
    pass(group);
}

/// Ends this process and the rest of its group, as a key does that is pressed while the group has the terminal.
///
/// The user pressed the key while another group had the terminal.
/// A script must not go on behind a command that its user has interrupted.
///
/// Returns if that is not possible.
pub(crate) fn press(signal: u8) {
    // Signals that are caught are as at first in another program. It never returns if there is one.
    drop(
        Command::new("/bin/sh")
            .args(["-c", "kill -\"$0\" 0", &signal.to_string()])
            .exec(),
    );
}

/// Passes the terminal on to a group, if this process' group has it; returns whether it did.
///
/// The system stops a process that tries without having the terminal.
fn pass(group: Pid) -> bool {
    let terminal = stdin();
    let has_it = tcgetpgrp(&terminal).is_ok_and(|present| present == getpgrp());
    // A terminal that is gone belongs to no group.
    has_it && tcsetpgrp(&terminal, group).is_ok()
}
