//! Requests for runs that are made on the nodes, for whichever replica can start them.

use super::*;
use redlock_cron::{ControlErrorKind, Overlap, REQUEST_LIFETIME, Trigger};

/// Returns a job whose runs take `seconds`, and which is not due.
fn job_of(starts: &Starts, seconds: u64) -> SingletonJob {
    starts.job_of(IN_JULY, seconds)
}

/// The most requests for runs of a job that wait.
const MOST_WAITING: usize = 32;

impl Fleet {
    async fn request(&self) -> DateTime<Utc> {
        let client = self.client().await;
        let moment = redlock_cron::request_run(&client, "tests", "job")
            .await
            .unwrap();
        client.close().await;
        moment
    }

    /// Returns how the run of a request ended.
    async fn outcome_of(&self, moment: DateTime<Utc>) -> Option<String> {
        let memory = self.memory().await;
        let run = memory.requested(moment)?;
        run.outcome().map(str::to_owned)
    }
}

// Shows: R6.1.
#[tokio::test(start_paused = true)]
async fn a_request_is_started_on_one_replica_within_seconds_and_remembered_as_a_run() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut hosts = fleet.hosts(|| job_of(&starts, 5)).await;
    pass(10).await;
    for number in 1..=3 {
        let moment = fleet.request().await;
        pass(4).await;
        assert_eq!(
            starts.list().len(),
            number,
            "a replica starts it within four seconds"
        );
        assert_eq!(starts.list()[number - 1], moment);
        let memory = fleet.memory().await;
        assert_eq!(memory.running().unwrap().tick(), moment);
        pass(8).await;
        let memory = fleet.memory().await;
        let run = memory.requested(moment).unwrap();
        assert_eq!((run.outcome(), run.is_manual()), (Some("ok"), true));
    }
    pass(200).await;
    assert_eq!(starts.list().len(), 3);
    let reports: Vec<_> = hosts.iter_mut().flat_map(Member::reports).collect();
    assert!(
        reports
            .iter()
            .all(|report| report.trigger() == Trigger::Manual)
    );
    let of = |outcome| {
        reports
            .iter()
            .filter(|report| report.outcome() == outcome)
            .count()
    };
    assert_eq!((of(Outcome::Ok), of(Outcome::NotWinner)), (3, 6));
}

