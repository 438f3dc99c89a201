//! Backfills: the ticks of a range, which replicas run after they were due.

use super::*;
use redlock_cron::{
    ControlErrorKind, Delivery, MOST_BACKFILLED, Missed, Overlap, REQUEST_LIFETIME, Trigger,
};

/// Due two seconds before the fleet's start, and an hour after that.
const EACH_HOUR: &str = "0 0 * * * *";

/// Returns the tick `hours` before the last one before the fleet's start.
fn hour(hours: i64) -> DateTime<Utc> {
    tick(-2 - 3_600 * hours)
}

impl Fleet {
    async fn backfill(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> DateTime<Utc> {
        let client = self.client().await;
        let moment = redlock_cron::request_backfill(&client, "tests", "job", from, to).await;
        client.close().await;
        moment.unwrap()
    }

    /// Returns how the ticks of the last backfill ended, in order.
    async fn backfilled(&self) -> Vec<(DateTime<Utc>, String)> {
        let memory = self.memory().await;
        let runs = memory.backfill().unwrap().runs().iter();
        let ended = runs.map(|run| (run.tick(), run.outcome().unwrap_or("open").to_owned()));
        ended.collect()
    }
}

/// Returns a job of each hour whose runs take `seconds`.
fn hourly(starts: &Starts, seconds: u64) -> SingletonJob {
    starts.job(EACH_HOUR, move |_| async move {
        sleep(Duration::from_secs(seconds)).await;
        Ok(())
    })
}

// Shows: R6.1.
#[tokio::test(start_paused = true)]
async fn each_tick_of_a_range_is_started_on_one_replica_in_order_with_a_token_of_its_own() {
    for overlap in [Overlap::Skip, Overlap::Wait, Overlap::CancelOther] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let mut hosts = fleet.hosts(|| hourly(&starts, 5).overlap(overlap)).await;
        pass(5).await;
        let moment = fleet.backfill(hour(3), hour(0)).await;
        pass(60).await;
        let ticks = [hour(3), hour(2), hour(1), hour(0)];
        assert_eq!(starts.list(), ticks, "{overlap:?}");
        let memory = fleet.memory().await;
        let backfill = memory.backfill().unwrap();
        assert_eq!((backfill.moment(), backfill.ticks()), (moment, 4));
        let runs = backfill.runs();
        assert!(runs.iter().all(|run| run.outcome() == Some("ok")));
        let tokens: Vec<_> = runs.iter().map(|run| run.fencing_token()).collect();
        assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
        assert_eq!(memory.last_run().unwrap().tick(), hour(0));
        let reports: Vec<_> = hosts.iter_mut().flat_map(Member::reports).collect();
        assert_eq!(reports.len(), 4, "{reports:?}");
        for report in reports {
            let (trigger, outcome) = (report.trigger(), report.outcome());
            assert_eq!((trigger, outcome), (Trigger::Backfill, Outcome::Ok));
        }
    }
}

/// The nodes cannot tell whether it was started, and an operator can.
#[tokio::test(start_paused = true)]
async fn a_tick_that_the_nodes_may_have_forgotten_is_run_by_a_backfill() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut hosts = fleet.hosts(|| hourly(&starts, 5)).await;
    pass(3_590).await;
    fleet.nodes.iter().for_each(MemoryNode::clear);
    pass(200).await;
    let due = hour(-1);
    assert!(starts.list().is_empty());
    let reports: Vec<_> = hosts.iter_mut().flat_map(Member::reports).collect();
    assert!(!reports.is_empty());
    for report in reports {
        assert_eq!((report.tick(), report.outcome()), (due, Outcome::Forgotten));
    }
    fleet.backfill(due, due).await;
    pass(60).await;
    assert_eq!(starts.list(), [due]);
}

/// No replica can claim the moments of those that are left.
#[tokio::test(start_paused = true)]
async fn all_ticks_are_reported_that_are_left_of_a_backfill_when_the_nodes_may_have_forgotten_it() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let mut hosts = fleet.hosts(|| hourly(&starts, 5)).await;
    fleet.backfill(hour(3), hour(0)).await;
    while starts.list().is_empty() {
        pass(1).await;
    }
    pass(2).await;
    fleet.nodes.iter().for_each(MemoryNode::clear);
    pass(200).await;
    assert_eq!(starts.list(), [hour(3)]);
    for host in &mut hosts {
        let mut reports = host.reports();
        reports.retain(|report| report.outcome() == Outcome::Forgotten);
        let told = reports
            .iter()
            .map(|of| (of.tick(), of.last_tick(), of.ticks()));
        let told: Vec<_> = told.collect();
        assert_eq!(told, [(hour(2), hour(0), 3)]);
    }
}

