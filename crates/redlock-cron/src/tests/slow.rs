//! Nodes that take their time, so that what is begun and what has ended are not the same.

use futures_util::{FutureExt, future::BoxFuture};
use redlock_core::{
    NodeConfig,
    node::{CallResult, Keyspace, Node, Request, Session},
};

use super::*;
use crate::Overlap;

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
            tokio::time::sleep(Duration::from_millis(50)).await;
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
    let (observer, clock) = (Observer::new(None), Arc::new(fleet.clock(0)));
    let redlock = redlock.await.unwrap();
    let replica = Replica::new(redlock, "tests", None, observer, clock, None).unwrap();
    let job = starts
        .quick_job(EVERY_FIVE_SECONDS)
        .overlap(Overlap::UpTo(2));
    let runner = Arc::new(JobRunner::new(&replica, job).unwrap());
    fleet.sleep_until(3_000).await;
    runner.wake();
    while starts.list().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let locks = || fleet.nodes.iter().map(MemoryNode::keys).max();
    assert_eq!(locks(), Some(2), "the tick's and the slot's");
    let report = replica.tasks.shut_down(Duration::from_secs(60)).await;
    assert!(report.is_clean());
    assert_eq!(locks(), Some(0));
}
