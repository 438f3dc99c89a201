//! A process that holds a lease once, and works meanwhile.

use std::{
    process::{Child, Command, ExitCode, Stdio},
    time::Duration,
};

use redlock_tests::{Connect, now};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use crate::{journal::Journal, surface::Surface};

/// The work of one process of this program.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Attempt {
    /// `None`: it is the command that `redlock run` and `elect` run.
    pub(crate) surface: Option<Surface>,
    pub(crate) connect: Connect,
    pub(crate) key: String,
    pub(crate) journal: Journal,
    /// The name of the process.
    pub(crate) worker: String,
}

impl Attempt {
    /// Returns the attempt that this process is, if it is none of the test's own.
    pub(crate) fn of_this_process() -> Option<Self> {
        let mut arguments = std::env::args().skip(1);
        let is_it = arguments.next().is_some_and(|first| first == ATTEMPT);
        let attempt = arguments.next().filter(|_| is_it)?;
        Some(serde_json::from_str(&attempt).expect("an attempt"))
    }

    pub(crate) fn arguments(&self) -> [String; 2] {
        let attempt = serde_json::to_string(self).expect("it is plain data");
        [ATTEMPT.to_owned(), attempt]
    }

    /// Returns the attempt of the command that a surface runs.
    pub(crate) fn as_work(&self) -> Self {
        Self {
            surface: None,
            ..self.clone()
        }
    }

    /// Works, in a task of this process.
    pub(crate) fn work(&self) -> impl Future<Output = ()> + Send + use<> {
        self.journal.clone().work_in_a_task(self.worker.clone())
    }

    /// Does what this process is for.
    pub(crate) fn run(self) -> ExitCode {
        match self.surface {
            None => self.journal.work(&self.worker),
            Some(surface) => {
                let runtime = tokio::runtime::Runtime::new().expect("a runtime");
                runtime.block_on(surface.hold(&self));
            }
        }
        ExitCode::SUCCESS
    }

    /// Starts it.
    pub(crate) fn start(self, surface: Surface) -> Running {
        let worker = self.worker.clone();
        let attempt = Self {
            surface: Some(surface),
            ..self
        };
        let mut command = surface.command(&attempt).unwrap_or_else(|| {
            let mut own = Command::new(std::env::current_exe().expect("it has a file"));
            own.args(attempt.arguments());
            own
        });
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let command = command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn().expect("a process can be started");
        Running {
            child,
            worker,
            since: now(),
        }
    }
}

/// An attempt that was started; it is killed with this value.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    pub(crate) worker: String,
    pub(crate) since: Duration,
}

impl Running {
    /// Waits for its end, which must be a good one.
    pub(crate) async fn finish(mut self, limit: Duration) -> Result<(), String> {
        let until = now() + limit;
        loop {
            match self.child.try_wait().expect("it is a child") {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(format!("{} ended with {status}", self.worker)),
                None if now() > until => {
                    return Err(format!("{} has not ended after {limit:?}", self.worker));
                }
                None => sleep(Duration::from_millis(5)).await,
            }
        }
    }

    /// Kills it, so that it can say nothing.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it was killed");
    }

    /// Gives it a fifth of the time that it would have, until what this returns is aborted.
    ///
    /// The command that it runs has a group of its own, and is not slower.
    pub(crate) fn slow_down(&self) -> tokio::task::JoinHandle<()> {
        let group = self.pid();
        #[expect(clippy::disallowed_methods, reason = "a test of its own")]
        tokio::spawn(async move {
            while kill_process_group(group, Signal::STOP).is_ok() {
                sleep(Duration::from_millis(40)).await;
                // It can be over by now.
                let _ = kill_process_group(group, Signal::CONT);
                sleep(Duration::from_millis(10)).await;
            }
        })
    }

    fn pid(&self) -> Pid {
        let pid = i32::try_from(self.child.id()).expect("it is a number of a process");
        Pid::from_raw(pid).expect("it is not zero")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It can have ended, and then nothing is there to be killed.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = kill_process_group(self.pid(), Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

const ATTEMPT: &str = "--attempt";
