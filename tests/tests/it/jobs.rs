//! Replicas with the same jobs, in processes of their own: each tick is started on one of them.
#![cfg(target_os = "linux")]

use std::time::{Duration, SystemTime};

use redlock_tests::{Connect, Fleet, Job, JobLog, JobRun, MissedTicks, Nodes, voting};

const REPLICA: &str = env!("CARGO_BIN_EXE_redlock-test-client");
const TTL: Duration = Duration::from_millis(1_500);
const SECOND: Duration = Duration::from_secs(1);
const QUICK: Duration = Duration::from_millis(5);
const SOON: Duration = Duration::from_secs(60);
const HOUR: i64 = 3_600_000;

fn connect(nodes: &Nodes) -> Connect {
    Connect {
        max_ttl: 2 * SECOND,
        ..Connect::to(nodes.urls(), TTL)
    }
}

/// The ticks of a job that ran, if so many of them came one after another.
fn in_a_row(log: &JobLog, job: &str, every: i64, count: usize) -> Option<Vec<i64>> {
    let mut ticks: Vec<i64> = log.runs(job).iter().map(|run| run.tick).collect();
    ticks.sort_unstable();
    ticks.dedup();
    let is_row = |row: &&[i64]| row.windows(2).all(|two| two[1] - two[0] == every);
    ticks.windows(count).find(is_row).map(<[i64]>::to_vec)
}

/// Waits until `count` more ticks of a job have run.
async fn more(fleet: &Fleet, job: &str, count: usize) {
    let so_far = fleet.log.runs(job).len();
    let more = |log: &JobLog| (log.runs(job).len() >= so_far + count).then_some(());
    fleet.until("more ticks run", more).await;
}

/// How often a replica reported an outcome.
fn count(log: &JobLog, job: &str, replica: &str, outcome: &str) -> usize {
    let outcomes = log.outcomes(job).into_iter();
    outcomes
        .filter(|(_, at, became)| at == replica && became == outcome)
        .count()
}

// Shows: T4.9.
#[tokio::test]
async fn eleven_ticks_are_eleven_runs_over_skewed_clocks_and_clocks_an_hour_off_do_no_harm() {
    let nodes = Nodes::start(3);
    let jobs = vec![
        Job::new("quick", 2 * SECOND, QUICK),
        Job::new("overrunning", 2 * SECOND, SECOND * 13 / 5),
    ];
    let mut fleet = Fleet::new(REPLICA, connect(&nodes), jobs);
    let skews = [
        ("right", 0),
        ("ahead", 700),
        ("behind", -1_300),
        ("hour-fast", HOUR),
        ("hour-slow", -HOUR),
    ];
    let names = skews.map(|(name, _)| name);
    for (name, skew) in skews {
        fleet.start_skewed(name, skew);
    }
    let walls = fleet.ready(&names).await;
    for ((name, skew), wall) in skews.iter().zip(&walls) {
        let seen = wall - walls[0];
        assert!((seen - skew).abs() < 100, "{name} is {seen} ms ahead");
    }
    // A tick may be missed when the machine stands still, but then there is another row.
    let row = |log: &JobLog| in_a_row(log, "quick", 2, 11);
    let row = fleet.until("eleven ticks in a row", row).await;
    fleet.stop_all().await;

    let log = &fleet.log;
    let runs = log.assert_once();
    let of_row = log
        .runs("quick")
        .into_iter()
        .filter(|run| row.contains(&run.tick));
    let of_row: Vec<_> = of_row.collect();
    println!(
        "{} ticks, {} runs; {runs} runs in all",
        row.len(),
        of_row.len()
    );
    assert_eq!(of_row.len(), 11);
    // They go by the nodes' clocks.
    for replica in ["hour-fast", "hour-slow"] {
        let taken_part = ["ok", "not_winner"].map(|outcome| count(log, "quick", replica, outcome));
        let ticks: usize = taken_part.iter().sum();
        assert!(ticks >= 8, "{replica}: {:?}", log.outcomes("quick"));
    }
    log.assert_apart("overrunning");
    assert!(
        log.runs("overrunning").len() >= 4,
        "{:?}",
        log.runs("overrunning")
    );
    let skipped = log.outcomes("overrunning").into_iter();
    let skipped = skipped.filter(|(_, _, outcome)| outcome == "overlapping");
    assert!(skipped.count() > 0, "{:?}", log.outcomes("overrunning"));
}

