//! What a person does to a job from one process, and what replicas in others make of it.
#![cfg(unix)]

use std::time::Duration;

use futures_util::future::join_all;
use redlock_core::NodeAnswer;
use redlock_cron::{JobStatus, Outcome, PastRun, SingletonScheduler, Trigger, request_run};
use redlock_tests::{Connect, Fleet, Job, JobLog, JobRun, Nodes, OverlapPolicy, Policies, now};

const REPLICA: &str = env!("CARGO_BIN_EXE_redlock-test-client");
const TTL: Duration = Duration::from_millis(1_500);
const SECOND: Duration = Duration::from_secs(1);
const JOB: &str = "job";

/// Replicas that are ready, and what their wall clocks show at the beginning of the tests' time, in milliseconds.
async fn start(nodes: &Nodes, job: Job, names: &[&str]) -> (Fleet, i64) {
    let mut fleet = Fleet::new(REPLICA, Connect::to(nodes.urls(), TTL), vec![job]);
    for name in names {
        fleet.start(name, Duration::ZERO);
    }
    let walls = fleet.ready(names).await;
    (fleet, walls[0])
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).expect("it is not that far")
}

/// How often replicas said that a tick came in a pause.
fn paused(log: &JobLog, wanted: impl Fn(i64, &str) -> bool) -> usize {
    let outcomes = log.outcomes(JOB).into_iter();
    let is_it = |(tick, replica, outcome): &(i64, String, String)| {
        outcome == "paused" && wanted(*tick, replica)
    };
    outcomes.filter(is_it).count()
}

#[tokio::test]
async fn a_pause_keeps_the_replicas_of_all_processes_from_starting_until_another_one_ends_it() {
    let nodes = Nodes::start(3);
    let names = ["a", "b", "c"];
    let job = Job {
        // So that each of them has a tick now and then.
        spread: Some(SECOND),
        ..Job::new(JOB, SECOND, SECOND / 100)
    };
    let (mut fleet, wall) = start(&nodes, job, &names).await;
    let (one, other) = (fleet.scheduler("one").await, fleet.scheduler("other").await);
    fleet.next_run(JOB, |_| true).await;

    one.pause(JOB).await.expect("a majority confirms it");
    let pause = wall + millis(now());
    let told = |log: &JobLog| {
        let told = |name: &&str| paused(log, |_, replica| replica == *name) > 0;
        let is_late = |run: &JobRun| 1_000 * run.tick > pause;
        let ran = log.runs(JOB).iter().any(is_late);
        (ran || names.iter().all(told)).then_some(())
    };
    fleet
        .until("each replica says that it is paused", told)
        .await;
    let status = other.status(JOB).await.expect("it has the job");
    assert_eq!(status.is_paused(), Some(true));
    let resumed = now();
    other.resume(JOB).await.expect("a majority confirms it");
    let status = one.status(JOB).await.expect("it has the job");
    assert_eq!(status.is_paused(), Some(false));
    let later = fleet.next_run(JOB, |_| true).await;
    fleet.stop_all().await;

    println!("{}", fleet.log.table(JOB));
    let in_pause = (pause / 1_000 + 1)..(wall + millis(resumed)) / 1_000;
    println!(
        "paused for the ticks {in_pause:?}, and the next run was of {}",
        later.tick
    );
    for run in fleet.log.runs(JOB) {
        let is_after = run.began > resumed;
        assert!(
            1_000 * run.tick <= pause || is_after,
            "{run:?} began in the pause"
        );
    }
    for tick in in_pause {
        let told = paused(&fleet.log, |of, _| of == tick);
        assert!(told <= 1, "{told} replicas have claimed {tick}");
    }
    fleet.log.assert_once();
}

