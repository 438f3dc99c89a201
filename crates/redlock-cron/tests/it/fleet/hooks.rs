use super::*;
use redlock_cron::{Delivery, Missed, Tries, Trigger};

#[tokio::test(start_paused = true)]
async fn a_run_is_told_of_before_it_begins_and_after_it_has_ended() {
    let fleet = Fleet::new();
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = |what: &'static str| {
        let told = Arc::clone(&told);
        move || told.lock().unwrap().push(what)
    };
    let (starts, works, ends) = (tell("start"), tell("work"), tell("end"));
    let settings = |builder: SingletonSchedulerBuilder| {
        let builder = builder.on_outcome(move |_| ends());
        builder.on_start(move |run| {
            assert!(run.lease().is_held());
            assert_eq!((run.name(), run.trigger()), ("job", Trigger::Manual));
            starts();
        })
    };
    let host = fleet.scheduler(0, settings).await;
    let job = Starts::default().job(EVERY_FIVE_SECONDS, move |run: Run| {
        works();
        let failed = run.try_number() == 1;
        async move { if failed { Err("once".into()) } else { Ok(()) } }
    });
    host.put(job.tries(Tries::up_to(2))).await;
    let report = host.trigger().await;
    assert_eq!(report.outcome(), Outcome::Ok);
    assert_eq!(*told.lock().unwrap(), ["start", "work", "work", "end"]);
}

#[tokio::test(start_paused = true)]
async fn a_start_hook_that_panics_harms_nothing() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let host = fleet.scheduler(0, |builder| builder.on_start(|_| panic!("in the hook")));
    let host = host.await;
    host.put(starts.quick_job(EVERY_FIVE_SECONDS)).await;
    let report = host.trigger().await;
    assert_eq!(report.outcome(), Outcome::Ok);
    assert_eq!(fleet.keys().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_one_replica_declines_is_another_s() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut unready = fleet.host().await;
    let mut ready = fleet.host().await;
    let job = starts.quick_job(EVERY_FIVE_SECONDS);
    unready.put(job.only_if(|at| at >= tick(8))).await;
    ready.put(starts.quick_job(EVERY_FIVE_SECONDS)).await;
    fleet.until(6).await;
    fleet.until(7).await;
    assert_eq!(unready.seen(), [(tick(3), Outcome::Declined)]);
    assert!(ready.seen().contains(&(tick(3), Outcome::Ok)));
    fleet.until(9).await;
    // Both ask for it at the same moment.
    let seen = unready.seen();
    let won = [(tick(8), Outcome::Ok)];
    assert!(
        seen == won || seen == [(tick(8), Outcome::NotWinner)],
        "{seen:?}"
    );
    assert_eq!(starts.list(), [3, 8].map(tick));
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_all_decline_was_missed_and_by_hand_it_runs() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut host = fleet.host().await;
    let job = || starts.quick_job(EVERY_FIVE_SECONDS).missed(Missed::Latest);
    host.put(job().only_if(|at| at == tick(3))).await;
    fleet.until(11).await;
    assert_eq!(host.seen(), [(tick(3), Outcome::Ok)]);
    assert_eq!(host.trigger().await.outcome(), Outcome::Ok);
    host.put(job()).await;
    fleet.until(14).await;
    let made_up: Vec<_> = starts
        .list()
        .into_iter()
        .filter(|at| *at == tick(8))
        .collect();
    assert_eq!(made_up.len(), 1);
}

/// The caches of all replicas are cold at first.
#[tokio::test(start_paused = true)]
async fn a_tick_that_all_decline_is_started_when_one_is_ready_if_missed_ones_are() {
    for policy in [Missed::Latest, Missed::All { max: 9 }] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let mut host = fleet.host().await;
        let is_warm = Arc::new(AtomicBool::new(false));
        let ready = Arc::clone(&is_warm);
        let job = starts.quick_job(MINUTE).missed(policy);
        host.put(job.only_if(move |_| ready.load(Ordering::Relaxed)))
            .await;
        fleet.until(45).await;
        assert!(starts.list().is_empty());
        assert!(host.seen().is_empty(), "it is not decided yet");
        is_warm.store(true, Ordering::Relaxed);
        fleet.until(51).await;
        assert_eq!(starts.list(), [tick(3)], "{policy:?}");
        assert_eq!(host.seen(), [(tick(3), Outcome::Ok)]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_is_declined_does_not_keep_the_next_one_from_its_start() {
    for policy in [Missed::Latest, Missed::All { max: 9 }] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let mut host = fleet.host().await;
        let job = starts.quick_job(EVERY_FIVE_SECONDS).missed(policy);
        host.put(job.only_if(|at| at != tick(3))).await;
        fleet.until(9).await;
        assert_eq!(starts.list(), [tick(8)], "{policy:?}");
        assert_eq!(
            host.seen(),
            [(tick(3), Outcome::Declined), (tick(8), Outcome::Ok)]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_condition_that_panics_declines() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut host = fleet.host().await;
    let job = starts.quick_job(EVERY_FIVE_SECONDS);
    host.put(job.only_if(|_| panic!("in the condition"))).await;
    fleet.until(11).await;
    assert_eq!(
        host.seen(),
        [3, 8].map(|second| (tick(second), Outcome::Declined))
    );
    assert!(starts.list().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_declines_starts_no_attempt_of_a_tick_either() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = || {
        let again = Delivery::AtLeastOnce { max_attempts: 2 };
        starts.quick_job(EVERY_FIVE_SECONDS).delivery(again)
    };
    fleet.until(3).await;
    fleet.claim_and_leave(tick(3), "aborted").await;
    let unready = fleet.member(0, job().only_if(|_| false)).await;
    unready.begin().await;
    fleet.until(20).await;
    assert!(starts.list().is_empty());
    let ready = fleet.member(0, job()).await;
    ready.begin().await;
    fleet.until(22).await;
    assert_eq!(starts.list(), [tick(3)]);
}

/// It may be another replica's, but for no longer than it may start at all.
#[tokio::test(start_paused = true)]
async fn a_run_cut_short_that_a_replica_declines_does_not_stop_the_job_for_good() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let again = Delivery::AtLeastOnce { max_attempts: 2 };
    let job = starts.quick_job(EVERY_FIVE_SECONDS).delivery(again);
    // It may be started again for twenty seconds: five, in which it may be started, and a run and a lease.
    let job = job.max_runtime(Duration::from_secs(5));
    let host = fleet.host().await;
    host.put(job.only_if(|at| at != tick(3))).await;
    fleet.until(3).await;
    fleet.claim_and_leave(tick(3), "aborted").await;
    fleet.until(20).await;
    assert!(starts.list().is_empty());
    fleet.until(40).await;
    let starts = starts.list();
    assert!(
        starts.contains(&tick(28)) && starts.contains(&tick(33)),
        "{starts:?}"
    );
    assert!(!starts.contains(&tick(3)));
}
