//! Jobs that are read from data.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};

use redlock_core::Redlock;
use redlock_cron::{
    Delivery, JobConfig, Missed, OnLost, Outcome, Overlap, Run, SetupError, SingletonJob,
    SingletonScheduler, Tries,
};
use serde::Deserialize;

async fn nothing(_: Run) -> Result<(), Infallible> {
    Ok(())
}

fn read(data: &str) -> Result<SingletonJob, SetupError> {
    let config: JobConfig = toml::from_str(data).unwrap();
    config.into_job(|run, _| nothing(run))
}

#[test]
fn each_setting_of_a_job_is_read() {
    let seconds = Duration::from_secs;
    let cron = || SingletonJob::cron("a", "0 0 2 * * *", "Europe/Berlin", nothing);
    let prefix = "name = 'a'\ncron = '0 0 2 * * *'\nzone = 'Europe/Berlin'\n";
    for (more, expected) in [
        ("", cron()),
        ("start_within = '20s'", cron().start_within(seconds(20))),
        ("ttl = '9s'", cron().ttl(seconds(9))),
        ("overlap = 'wait'", cron().overlap(Overlap::Wait)),
        (
            "overlap = 'cancel_other'",
            cron().overlap(Overlap::CancelOther),
        ),
        ("overlap = { up_to = 3 }", cron().overlap(Overlap::UpTo(3))),
        ("missed = 'latest'", cron().missed(Missed::Latest)),
        (
            "missed = { all = { max = 9 } }\ncatch_up_window = '7d'",
            cron()
                .missed(Missed::All { max: 9 })
                .catch_up_window(seconds(604_800)),
        ),
        (
            "delivery = { at_least_once = { max_attempts = 3 } }",
            cron().delivery(Delivery::AtLeastOnce { max_attempts: 3 }),
        ),
        ("on_lost = 'signal'", cron().on_lost(OnLost::Signal)),
        ("max_runtime = '10m'", cron().max_runtime(seconds(600))),
        ("tries = { up_to = 4 }", cron().tries(Tries::up_to(4))),
        (
            "tries = { up_to = 4, first = '5s', longest = '9s' }",
            cron().tries(Tries::up_to(4).backoff(seconds(5), seconds(9))),
        ),
    ] {
        let job = read(&format!("{prefix}{more}")).unwrap();
        assert_eq!(format!("{job:?}"), format!("{expected:?}"), "{more}");
    }
    for (data, expected) in [
        (
            "name = 'a'\nevery = '5m'",
            SingletonJob::every("a", seconds(300), nothing),
        ),
        (
            "name = 'a'\nat = '2026-12-24T18:00:00Z'",
            SingletonJob::once("a", "2026-12-24T18:00:00Z".parse().unwrap(), nothing),
        ),
    ] {
        let job = read(data).unwrap();
        assert_eq!(format!("{job:?}"), format!("{expected:?}"), "{data}");
    }
}

#[test]
fn data_that_says_too_little_or_too_much_is_refused() {
    for (data, field) in [
        ("name = 'a'", "cron"),
        ("name = 'a'\ncron = '0 0 2 * * *'", "zone"),
        ("name = 'a'\nevery = '5m'\nzone = 'UTC'", "zone"),
        (
            "name = 'a'\nevery = '5m'\nat = '2026-12-24T18:00:00Z'",
            "cron",
        ),
        (
            "name = 'a'\nevery = '5m'\ncron = '0 0 2 * * *'\nzone = 'UTC'",
            "cron",
        ),
    ] {
        let error = read(data).unwrap_err();
        assert_eq!((error.job(), error.field()), (Some("a"), field), "{data}");
    }
    for bad in [
        "name = 'a'\nevery = '5m'\nevry = '5m'",
        "name = 'a'\nevery = '5m'\ntries = { up_to = 4, frist = '5s' }",
        "every = '5m'",
    ] {
        assert!(toml::from_str::<JobConfig>(bad).is_err(), "{bad}");
    }
    // The reader of TOML would refuse these itself.
    for (more, is_read) in [
        (r#""missed": { "all": { "max": 9 } }"#, true),
        (
            r#""missed": { "all": { "max": 9, "within": "7d" } }"#,
            false,
        ),
        (
            r#""delivery": { "at_least_once": { "max_attempts": 3 } }"#,
            true,
        ),
        (
            r#""delivery": { "at_least_once": { "max_attempts": 3, "retry_within": "1h" } }"#,
            false,
        ),
    ] {
        let data = format!(r#"{{ "name": "a", "every": "5m", {more} }}"#);
        let config = serde_json::from_str::<JobConfig>(&data);
        assert_eq!(config.is_ok(), is_read, "{data}");
    }
}

#[tokio::test]
async fn each_run_has_the_payload_of_its_job() {
    #[derive(Deserialize)]
    struct Report {
        recipient: String,
    }
    let redlock = Redlock::builder().in_memory_nodes(3).build().await.unwrap();
    let jobs = SingletonScheduler::standalone(redlock)
        .namespace("tests")
        .build()
        .unwrap();
    let sent = Arc::new(Mutex::new(Vec::new()));
    for recipient in ["board", "staff"] {
        let data = format!(
            "name = '{recipient}'\nevery = '1h'\npayload = {{ recipient = '{recipient}' }}"
        );
        let config: JobConfig<Report> = toml::from_str(&data).unwrap();
        let sent = Arc::clone(&sent);
        let job = config.into_job(move |run: Run, report: Arc<Report>| {
            let mut sent = sent.lock().unwrap();
            sent.push((run.name().to_owned(), report.recipient.clone()));
            async { Ok::<_, Infallible>(()) }
        });
        jobs.add(job.unwrap()).await.unwrap();
        let report = jobs.trigger_now(recipient).await.unwrap();
        assert_eq!(report.outcome(), Outcome::Ok, "{report:?}");
    }
    let expected = ["board", "staff"].map(|name| (name.to_owned(), name.to_owned()));
    assert_eq!(*sent.lock().unwrap(), expected);
    // A payload that the type does not allow to be missing.
    assert!(toml::from_str::<JobConfig<Report>>("name = 'a'\nevery = '1h'").is_err());
}
