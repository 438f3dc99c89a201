//! An application deletes what the nodes remember of a job.

use std::time::Duration;

use redlock_core::{MemoryNode, NodeConfig, Redlock};
use redlock_cron::{
    BoxError, ControlErrorKind, InUse, Outcome, SingletonJob, SingletonScheduler, dangerous_forget,
    inspect, remembered_under,
};
use tokio::{sync::watch, time::timeout};

use super::nodes::{Forgets, OddNode};

async fn client(nodes: &[MemoryNode]) -> Redlock {
    let builder = Redlock::builder().nodes(nodes.iter().cloned());
    builder.build().await.unwrap()
}

async fn replica(nodes: &[MemoryNode]) -> SingletonScheduler {
    let builder = SingletonScheduler::standalone(client(nodes).await);
    builder.namespace("tests").replica("one").build().unwrap()
}

/// Returns a job that runs by hand only, for as long as `goes_on` is set.
fn by_hand(goes_on: &watch::Sender<bool>) -> SingletonJob {
    let goes_on = goes_on.subscribe();
    SingletonJob::cron("by-hand", "0 0 0 1 1 *", "UTC", move |_| {
        let mut goes_on = goes_on.clone();
        async move {
            goes_on.wait_for(|goes_on| !goes_on).await?;
            Ok::<(), BoxError>(())
        }
    })
}

async fn in_use(redlock: &Redlock) -> Option<InUse> {
    let memory = inspect(redlock, "tests", "by-hand").await;
    memory.unwrap().in_use()
}

async fn runs(redlock: &Redlock) -> usize {
    let memory = inspect(redlock, "tests", "by-hand").await.unwrap();
    assert!(memory.is_known(), "{memory:?}");
    memory.runs().len()
}

#[tokio::test]
async fn a_job_is_forgotten_when_it_was_removed_and_does_not_run() {
    let nodes: Vec<_> = (0..3).map(|_| MemoryNode::new()).collect();
    let (here, elsewhere) = (replica(&nodes).await, client(&nodes).await);
    let (goes_on, _) = watch::channel(false);
    here.add(by_hand(&goes_on)).await.unwrap();
    let kind = async || {
        let forgotten = here.dangerous_forget("by-hand").await;
        forgotten.map_err(|error| error.kind())
    };
    drop(here.trigger_now("by-hand").await.unwrap());
    assert_eq!(kind().await.unwrap_err(), ControlErrorKind::InUse);

    goes_on.send_replace(true);
    let run = here.trigger_now("by-hand");
    let looks = async {
        let runs = InUse::Runs {
            replica: "one".into(),
        };
        // Its lock is held before the nodes know of the run.
        let known = async {
            while in_use(&elsewhere).await.as_ref() != Some(&runs) {
                tokio::task::yield_now().await;
            }
        };
        let known = timeout(Duration::from_secs(30), known).await;
        known.expect("nobody says that it runs");
        let refused = dangerous_forget(&elsewhere, "tests", "by-hand").await;
        let refused = refused.unwrap_err();
        assert_eq!(refused.kind(), ControlErrorKind::InUse, "{refused}");
        assert!(refused.to_string().contains("it runs on one"), "{refused}");
        goes_on.send_replace(false);
    };
    drop(tokio::join!(run, looks).0.unwrap());
    assert_eq!(runs(&elsewhere).await, 2);

    here.pause("by-hand").await.unwrap();
    drop(here.remove("by-hand", Duration::ZERO).await.unwrap());
    let forgotten = kind().await.unwrap();
    assert!(forgotten.is_whole() && forgotten.was_anything());
    assert_eq!(runs(&elsewhere).await, 0);
    let memory = inspect(&elsewhere, "tests", "by-hand").await.unwrap();
    assert_eq!(
        (memory.is_paused(), memory.watermark()),
        (Some(false), None)
    );
    assert!(!kind().await.unwrap().was_anything());
}

#[tokio::test]
async fn a_node_that_is_away_is_told_and_a_majority_that_is_keeps_all() {
    let nodes: Vec<_> = (0..3).map(|_| MemoryNode::new()).collect();
    let redlock = client(&nodes).await;
    redlock_cron::pause(&redlock, "tests", "by-hand")
        .await
        .unwrap();
    let forget = || dangerous_forget(&redlock, "tests", "by-hand");

    nodes[0].stop();
    let forgotten = forget().await.unwrap();
    assert!(!forgotten.is_whole());
    let why: Vec<_> = forgotten
        .nodes()
        .iter()
        .map(|node| node.why_not().is_some())
        .collect();
    assert_eq!(why, [true, false, false]);

    nodes[1].stop();
    let refused = forget().await.unwrap_err();
    assert_eq!(refused.kind(), ControlErrorKind::Unconfirmed, "{refused}");
}

#[tokio::test]
async fn a_job_whose_lock_is_held_is_not_forgotten() {
    let nodes: Vec<_> = (0..3).map(|_| MemoryNode::new()).collect();
    let redlock = client(&nodes).await;
    let lock = remembered_under("tests", "by-hand").unwrap();
    let held = redlock.acquire(&lock).await.unwrap();
    assert_eq!(in_use(&redlock).await, Some(InUse::Locked));
    let refused = dangerous_forget(&redlock, "tests", "by-hand")
        .await
        .unwrap_err();
    assert_eq!(refused.kind(), ControlErrorKind::InUse, "{refused}");
    held.release().await.unwrap();
    assert_eq!(in_use(&redlock).await, None);
    assert!(dangerous_forget(&redlock, "tests", "by-hand").await.is_ok());
    let invalid = dangerous_forget(&redlock, "a/b", "by-hand")
        .await
        .unwrap_err();
    assert_eq!(invalid.kind(), ControlErrorKind::InvalidName);
}

/// A run that began in between would be forgotten, and its tick could be started a second time.
#[tokio::test]
async fn no_run_begins_while_the_nodes_forget() {
    let nodes: Vec<_> = (0..3).map(|_| MemoryNode::new()).collect();
    let slow: Vec<_> = nodes.iter().cloned().map(OddNode::from).collect();
    let redlock = Redlock::builder().nodes(slow.iter().cloned().map(NodeConfig::other));
    let redlock = redlock.connect_timeout(Duration::from_secs(60));
    let redlock = redlock.build().await.unwrap();
    let elsewhere = replica(&nodes).await;
    let (goes_on, _) = watch::channel(false);
    elsewhere.add(by_hand(&goes_on)).await.unwrap();
    let run = async || elsewhere.trigger_now("by-hand").await.unwrap().outcome();
    assert_eq!(run().await, Outcome::Ok);

    for node in &slow {
        node.forgets.send_replace(Forgets::Later);
    }
    let forget = dangerous_forget(&redlock, "tests", "by-hand");
    let meanwhile = async {
        for node in &slow {
            let mut forgets = node.forgets.subscribe();
            let is_asked = forgets.wait_for(|when| *when == Forgets::Asked);
            drop(is_asked.await.unwrap());
        }
        assert_eq!(run().await, Outcome::Overlapping);
        for node in &slow {
            node.forgets.send_replace(Forgets::AtOnce);
        }
    };
    let (forgotten, ()) = tokio::join!(forget, meanwhile);
    assert!(forgotten.unwrap().is_whole());
    assert_eq!(run().await, Outcome::Ok);
}
