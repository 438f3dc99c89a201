use std::time::{Duration, Instant};

use redlock_core::deadpool_redis::redis::{cmd, from_redis_value};

use super::Probe;
use crate::clock;

/// What a node's wall clock showed, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockReading {
    /// In seconds since 1970.
    pub(crate) shown: f64,
    pub(crate) at: Instant,
    /// By how much that may be wrong.
    pub(crate) give_or_take: Duration,
    /// What this machine's clock showed then.
    wall: Duration,
}

impl ClockReading {
    /// Returns by how many seconds it was ahead of this machine's.
    pub(crate) fn ahead(&self) -> f64 {
        self.shown - self.wall.as_secs_f64()
    }
}

impl Probe {
    /// Reads the node's clock several times, and returns the reading whose moment is known best.
    pub(crate) async fn read_clock(&mut self, times: usize) -> Option<ClockReading> {
        // `TIME` is a right of its own; every client may ask for `INFO`.
        let mut command = cmd("INFO");
        command.arg("server");
        let mut best: Option<ClockReading> = None;
        for _ in 0..times {
            let asked = clock::now();
            let answer = self.ask(&command).await.ok()?;
            let half = asked.elapsed() / 2;
            let text: String = from_redis_value(answer).ok()?;
            let micros = text
                .lines()
                .find_map(|line| line.strip_prefix("server_time_usec:"));
            let micros: f64 = micros?.trim().parse().ok()?;
            let reading = ClockReading {
                shown: micros / 1e6,
                at: asked + half,
                give_or_take: half,
                wall: clock::wall() - half,
            };
            if best.is_none_or(|best| half < best.give_or_take) {
                best = Some(reading);
            }
        }
        best
    }
}
