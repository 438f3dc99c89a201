//! Leases that pass from one caller of this process to the next; as a rule, the driver learns of that later.

use std::{
    collections::BTreeMap,
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::Lease;

/// The leases that have changed hands since the driver looked last, each with its last change.
///
/// A change wakes no task: a system call in the middle of a hand-over costs more than all the rest of it.
/// The driver looks here before it does anything else, so it extends no lease that it could know to be parked.
///
/// There is one entry for each lease at most, so a lease that changes hands while the driver sleeps does not let this
/// grow; its release wakes the driver.
#[derive(Debug, Default)]
pub(super) struct HandOvers(Mutex<BTreeMap<u64, HandOver>>);

/// The last change of a lease that changes hands.
#[derive(Debug)]
pub(super) enum HandOver {
    /// The lease waits for its next holder; nothing extends it meanwhile.
    Parked,
    /// This is the lease of the next holder.
    Resumed(Lease),
}

impl HandOvers {
    /// Notes that a lease waits for its next holder.
    ///
    /// The driver may learn of it late: it looks here before it extends a lease.
    pub(super) fn park(&self, lease: u64) {
        self.changes().insert(lease, HandOver::Parked);
    }

    /// Notes that a lease has its next holder; returns whether the driver must be woken.
    ///
    /// It must be if it has seen the lease parked: it has no timer any more that would extend the lease in time.
    pub(super) fn resume(&self, lease: u64, next: Lease) -> bool {
        let before = self.changes().insert(lease, HandOver::Resumed(next));
        before.is_none()
    }

    /// Takes all changes, in the order of the leases' numbers.
    pub(super) fn take(&self) -> BTreeMap<u64, HandOver> {
        mem::take(&mut *self.changes())
    }

    fn changes(&self) -> MutexGuard<'_, BTreeMap<u64, HandOver>> {
        // Nothing panics while the lock is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{super::HeldLease, *};

    fn lease() -> Lease {
        HeldLease::for_tests().0.lease().clone()
    }

    #[tokio::test(start_paused = true)]
    async fn a_thousand_hand_overs_that_the_driver_has_not_seen_are_one() {
        let hand_overs = HandOvers::default();
        let last = lease();
        for _ in 0..1_000 {
            hand_overs.park(7);
            assert!(!hand_overs.resume(7, last.clone()));
        }
        let seen = hand_overs.take();
        assert!(matches!(
            seen.into_iter().collect::<Vec<_>>()[..],
            [(7, HandOver::Resumed(_))]
        ));
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_was_seen_parked_wakes_the_driver_once_it_is_held_again() {
        let hand_overs = HandOvers::default();
        hand_overs.park(7);
        hand_overs.park(8);
        assert_eq!(hand_overs.take().len(), 2);
        hand_overs.park(9);
        assert!(hand_overs.resume(7, lease()));
        assert!(!hand_overs.resume(9, lease()));
    }
}
