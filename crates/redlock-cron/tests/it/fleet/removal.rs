use std::sync::mpsc;

use super::*;
use redlock_cron::{Missed, Overlap};

/// Returns a job that takes `seconds`.
fn job_of(starts: &Starts, seconds: u64) -> SingletonJob {
    starts.job(EVERY_FIVE_SECONDS, move |_| async move {
        sleep(Duration::from_secs(seconds)).await;
        Ok(())
    })
}

#[tokio::test(start_paused = true)]
async fn a_job_that_was_removed_is_not_started_any_more() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut host = fleet.host().await;
    host.put(job_of(&starts, 0)).await;
    fleet.sleep_until(7_500).await;
    assert_eq!(starts.list(), [tick(3)]);
    // The tick of the eighth second is waited for.
    assert!(host.remove(0).await.is_empty());
    fleet.until(30).await;
    assert_eq!(starts.list(), [tick(3)]);
    assert_eq!(
        host.seen(),
        [(tick(3), Outcome::Ok), (tick(8), Outcome::Removed)]
    );
    assert!(host.jobs.remove("job", Duration::ZERO).await.is_err());
    // Its name is free, and the nodes know how far it had come.
    host.put(job_of(&starts, 0)).await;
    fleet.until(34).await;
    assert_eq!(starts.list(), [3, 33].map(tick));
}

#[tokio::test(start_paused = true)]
async fn a_removal_waits_for_runs_and_their_release() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut host = fleet.host().await;
    host.put(job_of(&starts, 20)).await;
    fleet.until(5).await;
    assert!(host.remove(60).await.is_empty());
    assert_eq!(fleet.now().timestamp(), tick(23).timestamp());
    assert_eq!(host.seen(), [(tick(3), Outcome::Ok)]);
    assert_eq!(fleet.keys().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_removal_drops_runs_after_its_grace_and_leaves_other_jobs_alone() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut host = fleet.host().await;
    let other = SingletonJob::every("other", Duration::from_secs(3_600), |_| async {
        sleep(Duration::from_secs(9)).await;
        Ok::<_, BoxError>(())
    });
    host.put(other).await;
    let removed = async {
        host.put(job_of(&starts, 2_000)).await;
        fleet.until(4).await;
        host.remove(2).await
    };
    let (triggered, removed) = tokio::join!(host.jobs.trigger_now("other"), removed);
    assert_eq!(removed, [tick(3)]);
    assert_eq!(triggered.unwrap().outcome(), Outcome::Ok);
    assert_eq!(host.seen()[0], (tick(3), Outcome::Aborted));
    // The removal has reported it already.
    let report = host.shut_down(Duration::ZERO).await;
    assert!(report.is_clean());
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_is_due_when_its_job_is_replaced_is_the_successor_s_though_it_was_not_found_yet()
 {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let (before, after) = (Starts::default(), starts);
    let host = fleet.member(0, before.quick_job(EVERY_FIVE_SECONDS)).await;
    // No wake-up comes until then.
    fleet.sleep_until(3_200).await;
    host.put(after.quick_job(EVERY_FIVE_SECONDS)).await;
    host.begin().await;
    fleet.until(4).await;
    assert!(before.list().is_empty());
    assert_eq!(after.list(), [tick(3)]);
}

/// A job's closure has captured values of the application's, whose drop does what it likes.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_is_replaced_may_look_at_the_scheduler_as_it_is_dropped() {
    struct Looks(SingletonScheduler, mpsc::Sender<bool>);
    impl Drop for Looks {
        fn drop(&mut self) {
            let _ = self.1.send(self.0.schedule("job").is_ok());
        }
    }
    let client = Redlock::builder().in_memory_nodes(1).build().await.unwrap();
    let jobs = SingletonScheduler::standalone(client).namespace("tests");
    let jobs = jobs.build().unwrap();
    let (tell, looked) = mpsc::channel();
    let looks = Looks(jobs.clone(), tell);
    let before = Starts::default().job(EVERY_FIVE_SECONDS, move |_| {
        let _ = &looks;
        async { Ok(()) }
    });
    jobs.add(before).await.unwrap();
    let after = Starts::default().quick_job(EVERY_FIVE_SECONDS);
    let mut replacing = JoinSet::new();
    replacing.spawn(async move { jobs.replace(after).await });
    let looked = looked.recv_timeout(Duration::from_secs(20));
    assert_eq!(looked, Ok(true), "it waits for its own lock");
}

#[tokio::test(start_paused = true)]
async fn ticks_that_waited_for_their_turn_when_their_job_was_removed_are_told_of_in_one_report() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut host = fleet.host().await;
    let job = job_of(&starts, 20).overlap(Overlap::Wait);
    host.put(job.missed(Missed::All { max: 9 })).await;
    fleet.until(21).await;
    assert!(host.remove(60).await.is_empty());
    fleet.until(25).await;
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
    let mut host = fleet.host().await;
    host.put(job_of(&starts, 7)).await;
    fleet.until(4).await;
    host.put(job_of(&starts, 1_000)).await;
    fleet.until(14).await;
    assert_eq!(
        host.seen(),
        [(tick(8), Outcome::Overlapping), (tick(3), Outcome::Ok)]
    );
    assert_eq!(starts.list(), [3, 13].map(tick));
    host.put(job_of(&starts, 1_000).overlap(Overlap::Wait))
        .await;
    fleet.until(16).await;
    assert_eq!(host.remove(1).await, [tick(13)]);
    assert_eq!(fleet.keys().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_schedule_that_is_replaced_makes_up_for_none_that_it_never_promised() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let host = fleet.host().await;
    let all = Missed::All { max: 100 };
    host.put(starts.quick_job(MINUTE).missed(all)).await;
    fleet.until(40).await;
    host.put(starts.quick_job(EVERY_FIVE_SECONDS).missed(all))
        .await;
    fleet.until(49).await;
    assert_eq!(starts.list(), [3, 43, 48].map(tick));
}
