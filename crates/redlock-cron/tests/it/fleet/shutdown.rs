use futures_util::{FutureExt, future::BoxFuture};
use redlock_core::{
    NodeConfig,
    node::{CallResult, Keyspace, Node, Request, Session},
};

use super::*;
use redlock_cron::Overlap;

fn job_of(starts: &Starts, seconds: u64) -> SingletonJob {
    starts.job(EVERY_FIVE_SECONDS, move |_| async move {
        sleep(Duration::from_secs(seconds)).await;
        Ok(())
    })
}

/// tokio-cron-scheduler goes on to wake jobs up after its shutdown.
#[tokio::test(start_paused = true)]
async fn nothing_starts_after_a_shutdown() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut member = fleet.member(0, starts.quick_job(EVERY_FIVE_SECONDS)).await;
    member.begin().await;
    fleet.sleep_until(2_980).await;
    let report = member.shut_down(Duration::from_secs(10)).await;
    assert!(report.is_clean());
    fleet.until(9).await;
    assert_eq!(member.outcome().await, Outcome::Draining);
    assert!(starts.list().is_empty());
    assert_eq!(fleet.keys().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_waits_is_given_up_at_once() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let first = fleet.member(0, job_of(&starts, 100)).await;
    let mut second = fleet.member(0, starts.quick_job(EVERY_FIVE_SECONDS)).await;
    first.wake_at(3_000).await;
    second.wake_at(8_100).await;
    fleet.sleep_until(8_200).await;
    let report = second.shut_down(Duration::from_secs(10)).await;
    assert!(report.is_clean());
    assert_eq!(second.outcome().await, Outcome::Draining);
    assert!(fleet.origin.elapsed() < Duration::from_millis(8300));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_ends_within_the_grace_ends_by_itself() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut member = fleet.member(0, job_of(&starts, 3)).await;
    member.wake_at(3_000).await;
    fleet.until(4).await;
    let report = member.shut_down(Duration::from_secs(10)).await;
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(member.outcome().await, Outcome::Ok);
    let ended = fleet.origin.elapsed().as_secs_f64();
    assert!((6.0..6.1).contains(&ended), "{ended}");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_outlasts_the_grace_is_dropped_reported_and_releases_its_lease() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut member = fleet.member(0, job_of(&starts, 1000)).await;
    let mut other = fleet.member(0, starts.quick_job(EVERY_FIVE_SECONDS)).await;
    member.wake_at(3_000).await;
    fleet.until(4).await;
    let report = member.shut_down(Duration::from_secs(2)).await;
    let [run] = report.unfinished() else {
        panic!("{report:?}")
    };
    assert_eq!(
        (run.job(), run.tick(), run.was_dropped()),
        ("job", tick(3), true)
    );
    assert_eq!(member.outcome().await, Outcome::Aborted);
    let ended = fleet.origin.elapsed().as_secs_f64();
    // It was told to stop a second before.
    assert!((7.0..7.1).contains(&ended), "{ended}");
    assert_eq!(fleet.keys().await, 0);
    other.wake_at(8_000).await;
    assert_eq!(other.outcome().await, Outcome::Ok);
}

#[tokio::test(start_paused = true)]
async fn a_run_is_told_that_the_grace_is_over_and_may_end_by_itself() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = starts.job(EVERY_FIVE_SECONDS, |run: Run| async move {
        run.stopping().await;
        sleep(Duration::from_millis(500)).await;
        Ok(())
    });
    let mut member = fleet.member(0, job).await;
    member.wake_at(3_000).await;
    fleet.until(4).await;
    let report = member.shut_down(Duration::from_secs(2)).await;
    assert_eq!(report.unfinished().len(), 1);
    let ended = fleet.origin.elapsed().as_secs_f64();
    assert!((6.5..6.6).contains(&ended), "{ended}");
    let report = member.report().await;
    assert_eq!(report.outcome(), Outcome::Aborted);
    assert!(
        report.detail().unwrap().contains("told to stop: ok"),
        "{report:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn overlapping_shutdowns_end_with_the_shorter_grace_and_each_reports_what_was_dropped() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let member = fleet.member(0, job_of(&starts, 1000)).await;
    member.wake_at(3_000).await;
    fleet.until(4).await;
    let (long, short, removed) = tokio::join!(
        member.shut_down(Duration::from_secs(60)),
        member.shut_down(Duration::from_secs(2)),
        member.jobs.remove("job", Duration::from_secs(30)),
    );
    let ended = fleet.origin.elapsed().as_secs_f64();
    // It was told to stop a second before.
    assert!((7.0..7.1).contains(&ended), "{ended}");
    for report in [long, short, removed.unwrap()] {
        let [run] = report.unfinished() else {
            panic!("{report:?}")
        };
        assert!(run.was_dropped());
    }
}

/// A node that does at once what it is asked, but for letting a lock go.
#[derive(Debug)]
struct SlowToRelease(MemoryNode);

struct Slow {
    node: MemoryNode,
    session: Box<dyn Session>,
}

impl Node for SlowToRelease {
    fn name(&self) -> Arc<str> {
        self.0.name()
    }

    fn connect(&self) -> BoxFuture<'static, Result<Box<dyn Session>, Arc<str>>> {
        let node = self.0.clone();
        async move {
            let session = node.connect().await?;
            Ok(Box::new(Slow { node, session }) as Box<dyn Session>)
        }
        .boxed()
    }
}

impl Session for Slow {
    fn call(
        &mut self,
        keyspace: &Arc<Keyspace>,
        requests: &[Request],
    ) -> BoxFuture<'static, CallResult> {
        if !requests.iter().any(Request::is_release) {
            return self.session.call(keyspace, requests);
        }
        let (node, keyspace, requests) =
            (self.node.clone(), Arc::clone(keyspace), requests.to_vec());
        async move {
            sleep(Duration::from_millis(50)).await;
            let mut session = node.connect().await.expect("it is up");
            session.call(&keyspace, &requests).await
        }
        .boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_returns_when_the_slot_of_a_run_is_given_back() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let nodes = fleet
        .nodes
        .iter()
        .cloned()
        .map(|node| NodeConfig::other(SlowToRelease(node)));
    let redlock = Redlock::builder().nodes(nodes).virtual_time().build();
    let builder = SingletonScheduler::standalone(redlock.await.unwrap()).namespace("tests");
    let jobs = builder
        .clock(&JobClock::starting_at(tick(0)))
        .build()
        .unwrap();
    let job = starts
        .quick_job(EVERY_FIVE_SECONDS)
        .overlap(Overlap::UpTo(2));
    jobs.add(job).await.unwrap();
    fleet.until(3).await;
    jobs.start().await.unwrap();
    while starts.list().is_empty() {
        sleep(Duration::from_millis(1)).await;
    }
    let locks = || fleet.nodes.iter().map(MemoryNode::keys).max();
    assert_eq!(locks(), Some(2), "the tick's and the slot's");
    let report = jobs.shutdown(Duration::from_secs(60)).await;
    assert!(report.is_clean());
    assert_eq!(locks(), Some(0));
}

#[tokio::test(start_paused = true)]
async fn a_drop_of_the_last_handle_drops_the_runs_and_frees_the_job() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut member = fleet.member(0, job_of(&starts, 1_000)).await;
    member.wake_at(3_000).await;
    fleet.until(4).await;
    drop(member.jobs);
    let report = timeout(Duration::from_secs(1), member.reports.recv()).await;
    assert_eq!(report.unwrap().unwrap().outcome(), Outcome::Aborted);
    assert_eq!(fleet.keys().await, 0);
}
