use std::time::Duration;

/// The limits of a [`Link`](crate::Link).
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a driver may settle every part of it"
)]
pub struct LinkConfig {
    /// The longest time that a connection may take to be made, up to the node's first answer.
    pub connect_timeout: Duration,
    /// The time for which a call may be in flight, or a request may wait, before requests to the node are shed.
    pub lag_after: Duration,
    /// The time for which a call may be in flight before its connection is given up.
    pub give_up_after: Duration,
    /// A connection on which nothing happens for this long is tried, and a release that failed twice is repeated after
    /// this long.
    pub heartbeat: Duration,
    /// The pause before the first of several attempts to connect; it doubles with each.
    pub shortest_pause: Duration,
    /// The longest pause before an attempt to connect; after a connection that lasts this long, the pauses start over.
    pub longest_pause: Duration,
    /// The most requests that travel together.
    pub requests_per_call: usize,
    /// The most of them if each takes, keeps or releases one key, and does nothing else.
    pub plain_requests_per_call: usize,
    /// The most calls that are in flight.
    pub calls: usize,
    /// The most releases that are kept to be repeated; the oldest end by themselves first.
    pub pending_releases: usize,
}

impl LinkConfig {
    /// Returns the limits of a client in production.
    pub const fn new(connect_timeout: Duration, lag_after: Duration) -> Self {
        let (patience, least) = (lag_after.saturating_mul(4), Duration::from_secs(2));
        Self {
            connect_timeout,
            lag_after,
            give_up_after: if patience.as_nanos() > least.as_nanos() {
                patience
            } else {
                least
            },
            heartbeat: Duration::from_secs(1),
            shortest_pause: Duration::from_millis(25),
            longest_pause: Duration::from_secs(1),
            // Each may be for as many keys as a lock can have, and a server does nothing else while it does a call.
            requests_per_call: 16,
            // The look at the mark and its like are what a call costs beside its requests: as much as four of them.
            plain_requests_per_call: 64,
            // Fewer than the calls that redis-rs buffers (50), so that a call is never kept waiting for room.
            calls: 32,
            pending_releases: 10_000,
        }
    }

    /// Returns how long to wait before a connection is tried again, after so many failures and at least one.
    ///
    /// `random` is random bits.
    /// The pause is between half and all of what it may be, so that the clients of a node that came back do not all
    /// arrive at once.
    pub(super) fn pause(&self, failures: u32, random: u64) -> Duration {
        let doubled = self.shortest_pause.saturating_mul(1 << failures.min(8));
        let longest = doubled.min(self.longest_pause);
        let part = u32::try_from(random % 128 + 128).unwrap_or(256);
        longest * part / 256
    }
}
