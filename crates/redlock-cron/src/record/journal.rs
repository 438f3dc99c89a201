//! The journal of one replica about a job.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

use redlock_core::RunRecord;

use crate::{Outcome, TickReport, job::Fingerprint};

/// The observations of this process since the job was added.
#[derive(Debug, Default)]
pub(crate) struct Journal(Mutex<JournalState>);

#[derive(Debug, Default)]
struct JournalState {
    /// Other configurations of the job, each with the replica that has it.
    others: HashSet<(u64, String)>,
    /// The last ticks that were not started though no other replica had them, the newest first.
    skipped: VecDeque<TickReport>,
}

impl Journal {
    /// Notes the replica and the configuration of a run if the configuration is another; returns whether they are new.
    pub(crate) fn differs(&self, run: &RunRecord, fingerprint: Fingerprint) -> bool {
        if fingerprint.is_same(run.fingerprint) {
            return false;
        }
        let mut seen = self.seen();
        let other = (run.fingerprint, run.replica.as_str().to_owned());
        seen.others.len() < MOST_OTHERS && seen.others.insert(other)
    }

    /// Returns how many replicas with other configurations were seen.
    pub(crate) fn others(&self) -> usize {
        self.seen().others.len()
    }

    /// Remembers a tick that was skipped.
    pub(crate) fn note(&self, report: &TickReport) {
        let outcome = report.outcome();
        let ended = matches!(outcome, Outcome::Draining | Outcome::Removed);
        if ended || outcome.was_started() || outcome == Outcome::NotWinner {
            return;
        }
        let mut seen = self.seen();
        seen.skipped.push_front(report.clone());
        seen.skipped.truncate(MOST_SKIPPED);
    }

    pub(crate) fn skipped(&self) -> Vec<TickReport> {
        self.seen().skipped.iter().cloned().collect()
    }

    fn seen(&self) -> MutexGuard<'_, JournalState> {
        // Nothing panics while the lock is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A fleet that is deployed every hour should not fill the memory.
const MOST_OTHERS: usize = 1_000;
const MOST_SKIPPED: usize = 20;
