//! Commands that the command runs.

use std::{ffi::OsStr, io, os::unix::process::ExitStatusExt};

use tokio::process::Command;

use crate::exit::{Exit, Failure};

/// Runs a command to its end, and returns its exit code as one of ours: as shells have it, 126 and 127 if it cannot be
/// started, and 128 and the signal that ended it.
///
/// It gets the signals of the terminal itself.
/// If this future is dropped, it is killed.
pub(crate) async fn run(mut command: Command, program: &OsStr) -> Result<Exit, Failure> {
    command.kill_on_drop(true);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Ok(not_started(program, &error)),
    };
    let status = child.wait().await;
    let status = status.map_err(|error| {
        Failure::wrong(format!(
            "{} cannot be waited for: {error}",
            program.display()
        ))
    })?;
    let signal = status.signal().and_then(|signal| u8::try_from(signal).ok());
    Ok(match (status.code(), signal) {
        (Some(code), _) => Exit::Child(u8::try_from(code).unwrap_or(u8::MAX)),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Wrong,
    })
}

fn not_started(program: &OsStr, error: &io::Error) -> Exit {
    use std::io::Write;
    // Nobody may be left to read it.
    drop(writeln!(
        io::stderr(),
        "redlock: {} cannot be started: {error}",
        program.display()
    ));
    Exit::Child(if error.kind() == io::ErrorKind::NotFound {
        127
    } else {
        126
    })
}
