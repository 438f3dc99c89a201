//! Ticks that are delivered at least once: what uses up their attempts, and what is said when none is left.

use super::{attempts::job, *};
use crate::Missed;

/// Returns how often a tick was given up, in all reports of these replicas.
fn given_up<'a>(members: impl IntoIterator<Item = &'a mut Member>) -> usize {
    let members = members.into_iter();
    members.map(|m| m.ticks(Outcome::GivenUp).len()).sum()
}

#[tokio::test(start_paused = true)]
async fn a_run_that_a_shutdown_ends_uses_up_no_attempt() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut running = fleet.member(0, job(&starts, 4, 2)).await;
    running.wake_at(3_000).await;
    for second in [10, 20, 30, 40] {
        fleet.sleep_until(second * 1_000).await;
        let report = running.shut_down(Duration::from_secs(1)).await;
        assert!(!report.is_clean(), "{second}");
        running = fleet.member(0, job(&starts, 4, 2)).await;
        running.begin();
    }
    fleet.sleep_until(60_000).await;
    assert_eq!(starts.list(), [3, 3, 3, 3, 3].map(tick));
    let report = running.report().await;
    assert_eq!((report.attempt(), report.outcome()), (5, Outcome::Ok));
    let status = running.runner.status().await;
    assert_eq!(status.last_run().unwrap().attempt(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_has_had_all_its_attempts_is_given_up_by_one_replica_and_for_good() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut members = Vec::new();
    for late in [0, 200, 300] {
        let member = fleet.member(0, job(&starts, 9, 2)).await;
        member.wake_at(3_000 + late).await;
        members.push(member);
    }
    for second in [5, 15, 25] {
        fleet.sleep_until(second * 1_000).await;
        fleet.nodes.iter().for_each(MemoryNode::drop_locks);
    }
    fleet.sleep_until(50_000).await;
    assert_eq!(starts.list(), [3, 3].map(tick));
    assert_eq!(given_up(&mut members), 1);
    let status = members[0].runner.status().await;
    assert_eq!(status.last_run().unwrap().outcome(), Some("given_up"));
    let mut later = fleet.member(0, job(&starts, 9, 2)).await;
    later.begin();
    fleet.sleep_until(60_000).await;
    assert_eq!(given_up([&mut later]), 0, "it was said");
}

#[tokio::test(start_paused = true)]
async fn a_tick_whose_last_run_was_cut_short_too_long_ago_is_given_up() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = || {
        let job = job(&starts, 1, 3).missed(Missed::All { max: 9 });
        // It may be started again for a hundred seconds.
        job.catch_up_window(Duration::from_secs(60))
            .max_runtime(Duration::from_secs(10))
    };
    let first = fleet.member(0, job()).await;
    first.begin();
    first.wake_at(3_000).await;
    fleet.sleep_until(5_000).await;
    first.crash().await;
    fleet.sleep_until(110_000).await;
    let mut again = fleet.member(0, job()).await;
    again.begin();
    fleet.sleep_until(130_000).await;
    assert_eq!(given_up([&mut again]), 1);
    assert_eq!(starts.list().first(), Some(&tick(3)));
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_kills_its_process_is_started_again_later_each_time() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let begun = Arc::new(Mutex::new(Vec::new()));
    let (told, origin) = (Arc::clone(&begun), fleet.origin);
    let work = move |_: Run| {
        told.lock().unwrap().push(origin.elapsed().as_secs());
        std::future::pending()
    };
    let job = || {
        let job = starts.job("5 0 * * * *", work.clone());
        job.delivery(crate::Delivery::AtLeastOnce { max_attempts: 9 })
    };
    let mut running = fleet.member(0, job()).await;
    running.wake_at(3_000).await;
    for run in 1..=4 {
        while begun.lock().unwrap().len() < run {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let next = fleet.member(0, job()).await;
        next.begin();
        running.crash().await;
        running = next;
    }
    fleet.sleep_until(400_000).await;
    let begun = begun.lock().unwrap().clone();
    let pauses: Vec<_> = begun.windows(2).map(|two| two[1] - two[0]).collect();
    // A lease ends first, of ten seconds.
    let least = [10, 20, 40, 80];
    assert_eq!(pauses.len(), least.len(), "{begun:?}");
    for (pause, least) in pauses.iter().zip(least) {
        assert!((least..least + 35).contains(pause), "{begun:?}");
    }
}
