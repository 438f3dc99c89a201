use std::{
    collections::HashMap,
    sync::atomic::{AtomicI64, Ordering::Relaxed},
};

use super::{logs::Logged, *};
use crate::{
    SingletonScheduler,
    pulse::{JobAlarm, Jobs, watch},
};
use chrono::SubsecRound;
use tokio_cron_scheduler::{
    Job, JobScheduler, SimpleJobCode, SimpleMetadataStore, SimpleNotificationCode,
    SimpleNotificationStore,
};
use tracing::Level;

/// The machine's clock, because tokio-cron-scheduler has no other.
struct RealClock;

impl WallClock for RealClock {
    fn now(&self) -> DateTime<Utc> {
        crate::clock::SystemClock.now()
    }
}

/// The machine's clock plus a number of seconds.
#[derive(Clone, Default)]
struct WrongClock(Arc<AtomicI64>);

impl WallClock for WrongClock {
    fn now(&self) -> DateTime<Utc> {
        RealClock.now() + TimeDelta::seconds(self.0.load(Relaxed))
    }
}

async fn replica(observer: Observer) -> Arc<Replica> {
    replica_at(observer, RealClock).await
}

async fn replica_at(observer: Observer, clock: impl WallClock + 'static) -> Arc<Replica> {
    let redlock = Redlock::builder().in_memory_nodes(1);
    let redlock = redlock.build().await.unwrap();
    Replica::new(redlock, "tests", None, observer, Arc::new(clock), None).unwrap()
}

/// Returns a replica whose reports are heard of.
async fn heard(clock: impl WallClock + 'static) -> (Arc<Replica>, UnboundedReceiver<TickReport>) {
    let (tell, reports) = unbounded_channel();
    let hook = move |report: &TickReport| drop(tell.send(report.clone()));
    let replica = replica_at(Observer::new(Some(Box::new(hook))), clock).await;
    (replica, reports)
}

/// Returns when the scheduler would wake its jobs up next, in seconds.
async fn next_alarms(scheduler: &JobScheduler) -> Vec<u64> {
    let context = scheduler.context();
    let mut store = context.metadata_storage.write().await;
    let next = store.list_next_ticks().await.unwrap();
    next.iter().map(|job| job.next_tick).collect()
}

