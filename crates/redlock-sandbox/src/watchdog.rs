//! The watchdog: it ends a child when the process that started it dies.

use std::{
    io,
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
};

use rustix::process::Pid;

/// A shell that waits for the end of its standard input and then kills one process.
///
/// The other end of that pipe is ours alone, and the kernel closes it when this process ends,
/// even by SIGKILL.
/// Linux' parent-death signal is no way to do it: it can only be asked for between fork and exec,
/// which needs `unsafe`, and it follows the thread that forked rather than the process.
#[derive(Debug)]
pub(crate) struct Watchdog(Child);

impl Watchdog {
    /// Watches over `pid`, a child of this process that has not been waited for.
    pub(crate) fn over(pid: Pid) -> io::Result<Self> {
        let pid = pid.as_raw_nonzero().get();
        if pid <= 1 {
            return Err(io::Error::other(
                "a watchdog may only kill a process of its own starter",
            ));
        }
        Command::new("sh")
            .args(["-c", SCRIPT, "redlock-sandbox-watchdog"])
            .arg(pid.to_string())
            .stdin(Stdio::piped())
            // A reader of our output waits for every process that holds it to end.
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C at a terminal is sent to a whole process group and must not end the watchdog.
            .process_group(0)
            .spawn()
            .map(Self)
    }

    /// Ends the watchdog, so that it kills nothing any more.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        // `wait` closes the pipe first, which is the watchdog's cue: it is held until all is over.
        let pipe = self.0.stdin.take();
        self.0.kill()?;
        self.0.wait()?;
        drop(pipe);
        Ok(())
    }
}

const SCRIPT: &str = r#"read -r _; kill -s KILL "$1""#;
