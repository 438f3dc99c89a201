//! The jobs and schedulers that are refused, and their errors.

use std::{convert::Infallible, error::Error as _, time::Duration};

use redlock_core::Redlock;
use redlock_cron::{
    ControlErrorKind, Delivery, Missed, OnLost, Outcome, Overlap, Run, SetupError, SetupErrorKind,
    SingletonJob, SingletonScheduler, Tries, Zone, tokio_cron_scheduler::JobScheduler,
};

async fn scheduler(namespace: &str, max_ttl: Duration) -> Result<SingletonScheduler, SetupError> {
    let redlock = Redlock::builder()
        .in_memory_nodes(3)
        .ttl(Duration::from_millis(500))
        .max_ttl(max_ttl)
        .build()
        .await
        .unwrap();
    let scheduler = JobScheduler::new().await.unwrap();
    SingletonScheduler::builder(redlock, scheduler)
        .namespace(namespace)
        .build()
}

fn job(name: &str, pattern: &str, zone: impl Into<Zone>) -> SingletonJob {
    SingletonJob::cron(name, pattern, zone, |_: Run| async {
        Ok::<_, Infallible>(())
    })
}

/// Checks the kind of an error, and the field that it names.
#[track_caller]
fn assert_is(error: &SetupError, kind: SetupErrorKind, field: &str) {
    assert_eq!((error.kind(), error.field()), (kind, field), "{error}");
}

async fn refused(job: SingletonJob) -> SetupError {
    let jobs = scheduler("tests", Duration::from_secs(30)).await.unwrap();
    jobs.add(job).await.unwrap_err()
}

const DAILY: &str = "0 0 2 * * *";

#[tokio::test]
async fn a_namespace_is_mandatory() {
    for bad in ["", "a/b", "a\nb"] {
        let error = scheduler(bad, Duration::from_secs(30)).await.unwrap_err();
        assert_is(&error, SetupErrorKind::Misuse, "namespace");
    }
}

#[tokio::test]
async fn a_bad_job_is_refused_with_its_name_the_field_and_what_would_be_right() {
    let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
    let berlin = "Europe/Berlin";
    let a = || job("a", DAILY, berlin);
    let table = [
        (job("", DAILY, berlin), "name", "1 to 128 bytes"),
        (
            job("a", "0 0 25 * * *", berlin),
            "pattern",
            "second, minute, hour",
        ),
        (
            job("a", "* * * * *", berlin),
            "pattern",
            "second, minute, hour",
        ),
        (job("a", DAILY, "Europe/Berln"), "zone", "`Europe/Berlin`"),
        (job("a", DAILY, "+01:00"), "zone", "`Europe/Berlin`"),
        (
            a().start_within(second / 2),
            "start_within",
            "between 1s and",
        ),
        (
            a().start_within(minute * 366 * 24 * 60),
            "start_within",
            "between 1s and",
        ),
        (a().ttl(second / 100), "ttl", "between 100ms and"),
        (a().tries(Tries::up_to(0)), "tries", "between 1 and 1000"),
        (
            a().tries(Tries::up_to(1_001)),
            "tries",
            "between 1 and 1000",
        ),
        (
            a().tries(Tries::up_to(2).backoff(minute, second)),
            "backoff",
            "between 1ms and 1s",
        ),
        (
            a().tries(Tries::up_to(2).backoff(second, minute * 1_441)),
            "backoff",
            "between 1ms and 86400s",
        ),
        (a().missed(Missed::All { max: 0 }), "missed", "1 to 100000"),
        (
            a().missed(Missed::All { max: 100_001 }),
            "missed",
            "1 to 100000",
        ),
        (
            a().missed(Missed::Latest).catch_up_window(second * 59),
            "catch_up_window",
            "between 60s and",
        ),
        (
            a().delivery(Delivery::AtLeastOnce { max_attempts: 1 }),
            "delivery",
            "2 to 10",
        ),
        (
            a().max_runtime(Duration::ZERO),
            "max_runtime",
            "between 1ms and",
        ),
        (
            job(&"n".repeat(300), DAILY, berlin),
            "name",
            "has 300 bytes; it must have 1 to 128",
        ),
        (a().ttl(minute), "ttl", "100ms and 30s"),
    ];
    for (job, field, right) in table {
        let error = refused(job).await;
        assert_is(&error, SetupErrorKind::Misuse, field);
        assert!(error.to_string().contains(right), "{error}");
        assert!(error.job().is_some());
    }
}

