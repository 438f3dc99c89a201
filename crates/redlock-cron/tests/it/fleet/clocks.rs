//! Nodes whose clocks are set while replicas wait.

use super::*;
use redlock_cron::Missed;

/// It has found the tick by what it knew before.
#[tokio::test(start_paused = true)]
async fn a_tick_waits_no_longer_than_the_nodes_clocks_are_wrong() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = starts.quick_job(MINUTE);
    let mut member = fleet.member(0, job.missed(Missed::All { max: 9 })).await;
    member.begin().await;
    fleet.until(2).await;
    fleet.set_clocks(-40);
    member.wake_at(2_500).await;
    fleet.until(8).await;
    assert!(starts.list().is_empty());
    fleet.set_clocks(0);
    assert_eq!(member.outcome().await, Outcome::Ok);
    let started = fleet.origin.elapsed().as_secs_f64();
    assert!((8.0..11.0).contains(&started), "{started}");
}

/// The clocks of all nodes were ten minutes ahead, while ticks and actions were claimed.
#[tokio::test(start_paused = true)]
async fn after_clocks_of_nodes_were_ahead_a_job_says_until_when_it_is_silent_and_no_action_hangs() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    fleet.set_clocks(600);
    let mut ahead = fleet
        .member(600_000, starts.quick_job(EVERY_FIVE_SECONDS))
        .await;
    ahead.wake_at(603_000).await;
    assert_eq!(ahead.outcome().await, Outcome::Ok);
    ahead.set_paused(false).await.unwrap();
    let operator = fleet.client().await;
    let request = || redlock_cron::request_run(&operator, "tests", "job");
    request().await.unwrap();
    fleet.set_clocks(0);
    let mut right = fleet.member(0, starts.quick_job(EVERY_FIVE_SECONDS)).await;
    right.wake_at(8_000).await;
    let report = right.report().await;
    assert_eq!(report.outcome(), Outcome::ClockWasAhead, "{report:?}");
    let detail = report.detail().unwrap_or_default();
    assert!(detail.contains("2027-01-15 08:10:05Z"), "{detail}");
    let asked = Instant::now();
    for error in [right.set_paused(true).await, request().await.map(drop)] {
        let error = error.unwrap_err().to_string();
        assert!(error.contains("the nodes' clocks were ahead"), "{error}");
    }
    assert!(
        asked.elapsed() < Duration::from_secs(10),
        "{:?}",
        asked.elapsed()
    );
    // A run that is asked for has a moment of its own, which is not one that was claimed.
    let report = right.trigger().await;
    assert_eq!(report.outcome(), Outcome::Ok, "{report:?}");
    // Then it goes on by itself.
    right.wake_at(608_000).await;
    fleet.until(609).await;
    assert_eq!(starts.list().last(), Some(&tick(608)));
}
