use super::*;
use redlock_cron::{ControlErrorKind, Delivery, Missed, Overlap, PastRun};

#[tokio::test(start_paused = true)]
async fn a_pause_holds_on_all_replicas_and_an_end_of_it_too_whatever_their_clocks() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut fast = fleet.member(30_000, starts.quick_job(MINUTE)).await;
    let mut slow = fleet.member(-20_000, starts.quick_job(MINUTE)).await;
    fast.set_paused(true).await.unwrap();
    fast.begin().await;
    slow.begin().await;
    fleet.until(65).await;
    let mut paused = fast.ticks(Outcome::Paused);
    paused.extend(slow.ticks(Outcome::Paused));
    paused.sort();
    assert_eq!(paused, [3, 63].map(tick));
    assert_eq!(slow.status().await.is_paused(), Some(true));
    slow.set_paused(false).await.unwrap();
    assert_eq!(fast.status().await.is_paused(), Some(false));
    fleet.until(125).await;
    // Once more, and again, by the one whose clock is behind.
    slow.set_paused(true).await.unwrap();
    slow.set_paused(true).await.unwrap();
    assert_eq!(fast.status().await.is_paused(), Some(true));
    fleet.until(185).await;
    assert_eq!(starts.list(), [tick(123)]);
}

#[tokio::test(start_paused = true)]
async fn ticks_of_a_pause_are_not_made_up_for() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = || {
        let job = starts.quick_job(MINUTE).missed(Missed::All { max: 9 });
        job.delivery(Delivery::AtLeastOnce { max_attempts: 3 })
    };
    let (mut first, mut second) = (fleet.member(0, job()).await, fleet.member(0, job()).await);
    first.begin().await;
    second.begin().await;
    first.set_paused(true).await.unwrap();
    for index in 0..3 {
        first.wake_at(3_000 + 60_000 * index).await;
        second.wake_at(3_100 + 60_000 * index).await;
    }
    fleet.until(170).await;
    let (of_first, of_second) = (first.seen(), second.seen());
    let of = |outcome| {
        let seen = of_first.iter().chain(&of_second);
        let mut ticks: Vec<_> = seen
            .filter(|(_, of)| *of == outcome)
            .map(|(tick, _)| *tick)
            .collect();
        ticks.sort();
        ticks
    };
    for outcome in [Outcome::Paused, Outcome::NotWinner] {
        assert_eq!(of(outcome), [3, 63, 123].map(tick));
    }
    first.set_paused(false).await.unwrap();
    first.wake_at(183_000).await;
    fleet.until(185).await;
    assert_eq!(starts.list(), [tick(183)]);
    assert!(first.ticks(Outcome::Missed).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_job_is_paused_and_triggered_by_replicas_whose_clocks_are_off_by_hours() {
    for skew in [-7_200_000, 7_200_000] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let member = fleet.member(skew, starts.quick_job(MINUTE)).await;
        for paused in [true, false, true] {
            member.set_paused(paused).await.unwrap();
            assert_eq!(member.status().await.is_paused(), Some(paused));
        }
        for _ in 0..2 {
            let report = member.trigger().await;
            assert_eq!(report.outcome(), Outcome::Ok, "{report:?}");
        }
        // By the nodes' clocks.
        let now = fleet.now();
        assert!(
            starts
                .list()
                .iter()
                .all(|run| (*run - now).abs() < TimeDelta::seconds(61))
        );
    }
}

