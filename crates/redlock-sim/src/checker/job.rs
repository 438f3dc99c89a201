use std::collections::BTreeSet;

use crate::Violation;

/// What a checker knows of a job.
#[derive(Debug, Default)]
pub(super) struct Job {
    /// The ticks that were started.
    started: BTreeSet<u64>,
    /// The ticks that nodes were asked to remember.
    committed: BTreeSet<u64>,
}

impl Job {
    /// Nodes are asked to remember a tick.
    pub(super) fn commit(&mut self, tick: u64) {
        self.committed.insert(tick);
    }

    /// A tick is started.
    pub(super) fn start(&mut self, job: usize, tick: u64) -> Option<Violation> {
        let newest = self.started.last().copied();
        if !self.started.insert(tick) {
            return Some(Violation::StartedAgain { job, tick });
        }
        let after = newest.filter(|newest| *newest > tick)?;
        Some(Violation::StartedAfter { job, tick, after })
    }

    /// Somebody is told that a tick, or a later one, was claimed before.
    pub(super) fn pass(&self, job: usize, tick: u64, watermark: u64) -> Option<Violation> {
        let is_known = watermark >= tick && self.committed.contains(&watermark);
        (!is_known).then_some(Violation::NeverClaimed { job, watermark })
    }
}
