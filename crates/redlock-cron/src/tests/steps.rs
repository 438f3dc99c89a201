//! Steps between a claim and its run, and between the end of one job and the begin of its successor.

use std::{
    future::pending,
    task::{Context, Wake, Waker},
};

use futures_util::{FutureExt, future::BoxFuture};

use super::*;
use crate::{
    Delivery, Missed, PastRun, Trigger,
    clock::to_tick,
    job::series::{MANUAL, PAUSES},
    replica::{ClaimRequest, Tasks},
    scheduler::pulse::Jobs,
    tick::{PAUSED, RESUMED, Start, pause_at, unless_forbidden},
};

/// Returns whether the job is paused; `None` if too few nodes answered.
async fn is_paused(runner: &JobRunner) -> Option<bool> {
    let record = runner.job.record().await?;
    Some(pause_at(record.of(PAUSES), runner.job.nodes_now()).is_some())
}

/// Returns a job that is started up to three times.
fn started_again(starts: &Starts) -> SingletonJob {
    let job = starts.quick_job(MINUTE);
    job.delivery(Delivery::AtLeastOnce { max_attempts: 3 })
}

#[tokio::test(start_paused = true)]
async fn a_run_is_not_started_if_nobody_can_tell_whether_the_job_is_paused() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let runner = fleet.runner(starts.quick_job(MINUTE)).await;
    fleet.sleep_until(3_000).await;
    let limit = runner.job.settings.catch_up_window;
    let won = runner.won(Series::TICKS, tick(3), 1).await;
    fleet.nodes[..2].iter().for_each(MemoryNode::stop);
    let refused = unless_forbidden(&runner.job, won, 1, limit).await;
    let refusal = refused.unwrap_err();
    assert_eq!(refusal.outcome, Outcome::NoQuorum);
    assert!(refusal.detail.unwrap().contains("paused"));

    // No other replica can claim the tick now, so this one waits for a majority as long as the tick may start.
    fleet.nodes[..2].iter().for_each(MemoryNode::start);
    fleet.sleep_until(60_000).await;
    let won = runner.won(Series::TICKS, tick(63), 1).await;
    let kept = unless_forbidden(&runner.job, won, 1, limit);
    let (kept, ()) = tokio::join!(kept, fleet.outage());
    assert!(kept.unwrap().claim.lease().is_held());
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_was_not_confirmed_is_none() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let runner = fleet.runner(starts.quick_job(MINUTE)).await;
    let client = fleet.client().await;
    for (paused, second) in [(false, 4), (true, 5)] {
        match paused {
            true => crate::pause(&client, "tests", "job").await.unwrap(),
            false => crate::resume(&client, "tests", "job").await.unwrap(),
        }
        fleet.sleep_until(second * 1_000).await;
        let ask = ClaimRequest {
            lock: runner.job.id.lock_of(PAUSES),
            // What a pause has, and the end of one.
            fingerprint: if paused { RESUMED } else { PAUSED },
            ..runner
                .job
                .ask(PAUSES, runner.job.now(), Duration::from_secs(1))
        };
        let won = runner.job.replica.claims.claim(ask).await.unwrap();
        runner.job.finish(won.claim, "unstarted").await;
        assert_eq!(is_paused(&runner).await, Some(paused));
    }
}

/// Tokens of different locks have no order, and those of one lock have that of its claims.
#[tokio::test(start_paused = true)]
async fn the_newest_run_comes_first_whatever_the_tokens_of_other_locks() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let runner = fleet.runner(starts.quick_job(MINUTE)).await;
    for (series, second) in [(Series::TICKS, 3), (MANUAL, 30), (Series::TICKS, 63)] {
        fleet.sleep_until(second * 1_000).await;
        let won = runner.won(series, tick(second.cast_signed()), 1).await;
        runner.job.finish(won.claim, "ok").await;
    }
    let memory = crate::inspect(&fleet.client().await, "tests", "job").await;
    let runs = memory.unwrap().runs().to_vec();
    let order = |runs: &[PastRun]| runs.iter().map(PastRun::tick).collect::<Vec<_>>();
    let by_tick = [63, 30, 3].map(tick);
    assert_eq!(order(&runs), by_tick);
    // As those of locks whose counters are ahead of others'.
    let with_tokens = |places: [usize; 3]| {
        let of = |place: usize| runs[place].record.token;
        let mut others = runs.clone();
        for (run, place) in others.iter_mut().zip(places) {
            run.record.token = of(place);
        }
        others
    };
    let newest_first = |places, have_one_lock| {
        let mut sorted = with_tokens(places);
        crate::control::newest_first(&mut sorted, have_one_lock);
        order(&sorted)
    };
    // What was due at 3 was started after the request, and before what was due at 63.
    let made_up = [63, 3, 30].map(tick);
    for (places, have_one_lock, expected) in [
        ([1, 0, 2], Some(false), by_tick),
        ([2, 1, 0], Some(false), by_tick),
        ([0, 2, 1], Some(true), made_up),
        ([0, 2, 1], None, made_up),
        // Under one lock, the tick of 63 would have the greater token.
        ([2, 1, 0], None, by_tick),
    ] {
        assert_eq!(newest_first(places, have_one_lock), expected);
    }
}

