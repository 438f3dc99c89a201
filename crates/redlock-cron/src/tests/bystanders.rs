//! Replicas that deal with a tick which they have neither started nor asked for.

use super::{attempts::job, *};
use crate::{Delivery, replica::ClaimRequest};

const MINUTE: &str = "5 * * * * *";

/// The only other replica was not ready when the tick was due, or could not reach the nodes.
#[tokio::test(start_paused = true)]
async fn a_run_whose_replica_crashed_is_started_again_by_one_that_had_not_asked_for_the_tick() {
    for is_cut_off in [false, true] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let first = fleet.member(0, job(&starts, 1, 3)).await;
        let is_ready = Arc::new(AtomicBool::new(is_cut_off));
        let other = job(&starts, 1, 3)
            .start_within(Duration::from_secs(5))
            .only_if({
                let is_ready = Arc::clone(&is_ready);
                move |_| is_ready.load(Ordering::SeqCst)
            });
        let mut other = fleet.member(0, other).await;
        first.wake_at(3_000).await;
        fleet.sleep_until(3_200).await;
        if is_cut_off {
            other.nodes.iter().for_each(MemoryNode::stop);
        }
        other.wake_at(3_200).await;
        let report = other.report().await;
        let expected = match is_cut_off {
            true => Outcome::NoQuorum,
            false => Outcome::Declined,
        };
        assert_eq!(report.outcome(), expected);
        other.nodes.iter().for_each(MemoryNode::start);
        is_ready.store(true, Ordering::SeqCst);
        first.crash().await;
        fleet.sleep_until(55_000).await;
        assert_eq!(starts.list(), [3, 3].map(tick), "{expected}");
        let report = other.report().await;
        assert_eq!((report.outcome(), report.attempt()), (Outcome::Ok, 2));
    }
}

/// No replica has started the tick, so there is nothing to look after once it is too late.
#[tokio::test(start_paused = true)]
async fn a_tick_that_nobody_has_started_is_looked_after_no_longer_than_it_could_be() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let declines = job(&starts, 1, 3).only_if(|_| false);
    let mut member = fleet.member(0, declines).await;
    member.wake_at(3_000).await;
    assert_eq!(member.outcome().await, Outcome::Declined);
    assert!(Arc::strong_count(&member.runner) > 1);
    fleet.sleep_until(60_000).await;
    assert_eq!(Arc::strong_count(&member.runner), 1);
    assert!(starts.list().is_empty());
}

/// A run that is started again long after its tick would be used up without having begun.
#[tokio::test(start_paused = true)]
async fn a_run_that_is_started_again_is_not_given_up_for_a_short_outage() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = || {
        let job = starts.job(MINUTE, |run: Run| async move {
            if run.attempt() == 1 {
                tokio::time::sleep(Duration::from_secs(40)).await;
                std::future::pending::<()>().await;
            }
            Ok(())
        });
        job.delivery(Delivery::AtLeastOnce { max_attempts: 2 })
            .start_within(Duration::from_secs(10))
    };
    let first = fleet.member(0, job()).await;
    let other = fleet.member(0, job()).await;
    first.wake_at(3_000).await;
    other.wake_at(3_200).await;
    fleet.sleep_until(30_000).await;
    let runner = &other.runner;
    first.crash().await;
    fleet.sleep_until(56_000).await;
    assert_eq!(starts.list(), [3, 3].map(tick));
    // As the one that has just claimed the second run.
    let ask = runner
        .job
        .ask(runner.job.id.manual_key(), tick(3), Duration::from_secs(1));
    let ask = ClaimRequest {
        start_within: runner.job.settings.retry_within(),
        ..ask
    };
    let won = runner.job.replica.claims.claim(ask).await.unwrap();
    fleet.nodes[..2].iter().for_each(MemoryNode::stop);
    let starter = async {
        tokio::time::sleep(Duration::from_secs(6)).await;
        fleet.nodes[..2].iter().for_each(MemoryNode::start);
    };
    let retry = runner.retry(tick(3));
    let (starts_again, ()) = tokio::join!(retry.starts_again(won), starter);
    assert!(starts_again);
}
