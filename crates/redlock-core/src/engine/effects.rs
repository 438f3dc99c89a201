//! The driver carries out the protocol's decisions.

use redlock_proto::{Effect, Notice, Op};

use super::{
    asked::{Asked, Waiting},
    command::NotWon,
    driver::Driver,
};
use crate::meter::LockMeter;

impl Driver {
    /// Carries out what the protocol has decided.
    pub(super) fn follow(&mut self) {
        // Requests of one decision were made at one moment.
        let mut sent_at = None;
        while let Some(effect) = self.client.poll_effect() {
            match effect {
                Effect::Send {
                    node,
                    round,
                    request,
                    connection,
                } => {
                    let now = *sent_at.get_or_insert_with(|| self.clock.now());
                    let op = Op::new(round, request, connection, now);
                    self.links[node].push(op, now);
                }
                Effect::Acquired {
                    id,
                    deadline,
                    ends,
                    tokens,
                    last,
                } => self.acquired(id, deadline, ends, tokens, last),
                Effect::NotClaimed { id, why, answers } => {
                    // The caller may have gone away.
                    if let Some(waiting) = self.no_longer_waiting(id) {
                        let refused = NotWon::Refused(why, self.reports(answers));
                        drop(waiting.answer.send((waiting.attempts, Err(refused))));
                    }
                }
                Effect::JobRead {
                    ask,
                    state,
                    answers,
                } => self.job_read(ask, state, answers),
                Effect::NotAcquired {
                    id,
                    failure,
                    answers,
                } => {
                    // The caller may have gone away.
                    if let Some(waiting) = self.no_longer_waiting(id) {
                        let error = self.acquire_error(failure, answers);
                        let failed = Err(NotWon::Failed(error));
                        drop(waiting.answer.send((waiting.attempts, failed)));
                    }
                }
                Effect::Extended { lease, deadline } => {
                    let shared = self.leases.get(lease);
                    if shared.is_some_and(|shared| !shared.extend(deadline)) {
                        self.client.expire(lease, self.now());
                    }
                    self.count(lease, |meter| meter.extended(true));
                }
                Effect::Lost { lease, loss } => {
                    if let Some(shared) = self.leases.get(lease) {
                        shared.end(loss.into());
                        self.origin.lost(shared, loss.into());
                    }
                }
                Effect::ExtensionOver { ask, result } => self.extension_over(ask, result),
                Effect::ReleaseOver { ask, result } => self.release_over(ask, result),
                Effect::Blessed { ask, answers } => {
                    if let Some(Asked::Bless { answer }) = self.asked.remove(ask) {
                        drop(answer.send(answers));
                    }
                }
                Effect::Notice(notice) => {
                    match &notice {
                        Notice::Retries { acquisition } => self.retries(*acquisition),
                        Notice::Endangered { lease } => self.count(*lease, LockMeter::endangered),
                        Notice::ExtensionFailed { lease } => {
                            self.count(*lease, |meter| meter.extended(false));
                        }
                        _ => {}
                    }
                    let lease = |id| self.leases.get(id).map(|lease| &**lease);
                    self.origin.notice(&notice, &self.names, lease);
                }
            }
        }
    }

    /// Ends an acquisition without a lease; returns the caller that waits for it, unless it has stopped waiting.
    pub(super) fn no_longer_waiting(&mut self, id: u64) -> Option<Waiting> {
        let waiting = self.waiting.remove(id)?;
        self.over.push(id);
        Some(waiting)
    }

    /// Removes a lease that has ended.
    pub(super) fn forget(&mut self, lease: u64) {
        let Some(shared) = self.leases.remove(lease) else {
            return;
        };
        self.over.push(lease);
        if let Some(reason) = shared.loss_that_a_view_has_seen() {
            self.origin.lost(&shared, reason);
        }
    }
}
