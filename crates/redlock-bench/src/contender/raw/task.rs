//! One task: acquire, release, and again under another key.

use std::{io::Write, time::Instant};

use super::super::{TTL, sample::Times};
use crate::meter;

/// What a task does next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Step {
    /// Acquires the next key.
    Acquire,
    /// Releases the key that it has, or may have here and there.
    Release,
}

/// A task and its votes.
#[derive(Debug)]
pub(super) struct Task {
    prefix: String,
    majority: usize,
    nodes: usize,
    /// How many keys there were.
    number: u64,
    key: String,
    owner: String,
    command: Vec<u8>,
    step: Step,
    /// The round whose answers count.
    round: u64,
    yes: usize,
    no: usize,
    started: Instant,
    /// When it had its lock; `None` if it did not get it.
    acquired: Option<Instant>,
}

impl Task {
    pub(super) fn new(prefix: String, majority: usize, nodes: usize) -> Self {
        Self {
            prefix,
            majority,
            nodes,
            number: 0,
            key: String::new(),
            owner: String::new(),
            command: Vec::new(),
            step: Step::Acquire,
            round: 0,
            yes: 0,
            no: 0,
            started: meter::now(),
            acquired: None,
        }
    }

    /// Begins a round, the first acquire by default, and returns its command.
    pub(super) fn begin(&mut self, step: Option<Step>, round: u64, script: &str) -> &[u8] {
        self.step = step.unwrap_or(Step::Acquire);
        (self.round, self.yes, self.no) = (round, 0, 0);
        self.command.clear();
        match self.step {
            Step::Acquire => {
                self.started = meter::now();
                self.number += 1;
                self.key = format!("{}:{}", self.prefix, self.number);
                self.owner = owner(round);
                let ttl = TTL.as_millis().to_string();
                let set = ["SET", &self.key, &self.owner, "NX", "PX", &ttl];
                encode(&mut self.command, &set);
            }
            Step::Release => {
                let delete = ["EVALSHA", script, "1", &self.key, &self.owner];
                encode(&mut self.command, &delete);
            }
        }
        &self.command
    }

    /// Counts an answer, and says if it decides the round.
    pub(super) fn answer(&mut self, round: u64, yes: bool) -> bool {
        if round != self.round {
            return false;
        }
        if yes {
            self.yes += 1;
            self.yes == self.majority
        } else {
            self.no += 1;
            // Not decided twice: a majority of the others cannot be there any more.
            self.no == self.nodes - self.majority + 1
        }
    }

    /// Returns what comes after the round that was decided.
    pub(super) fn step(&mut self, times: &mut Times) -> Step {
        let won = self.yes >= self.majority;
        match self.step {
            Step::Acquire => {
                self.acquired = won.then(meter::now);
                Step::Release
            }
            Step::Release => {
                match self.acquired.filter(|_| won) {
                    Some(acquired) => times.add(self.started, acquired, meter::now()),
                    None => times.fail(),
                }
                Step::Acquire
            }
        }
    }
}

/// Makes a unique owner from a number, spread as random ones are.
fn owner(number: u64) -> String {
    let spread = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!("{spread:016x}{number:016x}")
}

/// Writes a command as nodes read it.
fn encode(output: &mut Vec<u8>, arguments: &[&str]) {
    // Writing to memory does not fail.
    let _ = write!(output, "*{}\r\n", arguments.len());
    for argument in arguments {
        let _ = write!(output, "${}\r\n{argument}\r\n", argument.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task() -> Task {
        Task::new("k".to_owned(), 3, 5)
    }

    #[test]
    fn the_third_yes_of_five_decides_and_late_answers_do_not_count() {
        let mut task = task();
        task.begin(None, 7, "hash");
        assert!(!task.answer(7, true));
        assert!(!task.answer(6, true), "an answer to an older round");
        assert!(!task.answer(7, false));
        assert!(!task.answer(7, true));
        assert!(task.answer(7, true));
        assert!(!task.answer(7, true), "decided once");
        assert_eq!(task.step(&mut Times::default()), Step::Release);
    }

    #[test]
    fn a_majority_of_noes_decides_too_and_what_was_granted_is_released() {
        let mut task = task();
        task.begin(None, 1, "hash");
        assert!(!task.answer(1, false));
        assert!(!task.answer(1, false));
        assert!(task.answer(1, false));
        assert_eq!(task.step(&mut Times::default()), Step::Release);
        assert!(task.acquired.is_none());
    }

    #[test]
    fn commands_are_plain() {
        let mut task = task();
        let set = String::from_utf8_lossy(task.begin(None, 1, "hash")).into_owned();
        assert_eq!(
            set,
            "*6\r\n$3\r\nSET\r\n$3\r\nk:1\r\n$32\r\n9e3779b97f4a7c150000000000000001\r\n$2\r\nNX\r\n$2\r\nPX\r\n$5\r\n30000\r\n"
        );
        let delete = task.begin(Some(Step::Release), 2, "hash");
        assert!(
            delete.starts_with(b"*5\r\n$7\r\nEVALSHA\r\n$4\r\nhash\r\n$1\r\n1\r\n$3\r\nk:1\r\n")
        );
    }
}
