//! A process that holds a lease once, and works meanwhile.

use std::{
    os::unix::process::CommandExt as _,
    process::{Child, Command, Stdio},
    time::Duration,
};

use redlock_tests::{Connect, now};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use crate::journal::Journal;

/// The work of one process of this program, under a lease.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Attempt {
    pub(crate) connect: Connect,
    pub(crate) key: String,
    pub(crate) journal: Journal,
    /// The name of the process.
    pub(crate) worker: String,
}

impl Attempt {
    /// Works, in a task of this process.
    pub(crate) fn work(&self) -> impl Future<Output = ()> + Send + use<> {
        self.journal.clone().work_in_a_task(self.worker.clone())
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
    /// Starts the command of an attempt.
    pub(crate) fn start(mut command: Command, worker: &str) -> Self {
        command.process_group(0);
        let command = command.stdin(Stdio::null()).stdout(Stdio::null());
        Self {
            child: command.spawn().expect("a process can be started"),
            worker: worker.to_owned(),
            since: now(),
        }
    }

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
