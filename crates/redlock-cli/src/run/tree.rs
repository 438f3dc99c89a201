//! The processes below a supervisor, in whatever group they are, on systems whose `/proc` shows them; and their terminal.
//!
//! A command may put what it starts into other groups and sessions, as `timeout` and `setsid` do.
//! The supervisor is its subreaper, so all of it stays below the supervisor, however it is orphaned.

use std::{
    collections::HashMap,
    fs,
    io::{self, IsTerminal, stdin, stdout},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Duration,
};

#[cfg(target_os = "linux")]
use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
use rustix::{
    process::{Pid, Signal, getpgrp, kill_process, kill_process_group},
    termios::{tcgetpgrp, tcsetpgrp},
};

/// A process as `/proc` shows it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct ProcessEntry {
    pid: Pid,
    parent: Option<Pid>,
    group: Option<Pid>,
    is_over: bool,
}

/// Kills all processes below one; returns whether none is left.
pub(super) fn kill_below(root: Pid) -> bool {
    // What is killed last may have started more.
    for _ in 0..LOOKS {
        let Some(all) = all() else { return false };
        let alive = below(root, &all);
        if alive.is_empty() {
            return true;
        }
        for process in alive {
            process.send(Signal::KILL);
        }
        thread::sleep(PAUSE);
    }
    false
}

/// Sends a signal to the processes below `root` that have left its group, but not to the processes below these.
///
/// A process that leads another group passes signals on by itself.
pub(super) fn signal_those_who_left(root: Pid, signal: Signal) {
    let Some(all) = all() else { return };
    let group = Some(root);
    let stayed = |pid: Pid| pid == root || all.get(&pid).is_some_and(|p| p.group == group);
    for process in below(root, &all) {
        if process.group != group && process.parent.is_some_and(stayed) {
            process.send(signal);
        }
    }
}

/// Continues a group that was stopped at the terminal, the process that leads it first.
///
/// A signal to the whole group begins with the newest process. That one may read again, and stop the group, before the
/// signal comes to the leader; the leader goes on then, and nothing shows that the others are stopped.
pub(super) fn go_on(group: Pid) {
    // It may have ended meanwhile.
    let _: Result<_, _> = match all() {
        Some(all) => {
            let led = kill_process(group, Signal::CONT);
            for process in below(group, &all) {
                if process.group == Some(group) {
                    process.send(Signal::CONT);
                }
            }
            led
        }
        None => kill_process_group(group, Signal::CONT),
    };
}

/// Returns the children of a process that have ended, and for which it has not waited.
pub(super) fn zombies_of(parent: Pid) -> Vec<Pid> {
    let all = all().unwrap_or_default().into_values();
    let own = all.filter(|process| process.is_over && process.parent == Some(parent));
    own.map(|process| process.pid).collect()
}

/// Returns the processes below one that are not over.
fn below(root: Pid, all: &HashMap<Pid, ProcessEntry>) -> Vec<ProcessEntry> {
    let is_below = |process: &ProcessEntry| {
        let mut parent = process.parent;
        // The table was not read at one moment, so it may have a cycle in it.
        for _ in 0..all.len() {
            match parent {
                Some(pid) if pid == root => return true,
                Some(pid) => parent = all.get(&pid).and_then(|process| process.parent),
                None => return false,
            }
        }
        false
    };
    let found = all.values().filter(|p| !p.is_over && is_below(p));
    found.copied().collect()
}

/// Returns all processes; `None` where they are not shown.
fn all() -> Option<HashMap<Pid, ProcessEntry>> {
    let processes = fs::read_dir("/proc").ok();
    // Other systems have other tables there, if any.
    let entries = processes.filter(|_| cfg!(target_os = "linux"))?.flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let all: HashMap<_, _> = pids
        .filter_map(Pid::from_raw)
        .filter_map(|pid| Some((pid, ProcessEntry::read(pid)?)))
        .collect();
    (!all.is_empty()).then_some(all)
}

impl ProcessEntry {
    fn read(pid: Pid) -> Option<Self> {
        let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
        Self::of(pid, &fs::read_to_string(path).ok()?)
    }

