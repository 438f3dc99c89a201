/// Returns the number of someone who waits for an answer to what a client was asked for.
pub(super) const fn waiter_of(client: usize, ask: u64) -> u64 {
    (client as u64 + 1) << 48 | ask
}
