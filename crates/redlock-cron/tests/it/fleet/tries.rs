use super::*;
use redlock_cron::{Delivery, Tries};

/// Returns a job whose first calls in a run fail, a tenth of a second each.
fn failing(starts: &Starts, failures: u32) -> SingletonJob {
    starts.job(EVERY_FIVE_SECONDS, move |run: Run| async move {
        sleep(Duration::from_millis(100)).await;
        match run.try_number() {
            number if number <= failures => Err(format!("try {number} failed").into()),
            _ => Ok(()),
        }
    })
}

fn tries(most: u32) -> Tries {
    Tries::up_to(most).backoff(Duration::from_secs(2), Duration::from_secs(3))
}

#[tokio::test(start_paused = true)]
async fn a_job_that_fails_is_called_again_in_the_same_run_after_a_pause() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let (calls, seen) = (Arc::new(Mutex::new(Vec::new())), Starts::default());
    let told = Arc::clone(&calls);
    let job = seen.job(EVERY_FIVE_SECONDS, move |run: Run| {
        let now = Instant::now();
        told.lock().unwrap().push((now, run.fencing_token()));
        let failed = run.try_number() < 3;
        async move {
            if failed {
                Err("not yet".into())
            } else {
                Ok(())
            }
        }
    });
    let mut first = fleet.member(0, job.tries(tries(4))).await;
    let mut second = fleet.member(0, starts.quick_job(EVERY_FIVE_SECONDS)).await;
    first.wake_at(3_000).await;
    // The run goes on in the pauses.
    second.wake_at(4_500).await;
    assert_eq!(second.outcome().await, Outcome::NotWinner);
    second.wake_at(8_000).await;
    let report = first.report().await;
    assert_eq!((report.outcome(), report.tries()), (Outcome::Ok, 3));
    assert_eq!((report.tick(), report.attempt()), (tick(3), 1));
    let calls = calls.lock().unwrap();
    let [one, two, three] = **calls else {
        panic!("{calls:?}")
    };
    assert!(one.1 == two.1 && two.1 == three.1, "it is one run");
    let pauses = [two.0 - one.0, three.0 - two.0].map(|pause| pause.as_millis());
    assert!((1_000..=2_001).contains(&pauses[0]), "{pauses:?}");
    assert!((1_500..=3_001).contains(&pauses[1]), "{pauses:?}");
}

#[tokio::test(start_paused = true)]
async fn a_job_that_fails_in_every_try_has_failed() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    for (most, expected) in [(None, 1), (Some(1), 1), (Some(3), 3)] {
        let job = failing(&starts, 9);
        let job = match most {
            Some(most) => job.tries(tries(most)),
            None => job,
        };
        let member = fleet.member(0, job).await;
        let report = member.trigger().await;
        assert_eq!(
            (report.outcome(), report.tries()),
            (Outcome::Failed, expected)
        );
        assert_eq!(report.detail(), Some(&*format!("try {expected} failed")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_not_tried_again() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = starts.job(EVERY_FIVE_SECONDS, |run: Run| async move {
        assert!(run.try_number() < 2, "in the job");
        Err("once".into())
    });
    let member = fleet.member(0, job.tries(tries(5))).await;
    let report = member.trigger().await;
    assert_eq!((report.outcome(), report.tries()), (Outcome::Panicked, 2));
}

/// Returns a job that fails, and pauses for minutes after it.
fn patient(starts: &Starts) -> SingletonJob {
    let long = Tries::up_to(9).backoff(Duration::from_secs(600), Duration::from_secs(600));
    failing(starts, 9).tries(long)
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_told_to_stop_ends_in_its_pause() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let limit = Duration::from_secs(4);
    let member = fleet.member(0, patient(&starts).max_runtime(limit)).await;
    let since = Instant::now();
    let report = member.trigger().await;
    assert_eq!((report.outcome(), report.tries()), (Outcome::TimedOut, 1));
    assert_eq!(since.elapsed().as_secs(), 4, "it did not take the grace");
    // All tries together.
    let limited = failing(&starts, 9).tries(tries(9)).max_runtime(limit);
    let member = fleet.member(0, limited).await;
    let report = member.trigger().await;
    assert_eq!(report.outcome(), Outcome::TimedOut);
    assert!((2..5).contains(&report.tries()), "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_pauses_holds_up_no_end_of_its_job_and_has_failed() {
    for is_shutdown in [false, true] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let mut host = fleet.host().await;
        host.put(patient(&starts)).await;
        fleet.until(10).await;
        let since = Instant::now();
        if is_shutdown {
            let report = host.shut_down(Duration::MAX).await;
            assert!(report.is_clean());
        } else {
            assert!(host.remove(500).await.is_empty());
        }
        assert!(since.elapsed() < Duration::from_secs(1));
        let reports = host.reports();
        let failed = reports.iter().find(|report| report.tick() == tick(3));
        let failed = failed.expect("it is reported");
        assert_eq!(failed.outcome(), Outcome::Failed);
        assert_eq!(failed.detail(), Some("try 1 failed"));
        assert_eq!(fleet.keys().await, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn tries_that_an_end_of_the_job_cuts_off_are_for_another_replica_at_least_once() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let again = Delivery::AtLeastOnce { max_attempts: 2 };
    let mut host = fleet.host().await;
    host.put(patient(&starts).delivery(again)).await;
    fleet.until(6).await;
    let since = Instant::now();
    assert_eq!(host.remove(500).await, [tick(3)]);
    assert!(since.elapsed() < Duration::from_secs(1));
    let cut_short = host.reports().into_iter().find(|r| r.tick() == tick(3));
    let cut_short = cut_short.expect("it is reported");
    assert_eq!(cut_short.outcome(), Outcome::Aborted);
    assert!(cut_short.detail().unwrap().contains("try 1 failed"));
    let mut other = fleet.member(0, failing(&starts, 0).delivery(again)).await;
    other.begin().await;
    let report = other.report().await;
    assert_eq!((report.tick(), report.attempt()), (tick(3), 2));
    assert_eq!(report.outcome(), Outcome::Ok);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_replaced_leaves_a_run_that_pauses_its_tries() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut host = fleet.host().await;
    let short = failing(&starts, 2).tries(tries(3));
    host.put(short).await;
    fleet.until(4).await;
    host.put(failing(&starts, 0)).await;
    fleet.until(12).await;
    let reports = host.reports();
    let first = reports.iter().find(|report| report.tick() == tick(3));
    let first = first.expect("it is reported");
    assert_eq!((first.outcome(), first.tries()), (Outcome::Ok, 3));
    // Its successor's end is its own.
    host.put(patient(&starts)).await;
    fleet.until(14).await;
    host.put(failing(&starts, 0)).await;
    let since = Instant::now();
    assert!(host.remove(500).await.is_empty());
    assert!(since.elapsed() < Duration::from_secs(1));
}
