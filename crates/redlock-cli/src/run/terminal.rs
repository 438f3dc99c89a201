//! The terminal, which one process group at a time can read from and be interrupted by.

use std::io::stdin;

use rustix::{
    process::{Pid, getpgrp},
    termios::{tcgetpgrp, tcsetpgrp},
};

/// Lets a group have the terminal, if this process has it; returns whether it has it now.
pub(super) fn lend(group: Pid) -> bool {
    pass(group)
}

/// Gives the terminal back to a group, if this process' group still has it.
pub(super) fn give_back(group: Pid) {
    pass(group);
}

/// Only who has the terminal may pass it on: the system stops all others that try.
fn pass(group: Pid) -> bool {
    let terminal = stdin();
    tcgetpgrp(&terminal).is_ok_and(|present| present == getpgrp())
        && tcsetpgrp(&terminal, group).is_ok()
}
