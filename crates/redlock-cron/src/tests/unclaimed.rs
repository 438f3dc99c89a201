//! Ticks of which one node remembers a claim that no majority has confirmed.

use redlock_core::ClaimOptions;

use super::{attempts::job, *};
use crate::clock::to_tick;

impl Fleet {
    /// Claims the tick on the first node alone, as who dies before the others have heard of it.
    async fn claim_on_one_node(&self, member: &Member, due: DateTime<Utc>) {
        let dies = Redlock::builder()
            .nodes([self.nodes[0].clone()])
            .virtual_time()
            .build();
        let dies = dies.await.unwrap();
        let (key, options) = (member.runner.id.job_key(), ClaimOptions::new("dies"));
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
    let one = fleet.member(0, one).await;
    let two = fleet.member(0, job(&starts, 0, 3)).await;
    fleet.sleep_until(3_000).await;
    fleet.claim_on_one_node(&one, tick(3)).await;
    one.wake_at(3_500).await;
    two.wake_at(10_000).await;
    fleet.sleep_until(50_000).await;
    assert_eq!(starts.list(), [tick(3)]);
}
