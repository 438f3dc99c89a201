//! Runs that go on elsewhere when a tick comes, or when a replica comes up.

use super::*;
use redlock_cron::{Delivery, Missed, Overlap, Trigger};

/// Returns a job of every minute that makes up for all ticks, and whose runs take `seconds`.
fn job_of(starts: &Starts, seconds: u64) -> SingletonJob {
    let job = starts.job(MINUTE, move |_| async move {
        sleep(Duration::from_secs(seconds)).await;
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
    drop(before);
    fleet.until(190).await;
    let mut first = fleet.member(0, job_of(&starts, 100)).await;
    first.begin().await;
    fleet.until(200).await;
    let report = first.shut_down(Duration::from_secs(200)).await;
    assert!(report.unfinished().is_empty());
    assert_eq!(first.ticks(Outcome::Ok), [tick(63)]);
    fleet.until(296).await;
    let second = fleet.member(0, job_of(&starts, 100)).await;
    second.begin().await;
    fleet.until(700).await;
    assert_eq!(starts.list()[..5], [3, 63, 123, 183, 243].map(tick));
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
        first.begin().await;
        first.wake_at(3_000).await;
        first.wake_at(63_000).await;
        fleet.until(70).await;
        let report = first.shut_down(Duration::from_secs(200)).await;
        assert!(report.unfinished().is_empty());
        assert_eq!(first.ticks(Outcome::Draining), [tick(63)], "{missed:?}");
        fleet.until(95).await;
        let second = fleet.member(0, job()).await;
        second.begin().await;
        fleet.until(120).await;
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
    first.begin().await;
    first.wake_at(3_000).await;
    first.wake_at(63_000).await;
    fleet.until(104).await;
    assert_eq!(first.ticks(Outcome::Overlapping), [tick(63)]);
    let mut second = fleet.member(0, job()).await;
    second.begin().await;
    second.wake_at(123_000).await;
    fleet.until(130).await;
    assert_eq!(starts.list(), [3, 123].map(tick));
    assert!(second.ticks(Outcome::Missed).is_empty());
}

/// Returns a job of every minute, of which the run of the first tick takes `seconds`.
fn long_at_first(starts: &Starts, seconds: u64, missed: Missed) -> SingletonJob {
    let job = starts.job(MINUTE, move |run: Run| async move {
        let seconds = if run.tick() == tick(3) { seconds } else { 1 };
        sleep(Duration::from_secs(seconds)).await;
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
        first.begin().await;
        for second in [3, 63, 123] {
            first.wake_at(second * 1_000).await;
        }
        fleet.until(160).await;
        assert_eq!(first.ticks(Outcome::Overlapping), [63, 123].map(tick));
        let mut second = fleet.member(0, job()).await;
        second.begin().await;
        for due in [183, 243] {
            first.wake_at(due * 1_000).await;
            second.wake_at(due * 1_000).await;
        }
        fleet.until(250).await;
        let case = format!("{missed:?}, {seconds} s");
        assert_eq!(starts.list(), ticks(expected), "{case}");
        let told = second.reports();
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
    first.begin().await;
    first.wake_at(3_000).await;
    fleet.until(95).await;
    let mut second = fleet.member(0, job()).await;
    second.begin().await;
    fleet.until(100).await;
    assert_eq!(starts.list(), [tick(3)]);
    first.crash().await;
    fleet.until(115).await;
    assert_eq!(starts.list(), [3, 63].map(tick));
    assert!(second.ticks(Outcome::Overlapping).is_empty());
}

const DELIVERIES: [Delivery; 2] = [
    Delivery::AtMostOnce,
    Delivery::AtLeastOnce { max_attempts: 2 },
];

/// Returns a job that makes up for all ticks; its runs of the first tick, and on request, take `millis`.
fn long_first_run(starts: &Starts, pattern: &str, millis: u64, delivery: Delivery) -> SingletonJob {
    let job = starts.job(pattern, move |run: Run| async move {
        if run.tick() == tick(3) || run.trigger() == Trigger::Manual {
            sleep(Duration::from_millis(millis)).await;
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
        let job = || long_first_run(&starts, MINUTE, 130_000, delivery);
        let first = fleet.member(0, job()).await;
        let mut second = fleet.member(0, job()).await;
        for index in 0..3 {
            first.wake_at(3_000 + 60_000 * index).await;
            second.wake_at(3_100 + 60_000 * index).await;
        }
        fleet.until(175).await;
        assert_eq!(starts.list(), [tick(3)], "{delivery:?}");
        let reports = second.reports();
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
        let job = || long_first_run(&starts, MINUTE, 100_000, delivery);
        let first = fleet.member(0, starts.quick_job(MINUTE)).await;
        first.wake_at(3_000).await;
        let asked = fleet.member(0, job()).await;
        let mut second = fleet.member(0, job()).await;
        second.begin().await;
        fleet.until(40).await;
        asked.request();
        second.wake_at(63_000).await;
        second.wake_at(123_000).await;
        fleet.until(175).await;
        assert_eq!(starts.list(), [3, 40].map(tick), "{delivery:?}");
        let skipped = second.ticks(Outcome::Overlapping);
        assert_eq!(skipped, [63, 123].map(tick), "{delivery:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tick_is_started_when_it_is_due_after_a_run_elsewhere_whatever_the_delivery() {
    for delivery in DELIVERIES {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let job = || long_first_run(&starts, EVERY_FIVE_SECONDS, 4_800, delivery);
        let first = fleet.member(0, job()).await;
        let mut second = fleet.member(0, job()).await;
        first.begin().await;
        second.begin().await;
        first.wake_at(3_000).await;
        second.wake_at(3_500).await;
        second.wake_at(8_000).await;
        fleet.until(12).await;
        assert_eq!(starts.list(), [3, 8].map(tick), "{delivery:?}");
        let reports = second.reports().into_iter();
        let ran = reports.filter(|report| report.outcome() == Outcome::Ok);
        let late: Vec<_> = ran.map(|report| report.lag()).collect();
        assert!(late[0] < Duration::from_millis(100), "{late:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_what_looks_after_runs_elsewhere_and_tells_of_each_tick_once() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let again = Delivery::AtLeastOnce { max_attempts: 2 };
    let job = || long_first_run(&starts, MINUTE, 600_000, again);
    let first = fleet.member(0, job()).await;
    let mut second = fleet.member(0, job()).await;
    first.wake_at(3_000).await;
    second.wake_at(3_100).await;
    second.wake_at(63_000).await;
    fleet.until(70).await;
    let began = Instant::now();
    let report = second.shut_down(Duration::from_secs(60)).await;
    assert!(report.is_clean());
    assert!(began.elapsed() < Duration::from_secs(1));
    let mut told: Vec<_> = second.reports().into_iter().collect();
    told.sort_by_key(TickReport::tick);
    let told = told.iter().map(|it| (it.tick(), it.outcome()));
    let expected = [
        (tick(3), Outcome::Draining),
        (tick(63), Outcome::Overlapping),
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
}
