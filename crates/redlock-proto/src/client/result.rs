//! What becomes of a request, and of a round that has waited long enough: to each kind of round its own.

use std::sync::Arc;

use super::{
    Client, Entropy, Now, Timer,
    round::{RequestError, Round, RoundKind, Seen},
};
use crate::{Floor, Instant, MarkState, Outcome, Reply};

impl<E: Entropy> Client<E> {
    pub(super) fn on_result(
        &mut self,
        node: usize,
        id: u64,
        result: Result<Reply, RequestError>,
        seen: Option<&Seen>,
        now: Now,
    ) {
        let Some(round) = self.rounds.get_mut(&id) else {
            return;
        };
        let vote = || self.electorate.mark(node, now.clock);
        // A node is asked once in a round; what is told twice is heard once.
        let Some(outcome) = round.note(node, &result, seen, vote) else {
            return;
        };
        if round.kind.asks_for_a_vote() {
            self.outage.on_outcome(node, outcome, now.clock);
        }
        if let Err(error) = &result
            && round.kind.looks_after(node)
        {
            let reason = Arc::clone(&error.reason);
            self.electorate.on_trouble(node, reason);
        }
        if let Ok(reply) = &result {
            self.note_counter(id, reply);
        }
        self.on_outcome(id, node, outcome, result.ok(), now);
        self.forget_if_over(id);
    }

    /// Forgets a round of which nothing is to come any more.
    fn forget_if_over(&mut self, id: u64) {
        if self.rounds.get(&id).is_some_and(Round::is_over) {
            self.decided(id);
            self.rounds.remove(&id);
        }
    }

    pub(super) fn on_outcome(
        &mut self,
        id: u64,
        node: usize,
        outcome: Outcome,
        reply: Option<Reply>,
        now: Now,
    ) {
        let Some(round) = self.rounds.get_mut(&id) else {
            return;
        };
        match &mut round.kind {
            RoundKind::Attempt {
                attempt,
                acquisition,
                ..
            } => {
                let acquisition = *acquisition;
                let mut verdict = attempt.on_outcome(node, outcome, now.clock);
                let split_until = attempt.split_until(now.clock);
                if let Some(reply) = &reply
                    && self.note_claim(acquisition, node, reply, now.clock)
                {
                    verdict = verdict.or_else(|| self.abandoned(id, now));
                }
                if let Some(verdict) = verdict {
                    self.attempted(id, verdict, now);
                } else if let Some(until) = split_until {
                    self.splits(id, until);
                }
            }
            RoundKind::Record | RoundKind::Probe => {}
            RoundKind::Read { reading, .. } => {
                reading.note(node, reply);
                if round.open == 0 {
                    self.job_read(id, now);
                }
            }
            RoundKind::Decided { lease } => {
                let Some((id, owner)) = *lease else { return };
                if let Some(held) = self.leases.get_mut(&id)
                    && held.owner == owner
                {
                    held.state.on_late_outcome(node, outcome);
                    self.voted_late(id, owner, node, outcome, now);
                }
            }
            RoundKind::WriteBack {
                extension,
                lease,
                owner,
            } => {
                // After a failure the number of the lease is that of another attempt's.
                if let Some(held) = self.leases.get_mut(lease)
                    && held.owner == *owner
                {
                    held.state.on_extension_outcome(node, outcome);
                }
                if let Some(verdict) = extension.on_outcome(node, outcome, now.clock) {
                    self.settled(id, verdict, now);
                }
            }
            RoundKind::Extension {
                extension, lease, ..
            } => {
                let lease = *lease;
                if let Some(held) = self.leases.get_mut(&lease) {
                    held.state.on_extension_outcome(node, outcome);
                }
                if let Some(verdict) = extension.on_outcome(node, outcome, now.clock) {
                    self.extended(id, verdict, now);
                } else if let Some(verdict) = extension.verdict() {
                    self.heal(lease, node, verdict, outcome, now);
                }
            }
            RoundKind::Heal { lease } => {
                if let Some(held) = self.leases.get_mut(lease) {
                    held.state.on_late_outcome(node, outcome);
                }
            }
            RoundKind::Release { release, .. } => {
                if let Some(verdict) = release.on_outcome(node, outcome) {
                    self.released(id, verdict, now);
                }
            }
            RoundKind::Watch => self.watched(node, reply),
            RoundKind::Survey { survey, .. } | RoundKind::Bless { survey, .. } => {
                let voting = self.electorate.state(node) == Some(&MarkState::Voting);
                match reply {
                    Some(Reply::Greatest(counter)) => survey.on_reading(node, voting, counter),
                    _ => survey.on_failure(node),
                }
                if survey.is_complete() || matches!(survey.floor(), Some(Floor::Known(_))) {
                    self.surveyed(id, now);
                }
            }
            RoundKind::Open { .. } => self.opened(id, node, reply.as_ref(), now),
        }
    }

    /// An attempt has split the votes: it does not wait for slow nodes beyond this.
    fn splits(&mut self, id: u64, until: Instant) {
        let Some(round) = self.rounds.get_mut(&id) else {
            return;
        };
        if !round.is_split
            && let Some(limit) = round.limit
            && until < limit.at()
        {
            self.timers.cancel(limit);
            round.limit = Some(self.timers.set(until, Timer::RoundLimit(id)));
            round.is_split = true;
        }
    }

    pub(super) fn on_round_limit(&mut self, id: u64, now: Now) {
        let Some(round) = self.rounds.get_mut(&id) else {
            return;
        };
        round.limit = None;
        match &mut round.kind {
            RoundKind::Attempt { attempt, .. } => {
                let verdict = match std::mem::take(&mut round.is_split) {
                    true => attempt.on_split(now.clock),
                    false => attempt.on_time_limit(now.clock),
                };
                if let Some(verdict) = verdict {
                    self.attempted(id, verdict, now);
                }
            }
            RoundKind::Decided { .. } | RoundKind::Heal { .. } => {}
            RoundKind::WriteBack { extension, .. } => {
                if let Some(verdict) = extension.on_time_limit(now.clock) {
                    self.settled(id, verdict, now);
                }
                self.forget_if_over(id);
            }
            RoundKind::Extension { extension, .. } => {
                if let Some(verdict) = extension.on_time_limit(now.clock) {
                    self.extended(id, verdict, now);
                }
            }
            RoundKind::Release { release, .. } => {
                if let Some(verdict) = release.on_time_limit() {
                    self.released(id, verdict, now);
                }
                // Whatever is still owed to a node is its link's business.
                self.rounds.remove(&id);
            }
            RoundKind::Survey { .. } | RoundKind::Bless { .. } => self.surveyed(id, now),
            RoundKind::Open { .. } => self.opening_over(id, now),
            RoundKind::Read { .. } => self.job_read(id, now),
            RoundKind::Watch | RoundKind::Record | RoundKind::Probe => {
                self.rounds.remove(&id);
            }
        }
    }
}
