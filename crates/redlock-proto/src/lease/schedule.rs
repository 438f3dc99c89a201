//! The moments of a lease: when it is spread, renewed, in danger and over.

use std::time::Duration;

use crate::{Instant, Timing};

/// After which time a lease that is still held is given to the nodes that do not have it yet.
pub(super) const SPREAD: Duration = Duration::from_millis(100);

/// Returns when the lease is renewed that was won or extended by a round that began at `start`.
///
/// This is after a third of the ttl, or less than a two-thousandth of the ttl earlier.
/// Leases of one ttl are renewed at the same moments, so that their renewals share calls.
pub(super) fn renewal(timing: Timing, start: Instant) -> Instant {
    let due = start + timing.ttl() / 3;
    let step = (timing.ttl() / 2048).as_nanos().max(1);
    let early = due.since_origin().as_nanos() % step;
    due - Duration::from_nanos(u64::try_from(early).unwrap_or(0))
}

/// Returns when so little of the lease is left that it is in danger, and not before the next renewal is due.
pub(super) fn danger(timing: Timing, start: Instant, deadline: Instant) -> Instant {
    (deadline - timing.warning()).max(start + timing.ttl() / 3)
}

/// Returns when a lease ends that its holder gives up at `ends` at the latest.
pub(super) fn earlier(deadline: Instant, ends: Option<Instant>) -> Instant {
    ends.map_or(deadline, |ends| deadline.min(ends))
}
