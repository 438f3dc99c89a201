use redlock_core::Series;
use std::{
    future::pending,
    sync::{Weak, mpsc},
    task::{Context, Wake, Waker},
};

use futures_util::{FutureExt, future::BoxFuture};

use super::{host::Host, *};
use crate::{
    Delivery, Missed, Overlap, Trigger, clock::to_tick, pulse::Jobs, replica::Tasks, tick::Start,
};

/// Returns a job that takes `seconds`.
fn job_of(starts: &Starts, seconds: u64) -> SingletonJob {
    starts.job(EVERY_FIVE_SECONDS, move |_| async move {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        Ok(())
    })
}

#[tokio::test(start_paused = true)]
async fn a_job_that_was_removed_is_not_started_any_more() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut host = Host::new(&fleet).await;
    host.put(job_of(&starts, 0));
    host.until(7).await;
    assert_eq!(starts.list(), [tick(3)]);
    // The tick of the eighth second is waited for.
    assert!(host.remove(0).await.is_empty());
    host.until(30).await;
    assert_eq!(starts.list(), [tick(3)]);
    assert_eq!(
        host.seen(),
        [(tick(3), Outcome::Ok), (tick(8), Outcome::Removed)]
    );
    assert!(host.jobs.remove("job").is_none());
    // Its name is free, and the nodes know how far it had come.
    host.put(job_of(&starts, 0));
    host.until(34).await;
    assert_eq!(starts.list(), [3, 33].map(tick));
}

#[tokio::test(start_paused = true)]
async fn a_removal_waits_for_runs_and_their_release() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut host = Host::new(&fleet).await;
    host.put(job_of(&starts, 20));
    host.until(5).await;
    assert!(host.remove(60).await.is_empty());
    assert_eq!(host.clock.now().timestamp(), tick(23).timestamp());
    assert_eq!(host.seen(), [(tick(3), Outcome::Ok)]);
    assert_eq!(fleet.keys().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_removal_drops_runs_after_its_grace_and_leaves_other_jobs_alone() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut host = Host::new(&fleet).await;
    let other = SingletonJob::every("other", Duration::from_secs(3_600), |_| async {
        tokio::time::sleep(Duration::from_secs(9)).await;
        Ok::<_, BoxError>(())
    });
    let other = host.put(other);
    let removed = async {
        host.put(job_of(&starts, 2_000));
        host.until(4).await;
        host.remove(2).await
    };
    let (triggered, removed) = tokio::join!(other.trigger(), removed);
    assert_eq!(removed, [tick(3)]);
    assert_eq!(triggered.outcome(), Outcome::Ok);
    assert_eq!(host.seen()[0], (tick(3), Outcome::Aborted));
    // The removal has reported it already.
    let report = host.replica.tasks.shut_down(Duration::ZERO).await;
    assert!(report.is_clean());
}