/// Nodes that have just been set up may have forgotten what was before, for all they know.
#[tokio::test(start_paused = true)]
async fn a_job_can_be_paused_as_soon_as_nodes_vote_that_have_lost_their_data() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let member = fleet.member(0, starts.quick_job(MINUTE)).await;
    fleet.nodes.iter().for_each(MemoryNode::clear);
    let mut tried = 0;
    while member.set_paused(true).await.is_err() {
        tried += 1;
        assert!(fleet.origin.elapsed() < Duration::from_secs(50));
    }
    assert!(tried > 0, "they were in quarantine");
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_no_majority_confirms_is_an_error() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let member = fleet.member(0, starts.quick_job(MINUTE)).await;
    fleet.nodes[..2].iter().for_each(MemoryNode::stop);
    let error = member.set_paused(true).await.unwrap_err();
    assert_eq!(error.kind(), ControlErrorKind::Unconfirmed);
    let error = error.to_string();
    assert!(
        error.contains("no majority has confirmed that it is paused"),
        "{error}"
    );
    assert!(error.contains("0 of 3 nodes granted"), "{error}");
    assert_eq!(member.status().await.is_paused(), None);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_triggered_in_a_shutdown() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let member = fleet.member(0, starts.quick_job(MINUTE)).await;
    assert!(member.shut_down(Duration::ZERO).await.is_clean());
    let report = member.trigger().await;
    assert_eq!(report.outcome(), Outcome::Draining);
    assert!(starts.list().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_status_says_what_the_nodes_remember_and_what_this_replica_saw() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = || {
        starts.job(MINUTE, |run: Run| async move {
            sleep(Duration::from_secs(70)).await;
            if run.tick() == tick(3) {
                Ok(())
            } else {
                Err("no ledger".into())
            }
        })
    };
    let (first, second) = (fleet.member(0, job()).await, fleet.member(0, job()).await);
    let empty = second.status().await;
    assert!(empty.is_known() && empty.last_run().is_none() && empty.running().is_none());
    assert_eq!((empty.watermark(), empty.is_paused()), (None, Some(false)));
    assert_eq!(empty.next_tick(), Some(tick(3)));
    assert_eq!(empty.free_in(), Some(Duration::ZERO));

    first.wake_at(3_000).await;
    second.wake_at(63_000).await;
    fleet.until(65).await;
    let status = second.status().await;
    let running = status.running().expect("it goes on");
    assert_eq!(running.tick(), tick(3));
    assert_eq!(running.replica(), first.name);
    assert!(status.free_in().unwrap() > Duration::from_secs(1));
    let [skipped] = status.skipped() else {
        panic!("{status:?}")
    };
    assert_eq!(
        (skipped.tick(), skipped.outcome()),
        (tick(63), Outcome::Overlapping)
    );
    assert_eq!(status.next_tick(), Some(tick(123)));

    first.wake_at(123_000).await;
    fleet.until(200).await;
    let status = second.status().await;
    assert_eq!(status.watermark(), Some(tick(123)));
    assert!(status.running().is_none());
    let last = status.last_run().unwrap();
    assert_eq!((last.tick(), last.outcome()), (tick(123), Some("failed")));
    assert_eq!(last.took(), Some(Duration::from_secs(70)));
    assert_eq!(status.last_success().unwrap().tick(), tick(3));
    assert_eq!(status.nodes().len(), 3);
    assert_eq!(status.disagreeing(), 0);

    fleet.nodes[..2].iter().for_each(MemoryNode::stop);
    let status = second.status().await;
    assert!(!status.is_known() && status.runs().is_empty());
    assert_eq!((status.watermark(), status.is_paused()), (None, None));
    assert_eq!(status.nodes().len(), 3);
}

/// Their lock is that of their tick, so the job's is free.
#[tokio::test(start_paused = true)]
async fn of_runs_that_overlap_the_newest_that_goes_on_is_told() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = starts.job(MINUTE, |run: Run| async move {
        let seconds = if run.tick() == tick(3) { 100 } else { 10 };
        sleep(Duration::from_secs(seconds)).await;
        Ok(())
    });
    let member = fleet.member(0, job.overlap(Overlap::Allow)).await;
    let client = fleet.client().await;
    member.wake_at(3_000).await;
    member.wake_at(63_000).await;
    for (millisecond, running) in [(68_000, Some(63)), (80_000, Some(3)), (110_000, None)] {
        fleet.sleep_until(millisecond).await;
        let status = member.status().await;
        let memory = redlock_cron::inspect(&client, "tests", "job")
            .await
            .unwrap();
        assert!(status.is_known() && memory.is_known());
        for told in [status.running(), memory.running()] {
            assert_eq!(told.map(PastRun::tick), running.map(tick), "{millisecond}");
        }
        assert_eq!(memory.runs()[0].tick(), tick(63));
    }
}
