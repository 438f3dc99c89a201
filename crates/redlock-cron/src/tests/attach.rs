use super::*;
use crate::attach::attach;
use tokio_cron_scheduler::JobScheduler;
use uuid::Uuid;

/// The machine's clock, because tokio-cron-scheduler has no other.
struct RealClock;

impl Clock for RealClock {
    fn now(&self) -> DateTime<Utc> {
        crate::clock::SystemClock.now()
    }
}

async fn runner(pattern: &str, zone: Tz) -> Arc<JobRunner> {
    let redlock = Redlock::builder().in_memory_nodes(1).build().await.unwrap();
    let replica = Replica::new(redlock, "tests", Observer::new(None), Arc::new(RealClock)).unwrap();
    let job = SingletonJob::cron("job", pattern, zone, |_| async { Ok::<_, BoxError>(()) });
    replica.job(job).unwrap()
}

async fn stored(scheduler: &JobScheduler, id: Uuid) -> Option<DateTime<Utc>> {
    scheduler.clone().next_tick_for_job(id).await.unwrap()
}

/// Waits until the scheduler would wake the job up at `next`.
async fn wait_for(scheduler: &JobScheduler, id: Uuid, next: Option<DateTime<Utc>>) {
    let until = Instant::now() + Duration::from_secs(20);
    while stored(scheduler, id).await != next {
        assert!(
            Instant::now() < until,
            "{:?}, not {next:?}",
            stored(scheduler, id).await
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
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
        let next = runner.next_after(RealClock.now());
        assert!(next.unwrap().format("%FT%TZ").to_string().ends_with(hour));
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
