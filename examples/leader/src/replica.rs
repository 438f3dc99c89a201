//! The replicas as processes, and what they say.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader},
    process::Stdio,
    thread,
    time::Duration,
};

use redlock_sandbox::Process;
use tokio::{sync::mpsc, time::Instant};

use crate::{BoxError, candidate::LEADS};

/// The processes, which end with this value.
pub(crate) struct Replicas {
    processes: BTreeMap<String, Process>,
    lines: mpsc::UnboundedReceiver<(String, String)>,
    /// When something was done to the last leader.
    since: Instant,
}

/// A term, as its leader says.
pub(crate) struct NextTerm {
    pub(crate) leader: String,
    pub(crate) number: u64,
    /// How long after what was done to the leader before it.
    pub(crate) after: Duration,
}

impl Replicas {
    pub(crate) fn start<const N: usize>(names: [&str; N], nodes: &str) -> Result<Self, BoxError> {
        let (sender, lines) = mpsc::unbounded_channel();
        let mut processes = BTreeMap::new();
        for name in names {
            let mut command = Process::command(std::env::current_exe()?);
            command
                .args(["candidate", name, nodes])
                .stdout(Stdio::piped());
            let mut process = Process::spawn(command)?;
            let output = process.take_stdout().ok_or("its output is piped")?;
            let (sender, name) = (sender.clone(), name.to_owned());
            processes.insert(name.clone(), process);
            thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    println!("{name} {line}");
                    // The receiver may be gone.
                    let _ = sender.send((name.clone(), line));
                }
            });
        }
        Ok(Self {
            processes,
            lines,
            since: Instant::now(),
        })
    }

    /// Waits until another term begins.
    pub(crate) async fn next_term(&mut self) -> Result<NextTerm, BoxError> {
        loop {
            let (leader, line) = self.lines.recv().await.ok_or("all replicas have ended")?;
            if let Some(number) = line.strip_prefix(LEADS) {
                return Ok(NextTerm {
                    leader,
                    number: number.parse()?,
                    after: self.since.elapsed(),
                });
            }
        }
    }

    /// Waits until a replica says this, before it leads again.
    pub(crate) async fn hears(&mut self, name: &str, what: &str) -> Result<(), BoxError> {
        loop {
            let (of, line) = self.lines.recv().await.ok_or("all replicas have ended")?;
            if of == name {
                return if line == what {
                    Ok(())
                } else {
                    Err(format!("{name} {line}, and not: {what}").into())
                };
            }
        }
    }

    pub(crate) fn kill(&mut self, name: &str) -> Result<(), BoxError> {
        self.since = Instant::now();
        let mut process = self.processes.remove(name).ok_or("it runs")?;
        process.kill()?;
        Ok(())
    }

    pub(crate) fn freeze(&mut self, name: &str) -> Result<(), BoxError> {
        self.since = Instant::now();
        Ok(self.of(name)?.freeze()?)
    }

    pub(crate) fn thaw(&self, name: &str) -> Result<(), BoxError> {
        Ok(self.of(name)?.thaw()?)
    }

    pub(crate) fn terminate(&mut self, name: &str) -> Result<(), BoxError> {
        self.since = Instant::now();
        Ok(self.of(name)?.terminate()?)
    }

    fn of(&self, name: &str) -> Result<&Process, BoxError> {
        Ok(self.processes.get(name).ok_or("it runs")?)
    }
}