#[tokio::test(start_paused = true)]
async fn each_tick_of_a_backfill_is_started_once_though_it_fails_at_once_or_runs_may_overlap() {
    for (overlap, seconds) in [
        (Overlap::Skip, 0),
        (Overlap::Wait, 0),
        (Overlap::CancelOther, 0),
        (Overlap::Allow, 0),
        (Overlap::Allow, 5),
        (Overlap::UpTo(2), 5),
    ] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let job = || {
            let job = starts.job(EACH_HOUR, move |_| async move {
                sleep(Duration::from_secs(seconds)).await;
                Err("no ledger".into())
            });
            job.overlap(overlap)
        };
        let _hosts = fleet.hosts(job).await;
        fleet.backfill(hour(9), hour(0)).await;
        pass(120).await;
        let mut started = starts.list();
        started.sort();
        let ticks: Vec<_> = (0..10).rev().map(hour).collect();
        assert_eq!(started, ticks, "{overlap:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn replicas_that_find_a_backfill_one_after_the_other_start_each_tick_once() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = || {
        starts.job(EACH_HOUR, |_| async {
            sleep(Duration::from_secs(3)).await;
            Err("no ledger".into())
        })
    };
    let hosts = [fleet.host().await, fleet.host().await, fleet.host().await];
    fleet.backfill(hour(4), hour(0)).await;
    for host in &hosts {
        host.put(job()).await;
        pass(5).await;
    }
    pass(60).await;
    let ticks: Vec<_> = (0..5).rev().map(hour).collect();
    assert_eq!(starts.list(), ticks);
}

#[tokio::test(start_paused = true)]
async fn a_hundred_ticks_are_started_and_remembered_and_of_more_only_their_number() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let _hosts = fleet.hosts(|| hourly(&starts, 0)).await;
    let most = MOST_BACKFILLED.cast_signed();
    fleet.backfill(hour(most), hour(0)).await;
    pass(60).await;
    let memory = fleet.memory().await;
    assert_eq!(memory.backfill().unwrap().ticks(), MOST_BACKFILLED + 1);
    assert!(starts.list().is_empty());
    fleet.backfill(hour(most - 1), hour(0)).await;
    pass(300).await;
    let ticks: Vec<_> = (0..most).rev().map(hour).collect();
    assert_eq!(starts.list(), ticks);
    let expected: Vec<_> = ticks.iter().map(|tick| (*tick, "ok".to_owned())).collect();
    assert_eq!(fleet.backfilled().await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_has_ended_well_is_not_started_again_and_one_that_failed_is() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let fails = Arc::new(AtomicBool::new(true));
    let job = || {
        let fails = Arc::clone(&fails);
        starts.job(EACH_HOUR, move |run: Run| {
            let fails = run.tick() == hour(1) && fails.load(Ordering::Relaxed);
            async move {
                if fails {
                    return Err("no ledger".into());
                }
                Ok(())
            }
        })
    };
    let _hosts = fleet.hosts(job).await;
    let outcomes = async || {
        let ended = fleet.backfilled().await.into_iter();
        ended.map(|(_, outcome)| outcome).collect::<Vec<_>>()
    };
    fleet.backfill(hour(2), hour(0)).await;
    pass(30).await;
    assert_eq!(outcomes().await, ["ok", "failed", "ok"]);
    fails.store(false, Ordering::Relaxed);
    for expected in ["ok", "already-ok"] {
        fleet.backfill(hour(2), hour(0)).await;
        pass(30).await;
        assert_eq!(outcomes().await, ["already-ok", expected, "already-ok"]);
    }
    assert_eq!(starts.list(), [hour(2), hour(1), hour(0), hour(1)]);
    // The next tick is due, and runs; it is one that has run then.
    pass(3_700).await;
    assert_eq!(starts.list().last(), Some(&hour(-1)));
    fleet.backfill(hour(-1), hour(-1)).await;
    pass(30).await;
    assert_eq!(outcomes().await, ["already-ok"]);
    assert_eq!(starts.list().len(), 5);
}

