//! Tests as users of jobs write them: nights pass at once, and what ran in them can be seen.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use redlock_core::{MemoryNode, Redlock, VirtualProcess};
use redlock_cron::{
    BoxError, ControlErrorKind, Delivery, JobClock, Missed, Outcome, Run, SetupError,
    SetupErrorKind, SingletonJob, SingletonScheduler, Trigger,
};
use tokio::{join, time::sleep};

/// Three nodes and the clock that they and all replicas use.
struct World {
    clock: JobClock,
    nodes: Vec<MemoryNode>,
    /// The runs that were begun, and when.
    runs: Arc<Mutex<Vec<Begun>>>,
}

impl World {
    fn starting_at(begin: &str) -> Self {
        let clock = JobClock::starting_at(at(begin));
        Self {
            nodes: clock.nodes(3),
            clock,
            runs: Arc::default(),
        }
    }

    async fn client(&self) -> Redlock {
        let builder = Redlock::builder().nodes(self.nodes.iter().cloned());
        builder.virtual_time().build().await.unwrap()
    }

    fn scheduler_on(&self, redlock: Redlock, replica: &str) -> SingletonScheduler {
        let builder = SingletonScheduler::standalone(redlock).namespace("tests");
        let builder = builder.replica(replica).clock(&self.clock);
        builder.build().unwrap()
    }

    /// Returns a replica with these jobs, which has started.
    async fn replica(
        &self,
        name: &str,
        jobs: impl IntoIterator<Item = SingletonJob>,
    ) -> SingletonScheduler {
        let scheduler = self.scheduler_on(self.client().await, name);
        for job in jobs {
            scheduler.add(job).await.unwrap();
        }
        scheduler.start().await.unwrap();
        scheduler
    }

    /// Returns a job whose runs take `takes`, due at two o'clock in Berlin.
    fn nightly(&self, takes: Duration) -> SingletonJob {
        let (runs, clock) = (Arc::clone(&self.runs), self.clock.clone());
        SingletonJob::cron("nightly", "0 0 2 * * *", "Europe/Berlin", move |run| {
            runs.lock().unwrap().push((run, clock.now()));
            async move {
                sleep(takes).await;
                Ok::<(), BoxError>(())
            }
        })
    }

    fn days(&self) -> Vec<String> {
        let runs = self.runs.lock().unwrap();
        runs.iter()
            .map(|(run, _)| run.local_date().to_string())
            .collect()
    }
}

type Begun = (Run, DateTime<Utc>);

fn at(instant: &str) -> DateTime<Utc> {
    instant.parse().unwrap()
}

fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}

#[tokio::test(start_paused = true)]
async fn nights_pass_at_once_and_a_change_of_the_clocks_with_them() {
    let world = World::starting_at("2026-10-23T12:00:00Z");
    let jobs = world.replica("one", [world.nightly(minutes(10))]).await;
    for tick in [
        "2026-10-24T00:00:00Z",
        "2026-10-25T00:00:00Z",
        "2026-10-26T01:00:00Z",
    ] {
        let report = jobs.advance_to_next_tick("nightly").await.unwrap();
        assert_eq!((report.tick(), report.outcome()), (at(tick), Outcome::Ok));
        assert!(report.lag() <= Duration::from_millis(500), "{report:?}");
        // The run has ended, and its lease was given back.
        let since = world.clock.now() - at(tick);
        assert!((10..11).contains(&since.num_minutes()), "{since}");
        let last = jobs.status("nightly").await.unwrap();
        assert_eq!(last.last_run().unwrap().outcome(), Some("ok"));
        assert!(world.nodes.iter().all(|node| node.keys() == 0));
    }
    assert_eq!(world.days(), ["2026-10-24", "2026-10-25", "2026-10-26"]);
}

#[tokio::test(start_paused = true)]
async fn of_two_replicas_one_starts_each_tick_and_both_report() {
    let world = World::starting_at("2026-11-20T12:00:00Z");
    let one = world.replica("one", [world.nightly(minutes(1))]).await;
    let other = world.replica("other", [world.nightly(minutes(1))]).await;
    for night in 1..=3 {
        let (one, other) = join!(
            one.advance_to_next_tick("nightly"),
            other.advance_to_next_tick("nightly")
        );
        let mut outcomes = [one, other].map(|report| report.unwrap().outcome());
        outcomes.sort_by_key(|outcome| *outcome != Outcome::Ok);
        assert_eq!(outcomes, [Outcome::Ok, Outcome::NotWinner]);
        assert_eq!(world.runs.lock().unwrap().len(), night);
    }
}

