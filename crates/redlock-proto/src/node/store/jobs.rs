//! The jobs of a node: the watermark, the window, and the memory of runs.

use std::{sync::Arc, time::Duration};

use super::{
    Store, check_range,
    key::{StoredKey, Wanted},
};
use crate::{
    JobEntry, JobVerb, Keyspace, LockMode, NoClaim, NodeKey, NodeTime, OwnerId, Reply, Series,
    Tick, Verb, Window,
};

impl Store {
    /// Returns the lines of a job, the newest of each series first.
    pub fn runs(&self, job: &NodeKey) -> &[JobEntry] {
        self.jobs.get(job).map_or(&[], Vec::as_slice)
    }

    /// Returns the newest line of a series.
    fn newest(&self, job: &NodeKey, series: Series) -> Option<&JobEntry> {
        let mut lines = self.runs(job).iter();
        lines.find(|entry| entry.series == series)
    }

    /// Deletes what is remembered of these jobs, as an operator does; returns of how many there was anything.
    pub fn forget_jobs(&mut self, jobs: &[NodeKey]) -> usize {
        let forgotten = jobs.iter().filter_map(|job| self.jobs.remove(job));
        forgotten.count()
    }

    /// Returns the time by its clock from which on it remembers which ticks were claimed, if it ever forgot: in whole
    /// milliseconds.
    pub fn horizon(&self, keyspace: &Keyspace) -> Option<NodeTime> {
        let horizon = self.horizons.get(keyspace.horizon())?;
        Some(NodeTime::from_micros(1_000 * horizon))
    }

    /// Reads the keys of a request; see [`read`](Store::read).
    pub(super) fn read_for_job(&mut self, keyspace: &Keyspace, verb: &JobVerb, now: u64) -> bool {
        match verb {
            JobVerb::Claim { lock, owner, .. } => {
                self.expire_key(lock, now);
                self.expire_key(&keyspace.tombstone(**owner), now)
            }
            JobVerb::Commit { lock, .. } | JobVerb::Read { lock } => {
                self.expire_key(lock, now);
                false
            }
            JobVerb::Record { .. } | JobVerb::Withdraw { .. } => false,
        }
    }

    /// Does what a request about a job asks.
    pub(super) fn job(
        &mut self,
        keyspace: &Keyspace,
        verb: &JobVerb,
        job: &NodeKey,
        time: NodeTime,
    ) -> Result<Reply, Arc<str>> {
        match verb {
            JobVerb::Claim {
                lock,
                owner,
                ttl,
                proposal,
                series,
                tick,
                attempt,
                window,
            } => {
                let now = time.as_millis();
                if let Some(refusal) = self.refusal(
                    keyspace,
                    self.newest(job, *series),
                    (*tick, *attempt),
                    *window,
                    now,
                ) {
                    return Ok(Reply::NoClaim(refusal));
                }
                let acquire = Verb::Acquire {
                    ttl: *ttl,
                    proposal: *proposal,
                    block: 1,
                    wish: None,
                    line: None,
                };
                let wanted = alone(acquire, **owner, time);
                let taken = self.lock(keyspace, &lock.clone().into(), &wanted)?;
                Ok(match taken {
                    Reply::Taken { counter } => Reply::Claimed {
                        counter,
                        last: self.newest(job, *series).cloned(),
                    },
                    refused => refused,
                })
            }
            JobVerb::Commit {
                lock,
                owner,
                ttl,
                entry,
            } => {
                if self.is_owner(lock, **owner) {
                    let newer = self
                        .newest(job, entry.series)
                        .filter(|last| last.order() >= entry.order() && *last != entry);
                    if let Some(newer) = newer {
                        return Ok(Reply::NoClaim(NoClaim::Passed(newer.clone())));
                    }
                    check_range(entry.token)?;
                    self.advance(job, entry);
                }
                let extend = Verb::Extend {
                    ttl: *ttl,
                    write_back: Some(entry.token),
                };
                let wanted = alone(extend, **owner, time);
                self.lock(keyspace, &lock.clone().into(), &wanted)
            }
            JobVerb::Record { entry, .. } => {
                let mut runs = self.jobs.get_mut(job).into_iter().flatten();
                Ok(match runs.find(|run| run.is_same_run(entry)) {
                    Some(run) => {
                        *run = entry.clone();
                        Reply::Done
                    }
                    None => Reply::Missing,
                })
            }
            JobVerb::Withdraw { entry, .. } => Ok(self.withdraw(job, entry)),
            JobVerb::Read { lock } => {
                let now = time.as_millis();
                let free_in = self.keys.get(lock).map_or(Duration::ZERO, |held| {
                    Duration::from_millis((held.until() - now).max(1))
                });
                Ok(Reply::Runs {
                    entries: self.runs(job).to_vec(),
                    free_in: Some(free_in),
                })
            }
        }
    }

