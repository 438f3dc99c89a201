//! The alarm that tokio-cron-scheduler has of ours, and the watch over it.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use super::{logged::Logged, *};
use crate::{
    SingletonScheduler, TickReport,
    scheduler::pulse::{JobAlarm, Jobs, Waker, WatchedAlarm, watch},
};
use tokio::{
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    time::timeout,
};
use tokio_cron_scheduler::JobScheduler;
use tracing::Level;

/// The machine's clock plus a number of seconds.
#[derive(Clone, Default)]
struct WrongClock(Arc<AtomicI64>);

impl WallClock for WrongClock {
    fn now(&self) -> DateTime<Utc> {
        crate::clock::SystemClock.now() + TimeDelta::seconds(self.0.load(Relaxed))
    }
}

async fn next(reports: &mut UnboundedReceiver<TickReport>) -> TickReport {
    let report = timeout(Duration::from_secs(20), reports.recv());
    report.await.expect("no tick was started").unwrap()
}

/// The scheduler compares the clock with an instant that it was given, which is years off then.
#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_woken_up_when_the_clock_was_a_year_ahead_and_is_set_right() {
    const YEAR: i64 = 365 * 24 * 60 * 60;
    let scheduler = JobScheduler::new().await.unwrap();
    let clock = WrongClock::default();
    clock.0.store(YEAR, Relaxed);
    let (tell, mut reports) = unbounded_channel();
    let hook = move |report: &TickReport| drop(tell.send(report.clone()));
    let observer = Reporter::new(Some(Box::new(hook)));
    let redlock = Redlock::builder().in_memory_nodes(1).build().await.unwrap();
    let of_replica = Arc::new(clock.clone());
    let replica = Replica::new(redlock, "tests", None, observer, of_replica, None).unwrap();
    let jobs = SingletonScheduler::new(replica, None).attached_to(scheduler.clone());
    let work = |_| async { Ok::<_, BoxError>(()) };
    let job = SingletonJob::cron("job", "* * * * * *", Tz::UTC, work);
    jobs.add(job).await.unwrap();
    jobs.start().await.unwrap();
    assert_eq!(next(&mut reports).await.outcome(), Outcome::Ok);
    // As it is if the machine's clock was.
    let in_a_year = crate::clock::SystemClock.now() + TimeDelta::seconds(YEAR);
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
    // The clock was wrong for a moment only, and no check has seen it.
    silence().await;
    while reports.try_recv().is_ok() {}
    for _ in 0..5 {
        next(&mut reports).await;
    }
    assert!(jobs.shutdown(Duration::ZERO).await.unfinished().is_empty());
}

/// By an application that shuts it down and keeps its jobs, for instance.
#[tokio::test(start_paused = true)]
async fn a_scheduler_that_wakes_nothing_up_any_more_is_told_of_once() {
    let fleet = Fleet::new();
    let replica = fleet.replica(fleet.clock(0)).await;
    let scheduler = JobScheduler::new().await.unwrap();
    let jobs = Arc::new(Jobs::new(Arc::clone(&replica)));
    let alarm = JobAlarm::set(&scheduler, &jobs).await.unwrap();
    let (errors, _guard) = Logged::at(Level::ERROR);
    let weak = Arc::downgrade(&jobs);
    replica.tasks.spawn(watch(
        Waker::Alarm(WatchedAlarm::new(alarm)),
        Arc::clone(&replica),
        weak,
    ));
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