    fn of(pid: Pid, stat: &str) -> Option<Self> {
        // The name of a program may be anything.
        let (_, rest) = stat.rsplit_once(')')?;
        let mut words = rest.split_whitespace();
        let state = words.next()?;
        let mut number = || {
            let number: i32 = words.next()?.parse().ok()?;
            // The system writes -1 for what it does not know any more.
            Some(Pid::from_raw(number.max(0)))
        };
        Some(Self {
            pid,
            parent: number()?,
            group: number()?,
            is_over: matches!(state, "Z" | "X"),
        })
    }

    /// Sends it a signal, unless it has ended and its id is another's.
    #[cfg(target_os = "linux")]
    fn send(self, signal: Signal) {
        let Ok(held) = pidfd_open(self.pid, PidfdFlags::empty()) else {
            return;
        };
        if Self::read(self.pid).is_some_and(|now| now.parent == self.parent) {
            let _: Result<_, _> = pidfd_send_signal(held, signal);
        }
    }

    /// Does nothing: where `pidfd_open` is missing, no process is found either.
    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_self, reason = "as where there is one")]
    fn send(self, _: Signal) {}
}

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

/// Returns whether this process' group has the terminal, so that its keys reach this group.
pub(super) fn has_terminal() -> bool {
    tcgetpgrp(stdin()).is_ok_and(|present| present == getpgrp())
}

/// Passes the terminal on to a group, if this process' group has it; returns whether it did.
///
/// The system stops a process that tries without having the terminal.
fn pass(group: Pid) -> bool {
    // A terminal that is gone belongs to no group.
    has_terminal() && tcsetpgrp(stdin(), group).is_ok()
}

/// Returns the program that runs, though another version may have been put in its place.
pub(super) fn own_program() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") {
        shown_in(Path::new("/proc"))
    } else {
        std::env::current_exe()
    }
}

fn shown_in(processes: &Path) -> io::Result<PathBuf> {
    let program = processes.join("self/exe");
    // Processes that the command starts are found there, too.
    program.symlink_metadata().map_err(|error| {
        let message = format!(
            "{} does not show this process ({error}): mount it, because redlock run finds there what the command starts",
            processes.display()
        );
        io::Error::new(error.kind(), message)
    })?;
    Ok(program)
}

/// Up to five seconds: a process that was killed ends once it gets a processor.
const LOOKS: usize = 1_000;
const PAUSE: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_proc_is_told_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("proc");
        let error = shown_in(&missing).unwrap_err().to_string();
        let name = missing.display().to_string();
        assert!(
            error.contains(&name) && error.contains("mount it"),
            "{error}"
        );
        assert!(own_program().is_ok());
    }

    #[test]
    fn a_process_is_read_whatever_its_name() {
        let pid = Pid::from_raw(12).unwrap();
        let process = ProcessEntry::of(pid, "12 (a) Z 1) (b) S 7 9 9 0 -1").unwrap();
        assert_eq!(process.parent, Pid::from_raw(7));
        assert_eq!(process.group, Pid::from_raw(9));
        assert!(!process.is_over);
        assert!(ProcessEntry::of(pid, "12 (a) Z 7 9").unwrap().is_over);
        // Of one that is being removed, nothing else is known.
        let gone = ProcessEntry::of(pid, "12 (a) X 0 -1 -1").unwrap();
        assert_eq!((gone.parent, gone.group), (None, None));
    }

    #[test]
    fn what_is_below_is_found_at_any_depth() {
        let process = |pid, parent| ProcessEntry {
            pid: Pid::from_raw(pid).unwrap(),
            parent: Pid::from_raw(parent),
            group: Pid::from_raw(pid),
            is_over: false,
        };
        let table = [
            process(2, 1),
            process(3, 2),
            process(4, 3),
            process(5, 1),
            process(7, 8),
            process(8, 7),
        ];
        let all = table.map(|p| (p.pid, p)).into_iter().collect();
        let mut found: Vec<_> = below(Pid::from_raw(2).unwrap(), &all)
            .iter()
            .map(|p| p.pid.as_raw_nonzero().get())
            .collect();
        found.sort_unstable();
        assert_eq!(found, [3, 4]);
    }
}