#[tokio::test]
async fn a_run_that_a_process_asks_for_is_once_and_there_and_costs_no_tick() {
    let nodes = Nodes::start(3);
    let every = 6;
    let job = Job::new(JOB, SECOND * 6, SECOND * 5 / 2);
    let (mut fleet, wall) = start(&nodes, job, &["a", "b"]).await;
    let (one, other) = (fleet.scheduler("one").await, fleet.scheduler("other").await);

    let first = fleet.next_run(JOB, |_| true).await;
    let report = one.trigger_now(JOB).await.expect("it has the job");
    assert_eq!(report.outcome(), Outcome::Overlapping, "{report:?}");
    let over = |log: &JobLog| log.latest(JOB, &first).finished;
    fleet.until("the run is over", over).await;
    let (asked, refused) = {
        let (a, b) = tokio::join!(one.trigger_now(JOB), other.trigger_now(JOB));
        let (a, b) = (a.expect("it has the job"), b.expect("it has the job"));
        if a.outcome() == Outcome::Ok {
            (a, b)
        } else {
            (b, a)
        }
    };
    assert_eq!(
        (asked.outcome(), asked.trigger()),
        (Outcome::Ok, Trigger::Manual)
    );
    assert_eq!(refused.outcome(), Outcome::Overlapping, "{refused:?}");
    let next = fleet.next_run(JOB, |run| run.trigger == "Schedule").await;
    fleet.stop_all().await;

    println!("{}", fleet.log.table(JOB));
    let runs = fleet.log.runs(JOB);
    let by_hand: Vec<&JobRun> = runs.iter().filter(|run| run.trigger == "Manual").collect();
    let [by_hand] = by_hand[..] else {
        panic!("it was asked for once and ran {by_hand:?}")
    };
    assert!(["one", "other"].contains(&&*by_hand.replica), "{by_hand:?}");
    assert!(first.token < by_hand.token && by_hand.token < next.token);
    let ended = wall + millis(by_hand.finished.expect("it was reported"));
    assert!(
        next.tick == first.tick + every || ended > 1_000 * (first.tick + every),
        "{next:?} is not of the tick after {first:?}"
    );
    fleet.log.assert_once();
    fleet.log.assert_apart(JOB);
}

/// Asks a process for the job's status until it is as wanted.
async fn asked(
    of: &SingletonScheduler,
    what: &str,
    wanted: impl Fn(&JobStatus) -> bool,
) -> JobStatus {
    let until = now() + 60 * SECOND;
    loop {
        let status = of.status(JOB).await.expect("it has the job");
        if wanted(&status) {
            return status;
        }
        assert!(now() < until, "{what}: not in {status:#?}");
        tokio::time::sleep(SECOND / 20).await;
    }
}

fn past<'a>(status: &'a JobStatus, run: &JobRun) -> Option<&'a PastRun> {
    let mut runs = status.runs().iter();
    runs.find(|past| past.tick().timestamp() == run.tick)
}

/// Looks at a run from its beginning to its end: through a process that starts nothing, and one that wakes up for the
/// tick that the run is in the way of; returns what they said.
async fn assert_told(
    fleet: &Fleet,
    asker: &SingletonScheduler,
    watcher: &str,
    wall: i64,
) -> String {
    let watcher = fleet.scheduler(watcher).await;
    let run = fleet.next_run(JOB, |_| true).await;
    watcher.start().await.expect("it starts");

    let before = wall + millis(now());
    let during = asked(asker, "a run", |status| status.last_run().is_some()).await;
    let after = wall + millis(now());
    let running = during.running().expect("it goes on");
    assert_eq!(running.tick().timestamp(), run.tick);
    assert_eq!(running.replica(), run.replica);
    assert_eq!(running.fencing_token().get(), run.token);
    assert_eq!((running.attempt(), running.is_manual()), (1, false));
    assert_eq!(during.last_run().map(PastRun::tick), Some(running.tick()));
    assert_eq!(during.watermark(), Some(running.tick()));
    let free_in = during.free_in().expect("a majority answers");
    assert!(!free_in.is_zero() && free_in <= TTL, "{free_in:?}");
    assert_eq!(during.is_paused(), Some(false));
    let next = during.next_tick().expect("there is always one");
    let next = next.timestamp_millis();
    assert_eq!(next % EVERY_MS, 0);
    assert!(before < next && next <= after + EVERY_MS, "{next}");
    assert!(during.skipped().is_empty(), "it wakes up for nothing");

    let skipped = |status: &JobStatus| {
        let skipped = status.skipped().iter();
        let mut skipped = skipped.filter(|report| report.outcome() == Outcome::Overlapping);
        skipped.any(|report| report.tick().timestamp_millis() == 1_000 * run.tick + EVERY_MS)
    };
    asked(&watcher, "a tick that was skipped", skipped).await;
    let _ = watcher.shutdown(Duration::ZERO).await;

    let over = |status: &JobStatus| past(status, &run).is_some_and(|past| past.outcome().is_some());
    let over = asked(asker, "the end of the run", over).await;
    let ended = past(&over, &run).expect("it was looked for");
    assert_eq!(
        (ended.outcome(), ended.replica()),
        (Some("ok"), &*run.replica)
    );
    assert!(ended.took() >= Some(WORK), "{ended:?}");
    let success = over.last_success().expect("it was one");
    assert!(success.tick() >= ended.tick());
    // Unless the next has begun.
    if over.last_run().map(PastRun::tick) == Some(ended.tick()) {
        assert!(over.running().is_none(), "{over:?}");
    }
    format!("at first {during:#?}\nat last {over:#?}")
}

