//! Jobs that start a tick again, on replicas in processes of their own: after a kill, a pause, a shutdown.
#![cfg(unix)]

use std::time::Duration;

use redlock_tests::{Connect, Fleet, Job, JobLog, JobRun, Nodes, Policies, now};

const REPLICA: &str = env!("CARGO_BIN_EXE_redlock-test-client");
const SECOND: Duration = Duration::from_secs(1);
const TTL: Duration = Duration::from_millis(1_500);
const JOB: &str = "again";

/// A job that starts a tick again, about as long as the next one is not due.
fn job(every: Duration, work: Duration) -> Job {
    Job {
        policies: Policies {
            max_attempts: Some(2),
            start_within: Some(every / 3),
            max_runtime: Some(work + SECOND),
            ..Policies::default()
        },
        ..Job::new(JOB, every, work)
    }
}

/// Replicas of it that are ready, and what their wall clocks show at the beginning of [`now`]'s time, in milliseconds.
async fn start(nodes: &Nodes, ttl: Duration, job: &Job, names: &[&str]) -> (Fleet, i64) {
    let connect = Connect::to(nodes.urls(), ttl);
    let mut fleet = Fleet::new(REPLICA, connect, vec![job.clone()]);
    for name in names {
        fleet.start(name, Duration::ZERO);
    }
    let walls = fleet.ready(names).await;
    (fleet, walls[0])
}

/// Waits for the second run of a tick, and checks that it came as a second run may.
async fn again(fleet: &Fleet, within: Duration, first: &JobRun, wall: i64) -> JobRun {
    let later = |log: &JobLog| {
        let mut later = log.runs(JOB).into_iter();
        later.find(|run| run.token > first.token)
    };
    let second = fleet.until("the tick is started again", later).await;
    assert_eq!((second.tick, second.attempt), (first.tick, 2));
    assert_eq!(second.trigger, "Retry");
    assert_ne!(second.replica, first.replica);
    let late = wall + millis(second.began) - 1_000 * first.tick;
    assert!(
        late < millis(within) + STARTS,
        "attempt 2 began {late} ms after its tick"
    );
    second
}

/// Returns for how long after a tick the job starts it again.
fn retry_within(job: &Job, ttl: Duration) -> Duration {
    let policies = &job.policies;
    let further = policies.max_attempts.expect("it has several") - 1;
    let each = policies.max_runtime.expect("it has a limit") + ttl;
    policies.start_within.expect("it has a limit") + each * further
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).expect("it is not that far")
}

/// How long it may take from a claim, which is made in time, to the first line of its run, in milliseconds.
const STARTS: i64 = 1_000;

/// Waits until a replica has said what became of a tick.
async fn became(fleet: &Fleet, tick: i64, replica: &str) -> String {
    let became = |log: &JobLog| {
        let mut outcomes = log.outcomes(JOB).into_iter();
        let here = |(of, at, _): &(i64, String, String)| *of == tick && at == replica;
        outcomes.find(here).map(|(_, _, outcome)| outcome)
    };
    fleet
        .until("it is said what became of a tick", became)
        .await
}

fn runs_of(log: &JobLog, tick: i64) -> usize {
    let runs = log.runs(JOB).into_iter();
    runs.filter(|run| run.tick == tick).count()
}

fn others<'a>(names: &[&'a str], not: &[&JobRun]) -> Vec<&'a str> {
    let is_other = |name: &&&str| not.iter().all(|run| run.replica != **name);
    names.iter().filter(is_other).copied().collect()
}