/// Each claim of a backfill pushes an older run out of the memory of the nodes.
// Shows: R6.5.
#[tokio::test(start_paused = true)]
async fn a_backfill_of_many_ticks_starts_none_again_that_ended_well_wherever_its_range_begins() {
    for seconds in [0, 1] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let _hosts = fleet.hosts(|| hourly(&starts, seconds)).await;
        for first in [24, 24, 40] {
            fleet.backfill(hour(first), hour(0)).await;
            pass(120).await;
            let ended = fleet.backfilled().await;
            assert_eq!(ended.len(), usize::try_from(first + 1).unwrap());
        }
        let mut started = starts.list();
        started.sort();
        let ticks: Vec<_> = (0..=40).rev().map(hour).collect();
        assert_eq!(started, ticks, "{seconds}");
    }
}

/// Returns three replicas with a job whose first run, that of second 3, has crashed with its replica; second 63 was
/// skipped meanwhile.
async fn hosts_after_a_crash(fleet: &Fleet, starts: &Starts) -> [Member; 2] {
    let job = || {
        let job = starts.job(MINUTE, |run: Run| async move {
            if run.attempt() == 1 && run.tick() == tick(3) && run.trigger() == Trigger::Schedule {
                std::future::pending::<()>().await;
            }
            Ok(())
        });
        job.delivery(Delivery::AtLeastOnce { max_attempts: 3 })
            .start_within(Duration::from_secs(50))
            .missed(Missed::Latest)
            .catch_up_window(Duration::from_secs(3_600))
    };
    let first = fleet.host().await;
    first.put(job()).await;
    fleet.until(5).await;
    assert_eq!(starts.list(), [tick(3)]);
    let others = [fleet.host().await, fleet.host().await];
    for other in &others {
        other.put(job()).await;
    }
    pass(65).await;
    first.crash().await;
    others
}

// Shows: R6.5.
#[tokio::test(start_paused = true)]
async fn a_backfill_of_a_later_tick_does_not_pass_a_run_that_was_cut_short() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let _others = hosts_after_a_crash(&fleet, &starts).await;
    fleet.backfill(tick(63), tick(63)).await;
    pass(45).await;
    assert_eq!(starts.list(), [tick(3), tick(3), tick(63)]);
    assert_eq!(fleet.backfilled().await, [(tick(63), "ok".to_owned())]);
}

// Shows: R6.5.
#[tokio::test(start_paused = true)]
async fn a_tick_that_a_backfill_made_good_is_not_started_again() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let _others = hosts_after_a_crash(&fleet, &starts).await;
    fleet.backfill(tick(3), tick(3)).await;
    pass(45).await;
    assert_eq!(starts.list(), [tick(3), tick(3)]);
    let last = fleet
        .memory()
        .await
        .last_run()
        .map(|run| (run.tick(), run.is_backfill()));
    assert_eq!(last, Some((tick(3), true)));
}

/// Later backfills push the runs of the first out of the nodes' memory.
// Shows: R6.5.
#[tokio::test(start_paused = true)]
async fn a_tick_that_a_backfill_found_made_good_is_not_started_again() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = |delivery| {
        let job = starts.job("5 0 * * * *", |run: Run| async move {
            if run.trigger() == Trigger::Schedule {
                std::future::pending::<()>().await;
            }
            Ok(())
        });
        job.missed(Missed::Latest).delivery(delivery)
    };
    let again = Delivery::AtLeastOnce { max_attempts: 3 };
    let first = fleet.host().await;
    first.put(job(again)).await;
    fleet.until(5).await;
    first.crash().await;
    let second = fleet.host().await;
    // It starts no run again by itself.
    second.put(job(Delivery::AtMostOnce)).await;
    let hour = |hours| tick(3 - 3_600 * hours);
    let most = MOST_BACKFILLED.cast_signed();
    for (first, last) in [(most - 1, 0), (most - 1, 0), (most, most)] {
        fleet.backfill(hour(first), hour(last)).await;
        pass(300).await;
    }
    let third = fleet.host().await;
    third.put(job(again)).await;
    pass(60).await;
    let starts = starts.list().into_iter();
    assert_eq!(starts.filter(|start| *start == tick(3)).count(), 2);
}

