//! The judge of histories.

mod job;
mod key;

use std::{collections::BTreeMap, time::Duration};

use self::{job::Job, key::Key};
use crate::{Event, Moment, Violation};

/// Judges a history: is told what happened, in order, and says what was wrong about it.
///
/// It knows nothing of how leases are won, so that a mistake in the protocol cannot hide in it.
///
/// ```
/// # use std::time::Duration;
/// use redlock_sim::{Checker, Event, Moment, Rules, Violation};
///
/// let at = Moment::from_micros;
/// let acquired = |lease, token, until| Event::Acquired {
///     lease,
///     client: 0,
///     key: 0,
///     tokens: (token, token),
///     started: Moment::START,
///     until,
///     rest: Duration::ZERO,
///     promised: None,
/// };
/// let mut checker = Checker::new(Rules::default());
/// checker.observe(at(10), &acquired(1, 7, at(1_000)));
/// checker.observe(at(20), &acquired(2, 8, at(2_000)));
/// let found = checker.finish(at(3_000));
/// assert!(matches!(found[..], [(_, Violation::Overlap { earlier: 1, later: 2, .. })]));
/// ```
#[derive(Debug)]
pub struct Checker {
    rules: Rules,
    keys: BTreeMap<usize, Key>,
    jobs: BTreeMap<usize, Job>,
    leases: BTreeMap<u64, Lease>,
    waiters: BTreeMap<u64, Waiter>,
    stood: BTreeMap<usize, Duration>,
    forgot: BTreeMap<usize, Moment>,
    free: BTreeMap<usize, Moment>,
    is_mended: bool,
    is_settled: bool,
    found: Vec<(Moment, Violation)>,
}

/// What a history is judged by.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "whoever judges a history must settle every part of it"
)]
pub struct Rules {
    /// The longest time for which nodes keep a key.
    pub max_ttl: Duration,
    /// The least pause between two attempts on behalf of one waiter, but for one.
    pub pause: Duration,
    /// By how much the wall clocks of clients differ at most.
    ///
    /// Only if it exceeds [`max_ttl`](Self::max_ttl) may tokens be out of order, and only those from before an
    /// [`Event::Degraded`] with those from after it.
    pub skew: Duration,
    /// Whether nodes' clocks are set while they keep keys.
    ///
    /// Leases may overlap then, so that the order in which they are handed out need not be that of their
    /// tokens; a lease whose attempt was started after another was handed out has a greater one all the same.
    pub clocks_step: bool,
}

#[derive(Clone, Copy, Debug)]
struct Lease {
    key: usize,
    client: usize,
    /// When it was handed out.
    since: Moment,
    until: Moment,
    /// Nobody believes in it any more, and it was not released.
    is_over: bool,
    /// Nobody believes in it for the moment.
    is_parked: bool,
    /// The token of its holder, and the last that it has reserved.
    tokens: (u64, u64),
    rest: Duration,
    /// For how long its client had stood still when it was handed out or prolonged.
    stood: Duration,
}

/// How a holder is done with a lease.
#[derive(Clone, Copy, Debug)]
enum End {
    /// Nobody told the nodes.
    Alone,
    /// It is kept for the next holder.
    Parked,
    Released,
}

#[derive(Clone, Copy, Debug)]
struct Waiter {
    client: usize,
    due: Moment,
    /// For how long its client had stood still before.
    stood: Duration,
    /// When an attempt on its behalf was started last.
    tried: Option<Moment>,
    /// Whether one of them followed the one before without the least pause.
    hurried: bool,
}

