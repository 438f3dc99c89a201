//! The driver carries out the protocol's decisions, answers callers, and reports to the log and to the metrics.

use redlock_proto::{
    Effect, Failure, Instant, NodeAnswer, NotExtended, NotReleased, Notice, RunRecord, TokenBlock,
};

use super::{
    AcquireCaller, DriverCommand, NotWon,
    driver::Driver,
    held::HeldLease,
    link::{LinkState, NodeLink},
};
use crate::{
    AcquireError, ExtendError, Lease, NodeReport, ReleaseError,
    meter::{LockMeter, Offsets},
};

impl Driver {
    /// Carries out what the protocol has decided.
    pub(super) fn follow(&mut self) {
        // Requests of one decision were made at one moment.
        let mut sent_at = None;
        // A caller that is to be answered may have stopped waiting.
        while let Some(effect) = self.client.poll_effect() {
            match effect {
                Effect::Send {
                    node,
                    round,
                    request,
                    connection,
                } => {
                    let now = *sent_at.get_or_insert_with(|| self.clock.now());
                    self.links[node].push(round, request, connection, now);
                }
                Effect::Acquired {
                    id,
                    deadline,
                    ends,
                    tokens,
                    last,
                } => self.acquired(id, deadline, ends, tokens, last),
                Effect::NotClaimed { id, why, answers } => {
                    if let Some(caller) = self.no_longer_waiting(id) {
                        let refused = NotWon::Refused(why, self.reports(answers));
                        drop(caller.answer.send((caller.attempts, Err(refused))));
                    }
                }
                Effect::JobRead {
                    ask,
                    record,
                    answers,
                } => {
                    if let Some(DriverCommand::ReadJob { answer, .. }) = self.asked.remove(ask) {
                        drop(answer.send((record, answers)));
                    }
                }
                Effect::NotAcquired {
                    id,
                    failure,
                    answers,
                } => {
                    if let Some(caller) = self.no_longer_waiting(id) {
                        let error = self.acquire_error(failure, answers);
                        let failed = Err(NotWon::Failed(error));
                        drop(caller.answer.send((caller.attempts, failed)));
                    }
                }
                Effect::Extended { lease, deadline } => {
                    let shared = self.leases.get(lease);
                    if shared.is_some_and(|shared| !shared.extend_to(deadline)) {
                        self.client.expire(lease, self.now());
                    }
                    self.count(lease, |meter| meter.extended(true));
                }
                Effect::Listen { number } => {
                    for link in &mut self.links {
                        link.listen(number);
                    }
                }
                Effect::Lost { lease, loss } => {
                    if let Some(lost) = self.leases.get(lease) {
                        lost.end(loss.into());
                        self.origin.lost(lost, loss.into());
                    }
                }
                Effect::ExtensionOver { ask, result } => self.extension_over(ask, result),
                Effect::ReleaseOver { ask, result } => self.release_over(ask, result),
                Effect::Blessed { ask, answers } => {
                    if let Some(DriverCommand::Bless { answer }) = self.asked.remove(ask) {
                        drop(answer.send(answers));
                    }
                }
                Effect::Notice(notice) => {
                    match &notice {
                        Notice::Retries { acquisition } => self.retries(*acquisition),
                        Notice::MovesUp { acquisition } => {
                            let caller = self.waiting.get(*acquisition);
                            let label =
                                caller.and_then(|caller| caller.subject.site.label.as_ref());
                            label.inspect(|label| label.moves_up());
                        }
                        Notice::Endangered { lease } => self.count(*lease, LockMeter::endangered),
                        Notice::ExtensionFailed { lease } => {
                            self.count(*lease, |meter| meter.extended(false));
                        }
                        _ => {}
                    }
                    let lease = |id| self.leases.get(id);
                    self.origin.notice(&notice, &self.names, lease);
                }
            }
        }
    }

    /// Hands the lease that an acquisition or a claim has won to its caller.
    fn acquired(
        &mut self,
        id: u64,
        deadline: Instant,
        ends: Option<Instant>,
        tokens: TokenBlock,
        last: Option<RunRecord>,
    ) {
        let (Some(caller), Some(engine)) = (self.waiting.remove(id), self.handles.upgrade()) else {
            // The caller, or the last handle, is gone.
            return self.client.release(id, None, self.now());
        };
        let AcquireCaller {
            subject,
            attempts,
            answer,
            ..
        } = caller;
        let lease = Lease::new(subject, deadline, ends, tokens.first());
        self.leases.insert(id, lease.clone());
        // A caller that has gone away drops the answer, and with it the lease, which releases it.
        let held = HeldLease::new(id, lease, engine, tokens);
        drop(answer.send((attempts, Ok((held, last)))));
    }

