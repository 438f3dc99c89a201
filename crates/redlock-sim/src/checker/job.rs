use std::collections::BTreeSet;

use crate::Violation;

/// What a checker knows of a job.
#[derive(Debug, Default)]
pub(super) struct Job {
    /// The ticks that were started.
    started: BTreeSet<u64>,
    /// The ticks that nodes were asked to remember.
    committed: BTreeSet<u64>,
    /// The ticks of which somebody knows that their own claim did not win them.
    not_started: BTreeSet<u64>,
    /// The newest tick that was started when nodes forget nothing any more.
    durable: Option<u64>,
}

impl Job {
    /// Nodes are asked to remember a tick.
    pub(super) fn commit(&mut self, tick: u64) {
        self.committed.insert(tick);
    }

    /// Somebody knows that their own claim of a tick did not win it.
    pub(super) fn refuse(&mut self, tick: u64) {
        self.not_started.insert(tick);
    }

    /// A tick that nodes were asked to remember, and of which nobody knows what became of it.
    pub(super) fn lost(&self, job: usize) -> Option<Violation> {
        let mut asked = self.committed.difference(&self.started);
        let tick = *asked.find(|tick| !self.not_started.contains(tick))?;
        Some(Violation::TickLost { job, tick })
    }

    /// A majority remembers so much, and no more.
    pub(super) fn remember(&self, job: usize, watermark: u64) -> Option<Violation> {
        let tick = self.durable.filter(|tick| *tick > watermark)?;
        Some(Violation::NotRemembered { job, tick })
    }

    /// A tick is started.
    pub(super) fn start(&mut self, job: usize, tick: u64, is_durable: bool) -> Option<Violation> {
        if is_durable {
            self.durable = self.durable.max(Some(tick));
        }
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
