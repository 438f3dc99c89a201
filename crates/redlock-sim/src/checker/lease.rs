//! Leases, and the times in which their holders may believe in them.

use std::time::Duration;

use super::Checker;
use crate::{Event, Moment, Violation};

#[derive(Clone, Copy, Debug)]
pub(super) struct Lease {
    pub(super) key: usize,
    pub(super) client: usize,
    /// When it was handed out.
    pub(super) since: Moment,
    pub(super) until: Moment,
    /// Whether others may share its keys.
    pub(super) is_shared: bool,
    /// It has ended without a release.
    pub(super) is_over: bool,
    /// It has no holder for the moment.
    pub(super) is_parked: bool,
    /// The token of its holder, and the last that it has reserved.
    pub(super) tokens: (u64, u64),
    pub(super) rest: Duration,
    /// For how long its client had stood still when it was handed out or prolonged.
    pub(super) stood: Duration,
}

/// The way in which a holder gives up a lease.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    /// The nodes were not told.
    Alone,
    /// It is kept for the next holder.
    Parked,
    Released,
}

impl Checker {
    pub(super) fn acquired(&mut self, at: Moment, event: &Event) {
        let Event::Acquired {
            lease,
            client,
            key,
            is_shared,
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
        let order = (started, self.rules.clocks_step, is_shared);
        for key in self.keys_of(key) {
            let state = self.keys.entry(key).or_default();
            state.hand_out(at, lease, is_shared);
            let found = [
                state.believe(at, key, lease, (until, is_shared)),
                state.has_rested(at, key, lease, is_shared),
                state.order(at, key, lease, tokens, order),
            ];
            for violation in found.into_iter().flatten() {
                self.report(at, violation);
            }
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
                is_shared,
                is_over: false,
                is_parked: false,
                tokens,
                rest,
                stood,
            },
        );
        // A caller of several keys also waits for callers of fewer keys, in any mode.
        let is_set = self.sets.contains_key(&key);
        if is_shared && self.rules.shares && !is_set {
            return;
        }
        self.freed(at, key);
        for key in self.keys_of(key) {
            self.freed(at, key);
        }
    }

    /// Records that other leases may share the keys of this one from now on.
    pub(super) fn downgraded(&mut self, lease: u64) {
        let Some(state) = self.leases.get_mut(&lease) else {
            return;
        };
        state.is_shared = true;
        for key in self.keys_of(self.leases[&lease].key) {
            self.keys.entry(key).or_default().share(lease);
        }
    }

    /// Judges the end of a lease, or its release after the end.
    pub(super) fn ended(&mut self, at: Moment, lease: u64, end: End) {
        let Some(state) = self.leases.get_mut(&lease) else {
            return;
        };
        let ended = *state;
        match end {
            End::Alone => state.is_over = true,
            End::Parked => state.is_parked = true,
            End::Released => _ = self.leases.remove(&lease),
        }
        for key in self.keys_of(ended.key) {
            let key = self.keys.entry(key).or_default();
            match end {
                End::Alone => key.end(lease, ended.until + ended.rest, ended.is_shared),
                End::Parked | End::Released => key.release(lease),
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

    pub(super) fn handed_over(&mut self, at: Moment, lease: u64, token: u64, until: Moment) {
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

    pub(super) fn extended(
        &mut self,
        at: Moment,
        lease: u64,
        until: Moment,
        promised: Option<Moment>,
    ) {
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

    /// Judges a later deadline of a lease that was handed out before.
    fn prolong(&mut self, at: Moment, lease: u64, until: Moment) {
        let Some(Lease {
            key,
            client,
            since,
            is_shared,
            ..
        }) = self.leases.get(&lease).copied()
        else {
            return;
        };
        let stood = self.stood(client);
        if let Some(lease) = self.leases.get_mut(&lease) {
            lease.until = until;
            lease.stood = stood;
        }
        for key in self.keys_of(key) {
            let state = self.keys.entry(key).or_default();
            let overlap = state.believe(at, key, lease, (until, is_shared));
            let stale = state.is_stale(key, lease, (since, is_shared));
            for violation in overlap.into_iter().chain(stale) {
                self.report(at, violation);
            }
        }
    }

    pub(super) fn freed(&mut self, at: Moment, key: usize) {
        if let Some(due) = self.free.remove(&key)
            && at > due
        {
            self.report(at, Violation::Starved { key, due });
        }
    }
}

/// How late a timer may be.
const TIMER: Duration = Duration::from_millis(1);
