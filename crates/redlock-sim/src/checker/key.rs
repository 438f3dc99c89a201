use crate::{Moment, Violation};

/// What a checker knows of a key.
#[derive(Debug, Default)]
pub(super) struct Key {
    /// The lease that was handed out last.
    newest: Option<u64>,
    /// The lease that was handed out last to have the key alone, and when.
    newest_alone: Option<(u64, Moment)>,
    /// The leases in which a holder may still believe.
    believed: Vec<Claimed>,
    /// The leases that ended without a release, and up to when the key must rest.
    resting: Vec<Claimed>,
    /// The tokens of leases that had the key alone.
    alone: Tokens,
    /// The tokens of leases that shared it.
    shared: Tokens,
}

/// Up to when a lease has a key.
#[derive(Clone, Copy, Debug)]
struct Claimed {
    lease: u64,
    until: Moment,
    is_shared: bool,
}

/// When leases were handed out, and the greatest token up to then.
#[derive(Debug, Default)]
struct Tokens(Vec<(Moment, u64)>);

impl Key {
    /// Records that a lease is handed out.
    pub(super) fn hand_out(&mut self, at: Moment, lease: u64, is_shared: bool) {
        self.newest = Some(lease);
        if !is_shared {
            self.newest_alone = Some((lease, at));
        }
    }

    /// Records that a holder believes in a lease from now on; returns a violation if it overlaps another lease.
    pub(super) fn believe(
        &mut self,
        at: Moment,
        key: usize,
        lease: u64,
        (until, is_shared): (Moment, bool),
    ) -> Option<Violation> {
        self.believed
            .retain(|other| other.lease != lease && other.until > at);
        let other = meets(&self.believed, is_shared);
        self.believed.push(Claimed {
            lease,
            until,
            is_shared,
        });
        let other = other?;
        Some(Violation::Overlap {
            key,
            earlier: other.lease,
            later: lease,
            until: other.until,
        })
    }

    /// Records that other leases may share the key with this one from now on.
    pub(super) fn share(&mut self, lease: u64) {
        for claimed in self.believed.iter_mut().chain(&mut self.resting) {
            claimed.is_shared |= claimed.lease == lease;
        }
    }

    /// Records that a lease has ended without a release, so that the key must rest.
    pub(super) fn end(&mut self, lease: u64, until: Moment, is_shared: bool) {
        self.believed.retain(|believed| believed.lease != lease);
        if !self.resting.iter().any(|resting| resting.lease == lease) {
            self.resting.push(Claimed {
                lease,
                until,
                is_shared,
            });
        }
    }

    /// Records that a lease was released.
    pub(super) fn release(&mut self, lease: u64) {
        self.believed.retain(|believed| believed.lease != lease);
        self.resting.retain(|resting| resting.lease != lease);
    }

    /// Returns a violation if a lease is handed out before the key has rested.
    pub(super) fn has_rested(
        &mut self,
        at: Moment,
        key: usize,
        later: u64,
        is_shared: bool,
    ) -> Option<Violation> {
        self.resting.retain(|resting| resting.until > at);
        let resting = meets(&self.resting, is_shared)?;
        Some(Violation::NoRest {
            key,
            earlier: resting.lease,
            later,
            until: resting.until,
        })
    }

    /// Returns a violation if a lease from `since` is prolonged although a newer lease excludes it.
    pub(super) fn is_stale(
        &self,
        key: usize,
        lease: u64,
        (since, is_shared): (Moment, bool),
    ) -> Option<Violation> {
        let alone = self.newest_alone.filter(|(_, at)| *at > since);
        let newer = if is_shared {
            alone.map(|(newer, _)| newer)
        } else {
            self.newest
        };
        let newer = newer.filter(|newer| *newer != lease)?;
        Some(Violation::StaleExtension { key, lease, newer })
    }

    /// Forgets all tokens, so that their order starts over.
    pub(super) fn forget_tokens(&mut self) {
        self.alone.0.clear();
        self.shared.0.clear();
    }

    /// Returns a violation if the token of a new lease is not greater than all tokens that were handed out before.
    ///
    /// With `by_start`, and among leases that share the key, only tokens from before `started` count.
    pub(super) fn order(
        &mut self,
        at: Moment,
        key: usize,
        lease: u64,
        (token, last): (u64, u64),
        (started, by_start, is_shared): (Moment, bool, bool),
    ) -> Option<Violation> {
        let before = |by_start: bool| by_start.then_some(started);
        let greatest = self.alone.greatest(before(by_start));
        let greatest = greatest.max(self.shared.greatest(before(by_start || is_shared)));
        let own = if is_shared {
            &mut self.shared
        } else {
            &mut self.alone
        };
        own.add(at, last);
        let greatest = greatest.filter(|greatest| token <= *greatest)?;
        Some(Violation::TokenOrder {
            key,
            lease,
            token,
            greatest,
        })
    }
}

impl Tokens {
    /// Returns the greatest token that was handed out so far, or before a moment.
    fn greatest(&self, before: Option<Moment>) -> Option<u64> {
        let is_before =
            |(handed_out, _): &&(Moment, u64)| before.is_none_or(|before| *handed_out < before);
        let greatest = self.0.iter().rev().find(is_before);
        greatest.map(|(_, token)| *token)
    }

    fn add(&mut self, at: Moment, token: u64) {
        let overall = self.greatest(None).map_or(token, |last| last.max(token));
        self.0.push((at, overall));
    }
}

/// Returns the first of the leases that another one must not overlap.
fn meets(claimed: &[Claimed], is_shared: bool) -> Option<Claimed> {
    let mut others = claimed.iter();
    others
        .find(|other| !(is_shared && other.is_shared))
        .copied()
}