/// The run of the last tick ends when the second backfill has counted, and is remembered beside a hundred others.
// Shows: R6.5.
#[tokio::test(start_paused = true)]
async fn a_run_that_goes_on_when_its_backfill_is_asked_for_again_is_not_started_again() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = || {
        starts.job(EACH_HOUR, |run: Run| async move {
            let seconds = if run.tick() == hour(0) { 30 } else { 0 };
            sleep(Duration::from_secs(seconds)).await;
            Ok(())
        })
    };
    let _hosts = fleet.hosts(job).await;
    let most = usize::try_from(MOST_BACKFILLED).unwrap();
    let first = hour(MOST_BACKFILLED.cast_signed() - 1);
    fleet.backfill(first, hour(0)).await;
    while starts.list().len() < most {
        pass(1).await;
    }
    fleet.backfill(first, hour(0)).await;
    pass(300).await;
    assert_eq!(fleet.backfilled().await.len(), most);
    assert_eq!(starts.list().len(), most);
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_is_to_run_again_runs_once_more_though_it_has_ended_well() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let _hosts = fleet.hosts(|| hourly(&starts, 1)).await;
    fleet.backfill(hour(2), hour(0)).await;
    pass(30).await;
    let client = fleet.client().await;
    for _ in 0..2 {
        let again = redlock_cron::request_rerun(&client, "tests", "job", hour(1), hour(1)).await;
        again.unwrap();
        pass(20).await;
        assert_eq!(fleet.backfilled().await, [(hour(1), "ok".to_owned())]);
    }
    client.close().await;
    assert_eq!(starts.list(), [hour(2), hour(1), hour(0), hour(1), hour(1)]);
}

#[tokio::test(start_paused = true)]
async fn the_ticks_of_a_day_are_those_of_the_zone_of_the_job_as_far_as_they_were_due() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = || starts.in_zone("0 30 2,23 * * *", Tz::America__Nuuk);
    let _hosts = fleet.hosts(job).await;
    let client = fleet.client().await;
    let request = async |days: &[&str]| {
        let days = days.iter().map(|day| day.parse().unwrap());
        redlock_cron::request_backfill_of_days(&client, "tests", "job", days, false).await
    };
    // Of the first, an hour before midnight is left out.
    request(&["2026-03-30", "2026-03-28"]).await.unwrap();
    pass(30).await;
    request(&["2027-01-15"]).await.unwrap();
    pass(30).await;
    let ticks = [
        "2026-03-28T04:30:00Z",
        "2026-03-29T01:00:00Z",
        "2026-03-30T03:30:00Z",
        "2026-03-31T00:30:00Z",
        "2027-01-15T04:30:00Z",
    ];
    let utc = |time: &str| time.parse::<DateTime<Utc>>().unwrap();
    assert_eq!(starts.list(), ticks.map(utc));
    let six = [
        "2026-01-01",
        "2026-01-02",
        "2026-01-03",
        "2026-01-04",
        "2026-01-05",
        "2026-01-06",
    ];
    for (days, why) in [
        (&["2027-01-16"][..], "in the future"),
        (&[], "one to five days"),
        (&six, "one to five days"),
        (&["1969-12-31"], "1970"),
    ] {
        let error = request(days).await.unwrap_err();
        assert_eq!(error.kind(), ControlErrorKind::InvalidRange, "{error}");
        assert!(error.to_string().contains(why), "{error}");
    }
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_is_due_waits_for_a_run_of_a_backfill_and_goes_before_the_next() {
    for overlap in [Overlap::Skip, Overlap::Wait] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let job = || {
            starts
                .job(MINUTE, |run: Run| async move {
                    if run.trigger() == Trigger::Backfill {
                        sleep(Duration::from_secs(40)).await;
                    }
                    Ok(())
                })
                .overlap(overlap)
                .start_within(Duration::from_secs(50))
        };
        let _hosts = fleet.hosts(job).await;
        pass(30).await;
        fleet.backfill(tick(-117), tick(-57)).await;
        pass(150).await;
        let started = starts.list();
        let due = [tick(3), tick(-117), tick(63), tick(-57), tick(123)];
        assert_eq!(started, due, "{overlap:?}");
    }
}

/// Returns a job of each minute, of which a tick is not started more than five seconds late, and a backfilled run takes
/// this long.
fn unforgiving(starts: &Starts, seconds: u64) -> SingletonJob {
    let job = starts.job(MINUTE, move |run: Run| async move {
        if run.trigger() == Trigger::Backfill {
            sleep(Duration::from_secs(seconds)).await;
        }
        Ok(())
    });
    job.start_within(Duration::from_secs(5))
}