#[tokio::test]
async fn a_number_of_runs_at_once_that_makes_no_sense_is_refused() {
    for most in [0, 1, 65] {
        let error = refused(job("a", DAILY, "UTC").overlap(Overlap::UpTo(most))).await;
        assert_is(&error, SetupErrorKind::Misuse, "overlap");
    }
}

#[tokio::test]
async fn settings_that_exclude_each_other_are_refused() {
    let short = job("a", "*/5 * * * * *", "UTC").overlap(Overlap::CancelOther);
    let short = short.start_within(Duration::from_secs(3));
    let twice = || {
        let twice = Delivery::AtLeastOnce { max_attempts: 2 };
        job("a", DAILY, "UTC").delivery(twice)
    };
    let all = || job("a", DAILY, "UTC").missed(Missed::All { max: 3 });
    for (job, field) in [
        (short, "start_within"),
        (all().overlap(Overlap::Allow), "missed"),
        (twice().overlap(Overlap::Allow), "delivery"),
        (all().overlap(Overlap::UpTo(2)), "missed"),
        (twice().overlap(Overlap::UpTo(2)), "delivery"),
        (twice().on_lost(OnLost::Signal), "delivery"),
        (all().overlap(Overlap::CancelOther), "missed"),
        (
            job("a", DAILY, "UTC").catch_up_window(Duration::from_secs(100)),
            "catch_up_window",
        ),
    ] {
        let error = refused(job).await;
        assert_is(&error, SetupErrorKind::Contradiction, field);
    }
}

#[tokio::test]
async fn a_pattern_that_can_never_be_due_is_refused() {
    let error = refused(job("a", "0 0 0 30 2 *", chrono_tz::UTC)).await;
    assert_is(&error, SetupErrorKind::NeverFires, "pattern");
}

#[tokio::test]
async fn a_job_whose_last_tick_has_passed_is_there_to_be_looked_at_and_has_nothing_to_do() {
    for missed in [Missed::Skip, Missed::Latest, Missed::All { max: 9 }] {
        let jobs = scheduler("tests", Duration::from_secs(30)).await.unwrap();
        let once = job("once", "0 0 0 1 1 * 2020", chrono_tz::UTC);
        jobs.add(once.missed(missed)).await.unwrap();
        jobs.start().await.unwrap();
        let status = jobs.status("once").await.unwrap();
        assert_eq!(status.next_tick(), None);
        assert!(status.runs().is_empty());
        let page = status.to_string();
        assert!(page.contains("none: the schedule has ended"), "{page}");
        let ran = jobs.trigger_now("once").await.unwrap();
        assert_eq!(ran.outcome(), Outcome::Ok);
        assert!(jobs.shutdown(Duration::ZERO).await.is_clean());
    }
}

#[tokio::test]
async fn a_name_is_taken_once_and_a_refused_job_does_not_take_it() {
    let jobs = scheduler("tests", Duration::from_secs(30)).await.unwrap();
    jobs.add(job("a", "nonsense", chrono_tz::UTC))
        .await
        .unwrap_err();
    jobs.add(job("a", DAILY, chrono_tz::UTC)).await.unwrap();
    let error = jobs.add(job("a", DAILY, chrono_tz::UTC)).await.unwrap_err();
    assert_is(&error, SetupErrorKind::Duplicate, "name");
    assert_eq!(error.job(), Some("a"));
    jobs.add(job("b", DAILY, chrono_tz::UTC)).await.unwrap();
}

#[tokio::test]
async fn an_interval_that_is_not_whole_seconds_is_refused() {
    let half = Duration::from_millis(500);
    let work = |_: Run| async { Ok::<_, Infallible>(()) };
    let error = refused(SingletonJob::every("a", half, work)).await;
    assert_eq!(error.field(), "interval");
}