/// No replica has started the tick, so there is nothing to look after once it is too late.
#[tokio::test(start_paused = true)]
async fn a_tick_that_nobody_has_started_is_looked_after_no_longer_than_it_could_be() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let runner = fleet
        .runner(started_again(&starts).only_if(|_| false))
        .await;
    fleet.sleep_until(3_000).await;
    runner.wake();
    fleet.sleep_until(4_000).await;
    assert!(Arc::strong_count(&runner) > 1);
    fleet.sleep_until(90_000).await;
    assert_eq!(Arc::strong_count(&runner), 1);
    assert!(starts.list().is_empty());
}

/// A run that is started again long after its tick would be used up without having begun.
#[tokio::test(start_paused = true)]
async fn a_run_that_is_started_again_is_not_given_up_for_a_short_outage() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = started_again(&starts).start_within(Duration::from_secs(10));
    let runner = fleet.runner(job).await;
    fleet.sleep_until(56_000).await;
    // As the one that has just claimed the second run.
    let won = runner.won(Series::TICKS, tick(3), 2).await;
    let retry = runner.retry(tick(3));
    let (starts_again, ()) = tokio::join!(retry.starts_again(won), fleet.outage());
    assert!(starts_again);
}

/// A replica that holds the lock sees its own lock, not that of the run which crashed.
// Shows: R6.5.
#[tokio::test(start_paused = true)]
async fn a_further_run_that_was_claimed_when_a_backfill_had_made_the_tick_good_is_not_started() {
    for is_made_good in [false, true] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let runner = fleet.runner(started_again(&starts)).await;
        fleet.sleep_until(3_000).await;
        let won = runner.won(Series::TICKS, tick(3), 1).await;
        runner.job.finish(won.claim, "dropped").await;
        fleet.sleep_until(10_000).await;
        if is_made_good {
            let client = fleet.client().await;
            let asked = crate::request_backfill(&client, "tests", "job", tick(3), tick(3));
            asked.await.unwrap();
            let jobs = Jobs::new(Arc::clone(&runner.job.replica));
            let plain = JobRunner::new(&runner.job.replica, starts.quick_job(MINUTE));
            jobs.insert("job".into(), plain.unwrap());
            jobs.look_at_nodes();
            sleep(Duration::from_secs(20)).await;
            assert_eq!(starts.list(), [tick(3)]);
        }
        // As a replica that had looked at the run before the backfill.
        let won = runner.won(Series::TICKS, tick(3), 2).await;
        let starts_again = runner.retry(tick(3)).starts_again(won).await;
        assert_eq!(starts_again, !is_made_good);
    }
}

