//! The part that all verbs share: the output, the programs that they run, and the ends of these with the command.

pub(crate) mod signals;

use std::{
    ffi::OsStr,
    io,
    os::unix::process::ExitStatusExt,
    process::ExitStatus,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use redlock_core::{BuildError, Redlock, RedlockBuilder};
use redlock_sandbox::ServerSet;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use crate::{
    exit::{CommandError, CommandResult, Exit},
    output::Output,
};

/// What a verb works with.
#[derive(Debug)]
pub(crate) struct CommandContext {
    pub(crate) output: Output,
    clients: Mutex<Vec<Redlock>>,
    /// Commands that still run, but that no verb waits for any longer.
    children: Mutex<Vec<Child>>,
    /// Servers that run as long as something may use them.
    servers: Mutex<Vec<ServerSet>>,
}

impl CommandContext {
    pub(crate) const fn new(output: Output) -> Self {
        Self {
            output,
            clients: Mutex::new(Vec::new()),
            children: Mutex::new(Vec::new()),
            servers: Mutex::new(Vec::new()),
        }
    }

    /// Starts a client that is closed when the command ends, however it ends.
    pub(crate) async fn client(&self, builder: RedlockBuilder) -> Result<Redlock, BuildError> {
        let client = builder.build().await?;
        locked(&self.clients).push(client.clone());
        Ok(client)
    }

    /// Takes over servers, which run until all else has ended.
    pub(crate) fn serve(&self, servers: Vec<ServerSet>) {
        locked(&self.servers).extend(servers);
    }

    /// Takes over a command that no verb waits for any longer, until `close` ends it.
    pub(crate) fn leave(&self, child: Child) {
        locked(&self.children).push(child);
    }

    /// Ends the commands from `leave`, waits until the clients have released all locks, and ends the servers last.
    pub(crate) async fn close(&self) {
        let children = std::mem::take(&mut *locked(&self.children));
        for child in children {
            end(child).await;
        }
        let clients = std::mem::take(&mut *locked(&self.clients));
        for client in clients {
            client.close().await;
        }
        drop(std::mem::take(&mut *locked(&self.servers)));
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks a command to end, and kills it if it has not ended after `PATIENCE`, or when a signal interrupts the wait.
async fn end(mut child: Child) {
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

/// Runs a command to its end, and returns its exit code as one of ours: as shells have it, 126 and 127 if it cannot be
/// started, and 128 and the signal that ended it.
///
/// It gets the signals of the terminal itself.
/// If this future is dropped, the context asks it to end.
pub(crate) async fn run_program(
    mut command: Command,
    program: &OsStr,
    context: &CommandContext,
) -> CommandResult {
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
        CommandError::wrong(format!(
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
    context: &'a CommandContext,
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

fn not_started(program: &OsStr, error: &io::Error, context: &CommandContext) -> Exit {
    let message = format!("{} cannot be started: {error}", program.display());
    // Standard error may be closed.
    drop(context.output.complain(&message));
    Exit::Child(if error.kind() == io::ErrorKind::NotFound {
        127
    } else {
        126
    })
}

/// How long a command may take to end after the request to end.
const PATIENCE: Duration = Duration::from_secs(10);
