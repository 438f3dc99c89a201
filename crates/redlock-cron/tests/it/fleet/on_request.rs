//! Ticks that came during a run on request, and replicas that come up during it or after.

use super::*;
use redlock_cron::{Missed, Trigger};

/// Returns a job whose runs on request take `seconds`.
fn job_of(starts: &Starts, seconds: u64, missed: Missed) -> SingletonJob {
    let job = starts.job(MINUTE, move |run: Run| async move {
        if run.trigger() == Trigger::Manual {
            sleep(Duration::from_secs(seconds)).await;
        }
        Ok(())
    });
    job.missed(missed)
}

/// Runs the first tick on a replica that is gone then, and returns one that was not started.
async fn has_run(fleet: &Fleet, job: impl Fn() -> SingletonJob) -> Member {
    let mut first = fleet.member(0, job()).await;
    first.wake_at(3_000).await;
    assert_eq!(first.outcome().await, Outcome::Ok);
    assert!(first.shut_down(Duration::ZERO).await.is_clean());
    fleet.member(0, job()).await
}

/// Returns a replica that claims the tick at the second `next`; another has run the first tick, and a third has begun a run
/// on request at the second `asked`.
async fn claims_after_a_request(
    fleet: &Fleet,
    job: impl Fn() -> SingletonJob,
    asked: u64,
    next: u64,
) -> Member {
    let asks = has_run(fleet, &job).await;
    fleet.until(asked).await;
    asks.request();
    fleet.until(next - 1).await;
    let second = fleet.member(0, job()).await;
    second.begin().await;
    fleet.until(next + 5).await;
    second
}

#[tokio::test(start_paused = true)]
async fn of_missed_ticks_those_in_a_run_on_request_take_no_other_s_place() {
    for (missed, expected) in [
        (Missed::Latest, vec![3, 170, 123]),
        (Missed::All { max: 3 }, vec![3, 170, 63, 123]),
        (Missed::All { max: 1 }, vec![3, 170, 123]),
    ] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let first = has_run(&fleet, || job_of(&starts, 200, missed)).await;
        fleet.until(170).await;
        first.request();
        fleet.until(380).await;
        let second = fleet.member(0, job_of(&starts, 200, missed)).await;
        second.begin().await;
        fleet.until(400).await;
        let expected: Vec<_> = expected.into_iter().map(tick).collect();
        assert_eq!(starts.list(), expected, "{missed:?}");
    }
}

/// They are as many as have reports of their own.
#[tokio::test(start_paused = true)]
async fn missed_ticks_before_a_long_run_on_request_are_told_though_many_came_in_it() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = || job_of(&starts, 101 * 60, Missed::Skip);
    let mut second = claims_after_a_request(&fleet, job, 170, 3 + 105 * 60).await;
    let expected = [63, 123, 6_243].map(tick);
    assert_eq!(second.ticks(Outcome::Missed), expected);
}

