//! Runs of other replicas, which hold up nothing here.

use super::*;
use crate::{Delivery, Missed, Trigger};

const MINUTE: &str = "5 * * * * *";

const DELIVERIES: [Delivery; 2] = [
    Delivery::AtMostOnce,
    Delivery::AtLeastOnce { max_attempts: 2 },
];

/// Returns a job that makes up for all ticks; its runs of the first tick, and on request, take `millis`.
fn long_at_first(starts: &Starts, pattern: &str, millis: u64, delivery: Delivery) -> SingletonJob {
    let job = starts.job(pattern, move |run: Run| async move {
        if run.tick() == tick(3) || run.trigger() == Trigger::Manual {
            tokio::time::sleep(Duration::from_millis(millis)).await;
        }
        Ok(())
    });
    job.delivery(delivery)
        .missed(Missed::All { max: 9 })
        .start_within(Duration::from_secs(2))
}

#[tokio::test(start_paused = true)]
async fn ticks_that_come_in_a_run_elsewhere_are_skipped_whatever_the_delivery() {
    for delivery in DELIVERIES {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let job = || long_at_first(&starts, MINUTE, 130_000, delivery);
        let first = fleet.member(0, job()).await;
        let mut second = fleet.member(0, job()).await;
        first.begin();
        second.begin();
        for index in 0..3 {
            first.wake_at(3_000 + 60_000 * index).await;
            second.wake_at(3_100 + 60_000 * index).await;
        }
        fleet.sleep_until(175_000).await;
        assert_eq!(starts.list(), [tick(3)], "{delivery:?}");
        let reports: Vec<_> = std::iter::from_fn(|| second.reports.try_recv().ok()).collect();
        let mut told: Vec<_> = reports.iter().map(|it| (it.tick(), it.outcome())).collect();
        told.sort_by_key(|(tick, _)| *tick);
        let skipped = |second| (tick(second), Outcome::Overlapping);
        let expected = [(tick(3), Outcome::NotWinner), skipped(63), skipped(123)];
        assert_eq!(told, expected, "{delivery:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn ticks_that_come_in_a_run_on_request_elsewhere_are_skipped_whatever_the_delivery() {
    for delivery in DELIVERIES {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let job = || long_at_first(&starts, MINUTE, 100_000, delivery);
        let first = fleet.member(0, starts.quick_job(MINUTE)).await;
        first.wake_at(3_000).await;
        let asked = fleet.member(0, job()).await;
        let mut second = fleet.member(0, job()).await;
        second.begin();
        fleet.sleep_until(40_000).await;
        let run = Arc::clone(&asked.runner).trigger();
        let tasks = &asked.runner.job.replica.tasks;
        tasks.spawn(async { drop(run.await) });
        second.wake_at(63_000).await;
        second.wake_at(123_000).await;
        fleet.sleep_until(175_000).await;
        assert_eq!(starts.list(), [3, 40].map(tick), "{delivery:?}");
        let skipped = second.ticks(Outcome::Overlapping);
        assert_eq!(skipped, [63, 123].map(tick), "{delivery:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tick_is_started_when_it_is_due_after_a_run_elsewhere_whatever_the_delivery() {
    for delivery in DELIVERIES {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let job = || long_at_first(&starts, EVERY_FIVE_SECONDS, 4_800, delivery);
        let first = fleet.member(0, job()).await;
        let mut second = fleet.member(0, job()).await;
        first.begin();
        second.begin();
        first.wake_at(3_000).await;
        second.wake_at(3_500).await;
        second.wake_at(8_000).await;
        fleet.sleep_until(12_000).await;
        assert_eq!(starts.list(), [3, 8].map(tick), "{delivery:?}");
        let reports = std::iter::from_fn(|| second.reports.try_recv().ok());
        let ran = reports.filter(|report| report.outcome() == Outcome::Ok);
        let late: Vec<_> = ran.map(|report| report.lag()).collect();
        assert!(late[0] < Duration::from_millis(100), "{late:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_what_looks_after_runs_elsewhere_and_tells_of_each_tick_once() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let again = Delivery::AtLeastOnce { max_attempts: 2 };
    let job = || long_at_first(&starts, MINUTE, 600_000, again);
    let first = fleet.member(0, job()).await;
    let mut second = fleet.member(0, job()).await;
    second.begin();
    first.begin();
    first.wake_at(3_000).await;
    second.wake_at(3_100).await;
    second.wake_at(63_000).await;
    fleet.sleep_until(70_000).await;
    let began = Instant::now();
    let report = second.shut_down(Duration::from_secs(60)).await;
    assert!(report.is_clean());
    assert!(began.elapsed() < Duration::from_secs(1));
    let mut told: Vec<_> = std::iter::from_fn(|| second.reports.try_recv().ok()).collect();
    told.sort_by_key(TickReport::tick);
    let told = told.iter().map(|it| (it.tick(), it.outcome()));
    let expected = [
        (tick(3), Outcome::Draining),
        (tick(63), Outcome::Overlapping),
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
}
