//! A worker in a process of its own, whose lines are part of the story.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
    thread,
    time::Duration,
};

use redlock_sandbox::Process;
use tokio::sync::mpsc;

use stage::{BoxError, Story};

use crate::worker::Worker;

#[derive(Debug)]
pub(crate) struct Child {
    name: &'static str,
    process: Process,
    lines: mpsc::UnboundedReceiver<String>,
    story: Story,
}

impl Child {
    /// Starts a worker over these nodes.
    pub(crate) fn start(
        name: &'static str,
        worker: &Worker,
        environment: &[(&str, String)],
        story: Story,
    ) -> Result<Self, BoxError> {
        let mut command = Process::command(std::env::current_exe()?);
        command
            .args(worker.to_arguments())
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdout(Stdio::piped());
        let mut process = Process::spawn(command)?;
        let output = process.take_stdout().ok_or("its output is piped")?;
        let (sender, lines) = mpsc::unbounded_channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // The receiver may be gone.
                let _ = sender.send(line);
            }
        });
        Ok(Self {
            name,
            process,
            lines,
            story,
        })
    }

    /// Passes on what the process says, up to a line that begins so.
    pub(crate) async fn until(&mut self, beginning: &str) -> Result<(), BoxError> {
        while let Some(line) = self.lines.recv().await {
            self.story.tell(format_args!("{} {line}", self.name));
            if line.starts_with(beginning) {
                return Ok(());
            }
        }
        Err(format!("{} ended before it {beginning}", self.name).into())
    }

    /// Stops it in its tracks (SIGSTOP).
    pub(crate) fn stop(&self) -> Result<(), BoxError> {
        Ok(self.process.freeze()?)
    }

    /// Lets it go on (SIGCONT).
    pub(crate) fn go_on(&self) -> Result<(), BoxError> {
        Ok(self.process.thaw()?)
    }

    /// Passes on the rest of what it says, and waits for its end.
    pub(crate) async fn finish(mut self) -> Result<(), BoxError> {
        while let Some(line) = self.lines.recv().await {
            self.story.tell(format_args!("{} {line}", self.name));
        }
        if self.process.finish(Duration::from_secs(1))?.success() {
            Ok(())
        } else {
            Err(format!("{} failed", self.name).into())
        }
    }
}
