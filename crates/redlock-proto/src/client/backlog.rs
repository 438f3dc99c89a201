use crate::Instant;

/// The work that a [`Link`](crate::Link) has before it, as the client must know it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a driver must pass on every part of it"
)]
pub struct Backlog {
    /// The number of requests that wait in this client to be sent.
    pub unsent: usize,
    /// Since when the node has said nothing although a call was written to it; `None` if it owes no answer.
    pub awaited: Option<Instant>,
}