/// Steps of a minute must not pass over what another replica is to do meanwhile.
#[tokio::test(start_paused = true)]
async fn everything_that_is_due_until_then_happens_in_time_on_all_replicas() {
    let world = World::starting_at("2026-11-20T23:00:10Z");
    let seen: Arc<Mutex<Vec<_>>> = Arc::default();
    let (told, clock) = (Arc::clone(&seen), world.clock.clone());
    let sweep = SingletonJob::every("sweep", minutes(5), move |run: Run| {
        let is_in_time = clock.now() - run.tick() < TimeDelta::seconds(1);
        told.lock().unwrap().push((run.tick(), is_in_time));
        async { Ok::<(), BoxError>(()) }
    });
    let _sweeper = world.replica("sweeper", [sweep]).await;
    let jobs = world.replica("one", [world.nightly(minutes(1))]).await;
    jobs.advance_to_next_tick("nightly").await.unwrap();
    let every_five = (1..=24).map(|index| {
        (
            at("2026-11-20T23:00:00Z") + TimeDelta::minutes(5 * index),
            true,
        )
    });
    assert_eq!(*seen.lock().unwrap(), every_five.collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_lease_of_the_test_is_held_over_the_night() {
    let world = World::starting_at("2026-11-21T00:30:00Z");
    let redlock = world.client().await;
    let guard = redlock.acquire("order:42").await.unwrap();
    let jobs = world.replica("one", [world.nightly(minutes(1))]).await;
    jobs.advance_to_next_tick("nightly").await.unwrap();
    assert!(guard.lease().is_held());
    guard.release().await.unwrap();
}

/// The process stands still in its run, as after a crash, and another starts the tick again.
#[tokio::test(start_paused = true)]
async fn what_a_crash_cuts_short_is_started_again_on_another_replica() {
    let world = World::starting_at("2026-11-20T22:00:00Z");
    let job = || {
        let job = world.nightly(minutes(10)).max_runtime(minutes(30));
        job.delivery(Delivery::AtLeastOnce { max_attempts: 2 })
    };
    let process = VirtualProcess::new();
    let builder = Redlock::builder().nodes(world.nodes.iter().cloned());
    let redlock = builder.virtual_process(&process).build().await.unwrap();
    let first = world.scheduler_on(redlock, "first");
    first.add(job()).await.unwrap();
    first.start().await.unwrap();
    world.clock.advance_to(at("2026-11-21T01:05:00Z")).await;
    assert_eq!(world.days(), ["2026-11-21"]);

    // Nothing that it would say in its end is heard any more.
    process.freeze();
    drop(first);
    let second = world.replica("second", [job()]).await;
    world.clock.advance_to(at("2026-11-21T01:20:00Z")).await;
    assert_eq!(world.days(), ["2026-11-21", "2026-11-21"]);
    let runs = world.runs.lock().unwrap().clone();
    let [(first, _), (again, begun)] = &*runs else {
        panic!("{runs:?}");
    };
    assert_eq!((first.attempt(), again.attempt()), (1, 2));
    assert!(again.fencing_token() > first.fencing_token());
    // The lease of the first was to end, and no step of the clock has put it off.
    assert!(
        *begun - at("2026-11-21T01:05:00Z") < TimeDelta::seconds(30),
        "{begun}"
    );
    let last = second.status("nightly").await.unwrap();
    assert_eq!(last.last_run().unwrap().replica(), "second");
    assert_eq!(last.last_run().unwrap().outcome(), Some("ok"));
}

#[tokio::test(start_paused = true)]
async fn days_in_which_no_replica_was_up_are_made_up_for() {
    let world = World::starting_at("2026-11-20T22:00:00Z");
    let all = || {
        let job = world.nightly(minutes(1)).missed(Missed::All { max: 9 });
        job.catch_up_window(minutes(60 * 24 * 9))
    };
    let jobs = world.replica("one", [all()]).await;
    jobs.advance_to_next_tick("nightly").await.unwrap();
    assert!(jobs.shutdown(Duration::ZERO).await.is_clean());
    drop(jobs);

    world.clock.advance_to(at("2026-11-24T12:00:00Z")).await;
    let jobs = world.replica("one", [all()]).await;
    let report = jobs.advance_to_next_tick("nightly").await.unwrap();
    assert_eq!(report.trigger(), Trigger::Schedule);
    let days = ["21", "22", "23", "24", "25"].map(|day| format!("2026-11-{day}"));
    assert_eq!(world.days(), days);
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_never_comes_is_an_error() {
    let world = World::starting_at("2026-11-20T22:00:00Z");
    let kind = async |jobs: &SingletonScheduler, name| {
        let error = jobs.advance_to_next_tick(name).await.unwrap_err();
        (error.kind(), error.to_string())
    };
    let jobs = world.scheduler_on(world.client().await, "one");
    assert_eq!(kind(&jobs, "nightly").await.0, ControlErrorKind::UnknownJob);
    let stuck = SingletonJob::cron("stuck", "0 0 23 20 11 * 2026", "UTC", |_| {
        std::future::pending::<Result<(), BoxError>>()
    });
    jobs.add(stuck).await.unwrap();
    let refused = async |why: &str| {
        let (kind, message) = kind(&jobs, "stuck").await;
        assert_eq!(kind, ControlErrorKind::NoTick);
        assert!(message.contains(why), "{message}");
    };
    refused("not started").await;
    jobs.start().await.unwrap();
    assert!(jobs.start().await.is_err());
    refused("not dealt with in six hours").await;
    refused("schedule has ended").await;
    let nightly = world.nightly(minutes(1));
    jobs.add(nightly).await.unwrap();
    let (end, report) = join!(kind(&jobs, "nightly"), jobs.shutdown(Duration::ZERO));
    assert_eq!(end.0, ControlErrorKind::NoTick);
    assert_eq!(report.unfinished().len(), 1);
}

/// A scheduler with a test's clock, over nodes that a fleet uses, would be refused by them because it is too early; one
/// with the machine's clock, in paused time, would not start anything.
#[tokio::test(start_paused = true)]
async fn the_clock_of_a_test_goes_with_a_client_in_virtual_time_only() {
    let refused = |built: Result<SingletonScheduler, SetupError>| {
        let error = built.unwrap_err();
        assert_eq!(
            (error.kind(), error.field()),
            (SetupErrorKind::Misuse, "clock")
        );
        error.to_string()
    };
    let world = World::starting_at("2026-11-20T22:00:00Z");
    let in_virtual_time = world.client().await;
    assert!(in_virtual_time.is_in_virtual_time());
    let builder = SingletonScheduler::standalone(in_virtual_time).namespace("tests");
    let message = refused(builder.build());
    assert!(message.contains("JobClock"), "{message}");

    tokio::time::resume();
    let in_real_time = Redlock::builder().in_memory_nodes(1).build().await.unwrap();
    assert!(!in_real_time.is_in_virtual_time());
    let builder = SingletonScheduler::standalone(in_real_time).namespace("tests");
    let message = refused(builder.clock(&world.clock).build());
    assert!(message.contains("virtual_time"), "{message}");
}

#[tokio::test]
#[should_panic(expected = "not frozen")]
async fn a_test_in_real_time_does_not_wait_for_the_night() {
    let world = World::starting_at("2026-11-20T22:00:00Z");
    world.clock.advance_to(at("2026-11-21T02:00:00Z")).await;
}

/// In a step, clients hear nothing of their nodes for a minute.
#[tokio::test(start_paused = true)]
async fn an_instant_is_come_to_with_nodes_that_can_be_asked() {
    let world = World::starting_at("2026-11-20T22:00:00Z");
    let redlock = world.client().await;
    for seconds in [59, 60, 61, 3_600, 86_400] {
        let instant = world.clock.now() + TimeDelta::seconds(seconds);
        world.clock.advance_to(instant).await;
        assert!(world.clock.now() - instant < TimeDelta::milliseconds(2));
        assert!(redlock.is_ready().await, "after {seconds} s");
    }
}

/// Nuuk goes forward at 23:00 on 28 March 2026, so that 23:30 does not exist, and the first instant after it is midnight.
#[tokio::test(start_paused = true)]
async fn the_run_of_a_time_that_a_gap_moves_past_midnight_keeps_its_day() {
    let world = World::starting_at("2026-03-28T00:00:00Z");
    let runs = Arc::clone(&world.runs);
    let clock = world.clock.clone();
    let job = SingletonJob::cron("job", "0 30 23 * * *", "America/Nuuk", move |run| {
        runs.lock().unwrap().push((run, clock.now()));
        async { Ok::<_, BoxError>(()) }
    });
    let jobs = world.replica("pod-1", [job]).await;
    world.clock.advance_to(at("2026-03-31T00:00:00Z")).await;
    assert!(jobs.shutdown(Duration::from_secs(1)).await.is_clean());
    let runs = world.runs.lock().unwrap();
    let days = runs.iter().map(|(run, _)| {
        let local = run.local_tick().to_rfc3339();
        (run.local_date().to_string(), local)
    });
    let expected = [
        ("2026-03-27", "2026-03-27T23:30:00-02:00"),
        ("2026-03-28", "2026-03-29T00:00:00-01:00"),
        ("2026-03-29", "2026-03-29T23:30:00-01:00"),
    ];
    let expected = expected.map(|(day, local)| (day.to_owned(), local.to_owned()));
    assert_eq!(days.collect::<Vec<_>>(), expected);
}

/// Three replicas catch up, so that the claims of some find the lock of another.
#[tokio::test(start_paused = true)]
async fn no_missed_day_is_lost_because_one_of_five_nodes_lost_its_data() {
    for takes in [1, 60].map(Duration::from_secs) {
        let mut world = World::starting_at("2026-11-20T18:00:00Z");
        world.nodes = world.clock.nodes(5);
        let job = || {
            let job = world.nightly(takes).missed(Missed::All { max: 31 });
            job.catch_up_window(Duration::from_secs(31 * 86_400))
                .delivery(Delivery::AtLeastOnce { max_attempts: 3 })
                .max_runtime(minutes(60))
        };
        let before = world.replica("a", [job()]).await;
        world.clock.advance_to(at("2026-11-21T12:00:00Z")).await;
        drop(before);
        // It sees the node vote again.
        let watch = world.client().await;
        world.clock.advance_to(at("2026-11-23T12:00:00Z")).await;
        world.nodes[0].clear();
        world.clock.advance_to(at("2026-11-25T03:05:00Z")).await;
        let mut replicas = Vec::new();
        for name in ["a", "b", "c"] {
            replicas.push(world.replica(name, [job()]).await);
        }
        world.clock.advance_to(at("2026-11-25T08:00:00Z")).await;
        let days = [21, 22, 23, 24, 25].map(|day| format!("2026-11-{day}"));
        assert_eq!(world.days(), days, "{takes:?}");
        drop(watch);
    }
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_is_due_at_the_instant_up_to_which_time_passes_is_started() {
    for missed in [Missed::Skip, Missed::All { max: 9 }] {
        let world = World::starting_at("2026-11-20T18:00:00Z");
        let job = world.nightly(minutes(1)).missed(missed);
        let jobs = world.replica("one", [job]).await;
        for (tick, days) in [("21", 1), ("22", 2)] {
            let due = at(&format!("2026-11-{tick}T01:00:00Z"));
            world.clock.advance_to(due).await;
            assert_eq!(world.days().len(), days, "{missed:?}");
            let beyond = world.clock.now() - due;
            assert!(beyond <= TimeDelta::milliseconds(600), "{beyond}");
        }
        drop(jobs);
    }
}

#[tokio::test(start_paused = true)]
async fn jobs_go_on_until_the_last_handle_of_their_scheduler_is_dropped() {
    let world = World::starting_at("2026-11-20T18:00:00Z");
    let jobs = world.replica("one", [world.nightly(minutes(1))]).await;
    let handle = jobs.clone();
    drop(jobs);
    world.clock.advance_to(at("2026-11-21T12:00:00Z")).await;
    assert_eq!(world.days(), ["2026-11-21"]);
    assert_eq!(handle.jobs().await, ["nightly"]);
    drop(handle);
    world.clock.advance_to(at("2026-11-23T12:00:00Z")).await;
    assert_eq!(world.days().len(), 1);
}

/// The other replicas may have ended before, and skip what came in a run.
#[tokio::test(start_paused = true)]
async fn ticks_that_come_while_a_shutdown_waits_for_a_run_are_reported() {
    let world = World::starting_at("2026-11-20T12:00:30Z");
    let seen: Arc<Mutex<Vec<_>>> = Arc::default();
    let told = Arc::clone(&seen);
    let jobs = SingletonScheduler::standalone(world.client().await)
        .namespace("tests")
        .clock(&world.clock)
        .on_outcome(move |report| told.lock().unwrap().push((report.tick(), report.outcome())))
        .build()
        .unwrap();
    let long = SingletonJob::every("sweep", minutes(1), |_| async {
        sleep(Duration::from_secs(150)).await;
        Ok::<(), BoxError>(())
    });
    jobs.add(long).await.unwrap();
    jobs.start().await.unwrap();
    world.clock.advance_to(at("2026-11-20T12:01:10Z")).await;
    assert!(jobs.shutdown(minutes(5)).await.is_clean());
    let expected = [
        (at("2026-11-20T12:02:00Z"), Outcome::Draining),
        (at("2026-11-20T12:03:00Z"), Outcome::Draining),
        (at("2026-11-20T12:01:00Z"), Outcome::Ok),
    ];
    assert_eq!(*seen.lock().unwrap(), expected);
}
