//! Missed ticks that some nodes may have forgotten.

use super::*;
use crate::Missed;

const MINUTE: &str = "5 * * * * *";

/// One of three nodes has lost its data since, and another is down for a while.
#[tokio::test(start_paused = true)]
async fn a_missed_tick_on_which_a_node_that_is_down_may_decide_is_asked_for_again() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = || starts.quick_job(MINUTE).missed(Missed::All { max: 9 });
    let first = fleet.member(0, job()).await;
    first.begin();
    first.wake_at(3_000).await;
    fleet.sleep_until(5_000).await;
    assert!(first.shut_down(Duration::ZERO).await.is_clean());
    // Replicas are down at three ticks; another client sees the node vote again.
    fleet.sleep_until(184_000).await;
    fleet.nodes[0].clear();
    let _watch = fleet.client().await;
    fleet.sleep_until(300_000).await;
    fleet.nodes[1].stop();
    let mut again = fleet.member(0, job()).await;
    again.begin();
    fleet.sleep_until(320_000).await;
    assert_eq!(
        starts.list(),
        [tick(3)],
        "{:?}",
        again.ticks(Outcome::Forgotten)
    );
    fleet.nodes[1].start();
    fleet.sleep_until(340_000).await;
    assert_eq!(starts.list(), [3, 63, 123, 183, 243].map(tick));
}