// Shows: T4.9.
#[tokio::test]
async fn a_master_down_costs_nothing_a_majority_stops_all_and_none_that_comes_back_empty_repeats_a_tick()
 {
    let mut nodes = Nodes::start(3);
    let jobs = vec![Job::new("quick", SECOND, QUICK)];
    let mut fleet = Fleet::new(REPLICA, connect(&nodes), jobs);
    let names = ["a", "b", "c"];
    for name in names {
        fleet.start(name, Duration::ZERO);
    }
    fleet.ready(&names).await;
    // Equal clocks.
    let row = |log: &JobLog| in_a_row(log, "quick", 1, 11);
    fleet.until("eleven ticks in a row", row).await;

    let mut patient = connect(&nodes);
    patient.vouches = false;
    let observer = patient.client().await;
    nodes.kill(0..1);
    more(&fleet, "quick", 4).await;
    nodes[0].restart().expect("it starts");
    voting(&observer, 3, SOON).await;
    // What the other two know, the one that forgot must not give away with one of them.
    nodes.kill(1..2);
    more(&fleet, "quick", 3).await;
    nodes.kill(2..3);
    let so_far = fleet.log.runs("quick").len();
    let told = |times: usize| {
        move |log: &JobLog| {
            let told = |name: &&str| count(log, "quick", name, "no_quorum") >= times;
            let runs = log.runs("quick").len();
            // Those that go on as if nothing were wrong never tell.
            (names.iter().all(told) || runs > so_far + 3 * times).then_some(runs)
        }
    };
    let before = fleet
        .until("each replica says that there is no quorum", told(2))
        .await;
    let after = fleet.until("each says it again", told(4)).await;
    assert_eq!(before, after, "something ran without a majority");
    for node in 1..3 {
        nodes[node].restart().expect("it starts");
    }
    more(&fleet, "quick", 3).await;
    fleet.stop_all().await;
    println!("{} runs", fleet.log.assert_once());
}

#[tokio::test]
async fn a_replica_that_is_paused_killed_or_asked_to_end_in_a_run_leaves_the_next_tick_to_others() {
    let nodes = Nodes::start(3);
    let long = Job {
        // So that each of them has a run now and then.
        spread: Some(SECOND),
        ..Job::new("long", SECOND, SECOND * 3)
    };
    let mut fleet = Fleet::new(REPLICA, connect(&nodes), vec![long]);
    for name in ["a", "b"] {
        fleet.start(name, SOON);
    }
    fleet.start("hasty", Duration::ZERO);
    fleet.ready(&["a", "b", "hasty"]).await;

    let paused = fleet.next_run("long", |_| true).await;
    fleet.replica(&paused.replica).freeze();
    fleet
        .next_run("long", |run| run.replica != paused.replica)
        .await;
    fleet.replica(&paused.replica).thaw();
    let became = |log: &JobLog| log.outcome("long", &paused);
    let became = fleet.until("the paused run is reported", became).await;
    assert_eq!(became, "lost");
    let of_tick = |log: &JobLog, tick| log.runs("long").into_iter().find(|run| run.tick == tick);
    let seen = of_tick(&fleet.log, paused.tick).expect("it began");
    assert_eq!(seen.finished, None, "it went on without its lease");

    let killed = fleet.next_run("long", |run| run.replica != "hasty").await;
    fleet.kill(&killed.replica);
    fleet
        .next_run("long", |run| run.replica != killed.replica)
        .await;

    let cut = fleet.next_run("long", |run| run.replica == "hasty").await;
    assert_eq!(fleet.stop("hasty").await, 1, "its run was unfinished");
    assert_eq!(fleet.log.outcome("long", &cut).as_deref(), Some("aborted"));
    let last = fleet.next_run("long", |_| true).await;
    assert_eq!(fleet.stop(&last.replica).await, 0, "it was given the time");
    assert_eq!(fleet.log.outcome("long", &last).as_deref(), Some("ok"));
    let seen = of_tick(&fleet.log, last.tick).expect("it began");
    assert!(seen.finished.is_some());

    println!("{} runs", fleet.log.assert_once());
    fleet.log.assert_apart("long");
}

const INTERVAL: Duration = Duration::from_secs(4);

