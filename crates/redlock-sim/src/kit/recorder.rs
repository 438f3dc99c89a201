use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use redlock_core::{Lease, LockGuard, Mode, ResourceKey};
use tokio::time::Instant;

use crate::{Checker, Event, Moment, Rules, Violation};

/// Records which client held which lease, in true time, and finds violations.
#[derive(Debug)]
pub struct Recorder {
    began: Instant,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    checker: Checker,
    /// The leases that a holder may still rely on, each with its deadline as of the last look.
    held: BTreeMap<u64, (Lease, Moment)>,
    keys: BTreeMap<ResourceKey, usize>,
    next: u64,
    trace: u64,
}

impl Recorder {
    /// Makes a recorder of a history in which nothing has happened yet.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime: its clock is tokio's.
    pub fn new() -> Self {
        Self {
            began: Instant::now(),
            state: Mutex::new(State {
                checker: Checker::new(Rules::default()),
                held: BTreeMap::new(),
                keys: BTreeMap::new(),
                next: 0,
                trace: 0xcbf2_9ce4_8422_2325,
            }),
        }
    }

    /// Records a guard that was handed out just now.
    pub fn acquired(&self, client: usize, guard: &LockGuard) {
        let at = self.now();
        let lease = guard.lease();
        let mut state = self.state();
        state.look(at);
        let keys = state.keys.len();
        let key = *state.keys.entry(lease.key().clone()).or_insert(keys);
        let id = state.next;
        state.next += 1;
        let token = lease.token().get();
        let until = at + lease.remaining();
        let is_shared = lease.mode() == Mode::Shared;
        let acquired = Event::Acquired {
            lease: id,
            client,
            key,
            is_shared,
            tokens: (token, token),
            // The start of an acquire is not known; for a shared lease, the first moment is always early enough.
            started: if is_shared { Moment::START } else { at },
            until,
            rest: Duration::ZERO,
            promised: None,
        };
        state.observe(at, &acquired);
        for part in [at.as_micros(), client as u64, token, until.as_micros()] {
            state.trace = (state.trace ^ part).wrapping_mul(0x0100_0000_01b3);
        }
        state.held.insert(id, (lease.clone(), until));
    }

    /// Returns the number of leases that were handed out.
    pub fn leases(&self) -> u64 {
        self.state().next
    }

    /// Returns a number that depends on every lease and its time: two runs that differ in any of them have different
    /// numbers.
    pub fn trace(&self) -> u64 {
        self.state().trace
    }

    /// Returns all violations, with their times.
    pub fn finish(self) -> Vec<(Moment, Violation)> {
        let at = self.now();
        let mut state = self
            .state
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        state.look(at);
        state.checker.finish(at)
    }

    fn now(&self) -> Moment {
        Moment::START + self.began.elapsed()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

impl State {
    /// Looks at what became of every lease since the last look.
    fn look(&mut self, at: Moment) {
        let mut became = Vec::new();
        for (lease, (view, until)) in &mut self.held {
            let before = *until;
            if view.is_held() {
                *until = at + view.remaining();
                // A view that is still held was extended before its deadline, though this did not look then.
                let last = Moment::from_micros(before.as_micros().saturating_sub(1));
                became.push((at.min(last), *lease, Some((*until, view.mode()))));
            } else {
                // Its holder could not rely on it after its deadline.
                became.push((at.min(before), *lease, None));
            }
        }
        became.sort_by_key(|(at, lease, held)| (*at, held.is_some(), *lease));
        for (at, lease, held) in became {
            let Some((until, mode)) = held else {
                self.held.remove(&lease);
                self.observe(at, &Event::Released { lease });
                continue;
            };
            if mode == Mode::Shared {
                self.observe(at, &Event::Downgraded { lease });
            }
            let promised = None;
            let extended = Event::Extended {
                lease,
                until,
                promised,
            };
            self.observe(at, &extended);
        }
    }

    fn observe(&mut self, at: Moment, event: &Event) {
        self.checker.observe(at, event);
    }
}
