//! Commands that the command runs.

use std::{ffi::OsStr, io, os::unix::process::ExitStatusExt, process::ExitStatus};

use tokio::process::{Child, Command};

use crate::{
    context::Context,
    exit::{Exit, Failure},
};

/// Runs a command to its end, and returns its exit code as one of ours: as shells have it, 126 and 127 if it cannot be
/// started, and 128 and the signal that ended it.
///
/// It gets the signals of the terminal itself.
/// If this future is dropped, the context asks it to end.
pub(crate) async fn run(
    mut command: Command,
    program: &OsStr,
    context: &Context,
) -> Result<Exit, Failure> {
    command.kill_on_drop(true);
    let child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Ok(not_started(program, &error, context)),
    };
    let mut attended = Attended {
        child: Some(child),
        context,
    };
    let status = attended.wait().await.map_err(|error| {
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

/// A command that a verb waits for; if the wait is dropped, the context ends the command.
struct Attended<'a> {
    child: Option<Child>,
    context: &'a Context,
}

impl Attended<'_> {
    async fn wait(&mut self) -> io::Result<ExitStatus> {
        match &mut self.child {
            Some(child) => child.wait().await,
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

impl Drop for Attended<'_> {
    fn drop(&mut self) {
        let left = self.child.take();
        // One that was waited for has no id any more.
        if let Some(child) = left.filter(|child| child.id().is_some()) {
            self.context.leave(child);
        }
    }
}

fn not_started(program: &OsStr, error: &io::Error, context: &Context) -> Exit {
    let message = format!("{} cannot be started: {error}", program.display());
    // Standard error may be closed.
    drop(context.output.complain(&message));
    Exit::Child(if error.kind() == io::ErrorKind::NotFound {
        127
    } else {
        126
    })
}
