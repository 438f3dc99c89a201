//! Ticks that come while a run goes on in another process, and runs that take too long.
#![cfg(unix)]

use std::time::Duration;

use redlock_tests::{Connect, Fleet, Job, JobLog, JobRun, Nodes, OverlapPolicy, Policies, now};

const REPLICA: &str = env!("CARGO_BIN_EXE_redlock-test-client");
const TTL: Duration = Duration::from_millis(1_500);
const SECOND: Duration = Duration::from_secs(1);
const ENDLESS: Duration = Duration::from_secs(600);
const NAMES: [&str; 3] = ["a", "b", "c"];
/// How long the runs of a replica that is asked to end may go on.
const GRACE: Duration = Duration::from_secs(30);

/// Replicas that are ready, and what their wall clocks show at the beginning of the tests' time, in milliseconds.
async fn start(nodes: &Nodes, mut jobs: Vec<Job>, names: &[&str]) -> (Fleet, i64) {
    // So that each of them has a run now and then.
    jobs.iter_mut().for_each(|job| job.spread = Some(SECOND));
    let mut fleet = Fleet::new(REPLICA, Connect::to(nodes.urls(), TTL), jobs);
    for name in names {
        fleet.start(name, GRACE);
    }
    let walls = fleet.ready(names).await;
    (fleet, walls[0])
}

/// Waits until one replica has just begun a run of each of these jobs.
async fn busy(fleet: &Fleet, jobs: &[&str]) -> Vec<JobRun> {
    let busy = |log: &JobLog| {
        let newest = |job: &&str| log.runs(job).pop();
        let newest: Vec<JobRun> = jobs.iter().map(newest).collect::<Option<_>>()?;
        let is_one = |run: &JobRun| {
            (&run.replica, run.tick) == (&newest[0].replica, newest[0].tick)
                && now() < run.began + 3 * SECOND
        };
        newest.iter().all(is_one).then_some(newest)
    };
    fleet
        .until("one replica has begun a run of each", busy)
        .await
}

fn overlapping(overlap: OverlapPolicy, job: Job) -> Job {
    Job {
        policies: Policies {
            overlap,
            ..job.policies
        },
        ..job
    }
}

/// How a run takes it that it is told to stop, by name.
const LISTENERS: [(&str, Option<Duration>); 2] =
    [("polite", Some(Duration::from_millis(300))), ("deaf", None)];

fn listeners(every: Duration, policies: Policies) -> Vec<Job> {
    let job = |(name, stops_in)| Job {
        policies: Policies {
            stops_in,
            ..policies
        },
        ..Job::new(name, every, ENDLESS)
    };
    LISTENERS.into_iter().map(job).collect()
}

/// A run, and the one after it, on another replica, as they are known once a third has begun.
fn handed_over(log: &JobLog, job: &str) -> Option<(JobRun, JobRun)> {
    let runs = log.runs(job);
    let runs = runs.split_last().map_or(&[][..], |(_, before)| before);
    let mut pairs = runs.windows(2);
    let pair = pairs.find(|two| two[0].replica != two[1].replica);
    pair.map(|two| (two[0].clone(), two[1].clone()))
}

/// Waits for what is looked for, or until it will not come: so many runs of the job, or none for long.
async fn found<T: std::fmt::Debug>(
    fleet: &Fleet,
    job: &str,
    runs: usize,
    look: impl Fn(&JobLog) -> Option<T>,
) -> T {
    let look = |log: &JobLog| match look(log) {
        Some(found) => Some(Some(found)),
        None => {
            let seen = log.runs(job);
            let is_old = |run: &JobRun| now() > run.began + SILENCE;
            (seen.len() > runs || seen.last().is_some_and(is_old)).then_some(None)
        }
    };
    let found = fleet.until("runs on different replicas", look).await;
    found.unwrap_or_else(|| panic!("not in {runs} runs:\n{}", fleet.log.table(job)))
}

/// For much longer there is no tick without a run, on any machine.
const SILENCE: Duration = Duration::from_secs(40);

/// Checks how a run ended that was told to stop: by itself, or dropped a second later.
fn assert_stopped(job: &str, run: &JobRun) -> Duration {
    let told = run
        .told
        .unwrap_or_else(|| panic!("{job} was not told: {run:?}"));
    match job {
        "polite" => assert!(run.finished.is_some(), "it was not given the time: {run:?}"),
        _ => {
            let dropped = run.dropped.unwrap_or_else(|| panic!("it goes on: {run:?}"));
            assert!(
                dropped >= told + STOP_GRACE,
                "{:?} is no grace",
                dropped - told
            );
        }
    }
    run.finished.or(run.dropped).expect("one of them")
}

/// How long a run has at least once it is told, and has written that down: a second is meant.
const STOP_GRACE: Duration = Duration::from_millis(900);

/// A replica learns of the end of its own run first and would start the next tick too, so it is asked to end: its run
/// goes on, and the next tick is another's.
#[tokio::test]
async fn a_tick_that_cancels_others_ends_the_run_of_another_process_and_starts_after_it() {
    let nodes = Nodes::start(3);
    let policies = Policies {
        overlap: OverlapPolicy::CancelOther,
        ..Policies::default()
    };
    let jobs = listeners(SECOND * 8, policies);
    let (mut fleet, _) = start(&nodes, jobs, &["a"]).await;
    busy(&fleet, &["polite", "deaf"]).await;
    fleet.start("b", GRACE);
    fleet.ready(&["b"]).await;
    let runs = busy(&fleet, &["polite", "deaf"]).await;
    assert_eq!(fleet.stop(&runs[0].replica).await, 0, "they were cancelled");
    for ((job, _), run) in LISTENERS.into_iter().zip(runs) {
        let next = |log: &JobLog| {
            log.runs(job)
                .into_iter()
                .find(|next| next.token > run.token)
        };
        let next = fleet.until("the later tick starts", next).await;
        println!("{}", fleet.log.table(job));
        let run = fleet.log.latest(job, &run);
        assert_eq!(fleet.log.outcome(job, &run).as_deref(), Some("cancelled"));
        let ended = assert_stopped(job, &run);
        assert!(
            ended < next.began,
            "{next:?} began before the end of {run:?}"
        );
        assert!(next.tick > run.tick && next.replica != run.replica);
    }
    fleet.log.assert_once();
    for (job, _) in LISTENERS {
        fleet.log.assert_apart(job);
    }
}

