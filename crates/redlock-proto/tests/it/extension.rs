//! Rounds of extension.

use std::{num::NonZeroUsize, time::Duration};

use proptest::prelude::*;
use redlock_proto::{Extension, ExtensionVerdict, Instant, NodeOutcome, Quorum, Timing};

const GONE: NodeOutcome = NodeOutcome::Missing;
const GRANTED: NodeOutcome = NodeOutcome::Granted { counter: 0 };

fn ms(ms: u64) -> Instant {
    Instant::from_origin(Duration::from_millis(ms))
}

fn timing(ttl: u64) -> Timing {
    Timing::new(Duration::from_millis(ttl), 0.01, Duration::from_millis(1)).unwrap()
}

fn extension(nodes: usize, valid_until: Instant, now: Instant) -> Extension {
    let quorum = Quorum::of(NonZeroUsize::new(nodes).unwrap());
    Extension::start(quorum, timing(1_000), valid_until, now)
}

// Shows: T2.4.
#[test]
fn a_majority_moves_the_deadline() {
    let mut extension = extension(3, ms(500), ms(300));
    assert_eq!(extension.on_outcome(0, GRANTED, ms(301)), None);
    assert_eq!(
        extension.on_outcome(1, GRANTED, ms(302)),
        Some(ExtensionVerdict::Extended {
            deadline: ms(300 + 978)
        })
    );
    assert_eq!(extension.on_outcome(2, GRANTED, ms(303)), None);
}

// Shows: T1.8.
#[test]
fn a_node_that_lost_the_key_does_not_count() {
    let mut extension = extension(3, ms(500), ms(300));
    assert_eq!(extension.on_outcome(0, GONE, ms(301)), None);
    assert_eq!(
        extension.on_outcome(1, GONE, ms(301)),
        Some(ExtensionVerdict::Revoked)
    );
}

// Shows: T1.8.
#[test]
fn s04_a_confirmation_after_the_old_deadline_does_not_bring_the_lease_back() {
    let mut extension = extension(1, ms(500), ms(300));
    let verdict = extension.on_outcome(0, GRANTED, ms(500));
    assert_eq!(verdict, Some(ExtensionVerdict::Failed));
}

#[test]
fn silence_is_a_failed_round_and_not_a_lost_lease() {
    let mut extension = extension(5, ms(500), ms(300));
    assert_eq!(extension.on_outcome(0, GONE, ms(301)), None);
    assert_eq!(extension.on_outcome(1, GONE, ms(301)), None);
    assert_eq!(
        extension.on_time_limit(ms(350)),
        Some(ExtensionVerdict::Failed)
    );
    assert_eq!(extension.on_time_limit(ms(351)), None);
}

// Shows: T3.3.
#[test]
fn s22_a_write_back_counts_only_nodes_whose_vote_counted() {
    let mut extension = extension(5, ms(500), ms(300)).among(&[0, 1, 2]);
    assert_eq!(extension.on_outcome(4, GRANTED, ms(301)), None);
    assert_eq!(extension.on_outcome(0, GRANTED, ms(301)), None);
    assert_eq!(extension.on_outcome(1, GRANTED, ms(301)), None);
    let verdict = extension.on_outcome(2, GONE, ms(301));
    assert_eq!(verdict, Some(ExtensionVerdict::Failed));
}

proptest! {
    /// pottery, redis-semaphore and redlock-universal counted the new lease from the reply.
    // Shows: T1.1.
    #[test]
    fn s03_the_deadline_counts_from_the_rounds_own_start(
        ttl in 10u64..100_000, start in 0u64..1_000_000, waited in 0u64..200_000,
    ) {
        let timing = timing(ttl);
        let quorum = Quorum::of(NonZeroUsize::MIN);
        let mut extension = Extension::start(quorum, timing, ms(u64::MAX / 4), ms(start));
        match extension.on_outcome(0, GRANTED, ms(start + waited)) {
            Some(ExtensionVerdict::Extended { deadline }) => {
                prop_assert_eq!(deadline + timing.drift(), ms(start + ttl));
                prop_assert!(deadline > ms(start + waited));
            }
            verdict => prop_assert_eq!(verdict, Some(ExtensionVerdict::Failed)),
        }
    }
}
