use super::*;
use crate::job::series::PAUSES;
use crate::{
    ControlErrorKind, Delivery, Missed, Overlap, PastRun,
    tick::{PAUSED, RESUMED, pause_at, unless_forbidden},
};
use redlock_core::Series;

const MINUTE: &str = "5 * * * * *";

/// Returns whether the job is paused; `None` if too few nodes answered.
async fn is_paused(runner: &JobRunner) -> Option<bool> {
    let record = runner.job.record().await?;
    Some(pause_at(record.of(PAUSES), runner.job.nodes_now()).is_some())
}

#[tokio::test(start_paused = true)]
async fn a_pause_holds_on_all_replicas_and_an_end_of_it_too_whatever_their_clocks() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut fast = fleet.member(30_000, starts.quick_job(MINUTE)).await;
    let mut slow = fleet.member(-20_000, starts.quick_job(MINUTE)).await;
    fast.runner.set_paused(true).await.unwrap();
    slow.wake_at(3_000).await;
    assert_eq!(slow.outcome().await, Outcome::Paused);
    fast.wake_at(63_000).await;
    assert_eq!(fast.outcome().await, Outcome::Paused);
    assert_eq!(is_paused(&slow.runner).await, Some(true));
    slow.runner.set_paused(false).await.unwrap();
    assert_eq!(is_paused(&fast.runner).await, Some(false));
    // It knows by now by how much its clock is ahead.
    fast.wake_at(153_000).await;
    assert_eq!(fast.outcome().await, Outcome::Ok);
    // Once more, and again, by the one whose clock is behind.
    slow.runner.set_paused(true).await.unwrap();
    slow.runner.set_paused(true).await.unwrap();
    assert_eq!(is_paused(&fast.runner).await, Some(true));
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
    first.begin();
    second.begin();
    first.runner.set_paused(true).await.unwrap();
    for index in 0..3 {
        first.wake_at(3_000 + 60_000 * index).await;
        second.wake_at(3_100 + 60_000 * index).await;
    }
    fleet.sleep_until(170_000).await;
    assert_eq!(first.ticks(Outcome::Paused), [3, 63, 123].map(tick));
    first.runner.set_paused(false).await.unwrap();
    first.wake_at(183_000).await;
    fleet.sleep_until(185_000).await;
    assert_eq!(starts.list(), [tick(183)]);
    assert!(first.ticks(Outcome::Missed).is_empty());
    assert_eq!(second.ticks(Outcome::NotWinner).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_job_is_paused_and_triggered_by_replicas_whose_clocks_are_off_by_hours() {
    for skew in [-7_200_000, 7_200_000] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let member = fleet.member(skew, starts.quick_job(MINUTE)).await;
        for paused in [true, false, true] {
            member.runner.set_paused(paused).await.unwrap();
            assert_eq!(is_paused(&member.runner).await, Some(paused));
        }
        for _ in 0..2 {
            let report = Arc::clone(&member.runner).trigger().await;
            assert_eq!(report.outcome(), Outcome::Ok, "{report:?}");
        }
        // By the nodes' clocks.
        let now = tick(0) + TimeDelta::from_std(fleet.origin.elapsed()).unwrap();
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
    while member.runner.set_paused(true).await.is_err() {
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
    let error = member.runner.set_paused(true).await.unwrap_err();
    assert_eq!(error.kind(), ControlErrorKind::Unconfirmed);
    let error = error.to_string();
    assert!(
        error.contains("no majority has confirmed that it is paused"),
        "{error}"
    );
    assert!(error.contains("0 of 3 nodes granted"), "{error}");
    assert_eq!(is_paused(&member.runner).await, None);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_triggered_in_a_shutdown() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let member = fleet.member(0, starts.quick_job(MINUTE)).await;
    member.runner.job.replica.tasks.drain();
    let report = Arc::clone(&member.runner).trigger().await;
    assert_eq!(report.outcome(), Outcome::Draining);
    assert!(starts.list().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_status_says_what_the_nodes_remember_and_what_this_replica_saw() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = || {
        starts.job(MINUTE, |run: Run| async move {
            tokio::time::sleep(Duration::from_secs(70)).await;
            if run.tick() == tick(3) {
                Ok(())
            } else {
                Err("no ledger".into())
            }
        })
    };
    let (first, second) = (fleet.member(0, job()).await, fleet.member(0, job()).await);
    let empty = second.runner.status().await;
    assert!(empty.is_known() && empty.last_run().is_none() && empty.running().is_none());
    assert_eq!((empty.watermark(), empty.is_paused()), (None, Some(false)));
    assert_eq!(empty.next_tick(), Some(tick(3)));
    assert_eq!(empty.free_in(), Some(Duration::ZERO));

    first.wake_at(3_000).await;
    second.wake_at(63_000).await;
    fleet.sleep_until(65_000).await;
    let status = second.runner.status().await;
    let running = status.running().expect("it goes on");
    assert_eq!(running.tick(), tick(3));
    assert_eq!(running.replica(), first.runner.job.replica.claims.replica);
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
    fleet.sleep_until(200_000).await;
    let status = second.runner.status().await;
    assert_eq!(status.watermark(), Some(tick(123)));
    assert!(status.running().is_none());
    let last = status.last_run().unwrap();
    assert_eq!((last.tick(), last.outcome()), (tick(123), Some("failed")));
    assert_eq!(last.took(), Some(Duration::from_secs(70)));
    assert_eq!(status.last_success().unwrap().tick(), tick(3));
    assert_eq!(status.nodes().len(), 3);
    assert_eq!(status.disagreeing(), 0);

    fleet.nodes[..2].iter().for_each(MemoryNode::stop);
    let status = second.runner.status().await;
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
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        Ok(())
    });
    let member = fleet.member(0, job.overlap(Overlap::Allow)).await;
    let (client, name) = (fleet.client().await, member.runner.job.id.name());
    member.wake_at(3_000).await;
    member.wake_at(63_000).await;
    for (millisecond, running) in [(68_000, Some(63)), (80_000, Some(3)), (110_000, None)] {
        fleet.sleep_until(millisecond).await;
        let status = member.runner.status().await;
        let memory = crate::inspect(&client, "tests", name).await.unwrap();
        assert!(status.is_known() && memory.is_known());
        for told in [status.running(), memory.running()] {
            assert_eq!(told.map(PastRun::tick), running.map(tick), "{millisecond}");
        }
        assert_eq!(memory.runs()[0].tick(), tick(63));
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_is_not_started_if_nobody_can_tell_whether_the_job_is_paused() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let member = fleet.member(0, starts.quick_job(MINUTE)).await;
    fleet.sleep_until(3_000).await;
    let runner = &member.runner;
    let ask = runner
        .job
        .ask(Series::TICKS, tick(3), Duration::from_secs(1));
    let claim = runner.job.replica.claims.claim(ask).await.unwrap();
    fleet.nodes[..2].iter().for_each(MemoryNode::stop);
    let refusal = unless_forbidden(&runner.job, claim, 1, runner.job.settings.catch_up_window)
        .await
        .unwrap_err();
    assert_eq!(refusal.outcome, Outcome::NoQuorum);
    assert!(refusal.detail.unwrap().contains("paused"));

    // No other replica can claim the tick now, so this one waits for a majority as long as the tick may start.
    fleet.nodes[..2].iter().for_each(MemoryNode::start);
    fleet.sleep_until(60_000).await;
    let ask = runner
        .job
        .ask(Series::TICKS, tick(63), Duration::from_secs(5));
    let won = runner.job.replica.claims.claim(ask).await.unwrap();
    fleet.nodes[..2].iter().for_each(MemoryNode::stop);
    let starter = async {
        tokio::time::sleep(Duration::from_secs(6)).await;
        fleet.nodes[..2].iter().for_each(MemoryNode::start);
    };
    let (kept, ()) = tokio::join!(
        unless_forbidden(&runner.job, won, 1, runner.job.settings.catch_up_window),
        starter
    );
    assert!(kept.unwrap().claim.lease().is_held());
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_was_not_confirmed_is_none() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let member = fleet.member(0, starts.quick_job(MINUTE)).await;
    fleet.sleep_until(3_000).await;
    let runner = &member.runner;
    for (paused, expected) in [(false, false), (true, true)] {
        runner.set_paused(paused).await.unwrap();
        fleet.sleep_until(if paused { 5_000 } else { 4_000 }).await;
        let ask = crate::replica::ClaimRequest {
            lock: runner.job.id.lock_of(PAUSES),
            // What a pause has, and the end of one.
            fingerprint: if paused { RESUMED } else { PAUSED },
            ..runner
                .job
                .ask(PAUSES, runner.job.now(), Duration::from_secs(1))
        };
        let won = runner.job.replica.claims.claim(ask).await.unwrap();
        runner.job.finish(won.claim, "unstarted").await;
        assert_eq!(is_paused(runner).await, Some(expected));
    }
}

/// Tokens of different locks have no order, and those of one lock have that of its claims.
#[tokio::test(start_paused = true)]
async fn the_newest_run_comes_first_whatever_the_tokens_of_other_locks() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = || starts.quick_job(MINUTE);
    let member = fleet.member(0, job().overlap(Overlap::Allow)).await;
    member.wake_at(3_000).await;
    fleet.sleep_until(30_000).await;
    let _ = Arc::clone(&member.runner).trigger().await;
    member.wake_at(63_000).await;
    fleet.sleep_until(70_000).await;
    let runs = member.runner.status().await.runs().to_vec();
    let order = |runs: &[PastRun]| runs.iter().map(PastRun::tick).collect::<Vec<_>>();
    let by_tick = [63, 30, 3].map(tick);
    assert_eq!(order(&runs), by_tick);
    // As those of locks whose counters are ahead of others'.
    let with_tokens = |places: [usize; 3]| {
        let of = |place: usize| runs[place].record.token;
        let mut told = runs.clone();
        for (run, place) in told.iter_mut().zip(places) {
            run.record.token = of(place);
        }
        told
    };
    let newest_first = |places, have_one_lock| {
        let mut told = with_tokens(places);
        crate::control::newest_first(&mut told, have_one_lock);
        order(&told)
    };
    assert_eq!(newest_first([1, 0, 2], Some(false)), by_tick);
    assert_eq!(newest_first([2, 1, 0], Some(false)), by_tick);
    // What was due at 3 was started after the request, and before what was due at 63.
    let made_up = [63, 3, 30].map(tick);
    assert_eq!(newest_first([0, 2, 1], Some(true)), made_up);
    assert_eq!(newest_first([0, 2, 1], None), made_up);
    // Under one lock, the tick of 63 would have the greater token.
    assert_eq!(newest_first([2, 1, 0], None), by_tick);
}