    /// Returns why a tick cannot be claimed, whether or not its lock is free.
    fn refusal(
        &self,
        keyspace: &Keyspace,
        last: Option<&JobEntry>,
        (tick, attempt): (Tick, u8),
        window: Window,
        now: u64,
    ) -> Option<NoClaim> {
        if let Some(last) = last
            && last.order() >= (tick, attempt)
        {
            return Some(NoClaim::Passed(last.clone()));
        }
        if let Some(by) = window.too_early(tick, now) {
            return Some(NoClaim::Early { by });
        }
        if let Some(by) = window.too_late(tick, now) {
            return Some(NoClaim::Late { by });
        }
        let horizon = self.horizons.get(keyspace.horizon());
        horizon
            .is_some_and(|horizon| window.forgets(tick, *horizon))
            .then_some(NoClaim::Forgot)
    }

    /// Notes up to when what was claimed may be forgotten.
    pub(super) fn remember_since(&mut self, keyspace: &Keyspace, then: NodeTime) {
        let horizon = self.horizons.entry(keyspace.horizon().clone()).or_default();
        *horizon = then.as_millis().max(*horizon);
    }

    pub(super) fn is_owner(&self, lock: &NodeKey, owner: OwnerId) -> bool {
        self.keys.get(lock).and_then(StoredKey::owner) == Some(owner)
    }

    /// Forgets this very run; the run before it in its series has the watermark again, if it was the newest.
    fn withdraw(&mut self, job: &NodeKey, entry: &JobEntry) -> Reply {
        let Some(runs) = self.jobs.get_mut(job) else {
            return Reply::Missing;
        };
        let Some(place) = runs.iter().position(|run| run == entry) else {
            return Reply::Missing;
        };
        runs.remove(place);
        if runs.is_empty() {
            self.jobs.remove(job);
        }
        Reply::Done
    }

    /// Makes the entry's tick the watermark of its series.
    fn advance(&mut self, job: &NodeKey, entry: &JobEntry) {
        let newest = self.newest(job, entry.series);
        if newest.is_some_and(|last| last.order() >= entry.order()) {
            return;
        }
        let runs = self.jobs.entry(job.clone()).or_default();
        runs.insert(0, entry.clone());
        let (mut kept, most) = (0, JobEntry::most_of(entry.series));
        runs.retain_mut(|run| {
            kept += usize::from(run.series == entry.series);
            // However many of those before it are withdrawn, the ticks up to this one stay claimed.
            if run.series == entry.series && kept == most + 1 {
                *run = run.to_anchor();
            }
            run.series != entry.series || kept <= most + 1
        });
    }
}

/// Returns what a run wants with its lock.
const fn alone(verb: Verb, owner: OwnerId, time: NodeTime) -> Wanted {
    Wanted {
        verb,
        mode: LockMode::Exclusive,
        owner,
        now: time.as_millis(),
        may_have_it: false,
    }
}
