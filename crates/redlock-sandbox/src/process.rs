//! A child process that never outlives us.

use std::{
    ffi::OsStr,
    io::{self, Write},
    os::unix::process::CommandExt,
    process::{Child, ChildStdout, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::watchdog::Watchdog;

/// A child process that never outlives the process that started it.
///
/// Dropping it kills the child.
/// If this process ends without a drop, a watchdog kills the child: a shell that reads from a pipe of this process and
/// wakes when the pipe breaks.
/// The program itself starts only after its watchdog is in place.
/// The watchdog is ended before the program is killed and its process id becomes free for other processes.
///
/// Signals go to one process, by its positive id, and only until its end has been waited for.
#[derive(Debug)]
pub struct Process {
    child: Child,
    watchdog: Watchdog,
    // invariant: the id of `child`, above 1; it is not reused before `child` is waited for, and
    // only `kill`, `finish` and `drop`, which are the end of this value's use of it, wait.
    pid: Pid,
    status: Option<ExitStatus>,
}

impl Process {
    /// Returns a command for `program` that [`Process::spawn`] can start.
    ///
    /// The caller sets arguments, environment, folder and output.
    /// The standard input is empty.
    pub fn command(program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-c", GATE, "redlock-sandbox-gate"])
            .arg(program);
        command
    }

    /// Starts `command`, which must come from [`Process::command`].
    ///
    /// The process has a group of its own, so Ctrl-C at a terminal does not reach it.
    ///
    /// # Errors
    ///
    /// The system's error, if a shell cannot be started.
    /// A program that cannot be started ends with status 126 or 127, and writes the reason to its standard error.
    pub fn spawn(mut command: Command) -> io::Result<Self> {
        let mut child = command.stdin(Stdio::piped()).process_group(0).spawn()?;
        let gate = child.stdin.take();
        let pid = Pid::from_child(&child);
        let watchdog = match Watchdog::over(pid) {
            Ok(watchdog) => watchdog,
            Err(error) => {
                // The gate is still shut, so what ends here is a shell that did nothing yet.
                child.kill()?;
                child.wait()?;
                return Err(error);
            }
        };
        let process = Self {
            child,
            watchdog,
            pid,
            status: None,
        };
        if let Some(mut gate) = gate {
            gate.write_all(b"\n")?;
        }
        Ok(process)
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Returns the standard output, if the command piped it, for the first caller.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Returns whether the process runs; a frozen process runs, a process that has ended does not.
    pub fn is_running(&self) -> bool {
        // The id stays reserved: looking does not reap.
        self.status.is_none()
            && self
                .peek(WaitIdOptions::EXITED | WaitIdOptions::NOHANG)
                .is_ok_and(|exited| !exited)
    }

    /// Stops the process, as SIGSTOP does, and returns once it has stopped.
    ///
    /// # Errors
    ///
    /// If the process has ended.
    pub fn freeze(&self) -> io::Result<()> {
        self.signal(Signal::STOP)?;
        self.peek(WaitIdOptions::STOPPED | WaitIdOptions::EXITED)?;
        self.running()
    }

    /// Lets a frozen process continue.
    ///
    /// # Errors
    ///
    /// If the process has ended.
    pub fn thaw(&self) -> io::Result<()> {
        self.signal(Signal::CONT)
    }

    /// Asks the process to end, as SIGTERM does; [`Process::finish`] waits for it.
    ///
    /// # Errors
    ///
    /// If the process has ended.
    pub fn terminate(&self) -> io::Result<()> {
        self.signal(Signal::TERM)
    }

    /// Waits for the process to end by itself, up to `limit`.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::TimedOut`] if the process still runs then; it is left running.
    #[expect(
        clippy::disallowed_methods,
        reason = "a patience limit, not the deadline of a lease"
    )]
    pub fn finish(&mut self, limit: Duration) -> io::Result<ExitStatus> {
        let started = Instant::now();
        while self.is_running() {
            if started.elapsed() >= limit {
                return Err(io::ErrorKind::TimedOut.into());
            }
            thread::sleep(POLL);
        }
        self.reap()
    }

    /// Kills the process, as SIGKILL does, and waits for its end; a process that has already ended is no error.
    ///
    /// # Errors
    ///
    /// The system's error, when it refuses the signal.
    pub fn kill(&mut self) -> io::Result<ExitStatus> {
        self.reap()
    }

    /// Ends the watchdog, then the process; the other order could hit a stranger with its id.
    fn reap(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        let unwatched = self.watchdog.end();
        self.child.kill()?;
        let status = self.child.wait()?;
        self.status = Some(status);
        unwatched.map(|()| status)
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        self.running()?;
        kill_process(self.pid, signal)?;
        Ok(())
    }

    fn running(&self) -> io::Result<()> {
        if self.is_running() {
            Ok(())
        } else {
            Err(io::Error::new(
                io::ErrorKind::NotFound,
                "the process has ended",
            ))
        }
    }

    /// Returns whether the process is in one of the states `options` asks for, without reaping it.
    fn peek(&self, options: WaitIdOptions) -> io::Result<bool> {
        let seen = waitid(WaitId::Pid(self.pid), options | WaitIdOptions::NOWAIT)?;
        Ok(seen.is_some())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // There is no caller to tell of an error; a process that cannot be killed has already ended.
        let _ = self.reap();
    }
}

/// Waits for the line that says the watchdog is in place, then becomes the program.
///
/// Without it, a process killed between the two starts would leave a server behind.
const GATE: &str = r#"read -r _ && exec "$@" </dev/null"#;

const POLL: Duration = Duration::from_millis(2);
