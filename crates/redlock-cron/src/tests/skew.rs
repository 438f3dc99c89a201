use super::*;
use std::collections::HashMap;

/// Wakes all members up for eleven ticks, by their own clocks and so many milliseconds `apart`, and
/// returns the outcomes of each tick.
async fn eleven_ticks(members: Vec<Member>, apart: i64) -> HashMap<DateTime<Utc>, Vec<Outcome>> {
    let mut waking = tokio::task::JoinSet::new();
    for (number, mut member) in (0..).zip(members) {
        waking.spawn(async move {
            let mut reports = Vec::new();
            for index in 0..11 {
                let phase = (index * 137 + number * apart) % 1_900;
                member.wake_at(3_000 + 5_000 * index + phase).await;
                reports.push(member.report().await);
            }
            reports
        });
    }
    let mut outcomes: HashMap<_, Vec<_>> = HashMap::new();
    for report in waking.join_all().await.into_iter().flatten() {
        outcomes
            .entry(report.tick())
            .or_default()
            .push(report.outcome());
    }
    outcomes
}

/// With a lock on the job's name alone, this makes a run on each replica.
#[tokio::test(start_paused = true)]
async fn a_quick_job_runs_once_a_tick_over_skewed_clocks() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut members = Vec::new();
    for skew in [0, 700, -1300] {
        members.push(
            fleet
                .member(skew, starts.quick_job(EVERY_FIVE_SECONDS))
                .await,
        );
    }
    // Not always in the same second.
    let outcomes = eleven_ticks(members, 611).await;
    let expected: Vec<_> = (0..11).map(|index| tick(3 + 5 * index)).collect();
    assert_eq!(starts.list(), expected);
    for (tick, outcomes) in outcomes {
        let count = |outcome| outcomes.iter().filter(|o| **o == outcome).count();
        assert_eq!(count(Outcome::Ok), 1, "{tick}: {outcomes:?}");
        assert_eq!(count(Outcome::NotWinner), 2, "{tick}: {outcomes:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn replicas_that_wake_up_at_the_same_moment_start_a_tick_once() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut members = Vec::new();
    for _ in 0..5 {
        members.push(fleet.member(0, starts.quick_job(EVERY_FIVE_SECONDS)).await);
    }
    eleven_ticks(members, 0).await;
    let expected: Vec<_> = (0..11).map(|index| tick(3 + 5 * index)).collect();
    assert_eq!(starts.list(), expected);
}

/// An hour is the mistake that a wrong zone makes.
#[tokio::test(start_paused = true)]
async fn a_replica_whose_clock_is_an_hour_ahead_starts_nothing_and_uses_no_tick_up() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let quick = || starts.quick_job(EVERY_FIVE_SECONDS);
    let hour = 3_600_000;
    let mut ahead = fleet.member(hour, quick()).await;
    let mut right = fleet.member(0, quick()).await;
    for index in 0..7 {
        let due = 3_000 + 5_000 * index;
        // At the same moment, an hour apart by their own clocks.
        ahead.wake_at(hour + due).await;
        right.wake_at(due + 200).await;
        assert_eq!(ahead.outcome().await, Outcome::TooEarly);
        assert_eq!(right.outcome().await, Outcome::Ok);
    }
    let expected: Vec<_> = (0..7).map(|index| tick(3 + 5 * index)).collect();
    assert_eq!(starts.list(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_replica_whose_clock_is_an_hour_behind_comes_too_late() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    fleet.sleep_until(3_600_000).await;
    let mut behind = fleet
        .member(-3_600_000, starts.quick_job(EVERY_FIVE_SECONDS))
        .await;
    // It is an hour late by the nodes' clocks, and takes the tick for one that is due just now.
    behind.wake_at(3_000).await;
    let report = behind.report().await;
    assert_eq!(
        (report.tick(), report.outcome()),
        (tick(3), Outcome::TooLate)
    );
    assert!(starts.list().is_empty());
}

/// Replicas may differ by as much as the nodes let ticks come early and late.
#[tokio::test(start_paused = true)]
async fn clocks_may_differ_by_what_the_nodes_allow() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let once_a_minute = "15 * * * * *";
    let mut fast = fleet.member(5_000, starts.quick_job(once_a_minute)).await;
    let mut slow = fleet.member(-9_900, starts.quick_job(once_a_minute)).await;
    fast.wake_at(13_000).await;
    assert_eq!(fast.outcome().await, Outcome::Ok);
    // By then its lease is long gone, and the nodes still know.
    slow.wake_at(13_000).await;
    let report = slow.report().await;
    assert_eq!(
        (report.tick(), report.outcome()),
        (tick(13), Outcome::NotWinner)
    );
    assert_eq!(starts.list(), [tick(13)]);
}