/// The one moment that neither the wait for a claim nor the look at a wake-up covers.
#[tokio::test(start_paused = true)]
async fn no_run_of_a_removed_job_starts_between_its_claim_and_its_start() {
    let tasks = Arc::new(Tasks::default());
    let (job, other) = (tasks.ending(), tasks.ending());
    let start = |ending| tasks.start(&"job".into(), tick(3), Trigger::Schedule, ending);
    assert!(start(&job).is_some());
    tasks.close(&job);
    assert!(start(&job).is_none());
    assert!(start(&other).is_some());
    let next = tasks.hand_over(&other);
    assert!(start(&other).is_none() && start(&next).is_some());
    tasks.drain();
    assert!(start(&next).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_run_that_cannot_be_dropped_does_not_hold_the_shutdown_up_for_ever() {
    let tasks = Arc::new(Tasks::default());
    let ending = tasks.ending();
    let stuck = tasks.start(&"job".into(), tick(3), Trigger::Schedule, &ending);
    tasks.spawn(async move {
        let _stuck = stuck;
        std::future::pending::<()>().await;
    });
    let report = tasks.shut_down(Duration::from_secs(1)).await;
    let [run] = report.unfinished() else {
        panic!("{report:?}")
    };
    assert!(!run.was_dropped());
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_is_found_as_its_job_is_replaced_is_the_successor_s() {
    for policy in [Missed::Skip, Missed::All { max: 9 }] {
        let (fleet, before, after) = (Fleet::new(), Starts::default(), Starts::default());
        let replica = fleet.replica(fleet.clock(0)).await;
        let jobs = Jobs::new(Arc::clone(&replica));
        let insert = |job: SingletonJob| {
            let runner = jobs.insert("job".into(), JobRunner::new(&replica, job).unwrap());
            replica.tasks.spawn(Arc::clone(&runner).begin());
            runner
        };
        let runner = insert(before.quick_job(EVERY_FIVE_SECONDS).missed(policy));
        fleet.sleep_until(3_200).await;
        runner.wake();
        // Before any task of it was polled.
        insert(after.quick_job(EVERY_FIVE_SECONDS)).wake();
        fleet.sleep_until(4_000).await;
        assert!(before.list().is_empty());
        assert_eq!(after.list(), [tick(3)], "{policy:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_a_job_waits_for_is_its_successor_s() {
    let (fleet, before, after) = (Fleet::new(), Starts::default(), Starts::default());
    let replica = fleet.replica(fleet.clock(0)).await;
    let jobs = Jobs::new(Arc::clone(&replica));
    let insert = |job| jobs.insert("job".into(), JobRunner::new(&replica, job).unwrap());
    let job = before.quick_job(EVERY_FIVE_SECONDS);
    let job = job.start_within(Duration::from_secs(16));
    let runner = insert(job.spread(Duration::from_secs(4)));
    // It is another replica's turn, so that it waits for two seconds.
    for (second, name) in [(-7, "other"), (-2, &*replica.claims.replica)] {
        runner.turns.won(to_tick(tick(second)).unwrap(), name);
    }
    fleet.sleep_until(2_000).await;
    runner.wake();
    fleet.sleep_until(4_000).await;
    // It is due, and not asked for yet.
    assert!(before.list().is_empty());
    insert(after.quick_job(EVERY_FIVE_SECONDS)).wake();
    fleet.sleep_until(5_000).await;
    assert!(before.list().is_empty());
    assert_eq!(after.list(), [tick(3)]);
}

/// A task that decides about a tick, on another thread: it ends as soon as it learns that nothing is started any more.
struct Deciding(Mutex<Option<BoxFuture<'static, ()>>>);

impl Wake for Deciding {
    fn wake(self: Arc<Self>) {
        drop(self.0.lock().unwrap().take());
    }
}

#[tokio::test(start_paused = true)]
async fn a_tick_whose_task_ends_while_its_job_is_replaced_is_the_successor_s() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let before = fleet.runner(starts.quick_job(EVERY_FIVE_SECONDS)).await;
    fleet.sleep_until(3_200).await;
    let mut after =
        JobRunner::new(&before.job.replica, starts.quick_job(EVERY_FIVE_SECONDS)).unwrap();
    drop(before.ticks.due(&before.job.schedule, tick(4)));
    let undecided = before.ticks.undecided(tick(3));
    let deciding = Arc::new(Deciding(Mutex::new(None)));
    let waker = Waker::from(Arc::clone(&deciding));
    let decides = Arc::clone(&before);
    let mut task = async move {
        let decision = async {
            pending::<()>().await;
            drop(undecided);
            Ok(())
        };
        drop(decides.job.unless_draining(decision).await);
    }
    .boxed();
    assert!(
        task.poll_unpin(&mut Context::from_waker(&waker))
            .is_pending()
    );
    *deciding.0.lock().unwrap() = Some(task);
    after.take_over(&before);
    assert!(deciding.0.lock().unwrap().is_none());
    assert_eq!(after.ticks.progress.lock().next(), Some(tick(3)));
}

#[tokio::test(start_paused = true)]
async fn what_a_removal_kept_from_its_start_is_started_again_at_least_once() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let runner = fleet.runner(started_again(&starts)).await;
    fleet.sleep_until(3_000).await;
    let won = runner.won(Series::TICKS, tick(3), 1).await;
    runner.job.replica.tasks.close(&runner.job.ending);
    let start = Start::first(won, tick(3), Trigger::Schedule);
    assert_eq!(start.run(&runner.job).await.outcome(), Outcome::Removed);
    assert!(starts.list().is_empty());
    let again = fleet.runner(started_again(&starts)).await;
    again.job.replica.tasks.spawn(Arc::clone(&again).begin());
    fleet.sleep_until(7_000).await;
    assert_eq!(starts.list(), [tick(3)]);
}