impl Checker {
    /// Nothing has happened yet.
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            keys: BTreeMap::new(),
            jobs: BTreeMap::new(),
            leases: BTreeMap::new(),
            waiters: BTreeMap::new(),
            stood: BTreeMap::new(),
            forgot: BTreeMap::new(),
            free: BTreeMap::new(),
            is_mended: false,
            is_settled: false,
            found: Vec::new(),
        }
    }

    /// This happened at `at`, which is not before what was told last.
    pub fn observe(&mut self, at: Moment, event: &Event) {
        match *event {
            Event::Waits {
                waiter,
                client,
                due,
            } => {
                let stood = self.stood(client);
                let waits = Waiter {
                    client,
                    due,
                    stood,
                    tried: None,
                    hurried: false,
                };
                self.waiters.insert(waiter, waits);
            }
            Event::Tries { waiter } => self.tries(at, waiter),
            Event::Answered { waiter } => self.answered(at, waiter),
            Event::StoodStill { client, length } => {
                *self.stood.entry(client).or_default() += length;
            }
            Event::Acquired { .. } => self.acquired(at, event),
            Event::Extended {
                lease,
                until,
                promised,
            } => self.extended(at, lease, until, promised),
            Event::Commits { .. }
            | Event::Kept { .. }
            | Event::Recorded { .. }
            | Event::StatusRead { .. }
            | Event::LeftOpen { .. }
            | Event::Started { .. }
            | Event::NotStarted { .. }
            | Event::Passed { .. }
            | Event::Remembered { .. } => self.observe_job(at, event),
            Event::Settled => self.is_settled = true,
            Event::Mended => self.is_mended = true,
            Event::Ended { lease } => self.ended(at, lease, End::Alone),
            Event::Parked { lease } => self.ended(at, lease, End::Parked),
            Event::Released { lease } => self.ended(at, lease, End::Released),
            Event::HandedOver {
                lease,
                token,
                until,
            } => self.handed_over(at, lease, token, until),
            Event::Degraded => {
                if self.rules.skew > self.rules.max_ttl {
                    self.keys.values_mut().for_each(Key::forget_tokens);
                }
            }
            Event::Forgot { node } => {
                self.forgot.insert(node, at);
            }
            Event::Voted { node } => {
                if let Some(forgot) = self.forgot.get(&node).copied()
                    && at < forgot + self.rules.max_ttl
                {
                    self.report(at, Violation::EarlyVote { node, forgot });
                }
            }
            Event::Healed { node, confirmed } => {
                if !confirmed {
                    self.report(at, Violation::UnconfirmedHeal { node });
                }
            }
            Event::KeyFound { node, key, due } => {
                if at > due {
                    self.report(at, Violation::KeyLeft { node, key, due });
                }
            }
            Event::Free { key, due } => {
                self.free.insert(key, due);
            }
            Event::Rests {
                client,
                requests,
                is_clean,
            } => {
                if requests > 0 || !is_clean {
                    self.report(at, Violation::Leak { client, requests });
                }
            }
        }
    }

    /// Something was found to be wrong by somebody else.
    pub fn report(&mut self, at: Moment, violation: Violation) {
        self.found.push((at, violation));
    }

    /// Whether something must still happen that has a time limit, other than answers.
    pub fn expects_something(&self) -> bool {
        !self.free.is_empty()
    }

    /// What was wrong so far.
    pub fn found(&self) -> &[(Moment, Violation)] {
        &self.found
    }

    /// What was wrong in a history that ends at `at`.
    pub fn finish(mut self, at: Moment) -> Vec<(Moment, Violation)> {
        let waiters: Vec<u64> = self.waiters.keys().copied().collect();
        for waiter in waiters {
            self.answered(at, waiter);
        }
        let lost: Vec<Violation> = self
            .jobs
            .iter()
            .filter_map(|(number, job)| job.lost(*number))
            .collect();
        for violation in lost {
            self.report(at, violation);
        }
        let keys: Vec<usize> = self.free.keys().copied().collect();
        for key in keys {
            self.freed(at, key);
        }
        self.found
    }

    fn tries(&mut self, at: Moment, waiter: u64) {
        let Some(waits) = self.waiters.get_mut(&waiter) else {
            return;
        };
        let last = waits.tried.replace(at);
        if last.is_some_and(|last| at < last + self.rules.pause) {
            // The last one, when the wait ends, may come sooner.
            if waits.hurried {
                self.report(at, Violation::Spins { waiter });
            } else {
                waits.hurried = true;
            }
        }
    }

    fn answered(&mut self, at: Moment, waiter: u64) {
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

    fn acquired(&mut self, at: Moment, event: &Event) {
        let Event::Acquired {
            lease,
            client,
            key,
            tokens,
            started,
            until,
            rest,
            promised,
        } = *event
        else {
            return;
        };
        if until <= at {
            self.report(at, Violation::Stillborn { lease, until });
        }
        let before = self.rules.clocks_step.then_some(started);
        let state = self.keys.entry(key).or_default();
        state.newest = Some(lease);
        let found = [
            state.believe(at, key, lease, until),
            state.has_rested(at, key, lease),
            state.order(at, key, lease, tokens, before),
        ];
        for violation in found.into_iter().flatten() {
            self.report(at, violation);
        }
        self.back(at, lease, until, promised);
        let stood = self.stood(client);
        self.leases.insert(
            lease,
            Lease {
                key,
                client,
                since: at,
                until,
                is_over: false,
                is_parked: false,
                tokens,
                rest,
                stood,
            },
        );
        self.freed(at, key);
    }

    /// A lease has ended, or was released after it had.
    fn ended(&mut self, at: Moment, lease: u64, end: End) {
        let Some(state) = self.leases.get_mut(&lease) else {
            return;
        };
        let ended = *state;
        let key = self.keys.entry(ended.key).or_default();
        match end {
            End::Alone => {
                state.is_over = true;
                key.end(lease, ended.until + ended.rest);
            }
            End::Parked => {
                state.is_parked = true;
                key.release(lease);
            }
            End::Released => {
                self.leases.remove(&lease);
                key.release(lease);
            }
        }
        if ended.is_over || ended.is_parked {
            return;
        }
        // A client that stands still cannot tell, and a timer is a moment late.
        let stood = self.stood(ended.client).saturating_sub(ended.stood);
        let told_by = ended.until + stood + TIMER;
        if at > told_by {
            let until = ended.until;
            self.report(at, Violation::LateLoss { lease, until });
        }
    }

    fn handed_over(&mut self, at: Moment, lease: u64, token: u64, until: Moment) {
        let Some(state) = self.leases.get_mut(&lease) else {
            return;
        };
        let before = *state;
        let key = before.key;
        state.is_parked = false;
        state.until = until;
        state.tokens.0 = token;
        let (greatest, last) = before.tokens;
        if token <= greatest || token > last {
            self.report(
                at,
                Violation::TokenOrder {
                    key,
                    lease,
                    token,
                    greatest,
                },
            );
        }
        if until <= at {
            self.report(at, Violation::Stillborn { lease, until });
        }
        self.prolong(at, lease, until);
    }

    fn back(&mut self, at: Moment, lease: u64, until: Moment, promised: Option<Moment>) {
        if let Some(promised) = promised
            && until > promised
        {
            self.report(
                at,
                Violation::Unbacked {
                    lease,
                    until,
                    promised,
                },
            );
        }
    }

    fn extended(&mut self, at: Moment, lease: u64, until: Moment, promised: Option<Moment>) {
        let Some(before) = self.leases.get(&lease).copied() else {
            return;
        };
        if at >= before.until || before.is_over {
            let until = before.until;
            self.report(at, Violation::Revived { lease, until });
        }
        self.prolong(at, lease, until);
        self.back(at, lease, until, promised);
    }

    /// Somebody believes in a lease that was handed out before.
    fn prolong(&mut self, at: Moment, lease: u64, until: Moment) {
        let Some(Lease { key, client, .. }) = self.leases.get(&lease).copied() else {
            return;
        };
        let stood = self.stood(client);
        if let Some(lease) = self.leases.get_mut(&lease) {
            lease.until = until;
            lease.stood = stood;
        }
        let state = self.keys.entry(key).or_default();
        let overlap = state.believe(at, key, lease, until);
        let newer = state.newest.filter(|newest| *newest != lease);
        let stale = newer.map(|newer| Violation::StaleExtension { key, lease, newer });
        for violation in overlap.into_iter().chain(stale) {
            self.report(at, violation);
        }
    }

    /// For how long a client has stood still so far.
    fn stood(&self, client: usize) -> Duration {
        self.stood.get(&client).copied().unwrap_or_default()
    }

    fn freed(&mut self, at: Moment, key: usize) {
        if let Some(due) = self.free.remove(&key)
            && at > due
        {
            self.report(at, Violation::Starved { key, due });
        }
    }
}

/// How late a timer may be.
const TIMER: Duration = Duration::from_millis(1);
