//! Ticks that came while a run went on, and a replica that was not there then.

use super::*;
use crate::{Missed, Overlap};

const MINUTE: &str = "5 * * * * *";

/// Returns a job of every minute that makes up for all ticks, and whose runs take `seconds`.
fn job_of(starts: &Starts, seconds: u64) -> SingletonJob {
    let job = starts.job(MINUTE, move |_| async move {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        Ok(())
    });
    job.missed(Missed::All { max: 9 })
}

#[tokio::test(start_paused = true)]
async fn ticks_that_waited_for_a_run_that_makes_up_for_another_are_started_by_the_next_replica() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut before = fleet.member(0, starts.quick_job(MINUTE)).await;
    before.wake_at(3_000).await;
    assert_eq!(before.outcome().await, Outcome::Ok);
    fleet.sleep_until(190_000).await;
    let mut first = fleet.member(0, job_of(&starts, 100)).await;
    first.begin();
    fleet.sleep_until(200_000).await;
    let report = first.shut_down(Duration::from_secs(200)).await;
    assert!(report.unfinished().is_empty());
    assert_eq!(first.ticks(Outcome::Ok), [tick(63)]);
    fleet.sleep_until(296_000).await;
    let second = fleet.member(0, job_of(&starts, 100)).await;
    second.begin();
    fleet.sleep_until(700_000).await;
    assert_eq!(starts.list(), [3, 63, 123, 183, 243].map(tick));
}

#[tokio::test(start_paused = true)]
async fn ticks_that_waited_for_a_run_are_started_by_the_next_replica() {
    for missed in [Missed::Latest, Missed::All { max: 9 }] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let job = || {
            let job = job_of(&starts, 90).missed(missed).overlap(Overlap::Wait);
            job.start_within(Duration::from_secs(60))
        };
        let mut first = fleet.member(0, job()).await;
        first.begin();
        first.wake_at(3_000).await;
        first.wake_at(63_000).await;
        fleet.sleep_until(70_000).await;
        let report = first.shut_down(Duration::from_secs(200)).await;
        assert!(report.unfinished().is_empty());
        assert_eq!(first.ticks(Outcome::Draining), [tick(63)], "{missed:?}");
        fleet.sleep_until(95_000).await;
        let second = fleet.member(0, job()).await;
        second.begin();
        fleet.sleep_until(120_000).await;
        assert_eq!(starts.list(), [3, 63].map(tick), "{missed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_waited_for_a_run_for_as_long_as_it_may_was_not_missed() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = || {
        let job = job_of(&starts, 100).missed(Missed::Latest);
        job.overlap(Overlap::Wait)
            .start_within(Duration::from_secs(30))
    };
    let mut first = fleet.member(0, job()).await;
    first.begin();
    first.wake_at(3_000).await;
    first.wake_at(63_000).await;
    fleet.sleep_until(104_000).await;
    assert_eq!(first.ticks(Outcome::Overlapping), [tick(63)]);
    let mut second = fleet.member(0, job()).await;
    second.begin();
    second.wake_at(123_000).await;
    fleet.sleep_until(130_000).await;
    assert_eq!(starts.list(), [3, 123].map(tick));
    assert!(second.ticks(Outcome::Missed).is_empty());
}

/// Returns a job of every minute, of which the run of the first tick takes `seconds`.
fn long_at_first(starts: &Starts, seconds: u64, missed: Missed) -> SingletonJob {
    let job = starts.job(MINUTE, move |run: Run| async move {
        let seconds = if run.tick() == tick(3) { seconds } else { 1 };
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        Ok(())
    });
    job.missed(missed)
}

#[tokio::test(start_paused = true)]
async fn ticks_that_a_run_has_skipped_are_not_started_by_a_replica_that_comes_up_during_it() {
    let all = Missed::All { max: 9 };
    for (missed, seconds, expected, skipped) in [
        (Missed::Latest, 169, vec![3, 183, 243], vec![123]),
        (Missed::Latest, 190, vec![3, 243], vec![123, 183]),
        (all, 169, vec![3, 183, 243], vec![63, 123]),
        (all, 190, vec![3, 243], vec![63, 123, 183]),
    ] {
        let ticks = |seconds: Vec<i64>| seconds.into_iter().map(tick).collect::<Vec<_>>();
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let job = || long_at_first(&starts, seconds, missed);
        let mut first = fleet.member(0, job()).await;
        first.begin();
        for second in [3, 63, 123] {
            first.wake_at(second * 1_000).await;
        }
        fleet.sleep_until(160_000).await;
        assert_eq!(first.ticks(Outcome::Overlapping), [63, 123].map(tick));
        let mut second = fleet.member(0, job()).await;
        second.begin();
        for due in [183, 243] {
            first.wake_at(due * 1_000).await;
            second.wake_at(due * 1_000).await;
        }
        fleet.sleep_until(250_000).await;
        let case = format!("{missed:?}, {seconds} s");
        assert_eq!(starts.list(), ticks(expected), "{case}");
        let told: Vec<_> = std::iter::from_fn(|| second.reports.try_recv().ok()).collect();
        let of = |outcome| {
            let such = told.iter().filter(|report| report.outcome() == outcome);
            such.map(TickReport::tick).collect::<Vec<_>>()
        };
        assert_eq!(of(Outcome::Overlapping), ticks(skipped), "{case}");
        assert!(of(Outcome::Missed).is_empty(), "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn ticks_in_a_run_that_is_cut_short_are_started_by_a_replica_that_came_up_during_it() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = || long_at_first(&starts, 600, Missed::All { max: 9 });
    let first = fleet.member(0, job()).await;
    first.begin();
    first.wake_at(3_000).await;
    fleet.sleep_until(95_000).await;
    let mut second = fleet.member(0, job()).await;
    second.begin();
    fleet.sleep_until(100_000).await;
    assert_eq!(starts.list(), [tick(3)]);
    first.crash().await;
    fleet.sleep_until(115_000).await;
    assert_eq!(starts.list(), [3, 63].map(tick));
    assert!(second.ticks(Outcome::Overlapping).is_empty());
}
