use crate::{Moment, Violation};

/// What a checker knows of a key.
#[derive(Debug, Default)]
pub(super) struct Key {
    /// The lease that was handed out last.
    pub(super) newest: Option<u64>,
    /// The leases that somebody believes in, perhaps, and until when.
    believed: Vec<(u64, Moment)>,
    /// The leases that ended without a release, and up to when the key must rest.
    resting: Vec<(u64, Moment)>,
    /// When leases were handed out, and the greatest token up to then.
    tokens: Vec<(Moment, u64)>,
}

impl Key {
    /// Somebody believes in a lease from now on.
    pub(super) fn believe(
        &mut self,
        at: Moment,
        key: usize,
        lease: u64,
        until: Moment,
    ) -> Option<Violation> {
        self.believed
            .retain(|(other, until)| *other != lease && *until > at);
        let other = self.believed.first().copied();
        self.believed.push((lease, until));
        let (earlier, until) = other?;
        Some(Violation::Overlap {
            key,
            earlier,
            later: lease,
            until,
        })
    }

    /// Nobody believes in a lease any more, and the key must rest, because it was not released.
    pub(super) fn end(&mut self, lease: u64, until: Moment) {
        self.believed.retain(|(believed, _)| *believed != lease);
        if !self.resting.iter().any(|(resting, _)| *resting == lease) {
            self.resting.push((lease, until));
        }
    }

    /// A lease was released.
    pub(super) fn release(&mut self, lease: u64) {
        self.believed.retain(|(believed, _)| *believed != lease);
        self.resting.retain(|(resting, _)| *resting != lease);
    }

    /// A lease is handed out: whether the key has rested.
    pub(super) fn has_rested(&mut self, at: Moment, key: usize, later: u64) -> Option<Violation> {
        self.resting.retain(|(_, until)| *until > at);
        let (earlier, until) = self.resting.first().copied()?;
        Some(Violation::NoRest {
            key,
            earlier,
            later,
            until,
        })
    }

    /// The order of tokens begins anew.
    pub(super) fn forget_tokens(&mut self) {
        self.tokens.clear();
    }

    /// A lease is handed out: whether its token is greater than all that were handed out before, or before
    /// its attempt was started.
    pub(super) fn order(
        &mut self,
        at: Moment,
        key: usize,
        lease: u64,
        (token, last): (u64, u64),
        before: Option<Moment>,
    ) -> Option<Violation> {
        let is_before =
            |(handed_out, _): &&(Moment, u64)| before.is_none_or(|before| *handed_out < before);
        let greatest = self.tokens.iter().rev().find(is_before);
        let greatest = greatest.map(|(_, token)| *token);
        let overall = self
            .tokens
            .last()
            .map_or(last, |(_, token)| last.max(*token));
        self.tokens.push((at, overall));
        let greatest = greatest.filter(|greatest| token <= *greatest)?;
        Some(Violation::TokenOrder {
            key,
            lease,
            token,
            greatest,
        })
    }
}
