//! The memory of jobs, as clients report it and as nodes have it.

use std::{collections::BTreeMap, time::Duration};

use redlock_proto::{Failure, FailureKind, JobRecord, NodeAnswer, RunRecord, RunState};

use super::{
    Server, World,
    process::{Runs, State},
    waiter::waiter_of,
};
use crate::{Event, Moment, Violation, setup::RECORD};

impl World {
    /// A user asks its client what nodes remember of a job.
    pub(super) fn read_status(&mut self, client: usize, job: usize) {
        let ask = self.ask(client, 1);
        let (at, known) = (self.now, self.remembered(job));
        let process = &mut self.processes[client];
        process.asked.push((ask, job, at, known));
        let now = process.now(self.now);
        let lock = &self.setup.keys[job];
        process
            .client
            .read_job(ask, &RECORD.into(), lock, None, now);
    }

    /// A client says what nodes remember of a job.
    pub(super) fn on_job_read(&mut self, client: usize, ask: u64, record: Option<JobRecord>) {
        let waiter = waiter_of(client, ask);
        self.observe(&Event::Answered { waiter });
        let asked = &mut self.processes[client].asked;
        let Some(place) = asked.iter().position(|(other, ..)| *other == ask) else {
            return;
        };
        let (_, job, since, known) = asked.swap_remove(place);
        let Some(record) = record else { return };
        let state = record.of(self.setup.series[job]);
        self.counters.statuses += 1;
        self.trace.line(self.now, || {
            format!("client {client} is told of job {job}: {state:?}")
        });
        let runs = state.runs.iter().map(|run| {
            let outcome = match &run.state {
                RunState::Ended { outcome, .. } => Some(outcome.as_str().into()),
                _ => None,
            };
            (run.tick.as_millis(), run.token.get(), outcome)
        });
        self.observe(&Event::StatusRead {
            job,
            since: Moment::from_micros(since),
            known,
            majority: self.setup.quorum.majority(),
            watermark: state.watermark.map_or(0, |tick| tick.as_millis()),
            runs: runs.collect(),
            is_free: state.free_in == Some(Duration::ZERO),
        });
    }

    /// Returns up to which tick a majority of the nodes remembers a job, and 0 if none does.
    pub(super) fn known(&self, job: usize) -> u64 {
        let remembered = self.remembered(job).into_iter();
        let mut watermarks: Vec<u64> = remembered
            .map(|runs| runs.first().map_or(0, |(tick, _)| *tick))
            .collect();
        watermarks.sort_unstable();
        watermarks[self.setup.nodes - self.setup.quorum.majority()]
    }

    /// Returns the runs of a job that each node remembers.
    fn remembered(&self, job: usize) -> Vec<Runs> {
        let series = self.setup.series[job];
        let runs = |server: &Server| {
            let runs = server.lines(series);
            runs.map(|run| (run.tick.as_millis(), run.token)).collect()
        };
        self.servers.iter().map(runs).collect()
    }

    /// Runs that a majority remembers, and not how they ended.
    pub(super) fn look_for_open_runs(&mut self) {
        for job in 0..self.setup.series.len() {
            let series = self.setup.series[job];
            let mut open: BTreeMap<(u64, u64), usize> = BTreeMap::new();
            let servers = self.servers.iter();
            for entry in servers.flat_map(|server| server.lines(series)) {
                let state = RunRecord::of(entry).map(|run| run.state);
                if state == Some(RunState::Claimed) {
                    *open
                        .entry((entry.tick.as_millis(), entry.token))
                        .or_default() += 1;
                }
            }
            for ((tick, token), nodes) in open {
                if nodes >= self.setup.quorum.majority() {
                    self.observe(&Event::LeftOpen { job, tick, token });
                }
            }
        }
    }

    /// A client has not won what it waited for; where nothing goes wrong any more, something else was in the way.
    pub(super) fn must_have_a_reason(&mut self, client: usize, id: u64, has_reason: bool) {
        let Some(settled) = self
            .settled
            .filter(|_| !has_reason && !self.phase.is_closing())
        else {
            return;
        };
        let users = &self.processes[client].users;
        let waits = |state: State| matches!(state, State::Waiting { id: other, .. } if other == id);
        if let Some(job) = users.iter().position(|user| waits(user.state))
            && users[job].since > settled
            // Its lease may end before it begins.
            && !users[job].is_limited
        {
            let tick = users[job].tick;
            let at = Moment::from_micros(self.now);
            self.checker.report(at, Violation::Unreasoned { job, tick });
        }
    }

    /// An acquire failed: if it is said to be contended, too few nodes have granted it.
    pub(super) fn must_lack_a_majority(
        &mut self,
        client: usize,
        failure: Option<&Failure>,
        answers: &[NodeAnswer],
    ) {
        let is_contended = failure.is_some_and(|failure| failure.kind == FailureKind::Contended);
        let granted = answers
            .iter()
            .filter(|answer| **answer == NodeAnswer::Granted);
        if is_contended && granted.count() >= self.setup.quorum.majority() {
            let at = Moment::from_micros(self.now);
            let violation = Violation::FalselyContended { client };
            self.checker.report(at, violation);
        }
    }

    /// A claim ended as forgotten: too few nodes could grant it, also once the locks of other claims are free.
    pub(super) fn must_be_forgotten(&mut self, client: usize, id: u64, answers: &[NodeAnswer]) {
        let may_grant =
            |answer: &&NodeAnswer| matches!(answer, NodeAnswer::Held { .. } | NodeAnswer::Granted);
        let majority = self.setup.quorum.majority();
        let users = &self.processes[client].users;
        let waits = |state: State| matches!(state, State::Waiting { id: other, .. } if other == id);
        if let Some(job) = users.iter().position(|user| waits(user.state))
            && answers.iter().filter(may_grant).count() >= majority
        {
            let tick = users[job].tick;
            let at = Moment::from_micros(self.now);
            self.checker.report(at, Violation::Unreasoned { job, tick });
        }
    }
}

/// Returns whether something kept a client from what it did not win, other than faults: it is closed, another has the
/// lock, or a node refused the tick.
pub(super) fn has_reason(failure: Option<&Failure>, answers: &[NodeAnswer]) -> bool {
    failure.is_none_or(|failure| failure.kind == FailureKind::Contended)
        || answers.iter().any(is_refusal)
}

/// Returns whether a node that is up and votes would not give a tick away.
const fn is_refusal(answer: &NodeAnswer) -> bool {
    matches!(
        answer,
        NodeAnswer::Held { .. }
            | NodeAnswer::Forgot
            | NodeAnswer::Passed { .. }
            | NodeAnswer::TooEarly { .. }
            | NodeAnswer::TooLate { .. }
    )
}
