//! Commands that the command runs.

use std::{ffi::OsStr, io, os::unix::process::ExitStatusExt, process::ExitStatus, time::Duration};

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use crate::{
    context::Context,
    exit::{Exit, Failure},
    signals,
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
        Err(error) => return Ok(not_started(program, &error)),
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

/// A command that is waited for; if it is not any more, the context ends it.
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

/// How long a command may take to end that was asked to.
const PATIENCE: Duration = Duration::from_secs(10);
