use super::*;
use redlock_cron::{Delivery, Missed, Trigger};

/// Returns a job that is endless in its first `endless` runs, and then quick.
pub(super) fn job(starts: &Starts, endless: u32, max_attempts: u32) -> SingletonJob {
    job_at(MINUTE, starts, endless, max_attempts)
}

/// Returns the same, due at other times.
pub(super) fn job_at(
    pattern: &str,
    starts: &Starts,
    endless: u32,
    max_attempts: u32,
) -> SingletonJob {
    let job = starts.job(pattern, move |run: Run| async move {
        if run.attempt() <= endless {
            std::future::pending::<()>().await;
        }
        let trigger = match run.attempt() {
            1 => Trigger::Schedule,
            _ => Trigger::Retry,
        };
        assert_eq!(run.trigger(), trigger);
        Ok(())
    });
    job.delivery(Delivery::AtLeastOnce { max_attempts })
        .start_within(Duration::from_secs(50))
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_replica_crashed_is_started_once_more_on_another() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let first = fleet.member(0, job(&starts, 1, 3)).await;
    let mut others = [
        fleet.member(0, job(&starts, 1, 3)).await,
        fleet.member(0, job(&starts, 1, 3)).await,
    ];
    first.wake_at(3_000).await;
    for other in &others {
        other.wake_at(3_200).await;
    }
    fleet.until(5).await;
    first.crash().await;
    fleet.until(40).await;
    assert_eq!(starts.list(), [3, 3].map(tick));
    let mut ended = Vec::new();
    for other in &mut others {
        let report = other.report().await;
        assert_eq!(report.tick(), tick(3));
        ended.push((report.outcome(), report.attempt()));
    }
    ended.sort_by_key(|(_, attempt)| *attempt);
    assert_eq!(ended, [(Outcome::NotWinner, 1), (Outcome::Ok, 2)]);
}

#[tokio::test(start_paused = true)]
async fn a_tick_is_not_started_again_if_nobody_asked_for_that() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let first = fleet.member(0, job(&starts, 1, 3)).await;
    let other = job(&starts, 1, 3).delivery(Delivery::AtMostOnce);
    let mut other = fleet.member(0, other).await;
    first.wake_at(3_000).await;
    other.wake_at(3_200).await;
    assert_eq!(other.outcome().await, Outcome::NotWinner);
    fleet.until(5).await;
    first.crash().await;
    fleet.until(50).await;
    assert_eq!(starts.list(), [tick(3)]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_ended_by_itself_is_not_started_again_however_it_ended() {
    for error in [false, true] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let job = || {
            let job = starts.job(MINUTE, move |_| async move {
                sleep(Duration::from_secs(20)).await;
                if error {
                    Err("no ledger".into())
                } else {
                    Ok(())
                }
            });
            job.delivery(Delivery::AtLeastOnce { max_attempts: 3 })
                .start_within(Duration::from_secs(50))
        };
        let (first, mut other) = (fleet.member(0, job()).await, fleet.member(0, job()).await);
        first.wake_at(3_000).await;
        other.wake_at(3_200).await;
        assert_eq!(other.outcome().await, Outcome::NotWinner);
        assert!(fleet.origin.elapsed() > Duration::from_secs(23));
        fleet.until(55).await;
        assert_eq!(starts.list(), [tick(3)]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_a_shutdown_cuts_short_goes_to_another_replica_at_once() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let first = fleet.member(0, job(&starts, 1, 3)).await;
    let mut other = fleet.member(0, job(&starts, 1, 3)).await;
    first.wake_at(3_000).await;
    other.wake_at(3_200).await;
    fleet.until(5).await;
    let report = first.shut_down(Duration::ZERO).await;
    assert!(!report.is_clean());
    let ended = other.report().await;
    assert_eq!((ended.outcome(), ended.attempt()), (Outcome::Ok, 2));
    // A second for the run that is told to stop, and a third of the time to live to notice.
    assert!(fleet.origin.elapsed() < Duration::from_secs(10));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_lost_its_lease_is_started_again_by_the_same_replica_if_there_is_no_other() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut member = fleet.member(0, job(&starts, 2, 3)).await;
    member.wake_at(3_000).await;
    for second in [5, 15] {
        fleet.sleep_until(second * 1_000).await;
        fleet.nodes.iter().for_each(MemoryNode::drop_locks);
    }
    fleet.until(30).await;
    let mut ended = Vec::new();
    while let Ok(report) = member.reports.try_recv() {
        ended.push((report.outcome(), report.attempt()));
    }
    let expected = [(Outcome::Lost, 1), (Outcome::Lost, 2), (Outcome::Ok, 3)];
    assert_eq!(ended, expected);
}

#[tokio::test(start_paused = true)]
async fn fencing_tokens_grow_from_attempt_to_attempt_and_to_the_next_tick() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let tokens = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&tokens);
    let job = starts.job(MINUTE, move |run: Run| {
        told.lock().unwrap().push(run.fencing_token());
        async move {
            if run.attempt() == 1 && run.tick() == tick(3) {
                std::future::pending::<()>().await;
            }
            Ok(())
        }
    });
    let job = job
        .delivery(Delivery::AtLeastOnce { max_attempts: 2 })
        .start_within(Duration::from_secs(50));
    let member = fleet.member(0, job).await;
    member.wake_at(3_000).await;
    fleet.until(5).await;
    fleet.nodes.iter().for_each(MemoryNode::drop_locks);
    fleet.until(30).await;
    member.wake_at(63_000).await;
    fleet.until(65).await;
    let tokens = tokens.lock().unwrap().clone();
    assert_eq!(starts.list(), [3, 3, 63].map(tick));
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
}

