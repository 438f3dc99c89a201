//! Replicas in processes of their own live through the days on which the clocks of their zones change.
//!
//! The clocks of all servers and replicas are stepped to a moment before each instant of a table, and run through it.
//! The tables were written by hand, from the rules of the zones: nothing in them is computed as the adapter does it.
#![cfg(target_os = "linux")]
#![expect(clippy::print_stdout, reason = "helpers of tests")]

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use redlock_cron::chrono::{DateTime, TimeDelta};
use redlock_tests::{Job, JobEvent, JobLog, JobMoment, TimeMachine, now};
use tokio::time::sleep;

use crate::clock_changes::{BERLIN, Expected, LORD_HOWE, NEW_YORK, PULSE, SAO_PAULO, Stop, Table};

const REPLICA: &str = env!("CARGO_BIN_EXE_redlock-test-client");
const QUICK: Duration = Duration::from_millis(5);

/// To how long before each stop the clocks are set.
const LEAD: Duration = Duration::from_millis(1_500);
/// How long each replica may take then to say what became of the ticks.
const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(200);
/// How long after its claim a run may begin, on a busy machine.
const BEGINS: Duration = Duration::from_secs(1);

// Shows: T4.9.
#[tokio::test]
async fn what_is_due_at_both_changes_of_berlin_and_of_new_york_runs_once() {
    tokio::join!(live_through(&BERLIN, 1), live_through(&NEW_YORK, -1));
}

// Shows: T4.9.
#[tokio::test]
async fn what_is_due_at_both_changes_of_lord_howe_and_of_sao_paulo_runs_once() {
    tokio::join!(live_through(&LORD_HOWE, 1), live_through(&SAO_PAULO, -1));
}

/// Makes three masters live through the table with two replicas, of which one is so many seconds ahead, and after each
/// change with another one, which was started after it.
async fn live_through(table: &Table, skew: i64) {
    let zone = table.zone;
    let plans = table.jobs.iter();
    let mut jobs: Vec<Job> = plans
        .map(|plan| Job::cron(plan.name, plan.pattern, zone, QUICK))
        .collect();
    jobs.push(Job::new(PULSE, Duration::from_secs(15 * 60), QUICK));
    let stops = table.stops();
    let before = stops[0].tick - TimeDelta::hours(1);
    let mut machine = TimeMachine::start(REPLICA, jobs, before);
    machine.start_replica("right", TimeDelta::zero()).await;
    let skew = TimeDelta::seconds(skew);
    machine.start_replica("skewed", skew).await;
    let mut replicas = 2;
    for stop in &stops {
        if let Some(late) = stop.late {
            machine.start_replica(late, TimeDelta::zero()).await;
            replicas += 1;
        }
        machine.step_to(stop.tick - LEAD);
        sleep(LEAD).await;
        let said = heard(&machine.fleet.log, stop, replicas).await;
        println!("{zone}, {} = {}", stop.tick, stop.local);
        for (job, said) in said {
            println!("{zone}, {job}: {}", said.join(", "));
        }
    }
    machine.fleet.stop_all().await;
    let log = &machine.fleet.log;
    println!("{zone}: {} runs", log.assert_once());
    for expected in table.expected() {
        check(log, zone, &expected);
    }
}

/// What each replica said of each job that is due or that it took for due, as soon as all have said it.
async fn heard(log: &JobLog, stop: &Stop, replicas: usize) -> BTreeMap<String, Vec<String>> {
    let until = now() + PATIENCE;
    loop {
        let due = stop.jobs.iter().copied().chain([PULSE]);
        let mut said: BTreeMap<_, Vec<_>> = due.map(|job| (job.to_owned(), Vec::new())).collect();
        for event in log.events() {
            if let JobMoment::Became { outcome, .. } = event.moment
                && event.tick == stop.tick.timestamp()
            {
                let of_job = said.entry(event.job).or_default();
                of_job.push(format!("{outcome} on {}", event.replica));
            }
        }
        // What should not be has a little more time to be, and shows in the end.
        sleep(POLL).await;
        if said.values().all(|of_job| of_job.len() >= replicas) {
            return said;
        }
        assert!(
            now() < until,
            "{}, {replicas} replicas: {said:#?}",
            stop.tick
        );
    }
}

/// Checks that the job ran when it was due, once, and at no other time; that all other replicas came to these ticks when
/// they were claimed; and that the ticks which were jumped over are told to be missed, once.
fn check(log: &JobLog, zone: &str, expected: &Expected) {
    let job = expected.job;
    let instant = |tick| DateTime::from_timestamp(tick, 0).expect("it is in range");
    let runs = log.runs(job);
    let ran: Vec<_> = runs.iter().map(|run| instant(run.tick)).collect();
    let mut missed = Vec::new();
    let mut others = BTreeSet::new();
    let events = log.events().into_iter().filter(|event| event.job == job);
    for JobEvent {
        at,
        tick: seconds,
        moment,
        ..
    } in events
    {
        let JobMoment::Became { outcome, .. } = moment else {
            continue;
        };
        let tick = instant(seconds);
        match (outcome.as_str(), expected.runs.contains(&tick)) {
            ("missed", false) => missed.push(tick),
            // The newest that was jumped over is claimed all the same, and refused by the servers' clocks.
            ("ok" | "not_winner", true) | ("too_late", false) => {}
            // Or, where the claim of a slow replica comes after that of a later tick, because of the later one.
            ("not_winner", false)
                if (runs.iter()).any(|run| run.tick > seconds && run.began < at + BEGINS) => {}
            _ => drop(others.insert((tick, outcome))),
        }
    }
    missed.sort_unstable();
    let (runs, told) = (runs.len(), missed.len());
    println!("{zone}, {job}: {runs} runs, {told} missed, {others:?}");
    assert_eq!(ran, expected.runs, "{zone}, {job}");
    assert_eq!(missed, expected.missed, "{zone}, {job}");
    assert!(others.is_empty(), "{zone}, {job}: {others:?}");
}
