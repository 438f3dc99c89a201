use super::*;
use redlock_cron::{Delivery, Missed};

impl Starts {
    /// Returns a job that is due once, `second` seconds after the fleet's start.
    fn once(&self, second: i64) -> SingletonJob {
        let starts = Arc::clone(&self.0);
        let at = tick(second) + TimeDelta::milliseconds(700);
        let job = SingletonJob::once("job", at, move |run: Run| {
            starts.lock().unwrap().push(run.tick());
            async { Ok::<_, BoxError>(()) }
        });
        job.spread(Duration::ZERO)
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_of_one_instant_is_started_once_on_one_replica() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut first = fleet.member(0, starts.once(10)).await;
    let mut second = fleet.member(0, starts.once(10)).await;
    first.begin().await;
    second.begin().await;
    for second_of in [9_500, 10_500, 11_500, 100_000] {
        first.wake_at(second_of).await;
        second.wake_at(second_of).await;
    }
    assert_eq!(starts.list(), [tick(10)]);
    assert_eq!(first.outcome().await, Outcome::Ok);
    assert_eq!(second.outcome().await, Outcome::NotWinner);
    assert_eq!(first.status().await.next_tick(), None);
}

/// No replica was up at the instant, and none had run the job before.
#[tokio::test(start_paused = true)]
async fn an_instant_that_no_replica_was_up_for_is_made_up_for_though_nothing_is_known_of_the_job() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    fleet.sleep_until(4_000_000).await;
    for _ in 0..2 {
        let member = fleet.member(0, starts.once(10)).await;
        member.begin().await;
        sleep(Duration::from_secs(5)).await;
    }
    assert_eq!(starts.list(), [tick(10)]);
    // As any tick that was missed, it is too old after a day.
    fleet.sleep_until(200_000_000).await;
    let late = starts
        .once(10_000)
        .catch_up_window(Duration::from_secs(3_600));
    let late = fleet.member(0, late).await;
    late.begin().await;
    sleep(Duration::from_secs(5)).await;
    assert_eq!(starts.list(), [tick(10)]);
}

#[tokio::test(start_paused = true)]
async fn an_instant_is_passed_over_if_missed_ticks_are() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    fleet.until(20).await;
    let member = fleet.member(0, starts.once(10).missed(Missed::Skip)).await;
    member.begin().await;
    member.wake_at(30_000).await;
    sleep(Duration::from_secs(5)).await;
    assert!(starts.list().is_empty());
}

/// A deployment has put the instant off, and is late.
#[tokio::test(start_paused = true)]
async fn a_later_instant_under_the_same_name_is_started_too_and_an_earlier_one_is_not() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let first = fleet.member(0, starts.once(10)).await;
    first.wake_at(10_000).await;
    for second in [100, 50] {
        fleet.until(200).await;
        let later = fleet.member(0, starts.once(second)).await;
        later.begin().await;
        sleep(Duration::from_secs(5)).await;
    }
    assert_eq!(starts.list(), [10, 100].map(tick));
}

#[tokio::test(start_paused = true)]
async fn an_instant_whose_run_was_cut_short_is_started_again() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let again = Delivery::AtLeastOnce { max_attempts: 2 };
    let _first = fleet.member(0, starts.once(10).delivery(again)).await;
    fleet.until(10).await;
    fleet.claim_and_leave(tick(10), "aborted").await;
    let second = fleet.member(0, starts.once(10).delivery(again)).await;
    second.begin().await;
    sleep(Duration::from_secs(20)).await;
    assert_eq!(starts.list(), [tick(10)]);
}
