//! What happened between two moments.

use std::time::{Duration, Instant};

use super::{Outcome, Spread};
use crate::meter;

/// The beginning of a sample.
#[derive(Debug)]
pub(super) struct Sample {
    wall: Instant,
    cpu: Duration,
}

impl Sample {
    pub(super) fn start() -> Self {
        let cpu = meter::cpu();
        Self {
            wall: meter::now(),
            cpu,
        }
    }

    /// Ends a sample in which these pairs were made.
    pub(super) fn end(self, times: Times) -> Outcome {
        let outcome = self.end_of(times.pairs.len() as u64, times.failed);
        Outcome {
            pair: Spread::of(times.pairs),
            acquire: Spread::of(times.acquires),
            ..outcome
        }
    }

    /// Ends a sample in which so much was done.
    pub(super) fn end_of(self, done: u64, failed: u64) -> Outcome {
        Outcome {
            wall: self.wall.elapsed(),
            cpu: meter::cpu() - self.cpu,
            memory: meter::memory(),
            done,
            failed,
            ..Outcome::default()
        }
    }
}

/// How long things took.
#[derive(Debug, Default)]
pub(super) struct Times {
    acquires: Vec<Duration>,
    pairs: Vec<Duration>,
    failed: u64,
}

impl Times {
    /// Adds a pair by the moments at which it began, had its lock, and ended.
    pub(super) fn add(&mut self, started: Instant, acquired: Instant, ended: Instant) {
        self.acquires.push(acquired - started);
        self.pairs.push(ended - started);
    }

    /// Adds a pair that failed.
    pub(super) fn fail(&mut self) {
        self.failed += 1;
    }

    pub(super) fn append(&mut self, mut other: Self) {
        self.acquires.append(&mut other.acquires);
        self.pairs.append(&mut other.pairs);
        self.failed += other.failed;
    }
}