#[tokio::test]
async fn a_rolling_restart_misses_nothing_and_what_a_restart_of_all_missed_is_for_the_policy() {
    let nodes = Nodes::start(3);
    let policies = [
        ("skip", MissedTicks::Skip),
        ("latest", MissedTicks::Latest),
        ("all", MissedTicks::All),
    ];
    let job = |(name, missed)| Job {
        missed,
        ..Job::new(name, INTERVAL, QUICK)
    };
    let jobs = policies.map(job).to_vec();
    let mut fleet = Fleet::new(REPLICA, connect(&nodes), jobs);
    for name in ["a1", "b1"] {
        fleet.start(name, SOON);
    }
    fleet.ready(&["a1", "b1"]).await;
    each_ran(&fleet, &policies).await;
    for (old, new) in [("a1", "a2"), ("b1", "b2")] {
        assert_eq!(fleet.stop(old).await, 0);
        fleet.start(new, SOON);
        fleet.ready(&[new]).await;
        each_ran(&fleet, &policies).await;
    }
    fleet.stop_all().await;
    let all_ran = |log: &JobLog, name: &str| {
        let ticks: Vec<_> = log.runs(name).iter().map(|run| run.tick).collect();
        (ticks.windows(2).all(|two| two[1] - two[0] == 4), ticks)
    };
    for (name, _) in policies {
        let (all_ran, ticks) = all_ran(&fleet.log, name);
        assert!(
            all_ran,
            "the rolling restart has cost {name} a tick: {ticks:?}"
        );
    }

    let (last, newest) = restart_after_three_ticks(&mut fleet, &policies).await;
    for (name, _) in policies {
        more(&fleet, name, 2).await;
    }
    let caught_up = |log: &JobLog| {
        let of_later = |run: &JobRun| run.tick > newest + 4;
        let is_past = |(name, _): &(&str, _)| log.runs(name).iter().any(of_later);
        policies.iter().all(is_past).then_some(())
    };
    fleet.until("later ticks run", caught_up).await;
    fleet.stop_all().await;
    fleet.log.assert_once();

    for ((name, policy), last) in policies.into_iter().zip(last) {
        let runs = fleet.log.runs(name).into_iter();
        let made_up: Vec<_> = runs
            .filter(|run| run.tick > last && run.tick <= newest)
            .map(|run| run.tick)
            .collect();
        let missed: Vec<_> = (last + 4..=newest).step_by(4).collect();
        println!("{name}: of {missed:?} {made_up:?} ran");
        let told = |tick: &&i64| {
            let mut outcomes = fleet.log.outcomes(name).into_iter();
            outcomes.any(|(of, _, outcome)| of == **tick && outcome == "missed")
        };
        match policy {
            MissedTicks::Skip => {
                assert!(made_up.is_empty(), "{made_up:?}");
                let told = missed.iter().filter(told).count();
                assert_eq!(told, missed.len(), "{:?}", fleet.log.outcomes(name));
            }
            MissedTicks::Latest => assert_eq!(made_up, [newest]),
            // In their order, as their tokens say too.
            MissedTicks::All => assert_eq!(made_up, missed),
        }
    }
}

/// Waits until all jobs have run one later tick: a replica that is asked to end while it claims one loses it.
async fn each_ran(fleet: &Fleet, policies: &[(&str, MissedTicks)]) {
    let last = |log: &JobLog| {
        let last = |(name, _): &(&str, _)| log.runs(name).iter().map(|run| run.tick).max();
        policies.iter().map(last).collect::<Vec<_>>()
    };
    let before = last(&fleet.log).into_iter().max().flatten();
    let each = |log: &JobLog| {
        let last = last(log);
        (last[0] > before && last.iter().all(|tick| *tick == last[0])).then_some(())
    };
    fleet.until("each job has run the same tick", each).await;
}

/// Starts all replicas again right after the third tick for which none was up; returns the last tick of each job before
/// that, and the third.
async fn restart_after_three_ticks(
    fleet: &mut Fleet,
    policies: &[(&str, MissedTicks)],
) -> (Vec<i64>, i64) {
    for attempt in 3.. {
        let last = |(name, _): &(&str, _)| fleet.log.runs(name).iter().map(|run| run.tick).max();
        let last: Option<Vec<i64>> = policies.iter().map(last).collect();
        let last = last.expect("each has run");
        let newest = last.iter().max().expect("there are jobs") + 3 * 4;
        tokio::time::sleep(until(newest * 1_000 + 300)).await;
        let names = ["a", "b"].map(|name| format!("{name}{attempt}"));
        for name in &names {
            fleet.start(name, SOON);
        }
        fleet.ready(&[&names[0], &names[1]]).await;
        // On a machine that stood still, a fourth one may have been missed or not.
        if until(newest * 1_000 + 3_800) > Duration::ZERO {
            return (last, newest);
        }
        each_ran(fleet, policies).await;
        fleet.stop_all().await;
        assert!(attempt < 6, "replicas do not start within seconds");
    }
    unreachable!("it returns or fails before")
}

/// How long it is until then, which is in milliseconds since the epoch; nothing if it has been.
fn until(millis: i64) -> Duration {
    #[expect(
        clippy::disallowed_methods,
        reason = "ticks are instants of the wall clock"
    )]
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let then = Duration::from_millis(millis.unsigned_abs());
    then.saturating_sub(since.unwrap_or_default())
}