/// Which masters have said what they remember.
fn answering(status: &JobStatus) -> Vec<bool> {
    let reports = status.nodes().iter();
    let answers = reports.map(|report| report.answer == NodeAnswer::Reachable);
    answers.collect()
}

const EVERY_MS: i64 = 5_000;
const WORK: Duration = Duration::from_millis(7_500);

#[tokio::test]
async fn another_process_says_who_has_the_job_how_it_ended_and_what_was_skipped_a_master_down_or_not()
 {
    let mut nodes = Nodes::start(3);
    let job = Job::new(JOB, SECOND * 5, WORK);
    let (mut fleet, wall) = start(&nodes, job, &["a", "b"]).await;
    let asker = fleet.scheduler("asker").await;
    let up = assert_told(&fleet, &asker, "watcher", wall).await;
    let all = |status: &JobStatus| answering(status) == [true; 3];
    asked(&asker, "an answer of all masters", all).await;

    nodes.kill(0..1);
    let down = assert_told(&fleet, &asker, "other-watcher", wall).await;
    let two = |status: &JobStatus| answering(status) == [false, true, true];
    asked(&asker, "an answer of the two that are left", two).await;
    fleet.stop_all().await;

    println!("all masters: {up}\none is down: {down}");
    println!("{}", fleet.log.table(JOB));
    fleet.log.assert_once();
    fleet.log.assert_apart(JOB);
}

/// Names the jobs as [`Job`] does.
fn numbered(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{JOB}-{number}")).collect()
}

/// All ring one bell, and each of these replicas comes to them in an order of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_are_made_at_once_are_all_confirmed_and_all_run() {
    let nodes = Nodes::start(3);
    let waits = Policies {
        overlap: OverlapPolicy::Wait,
        start_within: Some(60 * SECOND),
        ..Policies::default()
    };
    let jobs = Job {
        count: 24,
        policies: waits,
        // No tick is due.
        ..Job::new(JOB, 30_000_000 * SECOND, SECOND / 5)
    };
    let (mut fleet, _) = start(&nodes, jobs, &["a", "b", "c"]).await;
    let client = Connect::to(nodes.urls(), TTL).client().await;
    // One for each job, and seven more for the first.
    let mut names = numbered(24);
    names.extend(vec![names[0].clone(); 7]);
    let asked = names.iter().map(|name| request_run(&client, "tests", name));
    let asked = join_all(asked).await;
    let moments: Result<Vec<_>, _> = asked.into_iter().collect();
    let moments = moments.expect("a majority confirms each");
    let all_run = |log: &JobLog| {
        let runs: Vec<_> = numbered(24)
            .iter()
            .flat_map(|name| log.runs(name))
            .collect();
        (runs.len() == names.len()).then_some(())
    };
    fleet.until("a run for each request", all_run).await;
    client.close().await;
    fleet.stop_all().await;
    let of_first = fleet.log.runs(&names[0]);
    assert!(of_first.is_sorted_by_key(|run| run.tick), "{of_first:?}");
    println!(
        "{} requests, {} of them for one job",
        moments.len(),
        of_first.len()
    );
    assert_eq!(of_first.len(), 8);
    fleet.log.assert_apart(&names[0]);
}
