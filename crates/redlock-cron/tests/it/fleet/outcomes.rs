use super::*;

/// Says that the future which owned it is gone.
struct TellDropped(Arc<AtomicBool>);

impl Drop for TellDropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Returns a job that never ends, and whether its future was dropped.
fn endless_job(starts: &Starts) -> (SingletonJob, Arc<AtomicBool>) {
    let dropped = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&dropped);
    let job = starts.job(EVERY_FIVE_SECONDS, move |_| {
        let guard = TellDropped(Arc::clone(&told));
        async move {
            let _guard = guard;
            std::future::pending().await
        }
    });
    (job, dropped)
}

#[tokio::test(start_paused = true)]
async fn a_run_is_told_its_tick_and_how_late_it_is() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = starts.job(EVERY_FIVE_SECONDS, |run: Run| async move {
        assert_eq!(run.name(), "job");
        assert_eq!(run.tick(), tick(3));
        assert_eq!(run.lag(), Duration::from_millis(400));
        assert!(run.lease().is_held());
        assert_eq!(run.lease().key().as_str(), "redlock-cron-job:tests/job");
        Ok(())
    });
    let mut member = fleet.member(0, job).await;
    member.wake_at(3_400).await;
    let report = member.report().await;
    assert_eq!(report.outcome(), Outcome::Ok, "{report:?}");
    assert_eq!((report.job(), report.tick()), ("job", tick(3)));
    assert_eq!(report.lag(), Duration::from_millis(400));
    assert!(report.took().is_some());
}

