//! Schedulers on a tokio-cron-scheduler of the application's, and on one of their own, in real time.

use std::{
    collections::HashMap,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use chrono::{SubsecRound, TimeDelta, Utc};
use redlock_core::Redlock;
use redlock_cron::{
    BoxError, Outcome, SingletonJob, SingletonScheduler, TickReport,
    tokio_cron_scheduler::{
        Job, JobScheduler, SimpleJobCode, SimpleMetadataStore, SimpleNotificationCode,
        SimpleNotificationStore,
    },
};
use tokio::{
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    time::{Instant, sleep, timeout},
};

/// Returns a scheduler on this one, or on its own, and its reports.
async fn on(
    scheduler: Option<&JobScheduler>,
) -> (SingletonScheduler, UnboundedReceiver<TickReport>) {
    let (tell, reports) = unbounded_channel();
    let redlock = Redlock::builder().in_memory_nodes(1).build().await.unwrap();
    let builder = match scheduler {
        Some(scheduler) => SingletonScheduler::builder(redlock, scheduler.clone()),
        None => SingletonScheduler::standalone(redlock),
    };
    let builder = builder.namespace("tests");
    let builder = builder.on_outcome(move |report| drop(tell.send(report.clone())));
    (builder.build().unwrap(), reports)
}

/// Returns a job of every second.
fn job(name: &str) -> SingletonJob {
    let work = |_| async { Ok::<_, BoxError>(()) };
    SingletonJob::cron(name, "* * * * * *", "UTC", work)
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
        sleep(Duration::from_millis(5)).await;
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
    let (jobs, _) = on(Some(&scheduler)).await;
    for index in 0..300 {
        let work = |_| async { Ok::<_, BoxError>(()) };
        let (name, zone) = (format!("job-{index}"), "Europe/Berlin");
        let job = SingletonJob::cron(name, "0 0 9 15 1 *", zone, work);
        jobs.add(job).await.unwrap();
        if index == 150 {
            jobs.start().await.unwrap();
        }
    }
    let next = next_alarms(&scheduler).await;
    let [next] = *next else { panic!("{next:?}") };
    let now = u64::try_from(Utc::now().timestamp()).unwrap();
    assert!((now - 1..=now + 2).contains(&next), "{next} {now}");
    assert!(jobs.shutdown(Duration::ZERO).await.is_clean());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_tick_after_the_start_or_an_addition_does_not_wait_for_the_scheduler() {
    let scheduler = JobScheduler::new().await.unwrap();
    // So it wakes nothing up.
    let context = scheduler.context();
    let taking = context.job_code.write().await;
    let (jobs, mut reports) = on(Some(&scheduler)).await;
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
    let (jobs, mut reports) = on(Some(&scheduler)).await;
    let job = job("job").start_within(Duration::from_secs(15));
    jobs.add(job).await.unwrap();
    jobs.start().await.unwrap();
    next(&mut reports).await;
    // Nothing takes activations out of the channel until some seconds' were sent.
    let context = scheduler.context();
    let taking = context.job_code.write().await;
    sleep(Duration::from_secs(4)).await;
    drop(taking);
    while reports.try_recv().is_ok() {}
    let since = Utc::now().trunc_subsecs(0);
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
    let (jobs, mut reports) = on(Some(&scheduler)).await;
    jobs.add(job("job")).await.unwrap();
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
    let (jobs, mut reports) = on(Some(&scheduler)).await;
    jobs.add(job("job")).await.unwrap();
    jobs.start().await.unwrap();
    next(&mut reports).await;
    scheduler.clone().shutdown().await.unwrap();
    // It wakes jobs up for another half second, each of which looks a second and a half ahead.
    sleep(Duration::from_millis(2_500)).await;
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
    let (jobs, mut reports) = on(Some(&scheduler)).await;
    let slow = stored.read().await;
    for index in 0..JOBS {
        jobs.add(job(&format!("job-{index}"))).await.unwrap();
    }
    jobs.start().await.unwrap();
    sleep(Duration::from_millis(1_200)).await;
    drop(slow);
    let mut ticks: HashMap<String, usize> = HashMap::new();
    while ticks.len() < JOBS || ticks.values().any(|ticks| *ticks < 4) {
        *ticks
            .entry(next(&mut reports).await.job().to_owned())
            .or_default() += 1;
    }
    let _ = jobs.shutdown(Duration::ZERO).await;
}

#[tokio::test]
async fn a_scheduler_of_its_own_that_was_never_started_shuts_down() {
    let (jobs, _) = on(None).await;
    assert!(jobs.shutdown(Duration::ZERO).await.is_clean());
    assert!(jobs.start().await.is_err());
}

/// The scheduler also has jobs of the application.
#[tokio::test]
async fn a_scheduler_of_the_application_goes_on_when_ours_is_dropped() {
    let scheduler = JobScheduler::new().await.unwrap();
    let (jobs, _) = on(Some(&scheduler)).await;
    jobs.start().await.unwrap();
    drop(jobs);
    assert!(!scheduler.scheduler.read().await.shutdown.load(Relaxed));
}

#[tokio::test]
async fn a_scheduler_that_runs_already_is_taken_as_it_is() {
    let scheduler = JobScheduler::new().await.unwrap();
    scheduler.start().await.unwrap();
    let (jobs, mut reports) = on(Some(&scheduler)).await;
    jobs.add(job("job")).await.unwrap();
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
    let first = on(Some(&scheduler)).await.0;
    first.start().await.unwrap();
    let second = on(Some(&scheduler)).await.0;
    let refused = second.start().await.unwrap_err().to_string();
    assert!(
        refused.contains("another SingletonScheduler has it"),
        "{refused}"
    );
    assert_eq!(next_alarms(&scheduler).await.len(), 1);
    drop(first);
    second.start().await.unwrap();
}

/// tokio-cron-scheduler keeps its jobs, so that only their names are in them.
#[tokio::test(flavor = "multi_thread")]
async fn a_scheduler_of_the_application_forgets_ours_when_it_is_dropped() {
    let scheduler = JobScheduler::new().await.unwrap();
    let (jobs, _) = on(Some(&scheduler)).await;
    jobs.start().await.unwrap();
    assert_eq!(next_alarms(&scheduler).await.len(), 1);
    drop(jobs);
    wait_until(|| async { next_alarms(&scheduler).await.is_empty() }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scheduler_of_its_own_starts_each_tick_and_ends_when_it_is_dropped() {
    let (jobs, mut reports) = on(None).await;
    jobs.add(job("job")).await.unwrap();
    jobs.start().await.unwrap();
    let mut started = Vec::new();
    while started.len() < 5 {
        let report = next(&mut reports).await;
        if report.outcome() == Outcome::Ok {
            started.push(report.tick());
        }
    }
    let again = jobs.start().await.unwrap_err().to_string();
    assert!(again.contains("it was started before"), "{again}");
    drop(jobs);
    // The channel closes when nothing of the scheduler is left.
    while timeout(Duration::from_secs(20), reports.recv())
        .await
        .unwrap()
        .is_some()
    {}
    let is_next = |pair: &[_]| pair[1] - pair[0] == TimeDelta::seconds(1);
    assert!(
        started.windows(2).filter(|pair| is_next(pair)).count() >= 3,
        "{started:?}"
    );
}
