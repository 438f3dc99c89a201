use super::*;
use redlock_cron::{Missed, Overlap, Trigger};

const HOUR: Duration = Duration::from_secs(3_600);

/// Returns a fleet of which one replica has started a tick at second 3, and then ended.
async fn fleet_with_history(starts: &Starts) -> Fleet {
    let fleet = Fleet::new();
    let mut member = fleet.member(0, starts.quick_job(MINUTE)).await;
    member.wake_at(3_000).await;
    assert_eq!(member.outcome().await, Outcome::Ok);
    fleet
}

#[tokio::test(start_paused = true)]
async fn whoever_claims_the_next_tick_tells_which_were_missed_and_nobody_else() {
    let starts = Starts::default();
    let fleet = fleet_with_history(&starts).await;
    let mut members = [
        fleet.member(0, starts.quick_job(MINUTE)).await,
        fleet.member(0, starts.quick_job(MINUTE)).await,
    ];
    fleet.until(183).await;
    for member in &members {
        member.wake_at(183_000).await;
    }
    fleet.until(185).await;
    let missed: Vec<_> = members
        .iter_mut()
        .flat_map(|m| m.ticks(Outcome::Missed))
        .collect();
    assert_eq!(missed, [63, 123].map(tick));
    assert_eq!(starts.list(), [3, 183].map(tick));
}

