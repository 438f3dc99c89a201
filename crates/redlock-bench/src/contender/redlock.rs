//! The crate `redlock`: it blocks, and connects to each node for each command.

use std::{process, time::Duration};

use ::redlock::RedLock;

use super::{
    Client, Outcome, TTL, Workload,
    sample::{Sample, Times},
};
use crate::{
    failed::{Failed, Result},
    meter,
};

/// The peer, on one thread.
pub(super) struct Redlock {
    locks: RedLock,
    /// How many keys there were.
    used: u64,
}

impl Redlock {
    pub(super) fn new(nodes: &[String]) -> Self {
        Self {
            locks: RedLock::new(nodes.iter().map(String::as_str).collect()),
            used: 0,
        }
    }

    fn pairs(&mut self, length: Duration) -> Outcome {
        let sample = Sample::start();
        let mut times = Times::default();
        let until = meter::now() + length;
        let ttl = usize::try_from(TTL.as_millis()).unwrap_or(usize::MAX);
        loop {
            self.used += 1;
            let key = format!("bench:{}:{}", process::id(), self.used);
            let started = meter::now();
            if started >= until {
                break;
            }
            let Ok(Some(lock)) = self.locks.lock(key.as_bytes(), ttl) else {
                times.fail();
                continue;
            };
            let acquired = meter::now();
            // It does not say how that went.
            self.locks.unlock(&lock);
            times.add(started, acquired, meter::now());
        }
        sample.end(times)
    }
}

impl Client for Redlock {
    fn run(&mut self, workload: &Workload) -> Result<Outcome> {
        match *workload {
            Workload::Pairs { tasks: 1, length } => Ok(self.pairs(length)),
            ref other => Err(Failed(format!("redlock blocks, so it cannot: {other:?}"))),
        }
    }
}
