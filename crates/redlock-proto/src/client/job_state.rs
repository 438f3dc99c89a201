//! The nodes' memory of a job, read back.

use std::{cmp::Reverse, collections::BTreeMap, time::Duration};

use crate::{JobEntry, Reply, RunRecord, Series, Tick};

/// The memory that a majority of the nodes has of a job: the states of its series.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct JobRecord {
    series: BTreeMap<Series, JobState>,
    /// That of a series without a line.
    none: JobState,
}

impl JobRecord {
    /// Returns the state of a series.
    pub fn of(&self, series: Series) -> &JobState {
        self.series.get(&series).unwrap_or(&self.none)
    }

    /// Returns the runs of all series that a predicate chooses, the newest of each series first.
    pub fn runs(&self, chosen: impl Fn(Series) -> bool) -> impl Iterator<Item = &RunRecord> {
        let states = self
            .series
            .iter()
            .filter(move |(series, _)| chosen(**series));
        states.flat_map(|(_, state)| &state.runs)
    }
}

/// The memory that a majority of the nodes has of a series of a job.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct JobState {
    /// The newest tick that any node remembers, of the nodes that have answered.
    ///
    /// If a majority remembers it, no client can claim a tick up to it any more.
    /// If fewer nodes remember it, no majority confirmed its claim, and no replica started it.
    /// A client that gets no answer from these nodes may then still claim a tick up to it.
    pub watermark: Option<Tick>,
    /// The last runs, the newest first.
    ///
    /// The first may be a run that too few nodes have confirmed, and that no replica started.
    pub runs: Vec<RunRecord>,
    /// The time after which the job's lock is free on a majority at the latest; zero if it is free now, `None` if that
    /// is not known.
    pub free_in: Option<Duration>,
}

impl JobState {
    /// The most runs of a series that nodes remember.
    pub const MOST: usize = JobEntry::MOST;
}

/// The answers of nodes to a reading of a job, so far.
#[derive(Debug, Default)]
pub(super) struct JobAnswers {
    entries: Vec<JobEntry>,
    /// By node, after how long at most it lets the lock go.
    free_in: Vec<(usize, Option<Duration>)>,
}

impl JobAnswers {
    /// Takes in that a node has answered.
    pub(super) fn note(&mut self, node: usize, reply: Option<Reply>) {
        let Some(Reply::Runs { entries, free_in }) = reply else {
            return;
        };
        // A tick that was claimed stays claimed, also if the node that says so does not vote.
        self.entries.extend(entries);
        self.free_in.push((node, free_in));
    }

    /// Returns what they come to, if they are a majority.
    pub(super) fn record(
        self,
        majority: usize,
        votes: impl Fn(usize) -> bool,
    ) -> Option<JobRecord> {
        let said = self.free_in.iter().filter(|(node, _)| votes(*node));
        if said.clone().count() < majority {
            return None;
        }
        let mut free_in: Vec<Duration> = said.filter_map(|(_, free_in)| *free_in).collect();
        free_in.sort_unstable();
        let none = JobState {
            watermark: None,
            runs: Vec::new(),
            free_in: free_in.get(majority - 1).copied(),
        };
        let mut series: BTreeMap<Series, JobState> = BTreeMap::new();
        for entry in self.entries {
            let state = series.entry(entry.series).or_insert_with(|| none.clone());
            state.watermark = state.watermark.max(Some(entry.tick));
            state.runs.extend(RunRecord::of(&entry));
        }
        for (series, JobState { runs, .. }) in &mut series {
            // Of what nodes say of one run, its end comes first.
            runs.sort_by_key(|run| (Reverse((run.tick, run.attempt, run.token)), run.is_open()));
            runs.dedup_by_key(|run| (run.tick, run.attempt, run.token));
            runs.truncate(JobEntry::most_of(*series));
        }
        Some(JobRecord { series, none })
    }
}
