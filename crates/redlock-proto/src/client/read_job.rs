//! Reading back what nodes remember of a job.

use super::{Ask, Effect, Now, context::Context, job_state::JobAnswers, rounds::RoundKind};
use crate::{JobVerb, NodeKey, Reply, Request};

impl Context {
    /// Asks every node what it remembers of a job, and whether its lock is free; or only the node `at`.
    pub(super) fn read_job(
        &mut self,
        ask: Ask,
        (job, lock): (&NodeKey, &NodeKey),
        at: Option<usize>,
        now: Now,
    ) {
        let reading = JobAnswers::default();
        let kind = RoundKind::Read { ask, reading };
        let round = self.start_round(kind, self.config.node_timeout, now);
        let request = Request::Job {
            verb: JobVerb::Read { lock: lock.clone() },
            job: job.clone(),
        };
        match at {
            Some(node) => self.send(node, round, request),
            None => self.send_all(round, &request),
        }
    }

    /// Takes in that a node has answered what it remembers of a job.
    pub(super) fn on_read(&mut self, id: u64, node: usize, reply: Option<Reply>, now: Now) {
        let Some(round) = self.rounds.get_mut(id) else {
            return;
        };
        if let RoundKind::Read { reading, .. } = &mut round.kind {
            reading.note(node, reply);
        }
        if round.open == 0 {
            self.job_read(id, now);
        }
    }

    /// Ends the round: every node has answered, or too much time has passed.
    pub(super) fn job_read(&mut self, id: u64, now: Now) {
        self.end_limit(id);
        let answers = self.answers(id, now);
        let Some(round) = self.rounds.remove(id) else {
            return;
        };
        if let RoundKind::Read { ask, reading } = round.kind {
            // Asked when all have said what their clocks show.
            let votes = |node| self.nodes.vote(node, now.clock).is_ok();
            let record = reading.record(self.quorum().majority(), votes);
            self.outbox.push(Effect::JobRead {
                ask,
                record,
                answers,
            });
        }
    }
}
