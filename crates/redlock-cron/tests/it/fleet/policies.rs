use super::*;
use redlock_cron::{Missed, OnLost, Overlap};

/// Due three and eight seconds after the fleet's start, and a minute later.
const TWO_A_MINUTE: &str = "5,10 * * * * *";

/// The lock of the tick at the third second, where runs may overlap.
const TICK_KEY: &str = "redlock-cron-tick:tests/job@1800000005000";

/// Returns a job whose runs take `seconds`; in `most`, it counts how many of them go on at once, at the most.
fn long_job(starts: &Starts, pattern: &str, seconds: u64, most: &Arc<AtomicUsize>) -> SingletonJob {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::clone(most));
    starts.job(pattern, move |_| {
        let (now, most) = (Arc::clone(&now), Arc::clone(&most));
        async move {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            sleep(Duration::from_secs(seconds)).await;
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        }
    })
}

/// Returns the job with ticks that wait for the run before them, and start within `seconds`.
fn waits(job: SingletonJob, seconds: u64) -> SingletonJob {
    let within = Duration::from_secs(seconds);
    job.overlap(Overlap::Wait).start_within(within)
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_may_wait_starts_when_the_run_before_it_ends_elsewhere() {
    let (fleet, starts, most) = (Fleet::new(), Starts::default(), Arc::default());
    let job = || waits(long_job(&starts, TWO_A_MINUTE, 7, &most), 4);
    let (mut first, mut second) = (fleet.member(0, job()).await, fleet.member(0, job()).await);
    first.wake_at(3_000).await;
    fleet.sleep_until(3_500).await;
    second.wake_at(8_000).await;
    fleet.sleep_until(16_900).await;
    assert_eq!(
        [first.ticks(Outcome::Ok), second.ticks(Outcome::Ok)].concat(),
        [tick(3)]
    );
    fleet.sleep_until(17_500).await;
    assert_eq!(
        [first.ticks(Outcome::Ok), second.ticks(Outcome::Ok)].concat(),
        [tick(8)]
    );
    assert_eq!(starts.list(), [3, 8].map(tick));
    assert_eq!(most.load(Ordering::SeqCst), 1);
}

/// Replicas may be in each other's way for longer than a second on a machine that is busy.
#[tokio::test(start_paused = true)]
async fn a_tick_is_skipped_for_a_run_and_not_for_replicas_that_want_it_too() {
    for overlap in [Overlap::Skip, Overlap::Allow] {
        let (fleet, starts, most) = (Fleet::new(), Starts::default(), Arc::default());
        let job = || long_job(&starts, MINUTE, 70, &most).overlap(overlap);
        let mut member = fleet.member(0, job()).await;
        // The lock of the job, or of the tick.
        let due = tick(3);
        let key = match overlap {
            Overlap::Allow => TICK_KEY,
            _ => "redlock-cron-job:tests/job",
        };
        let other = fleet.client().await.acquire(key).await.unwrap();
        member.wake_at(3_000).await;
        fleet.until(7).await;
        assert!(starts.list().is_empty());
        drop(other);
        fleet.until(10).await;
        assert_eq!(starts.list(), [due], "{overlap:?}");
        let mut second = fleet.member(0, job()).await;
        second.wake_at(63_000).await;
        match overlap {
            Overlap::Skip => {
                let report = second.report().await;
                assert_eq!(report.outcome(), Outcome::Overlapping);
                assert!(report.lag() < Duration::from_secs(2), "{report:?}");
            }
            _ => {
                fleet.until(64).await;
                assert_eq!(starts.list(), [3, 63].map(tick));
            }
        }
        fleet.until(81).await;
        assert!(member.seen().contains(&(due, Outcome::Ok)));
    }
}

#[tokio::test(start_paused = true)]
async fn runs_that_wait_for_each_other_are_not_all_on_one_replica() {
    let (fleet, starts, most) = (Fleet::new(), Starts::default(), Arc::default());
    let job = || waits(long_job(&starts, EVERY_FIVE_SECONDS, 5, &most), 60);
    let mut members = [fleet.member(0, job()).await, fleet.member(0, job()).await];
    for index in 0..60 {
        for member in &members {
            member.wake_at(3_000 + 5_000 * index).await;
        }
    }
    fleet.until(400).await;
    let runs = members
        .each_mut()
        .map(|member| member.ticks(Outcome::Ok).len());
    assert!(runs.iter().all(|of_one| *of_one >= 3), "{runs:?}");
    assert_eq!(most.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_tick_waits_no_longer_than_it_may_start() {
    let (fleet, starts, most) = (Fleet::new(), Starts::default(), Arc::default());
    let job = || waits(long_job(&starts, EVERY_FIVE_SECONDS, 20, &most), 4);
    let mut member = fleet.member(0, job()).await;
    member.wake_at(3_000).await;
    member.wake_at(8_000).await;
    let report = member.report().await;
    assert_eq!(
        (report.tick(), report.outcome()),
        (tick(8), Outcome::Overlapping)
    );
    let given_up = fleet.origin.elapsed().as_secs_f64();
    assert!((12.0..12.5).contains(&given_up), "{given_up}");
    assert_eq!(starts.list(), [tick(3)]);
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_cancels_others_ends_a_run_elsewhere_and_starts() {
    let (fleet, starts, most) = (Fleet::new(), Starts::default(), Arc::default());
    let job = || long_job(&starts, MINUTE, 100, &most).overlap(Overlap::CancelOther);
    let mut first = fleet.member(0, job().only_if(|at| at == tick(3))).await;
    let mut others = [fleet.member(0, job()).await, fleet.member(0, job()).await];
    first.wake_at(3_000).await;
    fleet.sleep_until(3_500).await;
    for other in &others {
        other.wake_at(63_000).await;
    }
    fleet.until(69).await;
    assert_eq!(starts.list(), [tick(3), tick(63)]);
    assert_eq!(most.load(Ordering::SeqCst), 1);
    // Of two replicas that asked for it, one has it, and it goes on.
    fleet.until(100).await;
    let mut ends = first.seen();
    ends.sort_unstable_by_key(|(tick, _)| *tick);
    let (cancelled, declined) = (Outcome::Cancelled, Outcome::Declined);
    assert_eq!(ends, [(tick(3), cancelled), (tick(63), declined)]);
    let ends = others.each_mut().map(Member::seen).concat();
    assert_eq!(ends, [(tick(63), Outcome::NotWinner)]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_told_to_stop_may_end_by_itself() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = starts.job(MINUTE, |run: Run| async move {
        assert!(!run.is_stopping());
        run.stopping().await;
        sleep(Duration::from_millis(500)).await;
        Ok(())
    });
    let mut member = fleet
        .member(0, job.max_runtime(Duration::from_secs(10)))
        .await;
    member.wake_at(3_000).await;
    let report = member.report().await;
    assert_eq!(report.outcome(), Outcome::TimedOut);
    assert!(
        report.detail().unwrap().contains("ended when it was told"),
        "{report:?}"
    );
    assert_eq!(report.took().unwrap().as_millis(), 10_500);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_takes_too_long_is_dropped_a_second_after_it_was_told() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = starts.job(MINUTE, |_| std::future::pending());
    let mut member = fleet
        .member(0, job.max_runtime(Duration::from_secs(10)))
        .await;
    member.wake_at(3_000).await;
    let report = member.report().await;
    assert_eq!(report.outcome(), Outcome::TimedOut);
    assert_eq!(report.took().unwrap().as_millis(), 11_000);
    assert_eq!(fleet.keys().await, 0);
}

// Shows: R6.3.
#[tokio::test(start_paused = true)]
async fn runs_that_may_overlap_do_and_no_tick_runs_twice() {
    let (fleet, starts, most) = (Fleet::new(), Starts::default(), Arc::default());
    let job = || long_job(&starts, "5,10,15,20 * * * * *", 12, &most).overlap(Overlap::Allow);
    let (mut first, mut second) = (fleet.member(0, job()).await, fleet.member(0, job()).await);
    for index in 0..4 {
        first.wake_at(3_000 + 5_000 * index).await;
        second.wake_at(3_050 + 5_000 * index).await;
    }
    fleet.until(40).await;
    let ended = [first.ticks(Outcome::Ok), second.ticks(Outcome::Ok)].concat();
    assert_eq!(ended.len(), 4);
    assert_eq!(starts.list(), [3, 8, 13, 18].map(tick));
    assert_eq!(most.load(Ordering::SeqCst), 3);
}

// Shows: R5.3.
#[tokio::test(start_paused = true)]
async fn up_to_so_many_runs_go_on_at_once_on_all_replicas_and_no_tick_runs_twice() {
    let (fleet, starts, most) = (Fleet::new(), Starts::default(), Arc::default());
    let job = || long_job(&starts, "5-30/5 * * * * *", 12, &most).overlap(Overlap::UpTo(2));
    let (mut first, second) = (fleet.member(0, job()).await, fleet.member(0, job()).await);
    for index in 0..6 {
        first.wake_at(3_000 + 5_000 * index).await;
        second.wake_at(3_050 + 5_000 * index).await;
    }
    fleet.until(60).await;
    // Those in between came while two went on.
    assert_eq!(starts.list(), [3, 8, 18, 23].map(tick));
    assert_eq!(most.load(Ordering::SeqCst), 2);
    let mut outcomes = Vec::new();
    for _ in 0..6 {
        outcomes.push(first.outcome().await);
    }
    let skipped = outcomes.iter().filter(|o| **o == Outcome::Overlapping);
    assert_eq!(skipped.count(), 2, "{outcomes:?}");
}

/// A replica that finds all slots taken says what became of the tick.
#[tokio::test(start_paused = true)]
async fn a_tick_that_went_with_the_last_slot_has_another_winner() {
    let (fleet, starts, most) = (Fleet::new(), Starts::default(), Arc::default());
    let job = || long_job(&starts, TWO_A_MINUTE, 12, &most).overlap(Overlap::UpTo(2));
    let (mut first, mut second) = (fleet.member(0, job()).await, fleet.member(0, job()).await);
    first.wake_at(3_000).await;
    first.wake_at(8_000).await;
    fleet.sleep_until(8_500).await;
    second.wake_at(8_600).await;
    assert_eq!(second.outcome().await, Outcome::NotWinner);
    assert_eq!(first.outcome().await, Outcome::Ok);
    assert_eq!(starts.list(), [3, 8].map(tick));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_only_told_of_a_lost_lease_goes_on() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = starts.job(MINUTE, |run: Run| async move {
        run.stopping().await;
        assert!(!run.lease().is_held());
        sleep(Duration::from_secs(3)).await;
        Ok(())
    });
    let mut member = fleet.member(0, job.on_lost(OnLost::Signal)).await;
    member.wake_at(3_000).await;
    fleet.sleep_until(3_500).await;
    fleet.nodes.iter().for_each(MemoryNode::stop);
    let report = member.report().await;
    assert_eq!(report.outcome(), Outcome::Lost, "{report:?}");
    // Its time to live, and what it made of it.
    assert!(
        report.took().unwrap() > Duration::from_secs(12),
        "{report:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn ticks_are_claimed_after_a_random_time_and_by_a_replica_that_is_alone_in_half_of_the_spread()
 {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let spread = Duration::from_secs(7);
    let job = starts.quick_job(MINUTE).spread(spread);
    let mut member = fleet.member(0, job).await;
    let mut lags = Vec::new();
    for minute in 0..20 {
        member.wake_at(3_000 + 60_000 * minute).await;
        let report = member.report().await;
        assert_eq!(report.outcome(), Outcome::Ok);
        lags.push(report.lag());
    }
    assert!(
        lags.iter()
            .all(|lag| *lag < spread / 2 + Duration::from_millis(100))
    );
    // Twenty of them are together in a quarter of that once in billions of times.
    let (least, most) = (lags.iter().min().unwrap(), lags.iter().max().unwrap());
    assert!(*most - *least > spread / 8, "{lags:?}");
}

// Shows: A6.
#[tokio::test(start_paused = true)]
async fn a_replica_with_other_policies_is_noticed_once() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut first = fleet.member(0, starts.quick_job(MINUTE)).await;
    let other = starts.quick_job(MINUTE).overlap(Overlap::Wait);
    let mut second = fleet.member(0, other).await;
    first.wake_at(3_000).await;
    assert_eq!(first.outcome().await, Outcome::Ok);
    second.wake_at(3_500).await;
    assert_eq!(second.outcome().await, Outcome::NotWinner);
    assert_eq!(second.status().await.disagreeing(), 1);
    drop(first);
    fleet.until(64).await;
    assert_eq!(second.outcome().await, Outcome::Ok);
    assert_eq!(second.status().await.disagreeing(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_tick_waits_for_others_that_have_the_lock_though_a_later_one_is_due_if_each_counts() {
    for (missed, expected) in [
        (Missed::Skip, vec![8]),
        (Missed::All { max: 9 }, vec![3, 8]),
    ] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let job = starts.quick_job(TWO_A_MINUTE).missed(missed);
        let member = fleet
            .member(0, job.start_within(Duration::from_secs(20)))
            .await;
        member.begin().await;
        let client = fleet.client().await;
        let guard = client.acquire("redlock-cron-job:tests/job").await.unwrap();
        member.wake_at(3_000).await;
        member.wake_at(8_000).await;
        fleet.sleep_until(10_500).await;
        drop(guard);
        fleet.until(20).await;
        let expected: Vec<_> = expected.into_iter().map(tick).collect();
        assert_eq!(starts.list(), expected, "{missed:?}");
    }
}
