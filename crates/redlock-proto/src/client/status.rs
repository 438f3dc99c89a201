//! What nodes remember of a job, read back.

use std::time::Duration;

use super::{Ask, Client, Effect, Entropy, Now, round::RoundKind};
use crate::{JobEntry, JobVerb, NodeKey, Reply, Request, RunRecord, Tick};

/// What a majority of the nodes remembers of a job.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct JobState {
    /// The newest tick that any of the nodes remembers which have answered.
    ///
    /// If a majority does, no tick up to it can be claimed any more; if fewer do, because its claim was not confirmed
    /// and the tick not started, whoever does not hear of them may still claim one.
    pub watermark: Option<Tick>,
    /// The last runs, the newest first.
    ///
    /// The first may be one that too few nodes have confirmed, and that was not started.
    pub runs: Vec<RunRecord>,
    /// After how long at most a majority lets the job's lock go: at once if it is zero; `None` if that
    /// is not known.
    pub free_in: Option<Duration>,
}

/// The answers so far.
#[derive(Debug, Default)]
pub(super) struct Reading {
    entries: Vec<JobEntry>,
    /// By node, after how long at most it lets the lock go.
    free_in: Vec<(usize, Option<Duration>)>,
}

impl Reading {
    /// A node has answered.
    pub(super) fn note(&mut self, node: usize, reply: Option<Reply>) {
        let Some(Reply::Runs { entries, free_in }) = reply else {
            return;
        };
        // What was claimed was claimed, whoever says so.
        self.entries.extend(entries);
        self.free_in.push((node, free_in));
    }

    /// What they come to, if they are a majority.
    fn state(self, majority: usize, votes: impl Fn(usize) -> bool) -> Option<JobState> {
        let said = self.free_in.iter().filter(|(node, _)| votes(*node));
        if said.clone().count() < majority {
            return None;
        }
        let mut free_in: Vec<Duration> = said.filter_map(|(_, free_in)| *free_in).collect();
        free_in.sort_unstable();
        let watermark = self.entries.iter().map(|entry| entry.tick).max();
        let mut runs: Vec<RunRecord> = self.entries.iter().filter_map(RunRecord::of).collect();
        // Of what nodes say of one run, its end comes first.
        runs.sort_by_key(|run| (std::cmp::Reverse((run.tick, run.token)), run.is_open()));
        runs.dedup_by_key(|run| (run.tick, run.token));
        runs.truncate(JobEntry::MOST);
        Some(JobState {
            watermark,
            runs,
            free_in: free_in.get(majority - 1).copied(),
        })
    }
}

impl<E: Entropy> Client<E> {
    /// Asks every node what it remembers of a job, and whether its lock is free.
    pub fn read_job(&mut self, ask: Ask, job: &NodeKey, lock: &NodeKey, now: Now) {
        let reading = Reading::default();
        let kind = RoundKind::Read { ask, reading };
        let round = self.start_round(kind, self.config.node_timeout, now);
        for node in 0..self.config.quorum.nodes() {
            let request = Request::Job {
                verb: JobVerb::Read { lock: lock.clone() },
                job: job.clone(),
            };
            self.send(node, round, request);
        }
    }

    /// Every node has answered, or too much time has passed.
    pub(super) fn job_read(&mut self, id: u64, now: Now) {
        self.decided(id);
        let answers = self.answers(id, now);
        let Some(round) = self.rounds.remove(&id) else {
            return;
        };
        if let RoundKind::Read { ask, reading } = round.kind {
            // Asked when all have said what their clocks show.
            let votes = |node| self.electorate.vote(node, now.clock).is_ok();
            let state = reading.state(self.config.quorum.majority(), votes);
            self.effects.push_back(Effect::JobRead {
                ask,
                state,
                answers,
            });
        }
    }
}
