//! Replicas whose wall clocks are set while they wait.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use super::{logs::Logged, *};
use crate::{
    Missed,
    pulse::{Jobs, watch},
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
        let clock = Arc::new(SetClock(self.origin, Arc::clone(&seconds)));
        let observer = Observer::new(None);
        let client = self.client().await;
        let replica = Replica::new(client, "tests", None, observer, clock, None).unwrap();
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
        let looking = watch(None, Arc::clone(&replica), Arc::downgrade(&jobs));
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

/// It has found the tick by what it knew before.
#[tokio::test(start_paused = true)]
async fn a_tick_waits_no_longer_than_the_nodes_clocks_are_wrong() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = starts.quick_job("5 * * * * *");
    let mut member = fleet.member(0, job.missed(Missed::All { max: 9 })).await;
    member.begin();
    fleet.sleep_until(2_000).await;
    let set = |seconds: i64| {
        let now = tick(0) + TimeDelta::from_std(fleet.origin.elapsed()).unwrap();
        let shown = now + TimeDelta::seconds(seconds);
        fleet
            .nodes
            .iter()
            .for_each(|node| node.set_clock(shown.into()));
    };
    set(-40);
    member.wake_at(2_500).await;
    fleet.sleep_until(8_000).await;
    assert!(starts.list().is_empty());
    set(0);
    assert_eq!(member.outcome().await, Outcome::Ok);
    let started = fleet.origin.elapsed().as_secs_f64();
    assert!((8.0..11.0).contains(&started), "{started}");
}

/// The clocks of all nodes were ten minutes ahead, while ticks and actions were claimed.
#[tokio::test(start_paused = true)]
async fn after_clocks_of_nodes_were_ahead_a_job_says_until_when_it_is_silent_and_no_action_hangs() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let set = |seconds| {
        let since = TimeDelta::from_std(fleet.origin.elapsed()).unwrap();
        let time = tick(0) + since + TimeDelta::seconds(seconds);
        fleet
            .nodes
            .iter()
            .for_each(|node| node.set_clock(time.into()));
    };
    set(600);
    let mut ahead = fleet
        .member(600_000, starts.quick_job(EVERY_FIVE_SECONDS))
        .await;
    ahead.wake_at(603_000).await;
    assert_eq!(ahead.outcome().await, Outcome::Ok);
    ahead.runner.set_paused(false).await.unwrap();
    let operator = fleet.client().await;
    let request = || crate::request_run(&operator, "tests", "job");
    request().await.unwrap();
    set(0);
    let mut right = fleet.member(0, starts.quick_job(EVERY_FIVE_SECONDS)).await;
    right.wake_at(8_000).await;
    let report = right.report().await;
    assert_eq!(report.outcome(), Outcome::ClockWasAhead, "{report:?}");
    let detail = report.detail().unwrap_or_default();
    assert!(detail.contains("2027-01-15 08:10:05Z"), "{detail}");
    let asked = Instant::now();
    for error in [
        right.runner.set_paused(true).await,
        request().await.map(drop),
    ] {
        let error = error.unwrap_err().to_string();
        assert!(error.contains("the nodes' clocks were ahead"), "{error}");
    }
    assert!(
        asked.elapsed() < Duration::from_secs(10),
        "{:?}",
        asked.elapsed()
    );
    // A run that is asked for has a moment of its own, which is not one that was claimed.
    let report = Arc::clone(&right.runner).trigger().await;
    assert_eq!(report.outcome(), Outcome::Ok, "{report:?}");
    // Then it goes on by itself.
    right.wake_at(608_000).await;
    fleet.sleep_until(609_000).await;
    assert_eq!(starts.list().last(), Some(&tick(608)));
}
