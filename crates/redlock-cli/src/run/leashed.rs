//! The command before it begins: this program once more, which ties its life to the warden's, and becomes the command.

use std::{
    ffi::OsString,
    io::{self, Write},
    os::unix::process::CommandExt,
    process::{Command, ExitCode},
};

use rustix::process::{Pid, getppid};

use super::{handover, line::News};

/// The first argument of a command that has not begun, which no user types.
pub(crate) const LEASHED: &str = "__leashed";

/// Becomes the command: the id of the warden and the command are its arguments.
///
/// Returns if the command cannot be started, after a message to the warden that says why.
pub(crate) fn leashed(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<_> = arguments.collect();
    let Ok(mut warden) = handover::take() else {
        return ExitCode::FAILURE;
    };
    let error = begin(&arguments);
    let news = News::not_started(&error);
    // The warden may be gone.
    drop(warden.write_all(news.to_string().as_bytes()));
    ExitCode::FAILURE
}

/// Returns why the command cannot begin.
fn begin(arguments: &[OsString]) -> io::Error {
    let [warden, command, rest @ ..] = arguments else {
        return io::ErrorKind::InvalidInput.into();
    };
    // The kernel ends the command with its warden, also when no process is left that could.
    #[cfg(target_os = "linux")]
    if let Err(error) =
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
    {
        return error.into();
    }
    let warden = warden
        .to_str()
        .and_then(|id| Pid::from_raw(id.parse().ok()?));
    if getppid() != warden {
        // It ended before that.
        return io::ErrorKind::BrokenPipe.into();
    }
    Command::new(command).args(rest).exec()
}
