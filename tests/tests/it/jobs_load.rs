//! A thousand jobs that are due in one second, on three replicas.
#![cfg(unix)]

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, SystemTime},
};

use redlock_core::{ClaimOptions, ClaimOutcome, Redlock, Tick, Wait};
use redlock_tests::{Connect, Fleet, Job, JobLog, JobMoment, Nodes, now};

const REPLICA: &str = env!("CARGO_BIN_EXE_redlock-test-client");
const JOBS: usize = 1_000;
const EVERY: i64 = 15;
const INTERVAL: Duration = Duration::from_secs(EVERY.unsigned_abs());

/// When the runs of each tick began.
fn beginnings(log: &JobLog) -> BTreeMap<i64, Vec<Duration>> {
    let mut beginnings = BTreeMap::<_, Vec<_>>::new();
    for event in log.events() {
        if let JobMoment::Began { .. } = event.moment {
            beginnings.entry(event.tick).or_default().push(event.at);
        }
    }
    beginnings
}

/// The ticks that all jobs have run.
fn whole(log: &JobLog) -> Vec<i64> {
    let beginnings = beginnings(log).into_iter();
    let whole = beginnings.filter(|(_, at)| at.len() == JOBS);
    whole.map(|(tick, _)| tick).collect()
}

/// Checks that each job ran at each tick from one instant to a tick, or that a replica says why not: that it was
/// overlapped is no reason, for no run takes any time.
fn assert_none_lost(log: &JobLog, oldest: i64, newest: i64) {
    let mut told = BTreeSet::new();
    let mut jobs = BTreeSet::new();
    for event in log.events() {
        let is_told = match &event.moment {
            JobMoment::Began { .. } => true,
            JobMoment::Became { outcome, .. } => {
                !["not_winner", "overlapping"].contains(&&**outcome)
            }
            _ => false,
        };
        if is_told {
            jobs.insert(event.job.clone());
            told.insert((event.job, event.tick));
        }
    }
    assert_eq!(jobs.len(), JOBS);
    for tick in (oldest..=newest).filter(|second| second % EVERY == 0) {
        let lost = jobs
            .iter()
            .filter(|job| !told.contains(&((*job).clone(), tick)));
        let lost: Vec<_> = lost.collect();
        assert!(lost.is_empty(), "{tick}: {lost:?}");
    }
}

/// What replicas said instead of starting jobs, and how often, by tick; of ticks that began elsewhere, nothing.
fn why_not(log: &JobLog) -> BTreeMap<i64, BTreeMap<String, usize>> {
    let mut began = BTreeSet::new();
    let mut told = BTreeMap::<_, BTreeSet<_>>::new();
    for event in log.events() {
        match event.moment {
            JobMoment::Began { .. } => drop(began.insert((event.job, event.tick))),
            JobMoment::Became { outcome, .. } => {
                let of_job = told.entry((event.job, event.tick)).or_default();
                of_job.insert(format!("{outcome} on {}", event.replica));
            }
            _ => {}
        }
    }
    let mut why = BTreeMap::<_, BTreeMap<_, _>>::new();
    for ((job, tick), told) in told {
        if !began.contains(&(job, tick)) {
            let told = told.into_iter().collect::<Vec<_>>().join(", ");
            *why.entry(tick).or_default().entry(told).or_insert(0) += 1;
        }
    }
    why
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).expect("it is not that far")
}

/// From the first run's beginning to the last one's, of each tick that all jobs have run.
fn spans(log: &JobLog) -> Vec<Duration> {
    let whole = beginnings(log).into_values();
    let whole = whole.filter(|at| at.len() == JOBS);
    let span = |at: Vec<Duration>| Some(*at.last()? - *at.first()?);
    whole.filter_map(span).collect()
}

#[tokio::test]
async fn all_of_a_thousand_jobs_that_are_due_in_one_second_run_once_and_together() {
    let nodes = Nodes::start(3);
    let connect = Connect::to(nodes.urls(), Duration::from_secs(10));
    let jobs = Job {
        count: JOBS,
        ..Job::new("job", INTERVAL, Duration::ZERO)
    };
    let mut fleet = Fleet::new(REPLICA, connect.clone(), vec![jobs]);
    let names = ["a", "b", "c"];
    for name in names {
        fleet.start(name, Duration::from_secs(10));
    }
    let walls = fleet.ready(&names).await;
    let ready = walls[0] + millis(now());
    let redlock = connect.client().await;
    let mut seen = Vec::new();
    // What else the machine does makes a tick worse and never better.
    while seen.len() < TICKS && !seen.iter().any(|(span, bare)| is_together(*span, *bare)) {
        let next = |log: &JobLog| spans(log).get(seen.len()).copied();
        let span = fleet.until("all jobs run at a tick", next).await;
        seen.push((span, bare(&redlock, seen.len()).await));
    }
    redlock.close().await;
    let newest = whole(&fleet.log).into_iter().max().expect("it was seen");
    fleet.stop_all().await;
    let runs = fleet.log.assert_once();
    let oldest = ready / 1_000 + 1;
    assert_none_lost(&fleet.log, oldest, newest);
    for (tick, told) in why_not(&fleet.log) {
        println!("{tick} was not started because: {told:?}");
    }
    let of_ticks = beginnings(&fleet.log).into_iter();
    let of_ticks: Vec<_> = of_ticks.map(|(tick, at)| (tick, at.len())).collect();
    println!(
        "{JOBS} jobs began within, and one client claimed as many in: {seen:?}; {runs} runs in all, of which by tick: {of_ticks:?}, all replicas from {oldest} on"
    );
    assert!(
        seen.iter().any(|(span, bare)| is_together(*span, *bare)),
        "{seen:?}"
    );
}

/// Whether the runs began within a second, or on a slow machine within a few times what the claims alone take.
fn is_together(span: Duration, bare: Duration) -> bool {
    span < Duration::from_secs(1).max(TIMES * bare)
}

/// How long it takes one client to claim as many ticks of other jobs at once.
async fn bare(redlock: &Redlock, round: usize) -> Duration {
    #[expect(
        clippy::disallowed_methods,
        reason = "masters judge ticks by the wall clock"
    )]
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let millis = since.map(|since| u64::try_from(since.as_millis()));
    let tick = millis.ok().and_then(Result::ok).and_then(Tick::from_millis);
    let tick = tick.expect("it is after 1970");
    let began = now();
    let claims = (0..JOBS).map(|job| async move {
        let options = ClaimOptions::new("bare").wait(Wait::UpTo(PATIENCE));
        let claim = redlock.claim(format!("bare-{round}-{job}"), tick, options);
        let claim = claim.await.ok().and_then(ClaimOutcome::won);
        let claim = claim.expect("nobody else wants it");
        (now(), claim)
    });
    let claims = futures_util::future::join_all(claims).await;
    let last = claims.iter().map(|(at, _)| *at).max();
    for (_, claim) in claims {
        drop(claim);
    }
    last.unwrap_or(began) - began
}

const PATIENCE: Duration = Duration::from_secs(10);

/// Three replicas want each of them, wake up half a second apart at most, and all of it is on one machine.
const TIMES: u32 = 8;

/// It is looked at so many at most.
const TICKS: usize = 4;
