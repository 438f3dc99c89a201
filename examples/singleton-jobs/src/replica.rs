//! A replica in a process of its own: the same program, started again.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
    thread,
    time::Duration,
};

use redlock_sandbox::Process;
use tokio::sync::mpsc::UnboundedSender;

use stage::BoxError;

use crate::line::Line;

/// What a replica said, by its number; `None` is the end of it.
pub(crate) type Said = (usize, Option<Line>);

#[derive(Debug)]
pub(crate) struct Replica {
    number: usize,
    process: Process,
}

impl Replica {
    /// Starts one, whose lines go to `said`.
    pub(crate) fn start(
        number: usize,
        environment: &[(&str, String)],
        flags: &[&str],
        said: UnboundedSender<Said>,
    ) -> Result<Self, BoxError> {
        let mut command = Process::command(std::env::current_exe()?);
        command
            .args(["replica", &format!("replica-{number}")])
            .args(flags)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdout(Stdio::piped());
        let mut process = Process::spawn(command)?;
        let output = process.take_stdout().ok_or("its output is piped")?;
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // The receiver may be gone. A line of another form is an error message, to be shown.
                match Line::parse(&line) {
                    Some(line) => drop(said.send((number, Some(line)))),
                    None => eprintln!("replica {number}: {line}"),
                }
            }
            let _ = said.send((number, None));
        });
        Ok(Self { number, process })
    }

    /// Stops it in its tracks (SIGSTOP).
    pub(crate) fn freeze(&self) -> Result<(), BoxError> {
        Ok(self.process.freeze()?)
    }

    /// Lets it go on (SIGCONT).
    pub(crate) fn thaw(&self) -> Result<(), BoxError> {
        Ok(self.process.thaw()?)
    }

    /// Ends it without a word (SIGKILL).
    pub(crate) fn kill(&mut self) -> Result<(), BoxError> {
        self.process.kill()?;
        Ok(())
    }

    /// Asks it to end (SIGTERM).
    pub(crate) fn terminate(&self) -> Result<(), BoxError> {
        Ok(self.process.terminate()?)
    }

    /// Waits for its end, which must be in order.
    pub(crate) fn finish(&mut self) -> Result<(), BoxError> {
        if self.process.finish(Duration::from_secs(2))?.success() {
            Ok(())
        } else {
            Err(format!("replica {} did not end in order", self.number).into())
        }
    }
}