/// The one moment that the wait for a claim does not cover.
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
async fn a_tick_that_a_job_waits_for_is_its_successor_s() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let (before, after) = (Starts::default(), starts);
    let mut host = Host::new(&fleet).await;
    let job = before.quick_job(EVERY_FIVE_SECONDS);
    let job = job.start_within(Duration::from_secs(16));
    let runner = host.put(job.spread(Duration::from_secs(4)));
    // It is another replica's turn, so that it waits for two seconds.
    for (second, replica) in [(-7, "other"), (-2, &*host.replica.claims.replica)] {
        runner.turns.won(to_tick(tick(second)).unwrap(), replica);
    }
    host.until(4).await;
    // It is due, and not asked for yet.
    assert!(before.list().is_empty());
    host.put(after.quick_job(EVERY_FIVE_SECONDS));
    host.until(9).await;
    assert!(before.list().is_empty());
    assert_eq!(after.list(), [3, 8].map(tick));
    assert_eq!(
        host.seen(),
        [
            (tick(3), Outcome::Removed),
            (tick(3), Outcome::Ok),
            (tick(8), Outcome::Ok)
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_is_due_when_its_job_is_replaced_is_the_successor_s_though_it_was_not_found_yet()
 {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let (before, after) = (Starts::default(), starts);
    let host = Host::new(&fleet).await;
    host.put(before.quick_job(EVERY_FIVE_SECONDS));
    // No wake-up comes until then.
    fleet.sleep_until(3_200).await;
    host.put(after.quick_job(EVERY_FIVE_SECONDS));
    fleet.sleep_until(4_000).await;
    assert!(before.list().is_empty());
    assert_eq!(after.list(), [tick(3)]);
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_is_found_as_its_job_is_replaced_is_the_successor_s() {
    for policy in [Missed::Skip, Missed::All { max: 9 }] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let (before, after) = (Starts::default(), starts);
        let mut host = Host::new(&fleet).await;
        let runner = host.put(before.quick_job(EVERY_FIVE_SECONDS).missed(policy));
        fleet.sleep_until(3_200).await;
        runner.wake();
        // Before any task of it was polled.
        host.put(after.quick_job(EVERY_FIVE_SECONDS));
        fleet.sleep_until(4_000).await;
        assert!(before.list().is_empty());
        assert_eq!(after.list(), [tick(3)], "{policy:?}");
        let seen = host.seen();
        assert_eq!(seen, [(tick(3), Outcome::Removed), (tick(3), Outcome::Ok)]);
    }
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
    let before = fleet.member(0, starts.quick_job(EVERY_FIVE_SECONDS)).await;
    let before = before.runner;
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

/// A job's closure has captured values of the application's, whose drop does what it likes.
#[tokio::test(start_paused = true)]
async fn a_job_that_is_replaced_may_look_at_the_scheduler_as_it_is_dropped() {
    struct Looks(Weak<Jobs>, mpsc::Sender<Vec<String>>);
    impl Drop for Looks {
        fn drop(&mut self) {
            let jobs = self.0.upgrade().expect("they are there");
            self.1.send(jobs.names()).unwrap();
        }
    }
    let fleet = Fleet::new();
    let host = Host::new(&fleet).await;
    let jobs = Arc::new(Jobs::new(Arc::clone(&host.replica)));
    let (tell, told) = mpsc::channel();
    let looks = Looks(Arc::downgrade(&jobs), tell);
    let before = Starts::default().job(EVERY_FIVE_SECONDS, move |_| {
        let _ = &looks;
        async { Ok(()) }
    });
    let before = JobRunner::new(&host.replica, before).unwrap();
    drop(jobs.insert("job".into(), before));
    let after = Starts::default().quick_job(EVERY_FIVE_SECONDS);
    let after = JobRunner::new(&host.replica, after).unwrap();
    std::thread::spawn(move || drop(jobs.insert("job".into(), after)));
    let names = told.recv_timeout(Duration::from_secs(20));
    assert_eq!(
        names,
        Ok(vec!["job".to_owned()]),
        "it waits for its own lock"
    );
}

#[tokio::test(start_paused = true)]
async fn ticks_that_waited_for_their_turn_when_their_job_was_removed_are_told_of_in_one_report() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut host = Host::new(&fleet).await;
    let job = job_of(&starts, 20).overlap(Overlap::Wait);
    host.put(job.missed(Missed::All { max: 9 }));
    host.until(21).await;
    assert!(host.remove(60).await.is_empty());
    fleet.sleep_until(25_000).await;
    let told: Vec<_> = host
        .reports()
        .iter()
        .map(|report| {
            let ticks = (report.tick(), report.last_tick(), report.ticks());
            (report.outcome(), ticks)
        })
        .collect();
    let expected = [
        (Outcome::Ok, (tick(3), tick(3), 1)),
        (Outcome::Removed, (tick(8), tick(18), 3)),
    ];
    assert_eq!(told, expected);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_replaced_meets_runs_of_the_one_before_and_ends_them_with_its_own() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut host = Host::new(&fleet).await;
    host.put(job_of(&starts, 7));
    host.until(4).await;
    host.put(job_of(&starts, 1_000));
    host.until(14).await;
    assert_eq!(
        host.seen(),
        [(tick(8), Outcome::Overlapping), (tick(3), Outcome::Ok)]
    );
    assert_eq!(starts.list(), [3, 13].map(tick));
    host.put(job_of(&starts, 1_000).overlap(Overlap::Wait));
    host.until(16).await;
    assert_eq!(host.remove(1).await, [tick(13)]);
    assert_eq!(fleet.keys().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_schedule_that_is_replaced_makes_up_for_none_that_it_never_promised() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let host = Host::new(&fleet).await;
    let all = Missed::All { max: 100 };
    host.put(starts.quick_job("5 * * * * *").missed(all));
    host.until(40).await;
    host.put(starts.quick_job(EVERY_FIVE_SECONDS).missed(all));
    host.until(49).await;
    assert_eq!(starts.list(), [3, 43, 48].map(tick));
}

#[tokio::test(start_paused = true)]
async fn what_a_removal_kept_from_its_start_is_started_again_at_least_once() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let host = Host::new(&fleet).await;
    let job = || {
        let again = Delivery::AtLeastOnce { max_attempts: 2 };
        starts.quick_job(EVERY_FIVE_SECONDS).delivery(again)
    };
    let runner = JobRunner::new(&host.replica, job()).unwrap();
    fleet.sleep_until(3_000).await;
    let ask = runner
        .job
        .ask(Series::TICKS, tick(3), Duration::from_secs(1));
    let won = runner.job.replica.claims.claim(ask).await.unwrap();
    host.replica.tasks.close(&runner.job.ending);
    let start = Start {
        won,
        tick: tick(3),
        trigger: Trigger::Schedule,
        attempt: 1,
    };
    assert_eq!(start.run(&runner.job).await.outcome(), Outcome::Removed);
    assert!(starts.list().is_empty());
    host.put(job());
    host.until(7).await;
    assert_eq!(starts.list(), [tick(3)]);
}
