//! The acquisitions that wait until their requests would be sent soon, and the client is not behind with renewals.
//!
//! An attempt that is made before that would use up its lease in this client, and its requests would keep those of
//! renewals and releases waiting.
//! A machine that cannot renew the leases that it has must not take others.

use std::collections::BTreeMap;

use super::{
    super::{Now, context::Context, leases::Leases, timers::Timer},
    Acquisitions,
    acquisition::{Acquisition, AcquisitionPhase},
    not_acquired,
};
use crate::{Failure, FailureKind};

/// The acquisitions that wait for their turn to ask nodes, in order.
#[derive(Debug, Default)]
pub(super) struct AdmissionQueue {
    waiting: BTreeMap<u64, u64>,
    next: u64,
}

impl AdmissionQueue {
    fn enter(&mut self, id: u64) -> u64 {
        let number = self.next;
        self.next += 1;
        self.waiting.insert(number, id);
        number
    }

    /// Takes an acquisition out that does not wait any more.
    pub(super) fn leave(&mut self, phase: &AcquisitionPhase) {
        if let AcquisitionPhase::Queued { number, .. } = phase {
            self.waiting.remove(number);
        }
    }
}

impl Acquisitions {
    /// Starts an attempt, once the requests of those before it are sent.
    pub(super) fn attempt_in_turn(
        &mut self,
        id: u64,
        mut acquisition: Acquisition,
        leases: &mut Leases,
        cx: &mut Context,
        now: Now,
    ) {
        if self.queue.waiting.is_empty() && may_ask(leases, cx, now) {
            return self.attempt(id, acquisition, leases, cx, now);
        }
        let mut until = acquisition.request.wait_until;
        if until <= now.clock
            && let Some((failure, answers)) = acquisition.failed.take().map(|failed| *failed)
        {
            // It has no time to wait for its turn, so it fails for the reason of its latest attempt.
            acquisition.leave_lines(cx, now);
            return not_acquired(id, Some(failure), answers, cx);
        }
        if acquisition.attempts == 0 {
            // As long as a caller that waits for no other holder waits for the nodes.
            until = until.max(now.clock + cx.limit_within(acquisition.request.timing));
        }
        acquisition.phase = AcquisitionPhase::Queued {
            timer: cx.timers.set(until, Timer::Retry(id)),
            number: self.queue.enter(id),
        };
        self.acquisitions.insert(id, acquisition);
    }

    /// Starts the attempts whose turn has come.
    pub(in super::super) fn admit(&mut self, leases: &mut Leases, cx: &mut Context, now: Now) {
        while !self.queue.waiting.is_empty()
            && may_ask(leases, cx, now)
            && let Some((_, id)) = self.queue.waiting.pop_first()
        {
            let Some(acquisition) = self.acquisitions.remove(id) else {
                continue;
            };
            if let AcquisitionPhase::Queued { timer, .. } = acquisition.phase {
                cx.timers.cancel(timer);
            }
            // The client stood still for the rest of the wait.
            if acquisition.is_too_late(now) {
                self.waited_in_vain(id, &acquisition, cx, now);
                continue;
            }
            self.attempt(id, acquisition, leases, cx, now);
        }
    }

    /// Says that an acquisition has waited in this client for as long as its caller waits, or why its latest attempt had failed.
    pub(super) fn waited_in_vain(
        &mut self,
        id: u64,
        acquisition: &Acquisition,
        cx: &mut Context,
        now: Now,
    ) {
        self.queue.leave(&acquisition.phase);
        let (failure, answers) = acquisition.failed.as_deref().cloned().unwrap_or_else(|| {
            let failure = Failure::after_grant(FailureKind::Overloaded, now.clock, now.clock);
            (failure, cx.nodes.standing(now))
        });
        not_acquired(id, Some(failure), answers, cx);
    }
}

/// Returns whether there is room for another attempt.
fn may_ask(leases: &mut Leases, cx: &Context, now: Now) -> bool {
    let limit = cx.config.node_timeout;
    // In an outage, an attempt says what is wrong.
    cx.nodes.have_room(limit, now.clock)
        && !(leases.are_behind() && cx.nodes.answer_in_time(limit, now))
}