#[tokio::test(start_paused = true)]
async fn a_first_deployment_replays_nothing() {
    for policy in [Missed::Skip, Missed::Latest, Missed::All { max: 9 }] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        fleet.until(200).await;
        let mut member = fleet
            .member(0, starts.quick_job(MINUTE).missed(policy))
            .await;
        member.begin().await;
        fleet.until(240).await;
        assert!(starts.list().is_empty(), "{policy:?}");
        // And it goes on from there.
        member.wake_at(243_000).await;
        assert_eq!(member.outcome().await, Outcome::Ok, "{policy:?}");
        assert_eq!(starts.list(), [tick(243)]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_latest_missed_tick_runs_once_over_all_replicas_that_come_back() {
    let starts = Starts::default();
    let fleet = fleet_with_history(&starts).await;
    fleet.until(220).await;
    let job = || {
        let job = starts.job(MINUTE, |run: Run| async move {
            assert_eq!(run.trigger(), Trigger::CatchUp);
            assert!(run.lag() > Duration::from_secs(36));
            Ok(())
        });
        job.missed(Missed::Latest)
    };
    let mut members = [fleet.member(0, job()).await, fleet.member(0, job()).await];
    for member in &members {
        member.begin().await;
    }
    fleet.until(230).await;
    assert_eq!(starts.list(), [3, 183].map(tick));
    let ok: Vec<_> = members
        .iter_mut()
        .flat_map(|m| m.ticks(Outcome::Ok))
        .collect();
    assert_eq!(ok, [tick(183)]);
}

#[tokio::test(start_paused = true)]
async fn a_missed_tick_that_is_too_old_is_not_started() {
    let starts = Starts::default();
    let fleet = fleet_with_history(&starts).await;
    fleet.sleep_until(1_800_000).await;
    let job = starts.quick_job("5 0 * * * *").missed(Missed::Latest);
    let member = fleet.member(0, job.catch_up_window(HOUR / 4)).await;
    member.begin().await;
    fleet.sleep_until(1_900_000).await;
    assert_eq!(starts.list(), [tick(3)]);
}

#[tokio::test(start_paused = true)]
async fn missed_ticks_run_before_one_that_comes_meanwhile() {
    let starts = Starts::default();
    let fleet = fleet_with_history(&starts).await;
    fleet.until(182).await;
    let job = starts.quick_job(MINUTE).missed(Missed::All { max: 9 });
    let member = fleet.member(0, job).await;
    // Before it knows what was missed.
    member.wake_at(183_000).await;
    member.begin().await;
    fleet.until(190).await;
    assert_eq!(starts.list(), [3, 63, 123, 183].map(tick));
}

#[tokio::test(start_paused = true)]
async fn ticks_that_came_while_a_run_went_on_were_not_missed() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = starts.job(MINUTE, |_| async {
        sleep(Duration::from_secs(130)).await;
        Ok(())
    });
    let mut member = fleet.member(0, job).await;
    member.wake_at(3_000).await;
    fleet.until(134).await;
    assert_eq!(member.ticks(Outcome::Ok), [tick(3)]);
    let all = starts.quick_job(MINUTE).missed(Missed::All { max: 9 });
    let mut other = fleet.member(0, all).await;
    other.begin().await;
    fleet.until(180).await;
    other.wake_at(183_000).await;
    fleet.until(190).await;
    assert_eq!(starts.list(), [3, 183].map(tick));
    assert!(other.ticks(Outcome::Missed).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_is_skipped_because_a_run_goes_on_is_not_made_up_for() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = || {
        let job = starts.job(MINUTE, |_| async {
            sleep(Duration::from_secs(70)).await;
            Ok(())
        });
        job.missed(Missed::All { max: 9 })
    };
    let (mut first, mut second) = (fleet.member(0, job()).await, fleet.member(0, job()).await);
    first.begin().await;
    second.begin().await;
    for index in 0..3 {
        first.wake_at(3_000 + 60_000 * index).await;
        second.wake_at(4_000 + 60_000 * index).await;
    }
    fleet.until(235).await;
    assert_eq!(starts.list(), [3, 123].map(tick));
    assert_eq!(first.ticks(Outcome::Overlapping), [63, 183].map(tick));
    assert_eq!(second.ticks(Outcome::Overlapping), [63, 183].map(tick));
}

#[tokio::test(start_paused = true)]
async fn ticks_without_a_majority_start_when_there_is_one_again() {
    for (policy, expected) in [
        (Missed::Skip, vec![]),
        (Missed::Latest, vec![123]),
        (Missed::All { max: 9 }, vec![3, 63, 123]),
    ] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let member = fleet
            .member(0, starts.quick_job(MINUTE).missed(policy))
            .await;
        member.begin().await;
        fleet.until(1).await;
        fleet.nodes[..2].iter().for_each(MemoryNode::stop);
        for index in 0..3 {
            member.wake_at(3_000 + 60_000 * index).await;
        }
        fleet.until(160).await;
        fleet.nodes[..2].iter().for_each(MemoryNode::start);
        fleet.until(175).await;
        let expected: Vec<_> = expected.into_iter().map(tick).collect();
        assert_eq!(starts.list(), expected, "{policy:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tick_starts_whatever_the_policy_if_a_majority_comes_back_within_start_within() {
    for (policy, expected) in [
        (Missed::Skip, vec![123]),
        (Missed::Latest, vec![123]),
        (Missed::All { max: 9 }, vec![3, 63, 123]),
    ] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let job = || starts.quick_job(MINUTE).missed(policy);
        let mut members = Vec::new();
        for _ in 0..2 {
            members.push(fleet.member(0, job()).await);
        }
        for member in &members {
            member.begin().await;
        }
        fleet.until(1).await;
        fleet.nodes[..2].iter().for_each(MemoryNode::stop);
        for index in 0..3 {
            for member in &members {
                member.wake_at(3_000 + 60_000 * index).await;
            }
        }
        fleet.until(140).await;
        fleet.nodes[..2].iter().for_each(MemoryNode::start);
        fleet.until(152).await;
        let expected: Vec<_> = expected.into_iter().map(tick).collect();
        assert_eq!(starts.list(), expected, "{policy:?}");
        for member in &mut members {
            let told = match policy {
                Missed::All { .. } => vec![],
                // A newer one stood for the first, and for the second.
                _ => [3, 63].map(tick).to_vec(),
            };
            assert_eq!(member.ticks(Outcome::NoQuorum), told, "{policy:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_was_missed_waits_for_a_run_that_goes_on() {
    let starts = Starts::default();
    let fleet = fleet_with_history(&starts).await;
    // An operator runs the job by hand.
    let guard = fleet.client().await;
    let guard = guard.acquire("redlock-cron-job:tests/job").await.unwrap();
    fleet.until(215).await;
    let job = starts
        .quick_job(MINUTE)
        .missed(Missed::Latest)
        .overlap(Overlap::Skip);
    let member = fleet.member(0, job).await;
    member.begin().await;
    fleet.until(230).await;
    assert_eq!(starts.list(), [tick(3)]);
    drop(guard);
    fleet.until(235).await;
    assert_eq!(starts.list(), [3, 183].map(tick));
}

#[tokio::test(start_paused = true)]
async fn ticks_that_all_nodes_may_have_forgotten_are_told_at_once_and_do_not_stop_those_after_them()
{
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = starts
        .quick_job(EVERY_FIVE_SECONDS)
        .missed(Missed::All { max: 90 });
    let mut member = fleet.member(0, job).await;
    member.begin().await;
    member.wake_at(3_000).await;
    assert_eq!(member.outcome().await, Outcome::Ok);
    fleet.until(5).await;
    fleet.nodes.iter().for_each(MemoryNode::clear);
    for second in (8..200).step_by(5) {
        member.wake_at(second * 1_000).await;
    }
    fleet.until(199).await;
    let reports = member.reports();
    let (forgotten, others): (Vec<_>, Vec<_>) = reports
        .iter()
        .partition(|report| report.outcome() == Outcome::Forgotten);
    assert!(!forgotten.is_empty());
    assert!(forgotten.iter().all(|report| report.detail().is_some()));
    assert!(others.iter().all(|report| report.outcome() == Outcome::Ok));
    // The quarantine is a little longer than twice the longest lease.
    let ran: Vec<_> = starts.list();
    assert_eq!(ran.last(), Some(&tick(198)));
    let told = forgotten.iter().chain(&others).map(|report| report.tick());
    let told: std::collections::BTreeSet<_> = told.collect();
    assert_eq!(told, (8..200).step_by(5).map(tick).collect());
}

/// Returns a job of every minute, whose runs take `seconds`.
fn every_minute(starts: &Starts, seconds: u64, max: usize) -> SingletonJob {
    let job = starts.job(MINUTE, move |_| async move {
        sleep(Duration::from_secs(seconds)).await;
        Ok(())
    });
    job.missed(Missed::All { max })
}

#[tokio::test(start_paused = true)]
async fn all_missed_ticks_are_all_of_them_up_to_what_was_said_and_every_other_is_told() {
    for (max, left_out) in [(1_000, 0), (20, 230)] {
        let starts = Starts::default();
        let fleet = fleet_with_history(&starts).await;
        fleet.sleep_until(250 * 60_000 + 10_000).await;
        let mut member = fleet.member(0, every_minute(&starts, 0, max)).await;
        member.begin().await;
        fleet.sleep_until(250 * 60_000 + 50_000).await;
        let expected = (1..=250).skip(left_out).map(|minute| tick(3 + 60 * minute));
        let expected: Vec<_> = std::iter::once(tick(3)).chain(expected).collect();
        assert_eq!(starts.list(), expected);
        let reports = member.reports();
        let missed = reports
            .iter()
            .filter(|report| report.outcome() == Outcome::Missed);
        assert_eq!(
            missed.clone().map(TickReport::ticks).sum::<u64>(),
            left_out as u64
        );
        let Some(many) = missed.clone().find(|report| report.ticks() > 1) else {
            assert_eq!(left_out, 0);
            continue;
        };
        let range = (many.tick(), many.last_tick(), many.ticks());
        assert_eq!(range, (tick(63), tick(3 + 60 * 130), 130));
        assert_eq!(missed.count(), 101);
    }
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_is_due_in_a_run_that_makes_up_for_another_is_started_after_it() {
    let starts = Starts::default();
    let fleet = fleet_with_history(&starts).await;
    fleet.until(190).await;
    let mut members = [
        fleet.member(0, every_minute(&starts, 25, 9)).await,
        fleet.member(0, every_minute(&starts, 25, 9)).await,
    ];
    for member in &members {
        member.begin().await;
    }
    for second in [243, 303] {
        for member in &members {
            member.wake_at(second * 1_000).await;
        }
    }
    fleet.until(360).await;
    assert_eq!(starts.list(), [3, 63, 123, 183, 243, 303].map(tick));
    for member in &mut members {
        assert!(member.ticks(Outcome::Overlapping).is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_schedule_that_was_changed_makes_up_for_no_tick_that_it_never_promised() {
    for (pattern, expected) in [
        ("5 0 * * * *", vec![243]),
        (MINUTE, vec![63, 123, 183, 243]),
    ] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let mut before = fleet.member(0, starts.quick_job(pattern)).await;
        before.wake_at(3_000).await;
        assert_eq!(before.outcome().await, Outcome::Ok);
        fleet.until(190).await;
        let mut after = fleet.member(0, every_minute(&starts, 0, 90)).await;
        after.begin().await;
        after.wake_at(243_000).await;
        fleet.until(250).await;
        let expected = std::iter::once(3).chain(expected).map(tick);
        assert_eq!(starts.list(), expected.collect::<Vec<_>>(), "{pattern:?}");
        assert!(after.ticks(Outcome::Missed).is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn ticks_that_a_pause_of_this_process_passed_over_are_made_up_for_however_many() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let member = fleet.member(0, every_minute(&starts, 0, 1_000)).await;
    member.begin().await;
    member.wake_at(3_000).await;
    member.wake_at(250 * 60_000 + 3_000).await;
    fleet.sleep_until(250 * 60_000 + 40_000).await;
    let expected = (0..=250).map(|minute| tick(3 + 60 * minute));
    assert_eq!(starts.list(), expected.collect::<Vec<_>>());
}

/// One of three nodes has lost its data since, and another is down for a while.
#[tokio::test(start_paused = true)]
async fn a_missed_tick_on_which_a_node_that_is_down_may_decide_is_asked_for_again() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = || starts.quick_job(MINUTE).missed(Missed::All { max: 9 });
    let first = fleet.member(0, job()).await;
    first.begin().await;
    first.wake_at(3_000).await;
    fleet.until(5).await;
    assert!(first.shut_down(Duration::ZERO).await.is_clean());
    // Replicas are down at three ticks; another client sees the node vote again.
    fleet.until(184).await;
    fleet.nodes[0].clear();
    let _watch = fleet.client().await;
    fleet.until(300).await;
    fleet.nodes[1].stop();
    let mut again = fleet.member(0, job()).await;
    again.begin().await;
    fleet.until(320).await;
    assert_eq!(
        starts.list(),
        [tick(3)],
        "{:?}",
        again.ticks(Outcome::Forgotten)
    );
    fleet.nodes[1].start();
    fleet.until(340).await;
    assert_eq!(starts.list(), [3, 63, 123, 183, 243, 303].map(tick));
}

/// The look for what was missed and the wake-up both come to it.
#[tokio::test(start_paused = true)]
async fn a_tick_that_is_due_at_the_start_is_told_of_once() {
    for missed in [Missed::All { max: 9 }, Missed::Latest] {
        for before in [900, 500, 100, 0] {
            let (fleet, starts) = (Fleet::new(), Starts::default());
            let job = || starts.quick_job(EVERY_FIVE_SECONDS).missed(missed);
            let first = fleet.member(0, job()).await;
            first.wake_at(3_000).await;
            if let Missed::All { .. } = missed {
                first.begin().await;
            }
            fleet.until(5).await;
            drop(first);
            fleet.sleep_until(13_000 - before).await;
            let mut member = fleet.member(0, job()).await;
            // As a start does.
            member.begin().await;
            fleet.until(15).await;
            let reports = member.reports().into_iter();
            let told: Vec<_> = reports.map(|r| (r.tick(), r.outcome())).collect();
            let told_of = |tick| told.iter().filter(|(of, _)| *of == tick).count();
            assert_eq!(
                (told_of(tick(8)), told_of(tick(13))),
                (1, 1),
                "{missed:?} {before}: {told:?}"
            );
            assert!(told.contains(&(tick(13), Outcome::Ok)), "{told:?}");
        }
    }
}

/// A replica that drains starts nothing, and its last run may go on for longer than its job's interval.
#[tokio::test(start_paused = true)]
async fn ticks_that_a_run_does_not_keep_off_are_owed_while_its_replica_drains() {
    for overlap in [Overlap::Allow, Overlap::UpTo(2), Overlap::CancelOther] {
        for missed in [Missed::Skip, Missed::Latest] {
            let (fleet, starts) = (Fleet::new(), Starts::default());
            let job = |time| {
                let job = starts.job(MINUTE, move |_| async move {
                    sleep(Duration::from_secs(time)).await;
                    Ok(())
                });
                job.overlap(overlap).missed(missed)
            };
            let before = fleet.member(0, job(150)).await;
            before.wake_at(3_000).await;
            fleet.until(10).await;
            let drains = before.shut_down(Duration::from_secs(300));
            let after = async {
                fleet.until(160).await;
                let mut after = fleet.member(0, job(1)).await;
                after.begin().await;
                after.wake_at(183_000).await;
                fleet.until(200).await;
                after.ticks(Outcome::Missed)
            };
            let (drained, told) = tokio::join!(drains, after);
            assert!(drained.unfinished().is_empty());
            let (started, owed) = match missed {
                Missed::Skip => (vec![3, 183], vec![63, 123]),
                _ => (vec![3, 123, 183], vec![63]),
            };
            let ticks = |seconds: Vec<i64>| seconds.into_iter().map(tick).collect::<Vec<_>>();
            assert_eq!(starts.list(), ticks(started), "{overlap:?}, {missed:?}");
            assert_eq!(told, ticks(owed), "{overlap:?}, {missed:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_that_only_respells_the_pattern_owes_what_was_owed() {
    let starts = Starts::default();
    let fleet = fleet_with_history(&starts).await;
    fleet.until(190).await;
    let respelled = starts.quick_job("5  * * ? * ?");
    let respelled = respelled.missed(Missed::All { max: 9 });
    let member = fleet.member(0, respelled).await;
    member.begin().await;
    fleet.until(200).await;
    assert_eq!(starts.list(), [3, 63, 123, 183].map(tick));
}
