use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use super::*;
use crate::{SingletonScheduler, pulse::attach, schedule::Schedule};
use chrono::SubsecRound;
use tokio_cron_scheduler::{
    JobScheduler, SimpleJobCode, SimpleMetadataStore, SimpleNotificationCode,
    SimpleNotificationStore,
};
use uuid::Uuid;

/// The machine's clock, because tokio-cron-scheduler has no other.
struct RealClock;

impl Clock for RealClock {
    fn now(&self) -> DateTime<Utc> {
        crate::clock::SystemClock.now()
    }
}

async fn runner(pattern: &str, zone: Tz) -> Arc<JobRunner> {
    job(&replica(Observer::new(None)).await, "job", pattern, zone)
}

/// The machine's clock, and so many seconds.
#[derive(Clone, Default)]
struct WrongClock(Arc<AtomicI64>);

impl Clock for WrongClock {
    fn now(&self) -> DateTime<Utc> {
        RealClock.now() + TimeDelta::seconds(self.0.load(Relaxed))
    }
}

async fn replica(observer: Observer) -> Arc<Replica> {
    replica_at(observer, RealClock).await
}

async fn replica_at(observer: Observer, clock: impl Clock + 'static) -> Arc<Replica> {
    let redlock = Redlock::builder().in_memory_nodes(1);
    let redlock = redlock.build().await.unwrap();
    Replica::new(redlock, "tests", None, observer, Arc::new(clock)).unwrap()
}

fn job(replica: &Arc<Replica>, name: &str, pattern: &str, zone: Tz) -> Arc<JobRunner> {
    let work = |_| async { Ok::<_, BoxError>(()) };
    JobRunner::new(replica, SingletonJob::cron(name, pattern, zone, work)).unwrap()
}

async fn stored(scheduler: &JobScheduler, id: Uuid) -> Option<DateTime<Utc>> {
    scheduler.clone().next_tick_for_job(id).await.unwrap()
}

