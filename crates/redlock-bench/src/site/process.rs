//! A contender's process.

use std::{
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::Duration,
};

use crate::{
    contender::{Outcome, READY, Workload},
    failed::{Failed, Result},
};

/// A program that can be a contender.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// What tables call it.
    pub(crate) name: String,
    /// Which client it is to be.
    pub(crate) client: String,
    pub(crate) path: PathBuf,
}

/// A contender in a process of its own, which ends with this value, and with this process.
#[derive(Debug)]
pub(crate) struct Contender {
    name: String,
    child: Child,
    /// Its end is the contender's.
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Contender {
    /// Starts `program` over nodes, and waits until it is connected.
    pub(crate) fn start(program: &Program, nodes: &[String]) -> Result<Self> {
        let mut child = Command::new(&program.path)
            .args(["contender", &program.client])
            .args(nodes)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (sender, lines) = mpsc::channel();
        if let Some(output) = child.stdout.take() {
            thread::spawn(move || {
                let lines = BufReader::new(output).lines();
                for line in lines.map_while(std::io::Result::ok) {
                    if sender.send(line).is_err() {
                        return;
                    }
                }
            });
        }
        let input = child.stdin.take();
        let contender = Self {
            name: program.name.clone(),
            child,
            input,
            lines,
        };
        match &*contender.line(PATIENCE)? {
            READY => Ok(contender),
            other => Err(contender.failed(&format!("said {other:?}"))),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Has it do something, and waits until it has.
    pub(crate) fn run(&mut self, workload: &Workload) -> Result<Outcome> {
        self.begin(workload)?;
        self.end(workload)
    }

    /// Has it do something.
    pub(crate) fn begin(&mut self, workload: &Workload) -> Result<()> {
        let line = serde_json::to_string(workload)?;
        let input = self.input.as_mut();
        let sent = input.map(|input| writeln!(input, "{line}").and_then(|()| input.flush()));
        match sent {
            Some(Ok(())) => Ok(()),
            _ => Err(self.failed("has ended")),
        }
    }

    /// Waits for the end of what it began to do.
    pub(crate) fn end(&mut self, workload: &Workload) -> Result<Outcome> {
        let line = self.line(workload.length() + PATIENCE)?;
        Ok(serde_json::from_str(&line)?)
    }

    fn line(&self, limit: Duration) -> Result<String> {
        let line = self.lines.recv_timeout(limit);
        line.map_err(|_| self.failed("does not answer"))
    }

    fn failed(&self, what: &str) -> Failed {
        Failed(format!("the contender {} {what}", self.name))
    }
}

impl Drop for Contender {
    fn drop(&mut self) {
        drop(self.input.take());
        // It may hang in a client; it has not been waited for, so the id is still its own.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How much longer than it should a contender may take.
const PATIENCE: Duration = Duration::from_secs(60);
