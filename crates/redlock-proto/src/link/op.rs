use crate::{Instant, Request};

/// A request on its way to a node.
#[derive(Clone, Debug)]
pub struct Op {
    pub(super) request: Request,
    /// The round that wants to know what becomes of it.
    pub(super) round: u64,
    /// The connection that it is meant for.
    pub(super) connection: u64,
    /// For a release: until when it is worth repeating.
    pub(super) pending_until: Option<Instant>,
    /// Whether it has failed before.
    pub(super) is_repeated: bool,
}

impl Op {
    /// Makes the operation of an [`Effect::Send`](crate::Effect::Send), which the client made at `now`.
    pub fn new(round: u64, request: Request, connection: u64, now: Instant) -> Self {
        // The key of a release has expired by then.
        let pending_until = request.worth_repeating_for().map(|ttl| now + ttl);
        Self {
            request,
            round,
            connection,
            pending_until,
            is_repeated: false,
        }
    }

    /// Returns the round that wants to know what becomes of it.
    pub const fn round(&self) -> u64 {
        self.round
    }

    /// Takes the form that another connection needs.
    pub(super) fn be_for_another_connection(&mut self) {
        self.request = self.request.clone().over_another_connection();
    }

    /// Returns whether the key that it releases has expired.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.pending_until.is_none_or(|until| until <= now)
    }
}
