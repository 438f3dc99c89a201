use std::{
    collections::BTreeMap,
    num::NonZeroUsize,
    panic,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use crate::{Counters, Moment, Plan, Violation, run};

/// Many worlds, one for each seed.
#[derive(Clone, Copy, Debug)]
#[must_use = "a campaign does nothing until it is run"]
pub struct Campaign {
    plan: Plan,
    first: u64,
    seeds: u64,
    threads: NonZeroUsize,
    goes_on: bool,
}

/// A violation in one of the worlds.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Finding {
    /// The seed of the world.
    pub seed: u64,
    /// The number of worlds that were run, one after the other, until it was found.
    pub needed: u64,
    /// The time at which it was found.
    pub at: Moment,
    /// The violation.
    pub violation: Violation,
}

/// The report of a [`Campaign`].
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CampaignReport {
    /// The counts of all worlds.
    pub counters: Counters,
    /// The finding in the first world that had one.
    pub first: Option<Finding>,
    /// The number of worlds in which each kind of violation came first.
    pub found: BTreeMap<&'static str, u64>,
}

impl Campaign {
    /// Makes a campaign of worlds of this plan, with `seeds` seeds from `first` on.
    pub const fn new(plan: Plan, first: u64, seeds: u64) -> Self {
        Self {
            plan,
            first,
            seeds,
            threads: NonZeroUsize::MIN,
            goes_on: false,
        }
    }

    /// Sets how many worlds are run at once; one by default.
    ///
    /// The result of a seed does not depend on it.
    pub const fn threads(mut self, threads: NonZeroUsize) -> Self {
        self.threads = threads;
        self
    }

    /// Sets whether the campaign goes on after a violation; it does not by default.
    pub const fn going_on(mut self, goes_on: bool) -> Self {
        self.goes_on = goes_on;
        self
    }

    /// Runs the worlds.
    pub fn run(self) -> CampaignReport {
        let next = AtomicU64::new(0);
        let stop = AtomicU64::new(u64::MAX);
        let outcome = Mutex::new(CampaignReport::default());
        thread::scope(|scope| {
            for _ in 0..self.threads.get() {
                scope.spawn(|| {
                    let own = self.work(&next, &stop);
                    if let Ok(mut outcome) = outcome.lock() {
                        outcome.add(own);
                    }
                });
            }
        });
        outcome.into_inner().unwrap_or_default()
    }

    /// Takes one seed after the other; none after one that went wrong, but all before it.
    fn work(self, next: &AtomicU64, stop: &AtomicU64) -> CampaignReport {
        let mut outcome = CampaignReport::default();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            if place >= self.seeds || place > stop.load(Ordering::Relaxed) {
                return outcome;
            }
            let seed = self.first.wrapping_add(place);
            let ran = panic::catch_unwind(|| run(seed, self.plan, false));
            let violation = match ran {
                Ok(report) => {
                    outcome.counters += report.counters;
                    report.violations.into_iter().next()
                }
                Err(_) => Some((Moment::START, Violation::Panics)),
            };
            let Some((at, violation)) = violation else {
                continue;
            };
            *outcome.found.entry(violation.name()).or_default() += 1;
            let finding = Finding {
                seed,
                needed: place + 1,
                at,
                violation,
            };
            outcome.first.get_or_insert(finding);
            if !self.goes_on {
                stop.fetch_min(place, Ordering::Relaxed);
            }
        }
    }
}

impl CampaignReport {
    fn add(&mut self, other: Self) {
        self.counters += other.counters;
        for (name, count) in other.found {
            *self.found.entry(name).or_default() += count;
        }
        let earlier = |finding: &Finding| {
            let first = self.first.as_ref();
            first.is_none_or(|first| finding.seed < first.seed)
        };
        if let Some(finding) = other.first.filter(earlier) {
            self.first = Some(finding);
        }
    }
}