    /// Returns an error with a line per node.
    fn acquire_error(&self, failure: Option<Failure>, answers: Vec<NodeAnswer>) -> AcquireError {
        match failure {
            Some(failure) if !self.closing => {
                let now = self.clock.now();
                AcquireError::failed(&failure, self.majority, self.reports(answers), now)
            }
            _ => AcquireError::closed(),
        }
    }

    fn extension_over(&mut self, ask: u64, result: Result<(), NotExtended>) {
        let Some(
            DriverCommand::Extend { lease, answer } | DriverCommand::Downgrade { lease, answer },
        ) = self.asked.remove(ask)
        else {
            return;
        };
        // A view may have seen the old deadline pass before the driver processed the confirmation.
        let lease = self.leases.get(lease);
        let live = lease.is_some_and(|lease| lease.loss().is_none());
        drop(answer.send(match result {
            Ok(()) if live => Ok(()),
            Ok(()) => Err(ExtendError::lost(Vec::new())),
            Err(NotExtended {
                lost: true,
                answers,
            }) => Err(ExtendError::lost(self.reports(answers))),
            Err(NotExtended { answers, .. }) => {
                Err(ExtendError::unconfirmed(self.reports(answers)))
            }
        }));
    }

    fn release_over(&mut self, ask: u64, result: Result<(), NotReleased>) {
        if let Some(DriverCommand::Release {
            answer: Some(answer),
            ..
        }) = self.asked.remove(ask)
        {
            drop(answer.send(result.map_err(|not_released| {
                let NotReleased {
                    ends_within,
                    answers,
                } = not_released;
                ReleaseError::unconfirmed(self.reports(answers), ends_within)
            })));
        }
    }

    /// Names the nodes that gave these answers.
    fn reports(&self, answers: Vec<NodeAnswer>) -> Vec<NodeReport> {
        NodeReport::of_all(&self.names, answers)
    }

    /// Ends an acquisition without a lease; returns the caller that waits for it, unless it has stopped waiting.
    pub(super) fn no_longer_waiting(&mut self, id: u64) -> Option<AcquireCaller> {
        let caller = self.waiting.remove(id)?;
        self.over.push(id);
        Some(caller)
    }

    /// Removes a lease that has ended.
    pub(super) fn forget(&mut self, lease: u64) {
        let Some(ended) = self.leases.remove(lease) else {
            return;
        };
        self.over.push(lease);
        if let Some(reason) = ended.loss_that_a_view_has_seen() {
            self.origin.lost(&ended, reason);
        }
    }

    /// Counts something of a lease later, so that a slow recorder delays no deadline.
    fn count(&mut self, lease: u64, count: fn(&LockMeter)) {
        if let Some(lease) = self.leases.get(lease) {
            self.counts.push((lease.meter().clone(), count));
        }
    }

    /// Counts an attempt that follows another.
    fn retries(&mut self, acquisition: u64) {
        if let Some(caller) = self.waiting.get_mut(acquisition) {
            caller.attempts += 1;
            // A search asks for many slots at once, and counts no retries.
            if !caller.is_part {
                let meter = caller.subject.site.meter.clone();
                self.counts.push((meter, LockMeter::retries));
            }
        }
    }

    /// Reports the pending counts to the recorder, and the state of the nodes if that is due.
    pub(super) fn measure(&mut self) {
        for (meter, count) in self.counts.drain(..) {
            count(&meter);
        }
        if !self.meter.is_due(|| self.clock.now()) {
            return;
        }
        // Before it has tried each node, a client knows less than others of its process, which may have reported more.
        let is_trying = |link: &NodeLink| link.state() == LinkState::Connecting;
        if self.links.iter().any(is_trying) {
            return;
        }
        let now = self.now();
        let common = self.client.node_time(now);
        // From the common time on.
        let off = |micros: u64| Some((micros as f64 - common?.as_micros() as f64) / 1e6);
        let time_of = |node| self.client.time_of(node, now);
        let offsets = Offsets {
            own: off(now.wall),
            nodes: (0..self.links.len())
                .map(|node| time_of(node).and_then(|time| off(time.as_micros())))
                .collect(),
        };
        let is_up = |link: &NodeLink| link.state() == LinkState::Up;
        let up: Vec<_> = self.links.iter().map(is_up).collect();
        let standing = self.client.standing(now);
        self.meter.look(&up, &standing, &offsets, now.clock);
    }
}
