//! The judge of histories.

mod job;
mod key;
mod lease;
mod node;
mod waiter;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use self::{
    job::Job,
    key::Key,
    lease::{End, Lease},
    waiter::Waiter,
};
use crate::{Event, Moment, Violation};

/// Checks a history: it gets the events in order, and returns the violations.
///
/// It knows nothing of how leases are won, so that it cannot repeat a mistake of the protocol.
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
///     is_shared: false,
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
    sets: BTreeMap<usize, Vec<usize>>,
    jobs: BTreeMap<usize, Job>,
    leases: BTreeMap<u64, Lease>,
    waiters: BTreeMap<u64, Waiter>,
    stood: BTreeMap<usize, Duration>,
    forgot: BTreeMap<usize, Moment>,
    /// The nodes that have lost data and were not told to vote since.
    lost: BTreeSet<usize>,
    /// The nodes that were started again with their data and were not told to vote since, and when.
    restarted: BTreeMap<usize, Moment>,
    free: BTreeMap<usize, Moment>,
    is_mended: bool,
    is_settled: bool,
    found: Vec<(Moment, Violation)>,
}

/// The rules by which a history is checked.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "whoever judges a history must settle every part of it"
)]
pub struct Rules {
    /// The longest time for which nodes keep a key.
    pub max_ttl: Duration,
    /// The least pause between two attempts on behalf of one waiter, except for some pairs of attempts.
    pub pause: Duration,
    /// The number of these pairs: one, when the wait ends.
    pub hurried: u32,
    /// The most by which the wall clocks of clients differ.
    ///
    /// Only if the difference exceeds [`max_ttl`](Self::max_ttl) may tokens be out of order.
    /// Even then they may be so only after more than [`tolerated`](Self::tolerated) nodes were out at once, because
    /// they had lost their counters or had been started again: tokens from before one of them votes again may be out of
    /// order with tokens from after that.
    pub skew: Duration,
    /// The number of nodes that may be out at once without harm to the order of tokens.
    pub tolerated: usize,
    /// `true` if nodes' clocks are set while they keep keys.
    ///
    /// Leases may then overlap, so that they may be handed out in another order than that of their tokens.
    /// A lease whose attempt was started after another lease was handed out still has a greater token.
    pub clocks_step: bool,
    /// Set if leases share keys: then a client that wants a key alone must be able to acquire it.
    ///
    /// Clients that share the key may not keep the others out for good.
    pub shares: bool,
}

impl Checker {
    /// Makes a checker of a history in which nothing has happened yet.
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            keys: BTreeMap::new(),
            sets: BTreeMap::new(),
            jobs: BTreeMap::new(),
            leases: BTreeMap::new(),
            waiters: BTreeMap::new(),
            stood: BTreeMap::new(),
            forgot: BTreeMap::new(),
            lost: BTreeSet::new(),
            restarted: BTreeMap::new(),
            free: BTreeMap::new(),
            is_mended: false,
            is_settled: false,
            found: Vec::new(),
        }
    }

    /// Observes an event at `at`, which is not before the last one.
    pub fn observe(&mut self, at: Moment, event: &Event) {
        match *event {
            Event::Waits {
                waiter,
                client,
                until,
                due,
            } => {
                let stood = self.stood(client);
                let waits = Waiter {
                    client,
                    until,
                    due,
                    stood,
                    tried: None,
                    hurried: 0,
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
            | Event::Follows { .. }
            | Event::NotStarted { .. }
            | Event::Passed { .. }
            | Event::Remembered { .. } => self.observe_job(at, event),
            Event::CutShort { job, .. } => {
                self.observe_job(at, event);
                // A majority has granted, and the claimant gave it back.
                self.freed(at, job);
            }
            Event::Settled => self.is_settled = true,
            Event::Mended => self.is_mended = true,
            Event::Ended { lease } => self.ended(at, lease, End::Alone),
            Event::Downgraded { lease } => self.downgraded(lease),
            Event::Parked { lease } => self.ended(at, lease, End::Parked),
            Event::Released { lease } => self.ended(at, lease, End::Released),
            Event::HandedOver {
                lease,
                token,
                until,
            } => self.handed_over(at, lease, token, until),
            Event::Forgot { node } => self.forgot(at, node),
            Event::Restarted { node } => {
                self.restarted.entry(node).or_insert(at);
            }
            Event::Opened { node, duplicates } => self.opened(node, duplicates),
            Event::Voted { node } => self.voted(at, node),
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

    /// Declares that the number `set` in events stands for all of these keys.
    pub fn add_set(&mut self, set: usize, keys: impl IntoIterator<Item = usize>) {
        self.sets.insert(set, keys.into_iter().collect());
    }

    /// Returns the keys that a lease on what has this number is on.
    fn keys_of(&self, number: usize) -> Vec<usize> {
        self.sets
            .get(&number)
            .cloned()
            .unwrap_or_else(|| vec![number])
    }

    /// Reports a violation that was found elsewhere.
    pub fn report(&mut self, at: Moment, violation: Violation) {
        self.found.push((at, violation));
    }

    /// Returns whether something other than an answer must still happen within a time limit.
    pub fn expects_something(&self) -> bool {
        !self.free.is_empty()
    }

    /// Returns the violations so far.
    pub fn found(&self) -> &[(Moment, Violation)] {
        &self.found
    }

    /// Returns the violations in a history that ends at `at`.
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

    /// Returns for how long a client has stood still so far.
    fn stood(&self, client: usize) -> Duration {
        self.stood.get(&client).copied().unwrap_or_default()
    }
}