/// The fleet starts at eight in the morning in UTC.
#[tokio::test(start_paused = true)]
async fn a_run_knows_the_day_of_its_tick_in_the_zone_of_its_pattern() {
    let (fleet, days) = (Fleet::new(), Arc::new(Mutex::new(Vec::new())));
    for zone in [Tz::Pacific__Apia, Tz::UTC, Tz::Pacific__Honolulu] {
        let seen = Arc::clone(&days);
        let name = zone.name().to_owned();
        let job = SingletonJob::cron(name, EVERY_FIVE_SECONDS, zone, move |run: Run| {
            assert_eq!(run.zone(), zone);
            assert_eq!(run.local_tick(), run.tick());
            seen.lock().unwrap().push(run.local_date().to_string());
            async { Ok::<_, BoxError>(()) }
        });
        let member = fleet.member(0, job.spread(Duration::ZERO)).await;
        let report = member.jobs.trigger_now(zone.name()).await.unwrap();
        assert_eq!(report.outcome(), Outcome::Ok, "{report:?}");
    }
    let days = days.lock().unwrap();
    assert_eq!(*days, ["2027-01-15", "2027-01-15", "2027-01-14"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_lease_is_lost_is_dropped_and_the_next_tick_runs_elsewhere() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let (job, dropped) = endless_job(&starts);
    let mut first = fleet.member(0, job.only_if(|at| at == tick(3))).await;
    let mut second = fleet.member(0, starts.quick_job(EVERY_FIVE_SECONDS)).await;
    first.wake_at(3_000).await;
    fleet.sleep_until(3_500).await;
    assert_eq!(starts.list(), [tick(3)]);
    for node in &fleet.nodes[..2] {
        node.drop_locks();
    }
    let report = first.report().await;
    assert_eq!(report.outcome(), Outcome::Lost, "{report:?}");
    assert!(dropped.load(Ordering::SeqCst));
    // Before the time to live of ten seconds was over.
    assert!(fleet.origin.elapsed() < Duration::from_secs(13));
    second.wake_at(13_000).await;
    while second.report().await.outcome() != Outcome::Ok {}
    assert_eq!(starts.list(), [tick(3), tick(13)]);
}

// Shows: T2.7.
#[tokio::test(start_paused = true)]
async fn a_run_is_dropped_at_its_deadline_when_no_node_answers() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let (job, dropped) = endless_job(&starts);
    let mut member = fleet.member(0, job.ttl(Duration::from_secs(4))).await;
    member.wake_at(3_000).await;
    fleet.sleep_until(3_500).await;
    fleet.nodes.iter().for_each(MemoryNode::stop);
    assert_eq!(member.outcome().await, Outcome::Lost);
    assert!(dropped.load(Ordering::SeqCst));
    assert!(fleet.origin.elapsed() < Duration::from_secs(3 + 4));
}

#[tokio::test(start_paused = true)]
async fn panics_and_errors_are_reported_and_the_next_tick_runs() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let attempt = AtomicUsize::new(0);
    let job = starts.job(EVERY_FIVE_SECONDS, move |_| {
        let attempt = attempt.fetch_add(1, Ordering::SeqCst);
        assert!(attempt != 0, "in the call");
        async move {
            match attempt {
                1 => panic!("in the {}", "future"),
                2 => Err("no such ledger".into()),
                _ => Ok(()),
            }
        }
    });
    let mut member = fleet.member(0, job).await;
    let expected = [
        (Outcome::Panicked, Some("in the call")),
        (Outcome::Panicked, Some("in the future")),
        (Outcome::Failed, Some("no such ledger")),
        (Outcome::Ok, None),
    ];
    for (index, expected) in (0..).zip(expected) {
        member.wake_at(3_000 + 5_000 * index).await;
        let report = member.report().await;
        assert_eq!((report.outcome(), report.detail()), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn runs_of_a_job_never_overlap_and_skipped_ticks_say_so() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let running = Arc::new(AtomicUsize::new(0));
    let job = || {
        let running = Arc::clone(&running);
        starts.job(EVERY_FIVE_SECONDS, move |_| {
            let running = Arc::clone(&running);
            async move {
                assert_eq!(
                    running.fetch_add(1, Ordering::SeqCst),
                    0,
                    "two runs at once"
                );
                sleep(Duration::from_secs(12)).await;
                running.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            }
        })
    };
    let (mut first, mut second) = (fleet.member(0, job()).await, fleet.member(0, job()).await);
    first.wake_at(2_000).await;
    second.wake_at(2_000).await;
    fleet.until(26).await;
    let seen = [first.seen(), second.seen()].concat();
    let of = |second| {
        let of_tick = seen.iter().filter(move |(of, _)| *of == tick(second));
        let mut outcomes: Vec<_> = of_tick.map(|(_, outcome)| *outcome).collect();
        outcomes.sort_by_key(|outcome| *outcome != Outcome::NotWinner);
        outcomes
    };
    assert_eq!(of(3)[0], Outcome::NotWinner);
    assert_eq!(of(18)[0], Outcome::NotWinner);
    for skipped in [8, 13, 23] {
        assert_eq!(of(skipped), [Outcome::Overlapping; 2]);
    }
    assert_eq!(starts.list(), [tick(3), tick(18)]);
}

#[tokio::test(start_paused = true)]
async fn without_a_majority_nothing_runs_and_the_report_has_a_line_per_node() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut member = fleet.member(0, starts.quick_job(EVERY_FIVE_SECONDS)).await;
    fleet.nodes[..2].iter().for_each(MemoryNode::stop);
    member.wake_at(3_000).await;
    let report = member.report().await;
    assert_eq!(report.outcome(), Outcome::NoQuorum, "{report:?}");
    assert_eq!(report.detail().unwrap().lines().count(), 4, "{report:?}");
    assert!(starts.list().is_empty());
    // And with one of them back, the next tick runs.
    fleet.nodes[0].start();
    fleet.until(7).await;
    member.wake_at(8_000).await;
    assert_eq!(member.outcome().await, Outcome::Ok);
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_is_come_to_too_late_is_not_started() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = starts.quick_job(MINUTE);
    let job = job.start_within(Duration::from_secs(10));
    let mut member = fleet.member(0, job).await;
    member.wake_at(13_001).await;
    let report = member.report().await;
    assert_eq!(
        (report.tick(), report.outcome()),
        (tick(3), Outcome::TooLate)
    );
    assert!(starts.list().is_empty());
    assert_eq!(fleet.keys().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_panics_harms_nothing() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let host = fleet.scheduler(0, |builder| builder.on_outcome(|_| panic!("in the hook")));
    let host = host.await;
    host.put(starts.quick_job(EVERY_FIVE_SECONDS)).await;
    // The start reports two ticks that were passed over before it starts one.
    host.wake_at(13_000).await;
    fleet.until(24).await;
    assert_eq!(starts.list(), [tick(13), tick(18), tick(23)]);
    // The lease was released each time.
    assert_eq!(fleet.keys().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_was_closed_starts_nothing_and_says_so() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut member = fleet.member(0, starts.quick_job(EVERY_FIVE_SECONDS)).await;
    member.redlock.clone().close().await;
    member.wake_at(3_000).await;
    let report = member.report().await;
    assert_eq!(report.outcome(), Outcome::Refused);
    assert!(report.detail().unwrap().contains("closed"), "{report:?}");
    assert!(starts.list().is_empty());
}
