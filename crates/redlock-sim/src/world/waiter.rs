/// Returns the number of the waiter for the answer of a client to `ask`.
pub(super) const fn waiter_of(client: usize, ask: u64) -> u64 {
    (client as u64 + 1) << 48 | ask
}
