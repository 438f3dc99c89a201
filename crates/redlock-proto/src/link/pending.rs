//! The releases that a node has not confirmed.

use std::collections::{BTreeMap, BTreeSet};

use super::{LinkConfig, QueuedRequest};
use crate::{Instant, RequestError};

/// Releases that met a broken connection or an error, and are repeated.
///
/// Each is repeated at once the first time and with pauses after that, until the node has answered or the key has
/// ended by itself.
/// What is not due costs nothing: there may be thousands, and the link asks at each of its turns.
#[derive(Debug, Default)]
pub(super) struct PendingReleases {
    /// By the order in which they were added.
    releases: BTreeMap<u64, PendingRelease>,
    added: u64,
    /// When each is due or has become pointless, whichever is first.
    agenda: BTreeSet<(Instant, u64)>,
    #[cfg(test)]
    looked_at: usize,
}

#[derive(Debug)]
struct PendingRelease {
    op: QueuedRequest,
    error: RequestError,
    /// Its place on the agenda.
    at: Instant,
}

impl PendingReleases {
    /// Keeps a release; returns one that is not worth keeping, with its last error.
    pub(super) fn add(
        &mut self,
        mut op: QueuedRequest,
        error: RequestError,
        config: &LinkConfig,
        now: Instant,
    ) -> Option<(QueuedRequest, RequestError)> {
        // Each has a time of its own: one that fails for the first time has the others repeated no sooner.
        let due = if op.is_repeated {
            now + config.heartbeat
        } else {
            now
        };
        op.is_repeated = true;
        if op.is_over(now) {
            return Some((op, error));
        }
        let at = op.pending_until.map_or(due, |until| due.min(until));
        let number = self.added;
        self.added += 1;
        self.agenda.insert((at, number));
        self.releases
            .insert(number, PendingRelease { op, error, at });
        if self.releases.len() > config.pending_releases {
            let (number, oldest) = self.releases.pop_first()?;
            self.agenda.remove(&(oldest.at, number));
            Some((oldest.op, oldest.error))
        } else {
            None
        }
    }

    /// Makes all pending releases due on a new connection, in the form that this needs.
    pub(super) fn on_connected(&mut self, now: Instant) {
        for PendingRelease { op, at, .. } in self.releases.values_mut() {
            op.be_for_another_connection();
            *at = now;
        }
        let numbers = self.releases.keys();
        self.agenda = numbers.map(|number| (now, *number)).collect();
    }

    /// Returns when the next releases are due, or pointless.
    pub(super) fn due(&self) -> Option<Instant> {
        self.agenda.first().map(|(at, _)| *at)
    }

    /// Takes what is due, and what has become pointless, each in order.
    pub(super) fn take_due(
        &mut self,
        now: Instant,
    ) -> (Vec<QueuedRequest>, Vec<(QueuedRequest, RequestError)>) {
        let (mut due, mut over) = (Vec::new(), Vec::new());
        let mut numbers = Vec::new();
        while let Some((at, number)) = self.agenda.first().copied()
            && at <= now
        {
            #[cfg(test)]
            {
                self.looked_at += 1;
            }
            self.agenda.pop_first();
            numbers.push(number);
        }
        numbers.sort_unstable();
        for number in numbers {
            let Some(pending) = self.releases.remove(&number) else {
                continue;
            };
            if pending.op.is_over(now) {
                over.push((pending.op, pending.error));
            } else {
                due.push(pending.op);
            }
        }
        (due, over)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{KeySet, Lock, LockMode, OwnerId, Request, Verb};

    const SECOND: Duration = Duration::from_secs(1);

    fn at(ms: u64) -> Instant {
        Instant::from_origin(Duration::from_millis(ms))
    }

    fn release(round: u64, ttl: Duration, now: Instant) -> QueuedRequest {
        let lock = Lock {
            mode: LockMode::Exclusive,
            keys: KeySet::from("key"),
            owner: OwnerId::from_random([1; 16]),
        };
        let verb = Verb::Release { ttl };
        let lock = lock.into();
        QueuedRequest::new(round, Request::Lock { verb, lock }, now)
    }

    fn rounds(ops: impl IntoIterator<Item = QueuedRequest>) -> Vec<u64> {
        ops.into_iter().map(|op| op.round).collect()
    }

    fn refused() -> RequestError {
        RequestError::not_executed("OOM".into())
    }

    #[test]
    fn releases_that_are_not_due_cost_nothing() {
        let config = LinkConfig::new(SECOND, SECOND);
        let mut pending = PendingReleases::default();
        let repeated = |round| QueuedRequest {
            is_repeated: true,
            ..release(round, 60 * SECOND, at(0))
        };
        for round in 0..1_000 {
            assert!(
                pending
                    .add(repeated(round), refused(), &config, at(0))
                    .is_none()
            );
        }
        for round in 1_000..2_000 {
            let first = release(round, 60 * SECOND, at(1));
            assert!(pending.add(first, refused(), &config, at(1)).is_none());
            let (due, over) = pending.take_due(at(1));
            assert_eq!((rounds(due), over.len()), (vec![round], 0));
        }
        assert_eq!(pending.looked_at, 1_000);
        assert_eq!(pending.due(), Some(at(0) + config.heartbeat));
        let (due, _) = pending.take_due(at(0) + config.heartbeat);
        assert!(rounds(due).into_iter().eq(0..1_000));
        assert_eq!(pending.due(), None);
    }

    #[test]
    fn what_is_due_comes_in_the_order_in_which_it_was_kept_and_what_is_pointless_is_told() {
        let mut config = LinkConfig::new(SECOND, SECOND);
        config.pending_releases = 4;
        let mut pending = PendingReleases::default();
        let ttls = [60, 1, 60, 60, 60].map(|seconds| seconds * SECOND);
        let mut dropped = Vec::new();
        for (round, ttl) in (0..).zip(ttls) {
            let op = QueuedRequest {
                is_repeated: round % 2 == 0,
                ..release(round, ttl, at(0))
            };
            let oldest = pending.add(op, refused(), &config, at(0));
            dropped.extend(oldest.map(|(op, _)| op.round));
        }
        assert_eq!(dropped, [0], "the oldest");
        assert_eq!(pending.due(), Some(at(0)));
        pending.on_connected(at(1_000));
        assert_eq!(pending.due(), Some(at(1_000)));
        let (due, over) = pending.take_due(at(1_000));
        assert_eq!(rounds(due), [2, 3, 4]);
        assert_eq!(rounds(over.into_iter().map(|(op, _)| op)), [1]);

        let repeated = QueuedRequest {
            is_repeated: true,
            ..release(5, 60 * SECOND, at(1_000))
        };
        let first = release(6, 60 * SECOND, at(1_500));
        for (op, now) in [(repeated, at(1_000)), (first, at(1_500))] {
            assert!(pending.add(op, refused(), &config, now).is_none());
        }
        assert_eq!(rounds(pending.take_due(at(2_000)).0), [5, 6]);
    }

    #[test]
    fn a_release_that_becomes_pointless_before_it_is_repeated_is_told_then() {
        let config = LinkConfig::new(SECOND, SECOND);
        let mut pending = PendingReleases::default();
        let op = QueuedRequest {
            is_repeated: true,
            ..release(1, SECOND / 2, at(0))
        };
        assert!(pending.add(op, refused(), &config, at(0)).is_none());
        assert_eq!(pending.due(), Some(at(500)));
        let (due, over) = pending.take_due(at(500));
        assert_eq!((due.len(), over.len()), (0, 1));
    }
}
