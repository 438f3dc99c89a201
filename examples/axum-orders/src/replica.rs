//! A replica in a process of its own: the same program, started again.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::Stdio,
    thread,
    time::Duration,
};

use redlock_sandbox::Process;
use tokio::sync::mpsc;

use stage::BoxError;

use crate::server::LISTENING;

#[derive(Debug)]
pub(crate) struct Replica {
    pub(crate) url: String,
    process: Process,
}

impl Replica {
    /// Starts one, and waits until it listens.
    pub(crate) async fn start(
        database: &Path,
        environment: &[(&str, String)],
        flags: &[&str],
    ) -> Result<Self, BoxError> {
        let mut command = Process::command(std::env::current_exe()?);
        command
            .args(["serve", "--port", "0", "--database"])
            .arg(database)
            .args(flags)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdout(Stdio::piped());
        let mut process = Process::spawn(command)?;
        let output = process.take_stdout().ok_or("its output is piped")?;
        let (sender, mut lines) = mpsc::unbounded_channel();
        // To its end, so that the replica can always write.
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // Only the first lines are waited for.
                let _ = sender.send(line);
            }
        });
        let mut said = Vec::new();
        while let Some(line) = lines.recv().await {
            if let Some(url) = line.strip_prefix(LISTENING) {
                let url = url.to_owned();
                return Ok(Self { url, process });
            }
            said.push(line);
        }
        Err(format!("a replica did not start: {}", said.join("; ")).into())
    }

    /// Stops it in its tracks (SIGSTOP).
    pub(crate) fn freeze(&self) -> Result<(), BoxError> {
        Ok(self.process.freeze()?)
    }

    /// Lets it go on (SIGCONT).
    pub(crate) fn thaw(&self) -> Result<(), BoxError> {
        Ok(self.process.thaw()?)
    }

    /// Asks it to end (SIGTERM), which it must do in order.
    pub(crate) fn stop(mut self) -> Result<(), BoxError> {
        self.process.terminate()?;
        if self.process.finish(Duration::from_secs(10))?.success() {
            Ok(())
        } else {
            Err(format!("the replica at {} did not end in order", self.url).into())
        }
    }
}
