//! Runs on request, beside the runs of ticks that are due.

use super::*;
use redlock_cron::{Delivery, Missed, Overlap, Trigger};

// Shows: R6.1.
#[tokio::test(start_paused = true)]
async fn a_run_that_was_asked_for_uses_up_no_tick_and_excludes_others() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = || {
        starts.job(MINUTE, |run: Run| async move {
            let manual = run.trigger() == Trigger::Manual;
            let seconds = if manual { 30 } else { 1 };
            sleep(Duration::from_secs(seconds)).await;
            Ok(())
        })
    };
    let (mut first, mut second) = (fleet.member(0, job()).await, fleet.member(0, job()).await);
    fleet.until(2).await;
    let triggered = first.trigger();
    let meanwhile = async {
        second.wake_at(3_000).await;
        // The tick is not used up by that, and neither by the run that it finds.
        assert_eq!(second.outcome().await, Outcome::Overlapping);
        let again = second.trigger().await;
        assert_eq!(again.outcome(), Outcome::Overlapping);
    };
    let (report, ()) = tokio::join!(triggered, meanwhile);
    assert_eq!(
        (report.outcome(), report.trigger()),
        (Outcome::Ok, Trigger::Manual)
    );
    assert_eq!(first.outcome().await, Outcome::Ok);
    first.wake_at(33_000).await;
    assert_eq!(first.outcome().await, Outcome::Ok);
    assert_eq!(starts.list(), [2, 3].map(tick));
    let status = second.status().await;
    let runs: Vec<_> = status
        .runs()
        .iter()
        .map(|run| (run.tick(), run.is_manual()))
        .collect();
    assert_eq!(runs, [(tick(3), false), (tick(2), true)]);
    let token = |manual| {
        let run = status.runs().iter().find(|run| run.is_manual() == manual);
        run.unwrap().fencing_token()
    };
    assert!(token(false) > token(true));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_asked_for_starts_though_the_job_is_paused_and_as_often_as_that() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    // Its clock stands behind the other's.
    let slow = fleet.member(-20_000, starts.quick_job(MINUTE)).await;
    let fast = fleet.member(20_000, starts.quick_job(MINUTE)).await;
    fast.set_paused(true).await.unwrap();
    for member in [&fast, &slow, &slow, &fast] {
        let report = member.trigger().await;
        assert_eq!(report.outcome(), Outcome::Ok, "{report:?}");
    }
    assert_eq!(starts.list().len(), 4);
}

/// A run on another replica goes on for longer than the moment of the request lasts.
#[tokio::test(start_paused = true)]
async fn a_run_that_was_asked_for_waits_for_another_as_long_as_ticks_do() {
    for (patience, expected) in [(1_200, Outcome::Ok), (90, Outcome::Overlapping)] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let job = || {
            let job = starts.job("3 0 * * * *", |run: Run| async move {
                if run.trigger() == Trigger::Schedule {
                    sleep(Duration::from_secs(900)).await;
                }
                Ok(())
            });
            job.overlap(Overlap::Wait)
                .start_within(Duration::from_secs(patience))
        };
        let (runs, asks) = (fleet.member(0, job()).await, fleet.member(0, job()).await);
        fleet.sleep_until(0).await;
        let next = runs
            .jobs
            .schedule("job")
            .unwrap()
            .next_after(tick(0))
            .unwrap();
        let seconds = u64::try_from((next - tick(0)).num_seconds()).unwrap();
        runs.wake_at(i64::try_from(seconds).unwrap() * 1_000).await;
        fleet.sleep_until(1_000 * (seconds + 5)).await;
        let began = Instant::now();
        let report = asks.trigger().await;
        assert_eq!(report.outcome(), expected, "{:?}", report.detail());
        let waited = began.elapsed().as_secs();
        let right = if expected == Outcome::Ok { 895 } else { 90 };
        assert!(waited.abs_diff(right) <= 5, "{waited} s");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_asked_for_cancels_others_whatever_the_clock_of_its_replica() {
    for skew in [0, 8_000, 30_000, 7_200_000, -8_000, -30_000, -7_200_000] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let job = || {
            let job = starts.job(MINUTE, |run: Run| async move {
                let manual = run.trigger() == Trigger::Manual;
                let seconds = if manual { 20 } else { 50 };
                sleep(Duration::from_secs(seconds)).await;
                Ok(())
            });
            job.overlap(Overlap::CancelOther)
                .start_within(Duration::from_secs(20))
        };
        let mut first = fleet.member(0, job()).await;
        first.wake_at(3_000).await;
        fleet.until(10).await;
        let second = fleet.member(skew, job()).await;
        let report = second.trigger().await;
        assert_eq!(report.outcome(), Outcome::Ok, "{skew}: {report:?}");
        assert_eq!(first.ticks(Outcome::Cancelled), [tick(3)], "{skew}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_is_skipped_because_of_a_run_that_was_asked_for_is_not_made_up_for() {
    for policy in [Missed::Skip, Missed::Latest, Missed::All { max: 9 }] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let job = || {
            let job = starts.job(MINUTE, |run: Run| async move {
                let seconds = if run.trigger() == Trigger::Manual {
                    50
                } else {
                    1
                };
                sleep(Duration::from_secs(seconds)).await;
                Ok(())
            });
            job.missed(policy)
        };
        let mut first = fleet.member(0, job()).await;
        first.begin().await;
        first.wake_at(3_000).await;
        fleet.until(40).await;
        first.request();
        first.wake_at(63_000).await;
        fleet.until(100).await;
        let mut second = fleet.member(0, job()).await;
        second.begin().await;
        first.wake_at(123_000).await;
        fleet.until(150).await;
        let mut outcomes = Vec::new();
        for member in [&mut first, &mut second] {
            while let Ok(report) = member.reports.try_recv() {
                if report.trigger() != Trigger::Manual && report.outcome() != Outcome::NotWinner {
                    outcomes.push((report.tick(), report.outcome()));
                }
            }
        }
        let expected = [
            (tick(3), Outcome::Ok),
            (tick(63), Outcome::Overlapping),
            (tick(123), Outcome::Ok),
        ];
        assert_eq!(outcomes, expected, "{policy:?}");
    }
}

/// A caller requests a run while a dead run has the lock: the request is over when the tick is started again.
#[tokio::test(start_paused = true)]
async fn a_run_is_started_again_and_not_cancelled_by_a_request_that_came_before() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = || {
        let job = starts.job(MINUTE, |run: Run| async move {
            if run.trigger() == Trigger::Schedule {
                std::future::pending::<()>().await;
            }
            sleep(Duration::from_secs(5)).await;
            Ok(())
        });
        job.delivery(Delivery::AtLeastOnce { max_attempts: 3 })
            .overlap(Overlap::CancelOther)
            .start_within(Duration::from_secs(30))
    };
    let (first, mut other) = (fleet.member(0, job()).await, fleet.member(0, job()).await);
    first.wake_at(3_000).await;
    other.wake_at(3_200).await;
    fleet.until(5).await;
    first.crash().await;
    let asked = other.trigger().await;
    assert_eq!(asked.outcome(), Outcome::Ok, "{:?}", asked.detail());
    fleet.until(60).await;
    let mut ended = Vec::new();
    while let Ok(report) = other.reports.try_recv() {
        ended.push((report.trigger(), report.outcome()));
    }
    assert_eq!(ended[1..], [(Trigger::Retry, Outcome::Ok)], "{ended:?}");
}

