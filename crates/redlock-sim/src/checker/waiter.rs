//! Waiters: the callers that must be answered, and by when.

use std::time::Duration;

use super::Checker;
use crate::{Moment, Violation};

#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    pub(super) client: usize,
    /// When its wait ends.
    pub(super) until: Moment,
    pub(super) due: Moment,
    /// For how long its client had stood still before.
    pub(super) stood: Duration,
    /// When an attempt on its behalf was started last.
    pub(super) tried: Option<Moment>,
    /// How many of them followed the one before without the least pause.
    pub(super) hurried: u32,
}

impl Checker {
    pub(super) fn tries(&mut self, at: Moment, waiter: u64) {
        let Some(waits) = self.waiters.get_mut(&waiter) else {
            return;
        };
        let last = waits.tried.replace(at);
        let is_late = last.is_some() && at > waits.until + LATE;
        if last.is_some_and(|last| at < last + self.rules.pause) {
            waits.hurried += 1;
            if waits.hurried > self.rules.hurried {
                self.report(at, Violation::Spins { waiter });
            }
        }
        if is_late {
            self.report(at, Violation::LateAttempt { waiter });
        }
    }

    pub(super) fn answered(&mut self, at: Moment, waiter: u64) {
        let Some(Waiter {
            client, due, stood, ..
        }) = self.waiters.remove(&waiter)
        else {
            return;
        };
        if at > due + self.stood(client).saturating_sub(stood) {
            self.report(at, Violation::Unanswered { waiter, due });
        }
    }
}

/// By how much the last attempt may begin after the end of the wait: timers are late, and clocks differ.
const LATE: Duration = Duration::from_millis(50);
