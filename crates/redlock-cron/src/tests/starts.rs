//! The first moments of a replica.

use super::*;
use crate::Missed;

/// The look for what was missed and the wake-up both come to it.
#[tokio::test(start_paused = true)]
async fn a_tick_that_is_due_at_the_start_is_told_of_once() {
    for missed in [Missed::All { max: 9 }, Missed::Latest] {
        for before in [900, 500, 100, 0] {
            let (fleet, starts) = (Fleet::new(), Starts::default());
            let job = || starts.quick_job(EVERY_FIVE_SECONDS).missed(missed);
            let first = fleet.member(0, job()).await;
            first.wake_at(3_000).await;
            if let Missed::All { .. } = missed {
                first.begin();
            }
            fleet.sleep_until(5_000).await;
            drop(first);
            fleet.sleep_until(13_000 - before).await;
            let mut member = fleet.member(0, job()).await;
            // As a start does.
            member.runner.wake();
            member.begin();
            fleet.sleep_until(15_000).await;
            let reports = std::iter::from_fn(|| member.reports.try_recv().ok());
            let told: Vec<_> = reports.map(|r| (r.tick(), r.outcome())).collect();
            let told_of = |tick| told.iter().filter(|(of, _)| *of == tick).count();
            assert_eq!(
                (told_of(tick(8)), told_of(tick(13))),
                (1, 1),
                "{missed:?} {before}: {told:?}"
            );
            assert!(told.contains(&(tick(13), Outcome::Ok)), "{told:?}");
        }
    }
}