#[tokio::test(start_paused = true)]
async fn ticks_in_a_run_on_request_are_not_started_by_a_replica_that_comes_up_during_it() {
    for missed in [Missed::Latest, Missed::All { max: 9 }] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let first = has_run(&fleet, || job_of(&starts, 100, missed)).await;
        fleet.until(40).await;
        first.request();
        fleet.until(100).await;
        let second = fleet.member(0, job_of(&starts, 100, missed)).await;
        second.begin().await;
        second.wake_at(123_000).await;
        fleet.until(175).await;
        assert_eq!(starts.list(), [3, 40].map(tick), "{missed:?}");
        second.wake_at(183_000).await;
        fleet.until(190).await;
        assert_eq!(starts.list(), [3, 40, 183].map(tick), "{missed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn ticks_before_a_run_on_request_are_started_after_it_by_a_replica_that_comes_up_during_it() {
    for missed in [Missed::Latest, Missed::All { max: 9 }] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let first = has_run(&fleet, || job_of(&starts, 75, missed)).await;
        fleet.until(100).await;
        first.request();
        fleet.until(160).await;
        let second = fleet.member(0, job_of(&starts, 75, missed)).await;
        second.begin().await;
        fleet.until(182).await;
        assert_eq!(starts.list(), [3, 100, 63].map(tick), "{missed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn ticks_in_a_run_on_request_that_is_cut_short_are_started_by_a_replica_that_came_up_during_it()
 {
    for missed in [Missed::Latest, Missed::All { max: 9 }] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let first = has_run(&fleet, || job_of(&starts, 600, missed)).await;
        fleet.until(40).await;
        first.request();
        fleet.until(95).await;
        let second = fleet.member(0, job_of(&starts, 1, missed)).await;
        second.begin().await;
        fleet.until(100).await;
        assert_eq!(starts.list(), [3, 40].map(tick), "{missed:?}");
        first.crash().await;
        fleet.until(115).await;
        assert_eq!(starts.list(), [3, 40, 63].map(tick), "{missed:?}");
    }
}

/// The first tick has run, the second was missed, and the third came in a run on request that has ended.
async fn missed_before_a_run_on_request(fleet: &Fleet, starts: &Starts) {
    let first = has_run(fleet, || job_of(starts, 50, Missed::Latest)).await;
    fleet.until(100).await;
    let report = first.trigger().await;
    assert_eq!(report.outcome(), Outcome::Ok);
}

#[tokio::test(start_paused = true)]
async fn the_latest_missed_tick_waits_for_a_run_on_request_though_later_ones_were_skipped() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    missed_before_a_run_on_request(&fleet, &starts).await;
    fleet.until(155).await;
    let asks = fleet.member(0, job_of(&starts, 15, Missed::Latest)).await;
    asks.request();
    fleet.until(160).await;
    let second = fleet.member(0, job_of(&starts, 15, Missed::Latest)).await;
    second.begin().await;
    fleet.until(182).await;
    assert_eq!(starts.list(), [3, 100, 155, 63].map(tick));
}

#[tokio::test(start_paused = true)]
async fn the_condition_is_asked_again_about_the_latest_missed_tick_though_later_ones_were_skipped()
{
    let (fleet, starts) = (Fleet::new(), Starts::default());
    missed_before_a_run_on_request(&fleet, &starts).await;
    fleet.until(160).await;
    let ready = Instant::now() + Duration::from_secs(3);
    let job = job_of(&starts, 15, Missed::Latest).only_if(move |_| Instant::now() >= ready);
    let second = fleet.member(0, job).await;
    second.begin().await;
    fleet.until(182).await;
    assert_eq!(starts.list(), [3, 100, 63].map(tick));
}

#[tokio::test(start_paused = true)]
async fn the_latest_missed_tick_is_started_after_a_run_on_request_whichever_ticks_come_in_that() {
    for (ends, later) in [(225, vec![243, 303]), (260, vec![303])] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let job = || job_of(&starts, ends - 110, Missed::Latest);
        let first = has_run(&fleet, job).await;
        fleet.until(110).await;
        first.request();
        fleet.until(160).await;
        let mut second = fleet.member(0, job()).await;
        second.begin().await;
        fleet.until(310).await;
        let expected = [3, 110, 63].into_iter().chain(later).map(tick);
        assert_eq!(starts.list(), expected.collect::<Vec<_>>(), "{ends}");
        assert!(second.ticks(Outcome::Missed).is_empty(), "{ends}");
    }
}

/// More are missed than have reports of their own.
#[tokio::test(start_paused = true)]
async fn of_many_missed_ticks_those_in_a_run_on_request_are_not_counted() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = || job_of(&starts, 50 * 60, Missed::Skip);
    // One tick came before that run, fifty in it, and a hundred and eight after it.
    let mut second = claims_after_a_request(&fleet, job, 100, 3 + 160 * 60).await;
    let reports = second.reports().into_iter();
    let missed = reports.filter(|report| report.outcome() == Outcome::Missed);
    let missed: Vec<_> = missed.collect();
    let told: u64 = missed.iter().map(TickReport::ticks).sum();
    assert_eq!(told, 109);
    let summary = missed.iter().find(|report| report.ticks() > 1).unwrap();
    assert_eq!((summary.tick(), summary.ticks()), (tick(63), 9));
}

#[tokio::test(start_paused = true)]
async fn the_latest_missed_tick_is_the_one_in_a_run_on_request_if_that_is_cut_short() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let first = has_run(&fleet, || job_of(&starts, 600, Missed::Latest)).await;
    fleet.until(100).await;
    first.request();
    fleet.until(156).await;
    let second = fleet.member(0, job_of(&starts, 600, Missed::Latest)).await;
    second.begin().await;
    fleet.until(160).await;
    assert_eq!(starts.list(), [3, 100].map(tick));
    first.crash().await;
    fleet.until(182).await;
    assert_eq!(starts.list(), [3, 100, 123].map(tick));
}
