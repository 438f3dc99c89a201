//! The jobs of a world in which ticks are claimed.

use redlock_proto::Series;

use super::{MOST_KEYS, MS, Micros, SECOND, Setup, micros};
use crate::{Plan, random::Random};

/// Jobs that all have the same schedule; in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jobs {
    pub(crate) period: u64,
    pub(crate) early: u64,
    pub(crate) start_within: u64,
    /// By how much every other client thinks less of `early`.
    pub(crate) less: u64,
    /// Whether the wall clock of one client is an hour ahead.
    pub(crate) stray: bool,
    /// Whether every claimant wants runs to be settled that were cut short before a later tick starts.
    pub(crate) in_order: bool,
}

impl Setup {
    /// Locks jobs instead of keys; wall clocks differ by less than it takes for a tick to come too early or too
    /// late, but for one perhaps.
    pub(super) fn draw_jobs(&mut self, random: &mut Random, odd: &mut Random) {
        self.skew = random.pick(&[0, 10 * MS, 200 * MS]);
        self.jobs = Some(Jobs {
            period: random.pick(&[20, 60, 150]),
            early: random.pick(&[400, 1_000]),
            start_within: random.pick(&[900, 2_000, 60_000]),
            stray: random.chance(200),
            less: if self.plan.sets_all_clocks() {
                random.pick(&[0, 0, self.max_ttl / MS / 2])
            } else {
                0
            },
            in_order: self.plan != Plan::TicksBack && odd.chance(300),
        });
        self.series = JOBS[..self.keys.len()].into();
    }

    /// Returns by how much a client's wall clock is ahead besides, in microseconds.
    pub(crate) fn ahead(&self, client: usize) -> Micros {
        match self.jobs {
            Some(jobs) if jobs.stray && client == 0 => 3_600 * SECOND,
            _ => 0,
        }
    }

    /// Returns by how much the clock of a node may be set back in all: no tick that it may have forgotten seems later than
    /// its horizon then.
    pub(crate) fn set_back(&self) -> Micros {
        let less = self.jobs.map_or(0, |jobs| jobs.less * MS);
        micros(self.keyspace.quarantine().length()).saturating_sub(less)
    }
}

/// The key of the record in which each job is a series.
pub(crate) const RECORD: &str = "{sim}:jobs";

const JOBS: [Series; MOST_KEYS] = [
    Series::TICKS,
    Series::new('u'),
    Series::new('v'),
    Series::new('w'),
    Series::new('x'),
    Series::new('9'),
];