// Shows: R6.1.
#[tokio::test(start_paused = true)]
async fn a_tick_is_not_started_again_after_a_later_one() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let slow = || job(&starts, 1, 3).start_within(Duration::from_secs(600));
    let first = fleet.member(0, slow()).await;
    first.wake_at(3_000).await;
    fleet.until(55).await;
    first.crash().await;
    let quick = starts.quick_job(MINUTE);
    let mut other = fleet.member(0, quick).await;
    fleet.until(69).await;
    other.wake_at(69_000).await;
    assert_eq!(other.outcome().await, Outcome::Ok);
    let again = fleet.member(0, slow()).await;
    again.begin().await;
    fleet.until(120).await;
    assert_eq!(starts.list(), [3, 63].map(tick));
}

/// A process that is killed or hangs reports nothing.
#[tokio::test(start_paused = true)]
async fn a_run_of_which_nothing_is_heard_is_started_again_when_its_lock_is_free_and_not_before() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let silent = starts.job(MINUTE, |_| std::future::pending());
    let silent = silent.on_lost(redlock_cron::OnLost::Signal);
    let silent = fleet
        .member(0, silent.start_within(Duration::from_secs(50)))
        .await;
    let mut other = fleet.member(0, job(&starts, 1, 3)).await;
    silent.wake_at(3_000).await;
    other.wake_at(3_200).await;
    fleet.until(23).await;
    assert_eq!(starts.list(), [tick(3)]);
    fleet.nodes.iter().for_each(MemoryNode::drop_locks);
    let report = other.report().await;
    assert_eq!((report.outcome(), report.attempt()), (Outcome::Ok, 2));
    assert!(fleet.origin.elapsed() < Duration::from_secs(38));
}

/// A look at whether a tick may be started again comes before the wait for its lock, so there must be another one.
#[tokio::test(start_paused = true)]
async fn a_later_tick_that_gets_the_lock_first_ends_the_attempts() {
    let mut later_first = 0;
    for _ in 0..30 {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let patient = |endless| job(&starts, endless, 3).start_within(Duration::from_secs(100));
        let first = fleet.member(0, patient(1)).await;
        let second = fleet.member(0, patient(0)).await;
        let waits = starts
            .quick_job(MINUTE)
            .overlap(redlock_cron::Overlap::Wait);
        let third = fleet.member(0, waits).await;
        first.wake_at(3_000).await;
        second.wake_at(3_100).await;
        fleet.sleep_until(60_500).await;
        let _ = first.shut_down(Duration::ZERO).await;
        // In the way of both, for as long as it takes until both wait.
        let client = fleet.client().await;
        let guard = client.acquire("redlock-cron-job:tests/job").await.unwrap();
        third.wake_at(63_000).await;
        fleet.sleep_until(66_500).await;
        drop(guard);
        fleet.until(75).await;
        let starts = starts.list();
        assert_ne!(starts, [3, 63, 3].map(tick));
        later_first += usize::from(starts == [3, 63].map(tick));
    }
    assert!(later_first > 0);
}

