use super::*;
use redlock_cron::{Missed, Overlap, Trigger};

/// Counts the runs that go on at the same time.
#[derive(Clone, Default)]
struct Together {
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Together {
    /// Returns a job that is due every minute, and whose runs take `seconds`.
    fn job(&self, name: &str, starts: &Starts, seconds: u64) -> SingletonJob {
        self.job_at(MINUTE, name, starts, seconds)
    }

    /// Returns a job that is not due in these tests, and whose runs take `seconds`.
    fn long_job(&self, seconds: u64) -> SingletonJob {
        self.job_at("0 0 0 1 7 *", "long", &Starts::default(), seconds)
    }

    fn job_at(&self, pattern: &str, name: &str, starts: &Starts, seconds: u64) -> SingletonJob {
        let (this, starts) = (self.clone(), Arc::clone(&starts.0));
        let job = SingletonJob::cron(name, pattern, Tz::UTC, move |run: Run| {
            let (this, starts) = (this.clone(), Arc::clone(&starts));
            async move {
                starts.lock().unwrap().push(run.tick());
                let now = this.now.fetch_add(1, Ordering::SeqCst) + 1;
                this.most.fetch_max(now, Ordering::SeqCst);
                sleep(Duration::from_secs(seconds)).await;
                this.now.fetch_sub(1, Ordering::SeqCst);
                Ok::<_, BoxError>(())
            }
        });
        job.spread(Duration::ZERO)
    }

    fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }
}

/// Due three seconds after the fleet's start.
#[tokio::test(start_paused = true)]
async fn no_more_runs_go_on_than_may_and_those_that_wait_have_their_turn() {
    let (fleet, starts, together) = (Fleet::new(), Starts::default(), Together::default());
    let mut host = fleet.host_of(2).await;
    for index in 0..7 {
        host.put(together.job(&format!("job-{index}"), &starts, 4))
            .await;
    }
    fleet.until(30).await;
    assert_eq!(together.most(), 2);
    assert_eq!(starts.list(), [tick(3); 7]);
    assert_eq!(host.seen(), [(tick(3), Outcome::Ok); 7]);
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_waits_for_a_place_is_started_by_another_replica() {
    let (fleet, starts, together) = (Fleet::new(), Starts::default(), Together::default());
    let mut busy = fleet.host_of(1).await;
    let mut free = fleet.host_of(1).await;
    busy.put(together.long_job(20)).await;
    busy.put(together.job("job", &starts, 1)).await;
    free.put(together.job("job", &starts, 1)).await;
    let (long, ()) = tokio::join!(busy.jobs.trigger_now("long"), pass(25));
    assert_eq!(long.unwrap().outcome(), Outcome::Ok);
    assert_eq!(starts.list(), [tick(3)]);
    assert_eq!(free.seen(), [(tick(3), Outcome::Ok)]);
    assert!(busy.seen().contains(&(tick(3), Outcome::NotWinner)));
}

#[tokio::test(start_paused = true)]
async fn a_tick_for_which_there_is_no_place_in_time_is_told_and_not_claimed() {
    let (fleet, starts, together) = (Fleet::new(), Starts::default(), Together::default());
    let mut host = fleet.host_of(1).await;
    host.put(together.long_job(40)).await;
    let job = together.job("job", &starts, 1);
    host.put(job.start_within(Duration::from_secs(10))).await;
    host.request_of("long");
    fleet.until(14).await;
    assert_eq!(host.seen(), [(tick(3), Outcome::NoPlace)]);
    assert_eq!(host.status().await.watermark(), None);
    // A run on request has no place either.
    assert_eq!(host.trigger().await.outcome(), Outcome::NoPlace);
    pass(30).await;
    assert!(starts.list().is_empty());
    // The place is free now.
    let report = host.trigger().await;
    assert_eq!(
        (report.outcome(), report.trigger()),
        (Outcome::Ok, Trigger::Manual)
    );
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_cancels_the_run_before_it_has_its_place() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut host = fleet.host_of(1).await;
    let job = starts.job(EVERY_FIVE_SECONDS, |run: Run| async move {
        if run.tick() == tick(3) {
            std::future::pending::<()>().await;
        }
        Ok(())
    });
    host.put(job.overlap(Overlap::CancelOther)).await;
    fleet.until(12).await;
    assert_eq!(starts.list(), [3, 8].map(tick));
    assert_eq!(
        host.seen(),
        [(tick(3), Outcome::Cancelled), (tick(8), Outcome::Ok)]
    );
}

/// The run before is one that is made up for.
#[tokio::test(start_paused = true)]
async fn a_tick_that_cancels_a_run_that_is_made_up_for_has_its_place() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = || {
        let job = starts.job(MINUTE, |run: Run| async move {
            if run.trigger() == Trigger::CatchUp {
                std::future::pending::<()>().await;
            }
            Ok(())
        });
        job.overlap(Overlap::CancelOther).missed(Missed::Latest)
    };
    let before = fleet.member(0, job()).await;
    before.wake_at(3_000).await;
    fleet.until(4).await;
    drop(before);
    fleet.until(115).await;
    let mut host = fleet.host_of(1).await;
    host.put(job()).await;
    fleet.until(150).await;
    let seen = host.seen();
    assert!(seen.contains(&(tick(63), Outcome::Cancelled)), "{seen:?}");
    assert!(seen.contains(&(tick(123), Outcome::Ok)), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn ticks_that_were_missed_wait_for_a_place_as_long_as_they_may_be_made_up_for() {
    let (fleet, starts, together) = (Fleet::new(), Starts::default(), Together::default());
    let host = fleet.host_of(1).await;
    host.put(
        together
            .job("job", &starts, 1)
            .missed(Missed::All { max: 9 }),
    )
    .await;
    fleet.until(5).await;
    host.put(together.long_job(400)).await;
    let (long, ()) = tokio::join!(host.jobs.trigger_now("long"), fleet.until(600));
    assert_eq!(long.unwrap().outcome(), Outcome::Ok);
    assert_eq!(
        starts.list()[..7],
        [3, 63, 123, 183, 243, 303, 363].map(tick)
    );
    assert_eq!(together.most(), 1);
}