async fn wait_until<F: Future<Output = bool>>(condition: impl Fn() -> F) {
    let until = Instant::now() + Duration::from_secs(20);
    while !condition().await {
        assert!(Instant::now() < until, "it did not happen");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn next(reports: &mut UnboundedReceiver<TickReport>) -> TickReport {
    let report = timeout(Duration::from_secs(20), reports.recv());
    report.await.expect("no tick was started").unwrap()
}

/// The scheduler on its own keeps the offset that the zone has when a job is created, so that it must not know of zones.
#[tokio::test(flavor = "multi_thread")]
async fn the_scheduler_has_one_job_and_no_pattern_of_ours() {
    let scheduler = JobScheduler::new().await.unwrap();
    let replica = replica(Observer::new(None)).await;
    let jobs = SingletonScheduler::new(scheduler.clone(), replica, None);
    for index in 0..300 {
        let work = |_| async { Ok::<_, BoxError>(()) };
        let (name, zone) = (format!("job-{index}"), Tz::Europe__Berlin);
        let job = SingletonJob::cron(name, "0 0 9 15 1 *", zone, work);
        jobs.add(job).await.unwrap();
        if index == 150 {
            jobs.start().await.unwrap();
        }
    }
    let next = next_alarms(&scheduler).await;
    let [next] = *next else { panic!("{next:?}") };
    let now = u64::try_from(RealClock.now().timestamp()).unwrap();
    assert!((now - 1..=now + 2).contains(&next), "{next} {now}");
    assert!(jobs.shutdown(Duration::ZERO).await.is_clean());
}

/// The scheduler compares the clock with an instant that it was given, which is years off then.
#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_woken_up_when_the_clock_was_a_year_ahead_and_is_set_right() {
    const YEAR: i64 = 365 * 24 * 60 * 60;
    let scheduler = JobScheduler::new().await.unwrap();
    let clock = WrongClock::default();
    clock.0.store(YEAR, Relaxed);
    let (replica, mut reports) = heard(clock.clone()).await;
    let jobs = SingletonScheduler::new(scheduler.clone(), replica, None);
    let work = |_| async { Ok::<_, BoxError>(()) };
    let job = SingletonJob::cron("job", "* * * * * *", Tz::UTC, work);
    jobs.add(job).await.unwrap();
    jobs.start().await.unwrap();
    assert_eq!(next(&mut reports).await.outcome(), Outcome::Ok);
    // As it is if the machine's clock was.
    let in_a_year = RealClock.now() + TimeDelta::seconds(YEAR);
    let context = scheduler.context();
    let silence = async || {
        let mut store = context.metadata_storage.write().await;
        let alarms = store.list_next_ticks().await.unwrap();
        let id = alarms[0].id.as_ref().unwrap().into();
        let set = store.set_next_and_last_tick(id, Some(in_a_year), None);
        set.await.unwrap();
    };
    silence().await;
    clock.0.store(0, Relaxed);
    let mut started = 0;
    while started < 3 {
        started += usize::from(next(&mut reports).await.outcome() == Outcome::Ok);
    }
    let in_a_minute = u64::try_from(RealClock.now().timestamp()).unwrap() + 60;
    wait_until(async || next_alarms(&scheduler).await[0] < in_a_minute).await;
    // The clock was wrong for a moment only, and no check has seen it.
    silence().await;
    while reports.try_recv().is_ok() {}
    for _ in 0..5 {
        next(&mut reports).await;
    }
    assert!(jobs.shutdown(Duration::ZERO).await.unfinished().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_scheduler_forgets_jobs_that_are_gone() {
    let scheduler = JobScheduler::new().await.unwrap();
    let jobs = Arc::new(Jobs::new(replica(Observer::new(None)).await));
    let _alarm = JobAlarm::set(&scheduler, &jobs).await.unwrap();
    let gone = Arc::downgrade(&jobs);
    drop(jobs);
    assert_eq!(next_alarms(&scheduler).await.len(), 1);
    scheduler.start().await.unwrap();
    wait_until(|| async { next_alarms(&scheduler).await.is_empty() }).await;
    assert_eq!(gone.strong_count(), 0);
    scheduler.clone().shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_tick_after_the_start_or_an_addition_does_not_wait_for_the_scheduler() {
    let scheduler = JobScheduler::new().await.unwrap();
    // So it wakes nothing up.
    let context = scheduler.context();
    let taking = context.job_code.write().await;
    let (replica, mut reports) = heard(RealClock).await;
    let jobs = SingletonScheduler::new(scheduler.clone(), replica, None);
    let job = |name| {
        let work = |_| async { Ok::<_, BoxError>(()) };
        SingletonJob::cron(name, "* * * * * *", Tz::UTC, work)
    };
    jobs.add(job("before")).await.unwrap();
    jobs.start().await.unwrap();
    // So the watch over the alarm wakes nothing up either: it waits for this to see what the scheduler does.
    let stored = context.metadata_storage.write().await;
    assert_eq!(next(&mut reports).await.job(), "before");
    jobs.add(job("after")).await.unwrap();
    while next(&mut reports).await.job() != "after" {}
    drop((taking, stored));
    let _ = jobs.shutdown(Duration::ZERO).await;
}

/// The application's own jobs are due every second as well, and more of them than the scheduler's channel has places.
#[tokio::test(flavor = "multi_thread")]
async fn a_tick_is_found_later_if_its_activation_is_lost() {
    const OTHERS: usize = 24;
    let scheduler = JobScheduler::new_with_channel_size(8).await.unwrap();
    for _ in 0..OTHERS {
        let other = Job::new_async("* * * * * *", |_, _| Box::pin(async {})).unwrap();
        scheduler.add(other).await.unwrap();
    }
    let (replica, mut reports) = heard(RealClock).await;
    let jobs = SingletonScheduler::new(scheduler.clone(), replica, None);
    let work = |_| async { Ok::<_, BoxError>(()) };
    let job = SingletonJob::cron("job", "* * * * * *", Tz::UTC, work);
    let job = job.start_within(Duration::from_secs(15));
    jobs.add(job).await.unwrap();
    jobs.start().await.unwrap();
    next(&mut reports).await;
    // Nothing takes activations out of the channel until some seconds' were sent.
    let context = scheduler.context();
    let taking = context.job_code.write().await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    drop(taking);
    while reports.try_recv().is_ok() {}
    let since = RealClock.now().trunc_subsecs(0);
    let mut started = Vec::new();
    while started.len() < 3 {
        let report = next(&mut reports).await;
        match report.outcome() {
            Outcome::Ok => started.push(report.tick()),
            outcome => assert_eq!(outcome, Outcome::Missed, "{report:?}"),
        }
    }
    // A busy machine may need some of them, and all activations may be lost.
    assert!(started[0] <= since + TimeDelta::seconds(10), "{started:?}");
    let _ = jobs.shutdown(Duration::ZERO).await;
}

/// Nothing takes activations out of the channel, as if each were lost among those of the application's own jobs.
#[tokio::test(flavor = "multi_thread")]
async fn ticks_are_started_though_every_activation_is_lost() {
    let scheduler = JobScheduler::new_with_channel_size(8).await.unwrap();
    let (replica, mut reports) = heard(RealClock).await;
    let jobs = SingletonScheduler::new(scheduler.clone(), replica, None);
    let work = |_| async { Ok::<_, BoxError>(()) };
    let job = SingletonJob::cron("job", "* * * * * *", Tz::UTC, work);
    jobs.add(job).await.unwrap();
    let context = scheduler.context();
    let taking = context.job_code.write().await;
    jobs.start().await.unwrap();
    let mut started = 0;
    while started < 6 {
        started += usize::from(next(&mut reports).await.outcome() == Outcome::Ok);
    }
    drop(taking);
    let _ = jobs.shutdown(Duration::ZERO).await;
}

/// An application that shuts the scheduler down by its own handle wants nothing more to start.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_started_in_place_of_a_scheduler_that_was_shut_down() {
    let scheduler = JobScheduler::new().await.unwrap();
    let (replica, mut reports) = heard(RealClock).await;
    let jobs = SingletonScheduler::new(scheduler.clone(), replica, None);
    let work = |_| async { Ok::<_, BoxError>(()) };
    let job = SingletonJob::cron("job", "* * * * * *", Tz::UTC, work);
    jobs.add(job).await.unwrap();
    jobs.start().await.unwrap();
    next(&mut reports).await;
    scheduler.clone().shutdown().await.unwrap();
    // It wakes jobs up for another half second, each of which looks a second and a half ahead.
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    while reports.try_recv().is_ok() {}
    // Longer than the watch takes to set the alarm again, and to look at what came of it.
    let more = timeout(Duration::from_secs(7), reports.recv()).await;
    assert!(more.is_err(), "{more:?}");
    let _ = jobs.shutdown(Duration::ZERO).await;
}

/// The scheduler stores what to run behind our back, and stops storing once it falls behind.
#[tokio::test]
async fn every_job_that_was_added_can_run_though_the_scheduler_is_slow_to_store_it() {
    const JOBS: usize = 50;
    let code = SimpleJobCode::default();
    let stored = Arc::clone(&code.job_code);
    let scheduler = JobScheduler::new_with_storage_and_code(
        Box::new(SimpleMetadataStore::default()),
        Box::new(SimpleNotificationStore::default()),
        Box::new(code),
        Box::new(SimpleNotificationCode::default()),
        8,
    )
    .await
    .unwrap();
    let (replica, mut reports) = heard(RealClock).await;
    let jobs = SingletonScheduler::new(scheduler, replica, None);
    let slow = stored.read().await;
    for index in 0..JOBS {
        let work = |_| async { Ok::<_, BoxError>(()) };
        let job = SingletonJob::cron(format!("job-{index}"), "* * * * * *", Tz::UTC, work);
        jobs.add(job).await.unwrap();
    }
    jobs.start().await.unwrap();
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    drop(slow);
    let mut ticks: HashMap<String, usize> = HashMap::new();
    while ticks.len() < JOBS || ticks.values().any(|ticks| *ticks < 4) {
        *ticks
            .entry(next(&mut reports).await.job().to_owned())
            .or_default() += 1;
    }
    let _ = jobs.shutdown(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scheduler_of_its_own_wakes_jobs_up_and_ends_when_it_is_dropped() {
    let (replica, mut reports) = heard(RealClock).await;
    let jobs = SingletonScheduler::new(None, replica, None);
    let work = |_| async { Ok::<_, BoxError>(()) };
    let job = SingletonJob::cron("job", "* * * * * *", Tz::UTC, work);
    jobs.add(job).await.unwrap();
    jobs.start().await.unwrap();
    for _ in 0..3 {
        assert_eq!(next(&mut reports).await.outcome(), Outcome::Ok);
    }
    let scheduler = jobs.scheduler().expect("it was started").clone();
    drop(jobs);
    let locked = scheduler.scheduler.read().await;
    assert!(locked.shutdown.load(Relaxed));
}

#[tokio::test]
async fn a_scheduler_of_its_own_that_was_never_started_shuts_down() {
    let (replica, _) = heard(RealClock).await;
    let jobs = SingletonScheduler::new(None, replica, None);
    assert!(jobs.shutdown(Duration::ZERO).await.is_clean());
    assert!(jobs.start().await.is_err());
}

/// The scheduler also has jobs of the application.
#[tokio::test]
async fn a_scheduler_of_the_application_goes_on_when_ours_is_dropped() {
    let scheduler = JobScheduler::new().await.unwrap();
    let (replica, _) = heard(RealClock).await;
    let jobs = SingletonScheduler::new(scheduler.clone(), replica, None);
    jobs.start().await.unwrap();
    drop(jobs);
    assert!(!scheduler.scheduler.read().await.shutdown.load(Relaxed));
}

#[tokio::test]
async fn a_scheduler_that_runs_already_is_taken_as_it_is() {
    let scheduler = JobScheduler::new().await.unwrap();
    scheduler.start().await.unwrap();
    let (replica, mut reports) = heard(RealClock).await;
    let jobs = SingletonScheduler::new(scheduler.clone(), replica, None);
    let starts = Starts::default();
    jobs.add(starts.quick_job("* * * * * *")).await.unwrap();
    jobs.start().await.unwrap();
    assert_eq!(next(&mut reports).await.outcome(), Outcome::Ok);
    let moment = jobs.trigger_now("job").await.unwrap();
    assert_eq!(moment.outcome(), Outcome::Ok);
    let again = jobs.start().await.unwrap_err().to_string();
    assert!(again.contains("it was started before"), "{again}");
    assert!(jobs.shutdown(Duration::from_secs(1)).await.is_clean());
}

#[tokio::test]
async fn a_second_adapter_on_one_scheduler_is_an_error_at_once_and_one_after_another_is_none() {
    let scheduler = JobScheduler::new().await.unwrap();
    let first = SingletonScheduler::new(scheduler.clone(), heard(RealClock).await.0, None);
    first.start().await.unwrap();
    let second = SingletonScheduler::new(scheduler.clone(), heard(RealClock).await.0, None);
    let refused = second.start().await.unwrap_err().to_string();
    assert!(
        refused.contains("another SingletonScheduler has it"),
        "{refused}"
    );
    assert_eq!(next_alarms(&scheduler).await.len(), 1);
    drop(first);
    second.start().await.unwrap();
}

/// By an application that shuts it down and keeps its jobs, for instance.
#[tokio::test(start_paused = true)]
async fn a_scheduler_that_wakes_nothing_up_any_more_is_told_of_once() {
    let fleet = Fleet::new();
    let clock = Arc::new(fleet.clock(0));
    let client = fleet.client().await;
    let replica = Replica::new(client, "tests", None, Observer::new(None), clock, None).unwrap();
    let scheduler = JobScheduler::new().await.unwrap();
    let jobs = Arc::new(Jobs::new(Arc::clone(&replica)));
    let alarm = JobAlarm::set(&scheduler, &jobs).await.unwrap();
    let (errors, _guard) = Logged::at(Level::ERROR);
    let weak = Arc::downgrade(&jobs);
    replica
        .tasks
        .spawn(watch(Some(alarm), Arc::clone(&replica), weak));
    for (seconds, told) in [(9, 0), (3, 1), (600, 1)] {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        assert_eq!(errors.count(), told, "{seconds}");
    }
    jobs.alarm_came();
    for (seconds, told) in [(9, 1), (3, 2), (600, 2)] {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        assert_eq!(errors.count(), told, "{seconds}");
    }
    assert!(replica.tasks.shut_down(Duration::ZERO).await.is_clean());
}
