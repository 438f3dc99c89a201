//! Ticks of which one node remembers a claim that no majority has confirmed.

use redlock_core::ClaimOptions;

use super::{attempts::job, *};
use crate::{Missed, clock::to_tick};

impl Fleet {
    /// Claims the tick on the first node only, like a client that dies before the other nodes have heard of the claim.
    async fn claim_on_one_node(&self, member: &Member, due: DateTime<Utc>) {
        let dies = Redlock::builder()
            .nodes([self.nodes[0].clone()])
            .virtual_time()
            .build();
        let dies = dies.await.unwrap();
        let (key, options) = (member.runner.job.id.job_key(), ClaimOptions::new("dies"));
        let claimed = dies.claim(key, to_tick(due).unwrap(), options).await;
        drop(claimed.unwrap());
        dies.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_nobody_has_any_more_is_started_once_and_not_as_a_second_attempt() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let (node, asked) = (fleet.nodes[0].clone(), AtomicUsize::new(0));
    let one = job(&starts, 0, 3).only_if(move |_| {
        // Between the look at the first run and the claim of the second.
        if asked.fetch_add(1, Ordering::SeqCst) == 1 {
            node.stop();
        }
        true
    });
    let mut one = fleet.member(0, one).await;
    let mut two = fleet.member(0, job(&starts, 0, 3)).await;
    fleet.sleep_until(3_000).await;
    fleet.claim_on_one_node(&one, tick(3)).await;
    one.wake_at(3_500).await;
    two.wake_at(10_000).await;
    fleet.sleep_until(50_000).await;
    assert_eq!(starts.list(), [tick(3)]);
    let report = one.report().await;
    assert_eq!((report.outcome(), report.attempt()), (Outcome::Ok, 1));
    assert_eq!(two.outcome().await, Outcome::NotWinner);
}

#[tokio::test(start_paused = true)]
async fn a_tick_is_not_started_a_first_time_after_a_second() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut one = fleet.member(0, job(&starts, 0, 3)).await;
    let mut two = fleet.member(0, job(&starts, 0, 3)).await;
    fleet.sleep_until(3_000).await;
    fleet.claim_on_one_node(&one, tick(3)).await;
    one.wake_at(3_500).await;
    fleet.sleep_until(8_000).await;
    let report = one.report().await;
    assert_eq!((report.outcome(), report.attempt()), (Outcome::Ok, 2));
    // Of the two others, none remembers that the tick was claimed.
    fleet.nodes[0].stop();
    two.wake_at(10_000).await;
    fleet.sleep_until(50_000).await;
    assert_eq!(starts.list(), [tick(3)]);
    assert_eq!(two.outcome().await, Outcome::NotWinner);
}

/// The only replica that asks hears of a claim that was never confirmed, and later no longer hears of it.
#[tokio::test(start_paused = true)]
async fn a_tick_that_was_taken_for_claimed_is_asked_for_again_when_it_is_nobodys() {
    for missed in [Missed::Skip, Missed::Latest, Missed::All { max: 9 }] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let mut one = fleet.member(0, job(&starts, 0, 3).missed(missed)).await;
        one.begin();
        fleet.sleep_until(3_000).await;
        fleet.claim_on_one_node(&one, tick(3)).await;
        one.wake_at(3_500).await;
        fleet.sleep_until(4_000).await;
        fleet.nodes[0].stop();
        fleet.sleep_until(50_000).await;
        assert_eq!(starts.list(), [tick(3)], "{missed:?}");
        let report = one.report().await;
        let told = (report.outcome(), report.attempt());
        assert_eq!(told, (Outcome::Ok, 1), "{missed:?}");
        assert!(one.reports.try_recv().is_err());
    }
}
