//! *Raw*: what a perfect ordinary client could do, and what the others are compared with.
//!
//! One thread, non-blocking sockets and the system's poll, no runtime.
//! It sends `SET key owner NX PX ttl` to all nodes, then a script that compares and deletes, one of each per lock.
//! It goes on at the third of five answers, and reads the late ones when they come, the last ones after the sample.
//! Commands of several tasks that are ready at once leave in one write per node.

mod connection;
mod task;

use std::{io, process, time::Duration};

use mio::{Events, Poll};
use redlock_sandbox::command;

use self::{
    connection::{Connection, Ticket},
    task::{Step, Task},
};
use super::{
    Client, Outcome, Workload,
    sample::{Sample, Times},
};
use crate::{
    failed::{Failed, Result},
    meter,
};

/// Deletes a key if it has an owner.
pub(super) const COMPARE_AND_DELETE: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end";

/// The loop.
pub(super) struct Raw {
    poll: Poll,
    events: Events,
    nodes: Vec<Connection>,
    /// The hash of the script.
    script: String,
    /// How many rounds were sent: each asks all nodes once.
    rounds: u64,
}

impl Raw {
    pub(super) fn connect(urls: &[String]) -> Result<Self> {
        let poll = Poll::new()?;
        let script = load(urls, COMPARE_AND_DELETE)?;
        let nodes = urls.iter().enumerate();
        let nodes = nodes.map(|(index, url)| Connection::open(address(url)?, index, &poll));
        Ok(Self {
            nodes: nodes.collect::<Result<_>>()?,
            poll,
            events: Events::with_capacity(64),
            script,
            rounds: 0,
        })
    }

    fn pairs(&mut self, tasks: usize, length: Duration) -> Result<Outcome> {
        let majority = self.nodes.len() / 2 + 1;
        let mut tasks: Vec<_> = (0..tasks)
            .map(|index| {
                let prefix = format!("bench:{}:{}:{index}", process::id(), self.rounds);
                Task::new(prefix, majority, self.nodes.len())
            })
            .collect();
        let mut times = Times::default();
        let sample = Sample::start();
        let until = meter::now() + length;
        let mut running = tasks.len();
        for index in 0..tasks.len() {
            self.send(&mut tasks, index, None);
        }
        while running > 0 {
            let mut decided = Vec::new();
            self.turn(GIVE_UP, |ticket, yes| {
                if let Some(task) = tasks.get_mut(ticket.task)
                    && task.answer(ticket.round, yes)
                {
                    decided.push(ticket.task);
                }
            })?;
            if decided.is_empty() && meter::now() > until + GIVE_UP {
                return Err(Failed("raw: the nodes do not answer".to_owned()));
            }
            for index in decided {
                match tasks[index].step(&mut times) {
                    Step::Acquire if meter::now() >= until => running -= 1,
                    step => self.send(&mut tasks, index, Some(step)),
                }
            }
        }
        let outcome = sample.end(times);
        // What the nodes still do for this sample is theirs, and not the next one's.
        self.settle()?;
        Ok(outcome)
    }

    /// Sends the next round of a task to all nodes.
    fn send(&mut self, tasks: &mut [Task], index: usize, step: Option<Step>) {
        self.rounds += 1;
        let ticket = Ticket {
            task: index,
            round: self.rounds,
        };
        let command = tasks[index].begin(step, self.rounds, &self.script);
        for node in &mut self.nodes {
            node.send(ticket, command);
        }
    }

    /// Writes what there is to write, waits for answers, and tells each with its ticket.
    fn turn(&mut self, limit: Duration, mut on: impl FnMut(Ticket, bool)) -> Result<()> {
        for node in &mut self.nodes {
            node.flush()?;
        }
        match self.poll.poll(&mut self.events, Some(limit)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            outcome => outcome?,
        }
        for event in &self.events {
            let node = &mut self.nodes[event.token().0];
            if event.is_writable() {
                node.unblock();
            }
            if event.is_readable() {
                node.read(&mut on)?;
            }
        }
        Ok(())
    }

    /// Reads late answers until none is missing, or none comes for a while: a node may be frozen.
    fn settle(&mut self) -> Result<()> {
        while self.nodes.iter().any(Connection::is_waiting) {
            let before = meter::now();
            self.turn(QUIET, |_, _| ())?;
            if self.events.is_empty() && before.elapsed() >= QUIET {
                break;
            }
        }
        Ok(())
    }
}

impl Client for Raw {
    fn run(&mut self, workload: &Workload) -> Result<Outcome> {
        match *workload {
            Workload::Pairs { tasks, length } => self.pairs(tasks, length),
            ref other => Err(Failed(format!("raw knows pairs only, and not: {other:?}"))),
        }
    }
}

/// Hands a script to all nodes, and returns the hash to call it by.
pub(super) fn load(urls: &[String], script: &str) -> Result<String> {
    let mut hash = String::new();
    for url in urls {
        let answer = command(address(url)?, &["SCRIPT", "LOAD", script])?;
        answer.as_text().unwrap_or_default().clone_into(&mut hash);
    }
    Ok(hash)
}

fn address(url: &str) -> Result<std::net::SocketAddr> {
    Ok(url.strip_prefix("redis://").unwrap_or(url).parse()?)
}

/// How long nodes may take to answer.
const GIVE_UP: Duration = Duration::from_secs(5);

/// How long without an answer means that none comes.
const QUIET: Duration = Duration::from_millis(250);