/// Returns the reports of runs of a tick that was started again, after a crash at `crashed` and a request at once.
async fn retried_after_a_request(pattern: &str, crashed: u64, patience: u64) -> Vec<Outcome> {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = || {
        let job = starts.job(pattern, |run: Run| async move {
            if run.trigger() == Trigger::Schedule {
                std::future::pending::<()>().await;
            }
            sleep(Duration::from_secs(5)).await;
            Ok(())
        });
        // It is not up for later ticks.
        let job = job.only_if(|at| at == tick(3));
        job.delivery(Delivery::AtLeastOnce { max_attempts: 3 })
            .overlap(Overlap::CancelOther)
            .ttl(Duration::from_secs(if patience < 10 { 30 } else { 10 }))
            .start_within(Duration::from_secs(patience))
    };
    let (first, mut other) = (fleet.member(0, job()).await, fleet.member(0, job()).await);
    first.wake_at(3_000).await;
    other.wake_at(3_200).await;
    fleet.sleep_until(crashed).await;
    first.crash().await;
    let asked = other.trigger().await;
    let given_up = patience < 10;
    assert_eq!(
        asked.outcome() == Outcome::Overlapping,
        given_up,
        "{asked:?}"
    );
    fleet.until(55).await;
    let reports = other.reports().into_iter();
    let again = reports.filter(|report| report.trigger() == Trigger::Retry);
    again.map(|report| report.outcome()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_run_is_started_again_and_not_cancelled_by_a_request_that_was_given_up() {
    let again = retried_after_a_request(MINUTE, 5_000, 8).await;
    assert_eq!(again, [Outcome::Ok]);
}

/// Later ticks are due, and no request is for one of them.
#[tokio::test(start_paused = true)]
async fn a_run_is_started_again_and_not_cancelled_by_a_request_that_was_served_before_later_ticks()
{
    for crashed in [5_000, 9_500] {
        let again = retried_after_a_request(EVERY_FIVE_SECONDS, crashed, 30).await;
        assert_eq!(again, [Outcome::Ok], "{crashed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_on_request_is_cancelled_by_the_next_whatever_the_clock_of_its_replica() {
    for skew in [0, 1_900, 8_000, -1_900, -8_000] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let is_second = Arc::new(AtomicBool::default());
        let job = || {
            let is_second = Arc::clone(&is_second);
            let job = starts.job(MINUTE, move |_| {
                let is_second = is_second.swap(true, Ordering::SeqCst);
                async move {
                    if !is_second {
                        std::future::pending::<()>().await;
                    }
                    Ok(())
                }
            });
            job.overlap(Overlap::CancelOther)
                .start_within(Duration::from_secs(20))
        };
        let mut first = fleet.member(skew, job()).await;
        let second = fleet.member(0, job()).await;
        first.request();
        fleet.sleep_until(500).await;
        let report = second.trigger().await;
        assert_eq!(report.outcome(), Outcome::Ok, "{skew}: {report:?}");
        assert_eq!(first.outcome().await, Outcome::Cancelled, "{skew}");
    }
}
