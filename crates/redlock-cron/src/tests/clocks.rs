//! Replicas whose wall clocks are set while they wait.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use super::{logged::Logged, *};
use crate::{
    Missed, Overlap, Trigger,
    scheduler::pulse::{Jobs, Waker, watch},
};
use tracing::Level;

/// Virtual time, off by the number of seconds that was set last.
#[derive(Clone)]
struct SetClock(Instant, Arc<AtomicI64>);

impl WallClock for SetClock {
    fn now(&self) -> DateTime<Utc> {
        let since = TimeDelta::from_std(self.0.elapsed()).unwrap();
        tick(0) + since + TimeDelta::seconds(self.1.load(Relaxed))
    }
}

/// When each tick was started, in milliseconds after it.
type Lags = Arc<Mutex<Vec<(DateTime<Utc>, i64)>>>;

impl Fleet {
    /// Starts a replica whose clock is off by what is returned, in seconds, with a job of every five seconds.
    async fn replica_with_a_clock(&self, missed: Missed, lags: &Lags) -> (Arc<AtomicI64>, Kept) {
        let seconds = Arc::new(AtomicI64::new(0));
        let clock = SetClock(self.origin, Arc::clone(&seconds));
        let replica = self.replica(clock).await;
        let (lags, origin) = (Arc::clone(lags), self.origin);
        let job = SingletonJob::cron("job", EVERY_FIVE_SECONDS, Tz::UTC, move |run: Run| {
            let now = tick(0) + TimeDelta::from_std(origin.elapsed()).unwrap();
            let late = (now - run.tick()).num_milliseconds();
            lags.lock().unwrap().push((run.tick(), late));
            async { Ok::<(), BoxError>(()) }
        });
        let runner = JobRunner::new(&replica, job.missed(missed)).unwrap();
        let jobs = Arc::new(Jobs::new(Arc::clone(&replica)));
        let runner = jobs.insert("job".into(), runner);
        replica.tasks.spawn(runner.begin());
        let looking = watch(Waker::Timer, Arc::clone(&replica), Arc::downgrade(&jobs));
        replica.tasks.spawn(looking);
        (seconds, (replica, jobs))
    }
}

/// What lives for as long as the replica is to.
type Kept = (Arc<Replica>, Arc<Jobs>);

#[tokio::test(start_paused = true)]
async fn a_job_goes_on_while_the_clock_is_wrong_and_after_it_is_right_again() {
    for missed in [Missed::All { max: 90 }, Missed::Latest, Missed::Skip] {
        for wrong in [-3_600, 300, -100, 40] {
            let (fleet, lags) = (Fleet::new(), Lags::default());
            let (seconds, _kept) = fleet.replica_with_a_clock(missed, &lags).await;
            fleet.sleep_until(10_500).await;
            seconds.store(wrong, Relaxed);
            fleet.sleep_until(16_500).await;
            seconds.store(0, Relaxed);
            fleet.sleep_until(35_000).await;
            let lags = lags.lock().unwrap().clone();
            let ticks: Vec<_> = lags.iter().map(|(tick, _)| *tick).collect();
            let every: Vec<_> = (3..35).step_by(5).map(tick).collect();
            assert_eq!(ticks, every, "{missed:?} {wrong}");
            let on_time = lags.iter().all(|(_, late)| (0..1_500).contains(late));
            assert!(on_time, "{missed:?} {wrong}: {lags:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_is_an_hour_behind_starts_its_ticks_and_warns_once() {
    let (fleet, lags) = (Fleet::new(), Lags::default());
    let (warnings, _guard) = Logged::at(Level::WARN);
    let (seconds, _kept) = fleet.replica_with_a_clock(Missed::Skip, &lags).await;
    fleet.sleep_until(10_000).await;
    assert_eq!(warnings.count(), 0);
    seconds.store(-3_600, Relaxed);
    fleet.sleep_until(60_000).await;
    assert_eq!(warnings.count(), 1);
    assert_eq!(lags.lock().unwrap().len(), 12);
}

#[tokio::test(start_paused = true)]
async fn a_run_on_request_does_not_cancel_itself_when_the_clock_of_its_replica_is_set_back() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = || {
        let job = starts.job(MINUTE, |run: Run| async move {
            let manual = run.trigger() == Trigger::Manual;
            tokio::time::sleep(Duration::from_secs(if manual { 10 } else { 50 })).await;
            Ok(())
        });
        job.overlap(Overlap::CancelOther)
            .start_within(Duration::from_secs(20))
    };
    let first = fleet.runner(job()).await;
    fleet.sleep_until(3_000).await;
    first.wake();
    let seconds = Arc::new(AtomicI64::new(0));
    let asks = fleet
        .replica(SetClock(fleet.origin, Arc::clone(&seconds)))
        .await;
    let asks = Arc::new(JobRunner::new(&asks, job()).unwrap());
    fleet.sleep_until(10_000).await;
    let set_back = async {
        // The first claim waits until then.
        fleet.sleep_until(10_500).await;
        seconds.store(-10, Relaxed);
    };
    let (report, ()) = tokio::join!(asks.trigger(), set_back);
    assert_eq!(report.outcome(), Outcome::Ok, "{report:?}");
}

/// It has not heard of the nodes yet.
#[tokio::test(start_paused = true)]
async fn a_tick_that_is_an_hour_off_by_the_nodes_clocks_is_not_waited_for() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let fast = fleet.replica(fleet.clock(3_600_000)).await;
    let fast = JobRunner::new(&fast, starts.quick_job(MINUTE)).unwrap();
    let waits = fast.job.until(tick(3_603), Duration::ZERO);
    assert_eq!(waits.await.unwrap_err().outcome, Outcome::TooEarly);
}
