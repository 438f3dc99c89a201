use std::{
    io::{BufRead, BufReader, Read},
    process::Stdio,
    time::Duration,
};

use redlock_sandbox::{Process, ProcessClock};
use serde::de::DeserializeOwned;

use crate::{Work, eventually};

/// A client in a process of its own, which ends with this value.
#[derive(Debug)]
pub struct ClientProcess(Process);

impl ClientProcess {
    /// Starts the client program at `program` and gives it `work`.
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    pub fn start(program: &str, work: &Work) -> Self {
        Self::start_at(program, work, None)
    }

    /// The same, with a wall clock of its own.
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    pub fn start_at(program: &str, work: &Work, clock: Option<&ProcessClock>) -> Self {
        let work = serde_json::to_string(work).expect("work is plain data");
        let mut command = Process::command(program);
        command.arg(work).stdout(Stdio::piped());
        if let Some(clock) = clock {
            clock.give_to(&mut command);
        }
        Self(Process::spawn(command).expect("the client program can be started"))
    }

    /// Its number, by which the history names it.
    pub fn id(&self) -> u32 {
        self.0.pid()
    }

    /// The first line of its output, or nothing if it ends before; it has no other report then.
    ///
    /// # Panics
    ///
    /// If the output is no text, or was read already.
    pub async fn first_line(&mut self) -> String {
        let output = self.0.take_stdout().expect("its output was not read yet");
        let read = move || {
            let mut line = String::new();
            let read = BufReader::new(output).read_line(&mut line);
            read.map(|_| line.trim_end().to_owned())
        };
        let line = tokio::task::spawn_blocking(read).await;
        line.expect("reading does not panic")
            .expect("its output is text")
    }

    /// Waits for its end; returns what it reports.
    ///
    /// # Panics
    ///
    /// If it fails, or does not end within `limit`.
    pub async fn finish<T: DeserializeOwned>(mut self, limit: Duration) -> T {
        let running = || self.0.is_running();
        eventually("the client process ends", limit, running, |running| {
            !running
        })
        .await;
        let mut report = String::new();
        let output = self.0.take_stdout();
        output
            .expect("its output is piped")
            .read_to_string(&mut report)
            .expect("its report is text");
        let status = self.0.finish(limit).expect("it has ended");
        assert!(status.success(), "the client process: {status}, {report}");
        serde_json::from_str(&report).unwrap_or_else(|error| panic!("{report}: {error}"))
    }

    /// Stops it in its tracks, whatever it is doing.
    pub fn freeze(&self) {
        self.0.freeze().expect("the client process runs");
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.0.thaw().expect("the client process runs");
    }

    /// Asks it to end.
    pub fn terminate(&self) {
        self.0.terminate().expect("the client process runs");
    }

    /// Kills it.
    pub fn kill(mut self) {
        self.0.kill().expect("the client process can be killed");
    }
}