#[tokio::test]
async fn a_scheduler_starts_once_and_not_after_its_shutdown() {
    let jobs = scheduler("tests", Duration::from_secs(30)).await.unwrap();
    jobs.start().await.unwrap();
    let error = jobs.start().await.unwrap_err();
    assert_eq!(error.kind(), SetupErrorKind::Scheduler);
    assert!(error.to_string().contains("was started before"), "{error}");
    assert!(jobs.shutdown(Duration::ZERO).await.is_clean());
    let error = jobs.add(job("a", DAILY, chrono_tz::UTC)).await.unwrap_err();
    assert_eq!(error.kind(), SetupErrorKind::Closed);
    assert_eq!(
        jobs.start().await.unwrap_err().kind(),
        SetupErrorKind::Closed
    );
}

/// tokio-cron-scheduler starts all the same, and then does nothing.
#[tokio::test]
async fn a_scheduler_that_the_application_has_shut_down_is_refused() {
    let redlock = Redlock::builder().in_memory_nodes(1).build().await.unwrap();
    let scheduler = JobScheduler::new().await.unwrap();
    let jobs = SingletonScheduler::builder(redlock, scheduler.clone());
    let jobs = jobs.namespace("tests").build().unwrap();
    jobs.add(job("a", DAILY, "UTC")).await.unwrap();
    scheduler.clone().shutdown().await.unwrap();
    let error = jobs.start().await.unwrap_err();
    assert_is(&error, SetupErrorKind::Scheduler, "scheduler");
    assert!(error.to_string().contains("was shut down"), "{error}");
    assert!(error.source().is_some());
    scheduler.start().await.unwrap();
}

#[tokio::test]
async fn a_job_is_replaced_only_by_a_valid_one_and_removed_once() {
    let jobs = scheduler("tests", Duration::from_secs(30)).await.unwrap();
    let words = |jobs: &SingletonScheduler| jobs.schedule("a").map(|schedule| schedule.to_string());
    let replaced = jobs.replace(job("a", "0 0 25 * * *", "UTC")).await;
    assert_eq!(replaced.unwrap_err().job(), Some("a"));
    assert!(jobs.jobs().await.is_empty());
    // There was none of this name.
    jobs.replace(job("a", DAILY, "UTC")).await.unwrap();
    assert!(jobs.replace(job("a", "0 0 3 30 2 *", "UTC")).await.is_err());
    assert_eq!(words(&jobs).unwrap(), "At 02:00, in the zone UTC");
    jobs.replace(job("a", "0 0 3 * * *", "UTC")).await.unwrap();
    assert_eq!(words(&jobs).unwrap(), "At 03:00, in the zone UTC");
    assert!(jobs.remove("a", Duration::MAX).await.unwrap().is_clean());
    let error = jobs.remove("a", Duration::ZERO).await.unwrap_err();
    assert_eq!(error.kind(), ControlErrorKind::UnknownJob);
    assert_eq!(
        words(&jobs).unwrap_err().kind(),
        ControlErrorKind::UnknownJob
    );
    let _ = jobs.shutdown(Duration::ZERO).await;
    let error = jobs.replace(job("a", DAILY, "UTC")).await.unwrap_err();
    assert_eq!(error.kind(), SetupErrorKind::Closed);
}

#[tokio::test]
async fn a_scheduler_without_a_place_for_any_run_is_refused() {
    for (most, is_valid) in [(0, false), (1, true), (1_000_000, true), (1_000_001, false)] {
        let redlock = Redlock::builder().in_memory_nodes(1).build().await.unwrap();
        let built = SingletonScheduler::standalone(redlock)
            .namespace("tests")
            .max_runs(most)
            .build();
        let field = built.err().map(|error| error.field().to_owned());
        assert_eq!(field.is_none(), is_valid, "{most} {field:?}");
        assert!(field.is_none_or(|field| field == "max_runs"));
    }
}