async fn wait_until<F: Future<Output = bool>>(condition: impl Fn() -> F) {
    let until = Instant::now() + Duration::from_secs(20);
    while !condition().await {
        assert!(Instant::now() < until, "it did not happen");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until the scheduler would wake the job up at `next`.
async fn wait_for(scheduler: &JobScheduler, id: Uuid, next: Option<DateTime<Utc>>) {
    wait_until(|| async { stored(scheduler, id).await == next }).await;
}

/// The scheduler on its own keeps the offset that the zone has when the job is created, so that of
/// these two, one is an hour off after the first wake-up.
#[tokio::test(flavor = "multi_thread")]
async fn the_next_tick_is_ours_after_the_addition_and_after_each_wake_up() {
    let scheduler = JobScheduler::new_with_channel_size(64).await.unwrap();
    let mut jobs = Vec::new();
    for (pattern, hour) in [
        ("0 0 9 15 1 *", "T08:00:00Z"),
        ("0 0 9 15 7 *", "T07:00:00Z"),
    ] {
        let runner = runner(pattern, Tz::Europe__Berlin).await;
        // A second before the tick.
        let next = runner.next_wake(RealClock.now());
        let tick = next.unwrap() + TimeDelta::seconds(1);
        assert!(tick.format("%FT%TZ").to_string().ends_with(hour));
        let id = attach(&scheduler, &runner).await.unwrap();
        assert_eq!(stored(&scheduler, id).await, next);
        jobs.push((runner, id, next));
    }
    scheduler.start().await.unwrap();
    for (_runner, id, next) in &jobs {
        // A wake-up out of turn.
        let context = scheduler.context();
        let mut store = context.metadata_storage.write().await;
        let now = Some(RealClock.now() - TimeDelta::seconds(1));
        store.set_next_and_last_tick(*id, now, None).await.unwrap();
        drop(store);
        assert_ne!(stored(&scheduler, *id).await, *next);
    }
    for (_runner, id, next) in &jobs {
        wait_for(&scheduler, *id, *next).await;
    }
    scheduler.clone().shutdown().await.unwrap();
}

/// The scheduler compares the clock with an instant that it was given, which may be years off then.
#[tokio::test(flavor = "multi_thread")]
async fn the_next_tick_is_ours_after_the_clock_is_set_back() {
    let scheduler = JobScheduler::new_with_channel_size(64).await.unwrap();
    let clock = WrongClock::default();
    clock.0.store(400 * 24 * 60 * 60, Relaxed);
    let replica = replica_at(Observer::new(None), clock.clone()).await;
    let jobs = SingletonScheduler::new(scheduler.clone(), replica, None);
    for name in ["added before the start", "added after it"] {
        let work = |_| async { Ok::<_, BoxError>(()) };
        let job = SingletonJob::cron(name, "0 0 9 15 1 *", Tz::Europe__Berlin, work);
        jobs.add(job).await.unwrap();
        jobs.start().await.unwrap_or_default();
    }
    let next_ticks = || async {
        let context = scheduler.context();
        let mut store = context.metadata_storage.write().await;
        let mut next = store.list_next_ticks().await.unwrap();
        next.drain(..).map(|job| job.next_tick).collect::<Vec<_>>()
    };
    let schedule = Schedule::parse("0 0 9 15 1 *", Tz::Europe__Berlin).unwrap();
    let next_after = |now| {
        let next: DateTime<Utc> = schedule.next_after(now).unwrap();
        // A second before the tick.
        vec![u64::try_from(next.timestamp() - 1).unwrap(); 2]
    };
    assert_eq!(next_ticks().await, next_after(clock.now()));
    clock.0.store(0, Relaxed);
    let right = next_after(clock.now());
    wait_until(|| async { next_ticks().await == right }).await;
    assert!(jobs.shutdown(Duration::ZERO).await.unfinished().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_scheduler_forgets_a_job_that_is_gone() {
    let scheduler = JobScheduler::new_with_channel_size(64).await.unwrap();
    let runner = runner("* * * * * *", Tz::UTC).await;
    let id = attach(&scheduler, &runner).await.unwrap();
    let gone = Arc::downgrade(&runner);
    drop(runner);
    scheduler.start().await.unwrap();
    wait_for(&scheduler, id, None).await;
    assert_eq!(gone.strong_count(), 0);
    scheduler.clone().shutdown().await.unwrap();
}

/// More jobs are due at once than the scheduler's channel has places, so it loses activations.
#[tokio::test(flavor = "multi_thread")]
async fn a_tick_whose_activation_is_lost_is_found_a_second_later() {
    const JOBS: usize = 24;
    let scheduler = JobScheduler::new_with_channel_size(JOBS / 3).await.unwrap();
    let (tell, mut reports) = unbounded_channel();
    let hook = move |report: &TickReport| drop(tell.send(report.clone()));
    let replica = replica(Observer::new(Some(Box::new(hook)))).await;
    let mut jobs = Vec::new();
    let mut tick = RealClock.now();
    for lead in [3, 10, 30] {
        jobs.clear();
        tick = (RealClock.now() + TimeDelta::seconds(lead)).trunc_subsecs(0);
        let pattern = tick.format("%S %M %H %d %m * %Y").to_string();
        for index in 0..JOBS {
            let runner = job(&replica, &format!("job-{lead}-{index}"), &pattern, Tz::UTC);
            jobs.push((attach(&scheduler, &runner).await.unwrap(), runner));
        }
        // On a busy machine the tick may be over before all jobs are there to see it.
        if RealClock.now() < tick {
            break;
        }
    }
    let context = scheduler.context();
    // Nothing takes activations out of the channel until all are sent.
    let taking = context.job_code.write().await;
    scheduler.start().await.unwrap();
    for (id, _runner) in &jobs {
        wait_until(|| async {
            let mut store = context.metadata_storage.write().await;
            let job = store.get(*id).await.unwrap().unwrap();
            job.last_tick.is_some()
        })
        .await;
    }
    drop(taking);
    // As many as there are places have come, and the others are looked for at the next look.
    let woken = || async {
        let mut woken = 0;
        for (id, _runner) in &jobs {
            let mut store = context.metadata_storage.write().await;
            let job = store.get(*id).await.unwrap().unwrap();
            woken += usize::from(job.last_tick.is_none());
        }
        woken
    };
    wait_until(|| async { woken().await >= JOBS / 3 }).await;
    assert!(woken().await < JOBS, "no activation was lost");
    for _ in 0..JOBS {
        let report = timeout(Duration::from_secs(20), reports.recv());
        let report = report.await.expect("a tick was lost").unwrap();
        assert_eq!((report.tick(), report.outcome()), (tick, Outcome::Ok));
    }
    scheduler.clone().shutdown().await.unwrap();
}

/// The scheduler stores what to run behind our back, and stops storing once it falls behind.
#[tokio::test]
async fn every_job_that_was_added_can_run_though_the_scheduler_is_slow_to_store_it() {
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
    let replica = replica(Observer::new(None)).await;
    let slow = stored.read().await;
    let add = async {
        let mut jobs = Vec::new();
        for index in 0..50 {
            let runner = job(&replica, &format!("job-{index}"), "* * * * * *", Tz::UTC);
            jobs.push((attach(&scheduler, &runner).await.unwrap(), runner));
        }
        jobs
    };
    let (jobs, ()) = tokio::join!(add, async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        drop(slow);
    });
    let stored = stored.read().await;
    let missing = jobs
        .iter()
        .filter(|(id, _)| !stored.contains_key(id))
        .count();
    assert_eq!(missing, 0, "jobs that would never run");
}