#[tokio::test]
async fn a_tick_whose_replica_is_killed_starts_once_more_elsewhere_and_no_more_often_than_it_may() {
    let nodes = Nodes::start(3);
    let names = ["a", "b", "c", "d"];
    let job = job(SECOND * 8, SECOND * 2);
    let (mut fleet, wall) = start(&nodes, TTL, &job, &names).await;

    let first = fleet.next_run(JOB, |_| true).await;
    fleet.kill(&first.replica);
    let second = again(&fleet, retry_within(&job, TTL), &first, wall).await;
    let left = others(&names, &[&first]);
    for name in &left {
        let expected = if *name == second.replica {
            "ok"
        } else {
            "not_winner"
        };
        assert_eq!(became(&fleet, first.tick, name).await, expected, "{name}");
    }

    let next = fleet.next_run(JOB, |run| run.attempt == 1).await;
    fleet.kill(&next.replica);
    let last = again(&fleet, retry_within(&job, TTL), &next, wall).await;
    fleet.kill(&last.replica);
    let [survivor] = others(&left, &[&next, &last])[..] else {
        panic!("two of {left:?} were killed")
    };
    // It has waited for the end of the second run.
    assert_eq!(became(&fleet, next.tick, survivor).await, "given_up");
    let later = fleet.next_run(JOB, |_| true).await;
    assert_eq!((later.attempt, &*later.replica), (1, survivor));
    assert!(later.tick > next.tick, "a third run of the tick: {later:?}");
    assert_eq!(became(&fleet, later.tick, survivor).await, "ok");

    println!("{}", fleet.log.table(JOB));
    for tick in [first.tick, next.tick] {
        assert_eq!(runs_of(&fleet.log, tick), 2);
    }
    fleet.log.assert_once();
    fleet.log.assert_apart(JOB);
}

#[tokio::test]
async fn a_run_that_is_paused_beyond_its_lease_does_nothing_beside_the_one_that_takes_its_place() {
    let nodes = Nodes::start(3);
    let mut job = job(SECOND * 8, SECOND * 4);
    job.policies.max_attempts = Some(3);
    let (mut fleet, wall) = start(&nodes, TTL, &job, &["a", "b"]).await;

    let first = fleet.next_run(JOB, |_| true).await;
    fleet.replica(&first.replica).freeze();
    let second = again(&fleet, retry_within(&job, TTL), &first, wall).await;
    let thawed = now();
    fleet.replica(&first.replica).thaw();
    let over = |log: &JobLog| log.latest(JOB, &first).worked;
    let worked = fleet.until("the paused run is over", over).await;
    println!("{}", fleet.log.table(JOB));
    assert!(
        worked < second.began,
        "it went on for {:?} beside {second:?}",
        worked - second.began
    );
    assert!(fleet.log.latest(JOB, &first).dropped > Some(thawed));
    assert_eq!(became(&fleet, first.tick, &first.replica).await, "lost");
    assert_eq!(became(&fleet, first.tick, &second.replica).await, "ok");
    // The thawed replica does not want a third one.
    assert_eq!(runs_of(&fleet.log, first.tick), 2);
    fleet.log.assert_once();
    fleet.log.assert_apart(JOB);
    fleet.stop_all().await;
}

#[tokio::test]
async fn a_run_that_a_shutdown_cuts_short_is_started_again_long_before_its_lease_would_end() {
    let nodes = Nodes::start(3);
    // Without a release, no replica gets the job's lock within the tick's time.
    let ttl = SECOND * 30;
    let job = job(SECOND * 12, SECOND * 2);
    let (mut fleet, wall) = start(&nodes, ttl, &job, &["a", "b"]).await;

    let first = fleet.next_run(JOB, |_| true).await;
    let asked = now();
    assert_eq!(
        fleet.stop(&first.replica).await,
        1,
        "its run was unfinished"
    );
    let second = again(&fleet, retry_within(&job, ttl), &first, wall).await;
    assert_eq!(became(&fleet, first.tick, &second.replica).await, "ok");

    println!("{}", fleet.log.table(JOB));
    println!(
        "asked to end {:?} after its run began; attempt 2 began {:?} later, of a time to live of {ttl:?}",
        asked - first.began,
        second.began - asked
    );
    let aborted = fleet.log.latest(JOB, &first);
    assert_eq!(fleet.log.outcome(JOB, &aborted).as_deref(), Some("aborted"));
    let dropped = aborted.dropped.expect("it was dropped");
    assert!(dropped < second.began && second.began < asked + ttl / 4);
    assert_eq!(runs_of(&fleet.log, first.tick), 2);
    fleet.log.assert_once();
    fleet.stop_all().await;
}