#[tokio::test]
async fn a_tick_that_waits_starts_when_the_run_of_another_process_is_over() {
    let nodes = Nodes::start(3);
    let mut job = overlapping(
        OverlapPolicy::Wait,
        Job::new("waits", SECOND * 6, SECOND * 10),
    );
    job.policies.start_within = Some(SECOND * 8);
    let (mut fleet, wall) = start(&nodes, vec![job], &["a", "b"]).await;
    let run = fleet.next_run("waits", |_| true).await;
    assert_eq!(fleet.stop(&run.replica).await, 0, "it was given the time");
    let next = |log: &JobLog| {
        log.runs("waits")
            .into_iter()
            .find(|next| next.token > run.token)
    };
    let next = fleet.until("the later tick starts", next).await;
    println!("{}", fleet.log.table("waits"));
    let ended = fleet.log.latest("waits", &run).finished;
    let ended = ended.expect("it was given the time");
    assert!(ended < next.began, "{next:?} began in the run before it");
    let ended = wall + i64::try_from(ended.as_millis()).expect("it is not that far");
    // A tick that is to be skipped waits for less.
    assert!(
        1_000 * next.tick + 2_000 < ended,
        "{next:?} did not wait for {ended}"
    );
    fleet.log.assert_once();
    fleet.log.assert_apart("waits");
}

#[tokio::test]
async fn runs_that_may_overlap_go_on_side_by_side_in_different_processes_and_no_tick_twice() {
    let nodes = Nodes::start(3);
    let job = overlapping(
        OverlapPolicy::Allow,
        Job::new("allowed", SECOND * 2, SECOND * 5),
    );
    let (mut fleet, _) = start(&nodes, vec![job], &NAMES).await;
    // Three at once, on more than one replica.
    let three = |log: &JobLog| {
        let runs = log.runs("allowed");
        let together = |three: &&[JobRun]| {
            let first_end = three.iter().map(|run| run.finished).min().flatten();
            first_end.is_some_and(|end| three.iter().all(|run| run.began < end))
                && three.iter().any(|run| run.replica != three[0].replica)
        };
        runs.windows(3).find(together).map(<[JobRun]>::to_vec)
    };
    let three = found(&fleet, "allowed", 12, three).await;
    println!("{}", fleet.log.table("allowed"));
    println!(
        "at once: ticks {:?}",
        three.iter().map(|run| run.tick).collect::<Vec<_>>()
    );
    fleet.stop_all().await;
    fleet.log.assert_none_twice();
}

// Shows: R5.3.
#[tokio::test]
async fn up_to_two_runs_go_on_at_once_in_three_processes_and_no_tick_twice() {
    let nodes = Nodes::start(3);
    let job = overlapping(
        OverlapPolicy::UpTo(2),
        Job::new("bounded", SECOND * 2, SECOND * 7),
    );
    let (mut fleet, _) = start(&nodes, vec![job], &NAMES).await;
    // A place that was left is taken again.
    let six = |log: &JobLog| {
        let runs = log.runs("bounded");
        (runs.len() >= 6).then_some(runs)
    };
    let runs = found(&fleet, "bounded", 30, six).await;
    fleet.stop_all().await;
    println!("{}", fleet.log.table("bounded"));
    let at_once = |run: &JobRun| {
        let goes_on = |other: &&JobRun| {
            let end = other.finished.or(other.dropped).unwrap_or(Duration::MAX);
            other.began <= run.began && run.began < end
        };
        runs.iter().filter(goes_on).count()
    };
    let most = runs.iter().map(at_once).max();
    assert_eq!(most, Some(2), "{runs:?}");
    fleet.log.assert_none_twice();
}

#[tokio::test]
async fn a_run_that_takes_too_long_ends_and_the_next_tick_starts_elsewhere_after_it() {
    let nodes = Nodes::start(3);
    let limit = SECOND * 2;
    let policies = Policies {
        max_runtime: Some(limit),
        ..Policies::default()
    };
    let (mut fleet, _) = start(&nodes, listeners(SECOND * 5, policies), &NAMES).await;
    for (job, _) in LISTENERS {
        let look = |log: &JobLog| handed_over(log, job);
        let (run, next) = found(&fleet, job, 10, look).await;
        println!("{}", fleet.log.table(job));
        assert_eq!(fleet.log.outcome(job, &run).as_deref(), Some("timed_out"));
        let ended = assert_stopped(job, &run);
        let told = run.told.expect("it was told") - run.began;
        assert!(told + SECOND / 10 > limit, "it had {told:?} of {limit:?}");
        assert!(
            ended < next.began,
            "{next:?} began before the end of {run:?}"
        );
    }
    fleet.stop_all().await;
    fleet.log.assert_once();
    for (job, _) in LISTENERS {
        fleet.log.assert_apart(job);
    }
}