#[tokio::test(start_paused = true)]
async fn a_backfill_starts_no_run_that_would_keep_the_next_tick_waiting() {
    for overlap in [Overlap::Skip, Overlap::Wait, Overlap::CancelOther] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let mut hosts = fleet
            .hosts(|| unforgiving(&starts, 40).overlap(overlap))
            .await;
        pass(10).await;
        fleet.backfill(tick(-177), tick(-57)).await;
        pass(190).await;
        let expected = [3, -177, 63, -117, 123, -57, 183].map(tick);
        assert_eq!(starts.list(), expected, "{overlap:?}");
        let reports = hosts.iter_mut().flat_map(Member::reports);
        let started = reports.filter(|report| report.outcome().was_started());
        for report in started {
            assert_eq!(report.outcome(), Outcome::Ok, "{report:?}");
            let is_due = report.trigger() == Trigger::Schedule;
            assert!(
                !is_due || report.lag() < Duration::from_secs(2),
                "{report:?}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_backfill_whose_runs_take_longer_than_the_time_between_ticks_waits_for_one_tick_each() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let _hosts = fleet.hosts(|| unforgiving(&starts, 70)).await;
    pass(10).await;
    fleet.backfill(tick(-177), tick(-57)).await;
    pass(360).await;
    assert_eq!(starts.list(), [3, -177, 123, -117, 243, -57, 363].map(tick));
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_is_due_cancels_a_run_of_a_backfill_under_that_policy_and_not_the_next_one() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = || {
        let job = starts.job(MINUTE, |run: Run| async move {
            if run.trigger() == Trigger::Backfill {
                sleep(Duration::from_secs(40)).await;
            }
            Ok(())
        });
        job.overlap(Overlap::CancelOther)
            .start_within(Duration::from_secs(50))
    };
    let _hosts = fleet.hosts(job).await;
    pass(30).await;
    fleet.backfill(tick(-117), tick(-57)).await;
    pass(80).await;
    let ended = fleet.backfilled().await;
    let expected = [(tick(-117), "cancelled"), (tick(-57), "ok")];
    assert_eq!(
        ended,
        expected.map(|(tick, outcome)| (tick, outcome.to_owned()))
    );
    let due = [tick(3), tick(-117), tick(63), tick(-57)];
    assert_eq!(starts.list(), due);
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_was_backfilled_is_not_made_up_for_later() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = |window| {
        let job = starts.quick_job(MINUTE).missed(Missed::Latest);
        job.start_within(Duration::from_secs(5))
            .catch_up_window(Duration::from_secs(window))
    };
    let first = fleet.host().await;
    first.put(job(30)).await;
    fleet.until(10).await;
    first.remove(0).await;
    fleet.until(100).await;
    let second = fleet.host().await;
    second.put(job(30)).await;
    fleet.until(105).await;
    assert_eq!(starts.list(), [tick(3)], "it is too late for the other one");
    fleet.backfill(tick(63), tick(63)).await;
    fleet.until(110).await;
    second.put(job(3_600)).await;
    fleet.until(120).await;
    assert_eq!(starts.list(), [tick(3), tick(63)]);
}

// Shows: R6.6.
#[tokio::test(start_paused = true)]
async fn a_backfill_of_the_last_missed_tick_tells_of_those_before_it() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let job = || starts.quick_job(MINUTE);
    let first = fleet.host().await;
    first.put(job()).await;
    fleet.until(10).await;
    first.remove(0).await;
    fleet.until(200).await;
    let mut hosts = fleet.hosts(job).await;
    fleet.backfill(tick(183), tick(183)).await;
    pass(60).await;
    assert_eq!(starts.list(), [tick(3), tick(183), tick(243)]);
    let seen: Vec<_> = hosts.iter_mut().flat_map(Member::seen).collect();
    let missed = seen
        .into_iter()
        .filter(|(_, outcome)| *outcome == Outcome::Missed);
    let mut missed: Vec<_> = missed.map(|(tick, _)| tick).collect();
    missed.sort();
    assert_eq!(missed, [tick(63), tick(123)]);
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_is_to_be_made_up_for_is_started_once() {
    for missed in [Missed::Latest, Missed::All { max: 9 }] {
        let (fleet, starts) = (Fleet::new(), Starts::default());
        let job = || {
            starts
                .job(MINUTE, |_| async {
                    sleep(Duration::from_secs(2)).await;
                    Ok(())
                })
                .missed(missed)
                .catch_up_window(Duration::from_secs(3_600))
        };
        let first = fleet.host().await;
        first.put(job()).await;
        fleet.until(10).await;
        first.remove(0).await;
        // An outage of five minutes, after which an operator is as quick as the replicas.
        fleet.until(310).await;
        fleet.backfill(tick(3), tick(303)).await;
        let _hosts = fleet.hosts(job).await;
        pass(50).await;
        let mut started = starts.list();
        started.sort();
        let ticks = [
            tick(3),
            tick(63),
            tick(123),
            tick(183),
            tick(243),
            tick(303),
        ];
        assert_eq!(started, ticks, "{missed:?}");
        pass(30).await;
        assert_eq!(starts.list().len(), 7, "{missed:?}: the next one was due");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_holds_a_backfill_up_and_another_one_ends_it() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let hosts = fleet.hosts(|| hourly(&starts, 10)).await;
    fleet.backfill(hour(20), hour(0)).await;
    pass(8).await;
    fleet.backfill(hour(40), hour(39)).await;
    pass(60).await;
    assert_eq!(starts.list(), [hour(20), hour(40), hour(39)]);
    fleet.backfill(hour(60), hour(58)).await;
    pass(8).await;
    hosts[0].set_paused(true).await.unwrap();
    pass(60).await;
    assert_eq!(starts.list().len(), 4);
    hosts[0].set_paused(false).await.unwrap();
    pass(60).await;
    assert_eq!(starts.list()[3..], [hour(60), hour(59), hour(58)]);
    let ended = fleet.backfilled().await;
    assert!(
        ended.iter().all(|(_, outcome)| outcome == "ok"),
        "{ended:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_comes_goes_on_with_a_backfill_and_begins_none_that_is_old() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    fleet.backfill(hour(9), hour(8)).await;
    sleep(REQUEST_LIFETIME + Duration::from_secs(2)).await;
    let first = fleet.host().await;
    first.put(hourly(&starts, 10)).await;
    pass(60).await;
    assert!(starts.list().is_empty());
    assert!(fleet.memory().await.backfill().is_none());
    fleet.backfill(hour(2), hour(0)).await;
    pass(8).await;
    assert_eq!(first.remove(0).await, [hour(2)]);
    pass(120).await;
    assert_eq!(starts.list(), [hour(2)]);
    let second = fleet.host().await;
    second.put(hourly(&starts, 10)).await;
    pass(60).await;
    assert_eq!(starts.list(), [hour(2), hour(1), hour(0)]);
    let ended = fleet.backfilled().await;
    assert_eq!(ended[0], (hour(2), "aborted".to_owned()));
    assert_eq!(ended[2], (hour(0), "ok".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn replicas_whose_schedules_differ_do_not_mix_them_in_a_backfill() {
    let (fleet, starts) = (Fleet::new(), Starts::default());
    let one = fleet.host().await;
    one.put(hourly(&starts, 5)).await;
    let other = fleet.host().await;
    let others = Starts::default();
    other.put(others.quick_job("0 30 * * * *")).await;
    pass(5).await;
    fleet.backfill(hour(3), hour(0)).await;
    pass(60).await;
    let (one, other) = (starts.list(), others.list());
    assert!(one.is_empty() != other.is_empty(), "{one:?} {other:?}");
    assert!([4, 3].contains(&(one.len() + other.len())));
}

#[tokio::test(start_paused = true)]
async fn a_range_that_is_wrong_is_an_error_that_leaves_nothing() {
    let fleet = Fleet::new();
    let client = fleet.client().await;
    let utc = |time: &str| time.parse::<DateTime<Utc>>().unwrap();
    for (from, to, why) in [
        (hour(0), hour(1), "ends before it begins"),
        (hour(1), tick(3_600), "in the future"),
        (utc("1969-01-01T00:00:00Z"), hour(1), "1970"),
        (
            utc("2026-01-01T00:00:00.2Z"),
            utc("2026-01-01T00:00:00.3Z"),
            "no whole second",
        ),
    ] {
        let asked = redlock_cron::request_backfill(&client, "tests", "job", from, to).await;
        let error = asked.unwrap_err();
        assert_eq!(error.kind(), ControlErrorKind::InvalidRange, "{error}");
        assert!(error.to_string().contains(why), "{error}");
    }
    let resource = redlock_cron::remembered_under("tests", "job").unwrap();
    let known = client.job_status(resource).await.unwrap();
    assert_eq!(known.record().unwrap().runs(|_| true).count(), 0);
    fleet.nodes[..2].iter().for_each(MemoryNode::stop);
    let asked = redlock_cron::request_backfill(&client, "tests", "job", hour(1), hour(0)).await;
    let error = asked.unwrap_err();
    assert_eq!(error.kind(), ControlErrorKind::Unconfirmed);
    client.close().await;
}