/// Returns a job of every minute that makes up for all ticks, whose first run of the first tick is endless.
fn complete_job(starts: &Starts) -> SingletonJob {
    let job = starts.job(MINUTE, move |run: Run| async move {
        if run.tick() == tick(3) && run.attempt() == 1 {
            std::future::pending::<()>().await;
        }
        Ok(())
    });
    job.delivery(Delivery::AtLeastOnce { max_attempts: 3 })
        .missed(Missed::All { max: 9 })
}

#[tokio::test(start_paused = true)]
async fn a_run_that_a_crash_of_all_replicas_cut_short_comes_before_the_ticks_that_were_missed_since()
 {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let first = fleet.member(0, complete_job(&starts)).await;
    first.begin().await;
    first.wake_at(3_000).await;
    fleet.until(5).await;
    first.crash().await;
    fleet.until(190).await;
    let members = [
        fleet.member(0, complete_job(&starts)).await,
        fleet.member(0, complete_job(&starts)).await,
    ];
    for member in &members {
        member.begin().await;
    }
    fleet.until(220).await;
    assert_eq!(starts.list(), [3, 3, 63, 123, 183].map(tick));
}

/// As of a client that connects late, which learns of the last run only when it claims.
#[tokio::test(start_paused = true)]
async fn a_tick_that_is_due_before_the_last_run_is_known_does_not_pass_over_it() {
    for policy in [Missed::Skip, Missed::Latest, Missed::All { max: 9 }] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let job = || complete_job(&starts).missed(policy);
        let first = fleet.member(0, job()).await;
        first.begin().await;
        first.wake_at(3_000).await;
        fleet.until(5).await;
        first.crash().await;
        fleet.until(62).await;
        let again = fleet.member(0, job()).await;
        again.wake_at(63_000).await;
        fleet.until(92).await;
        assert_eq!(starts.list(), [3, 3, 63].map(tick), "{policy:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_waits_for_a_run_does_not_pass_over_it_when_it_is_cut_short() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = || {
        let job = complete_job(&starts).missed(Missed::Skip);
        job.overlap(redlock_cron::Overlap::Wait)
            .start_within(Duration::from_secs(50))
    };
    let first = fleet.member(0, job()).await;
    first.wake_at(3_000).await;
    fleet.until(62).await;
    let second = fleet.member(0, job()).await;
    second.wake_at(63_000).await;
    fleet.until(70).await;
    assert_eq!(starts.list(), [tick(3)]);
    first.crash().await;
    fleet.until(112).await;
    assert_eq!(starts.list(), [3, 3, 63].map(tick));
}

#[tokio::test(start_paused = true)]
async fn a_run_of_ten_minutes_that_is_cut_short_is_started_again() {
    const HOURLY: &str = "5 0 * * * *";
    for max_runtime in [None, Some(Duration::from_secs(900))] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let job = || {
            let job = starts.job(HOURLY, move |run: Run| async move {
                if run.attempt() == 1 {
                    std::future::pending::<()>().await;
                }
                Ok(())
            });
            let job = job.delivery(Delivery::AtLeastOnce { max_attempts: 2 });
            match max_runtime {
                Some(limit) => job.max_runtime(limit),
                None => job,
            }
        };
        let first = fleet.member(0, job()).await;
        let mut other = fleet.member(0, job()).await;
        first.wake_at(3_000).await;
        other.wake_at(3_200).await;
        fleet.until(600).await;
        first.crash().await;
        let report = timeout(Duration::from_secs(30), other.report())
            .await
            .unwrap();
        assert_eq!(
            (report.tick(), report.attempt(), report.outcome()),
            (tick(3), 2, Outcome::Ok)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_is_not_started_again_later_than_was_said_and_then_is_not_in_the_way() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    // It may be started again for two minutes.
    let job = || {
        let job = complete_job(&starts).catch_up_window(Duration::from_secs(80));
        job.max_runtime(Duration::from_secs(10))
    };
    let first = fleet.member(0, job()).await;
    first.begin().await;
    first.wake_at(3_000).await;
    fleet.until(5).await;
    first.crash().await;
    fleet.until(130).await;
    let again = fleet.member(0, job()).await;
    again.begin().await;
    fleet.until(170).await;
    assert_eq!(starts.list(), [3, 63, 123].map(tick));
}