/// Nodes remember a hundred requests, and a request that they forget would vanish without a word.
#[tokio::test(start_paused = true)]
async fn a_request_beyond_those_that_can_wait_is_refused_at_once_and_the_others_run() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let client = fleet.client().await;
    let ask = async || redlock_cron::request_run(&client, "tests", "job").await;
    for _ in 0..MOST_WAITING {
        ask().await.unwrap();
    }
    let asked = Instant::now();
    let refused = ask().await.unwrap_err();
    assert_eq!(
        refused.kind(),
        ControlErrorKind::TooManyRequests,
        "{refused}"
    );
    assert!(asked.elapsed() < Duration::from_secs(1));
    let job = || job_of(&starts, 1).overlap(Overlap::Wait);
    let _hosts = fleet.hosts(job).await;
    pass(50).await;
    assert_eq!(starts.list().len(), MOST_WAITING);
    ask().await.unwrap();
    pass(20).await;
    assert_eq!(starts.list().len(), MOST_WAITING + 1);
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn requests_that_come_together_are_dealt_with_in_order_under_the_policy_of_the_job() {
    for (overlap, expected) in [
        (Overlap::Skip, ["ok", "overlapping", "overlapping"]),
        (Overlap::Wait, ["ok", "ok", "ok"]),
        (Overlap::CancelOther, ["cancelled", "cancelled", "ok"]),
        (Overlap::Allow, ["ok", "ok", "ok"]),
        (Overlap::UpTo(2), ["ok", "ok", "overlapping"]),
    ] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let job = || {
            job_of(&starts, 15)
                .overlap(overlap)
                .start_within(Duration::from_secs(60))
        };
        let _hosts = fleet.hosts(job).await;
        pass(5).await;
        let mut moments = Vec::new();
        for _ in 0..3 {
            moments.push(fleet.request().await);
        }
        pass(90).await;
        let mut outcomes = Vec::new();
        for moment in &moments {
            outcomes.push(fleet.outcome_of(*moment).await.unwrap_or_default());
        }
        assert_eq!(outcomes, expected, "{overlap:?}");
        let started: Vec<_> = moments
            .iter()
            .zip(expected)
            .filter(|(_, outcome)| *outcome != "overlapping")
            .map(|(moment, _)| *moment)
            .collect();
        assert_eq!(starts.list(), started, "{overlap:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waits_for_longer_than_it_lasts_is_recorded_as_overlapping() {
    for overlap in [Overlap::Wait, Overlap::Skip] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let _hosts = fleet.hosts(|| job_of(&starts, 300).overlap(overlap)).await;
        let first = fleet.request().await;
        pass(10).await;
        let second = fleet.request().await;
        pass(10).await;
        let soon = fleet.outcome_of(second).await;
        assert_eq!(soon.is_some(), overlap == Overlap::Skip);
        let memory = fleet.memory().await;
        assert_eq!(
            memory.running().unwrap().tick(),
            first,
            "it goes on beside what was skipped"
        );
        pass(65).await;
        assert_eq!(
            fleet.outcome_of(second).await.as_deref(),
            Some("overlapping")
        );
        pass(300).await;
        assert_eq!(starts.list(), [first]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_no_replica_starts_in_time_is_never_started() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let first = fleet.request().await;
    sleep(REQUEST_LIFETIME / 2).await;
    let second = fleet.request().await;
    sleep(REQUEST_LIFETIME / 2 + Duration::from_secs(1)).await;
    // The first replica comes up now.
    let _hosts = fleet.hosts(|| job_of(&starts, 1)).await;
    pass(100).await;
    assert_eq!(starts.list(), [second]);
    assert!(fleet.memory().await.requested(first).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_request_is_found_though_too_few_nodes_answer_at_first() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let _hosts = fleet.hosts(|| job_of(&starts, 1)).await;
    pass(5).await;
    let moment = fleet.request().await;
    fleet.nodes[..2].iter().for_each(MemoryNode::stop);
    pass(20).await;
    assert!(starts.list().is_empty());
    fleet.nodes[..2].iter().for_each(MemoryNode::start);
    pass(30).await;
    assert_eq!(starts.list(), [moment]);
}

#[tokio::test(start_paused = true)]
async fn a_request_is_for_a_replica_that_has_a_place_and_does_not_decline() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let full = fleet.host_of(1).await;
    let busy = Starts::default();
    full.put(busy.named("long", IN_JULY, |_| std::future::pending()))
        .await;
    full.put(job_of(&starts, 1)).await;
    full.request_of("long");
    let unready = fleet.host().await;
    unready.put(job_of(&starts, 1).only_if(|_| false)).await;
    let mut ready = fleet.host().await;
    pass(5).await;
    assert_eq!(busy.list().len(), 1);
    let moment = fleet.request().await;
    pass(20).await;
    assert!(starts.list().is_empty());
    // It comes while the request lasts.
    ready.put(job_of(&starts, 1)).await;
    pass(20).await;
    assert_eq!(starts.list(), [moment]);
    assert_eq!(ready.seen(), [(moment, Outcome::Ok)]);
}

#[tokio::test(start_paused = true)]
async fn a_request_starts_a_paused_job_uses_up_no_tick_and_skips_those_that_come_meanwhile() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = || {
        starts.job(MINUTE, |run: Run| async move {
            if run.trigger() == Trigger::Manual {
                sleep(Duration::from_secs(70)).await;
            }
            Ok(())
        })
    };
    let mut hosts = fleet.hosts(job).await;
    pass(5).await;
    assert_eq!(starts.list(), [tick(3)]);
    hosts[0].set_paused(true).await.unwrap();
    let moment = fleet.request().await;
    pass(10).await;
    assert_eq!(starts.list(), [tick(3), moment]);
    hosts[0].set_paused(false).await.unwrap();
    pass(120).await;
    assert_eq!(starts.list(), [tick(3), moment, tick(123)]);
    let reports = hosts.iter_mut().flat_map(Member::reports);
    let skipped = reports.filter(|report| report.tick() == tick(63));
    assert!(
        skipped
            .map(|report| report.outcome())
            .all(|outcome| outcome == Outcome::Overlapping)
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_that_no_majority_confirms_is_an_error() {
    let fleet = Fleet::new();
    let client = fleet.client().await;
    fleet.nodes[..2].iter().for_each(MemoryNode::stop);
    let error = redlock_cron::request_run(&client, "tests", "job")
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ControlErrorKind::Unconfirmed);
    let error = redlock_cron::request_run(&client, "te/sts", "job")
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ControlErrorKind::InvalidName);
    client.close().await;
}
