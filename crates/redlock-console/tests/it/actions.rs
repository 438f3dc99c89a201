//! Actions: each is done by the library, and is in the log with its operator and reason.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{Router, http::StatusCode};
use redlock_console::{Access, Console, router};
use redlock_core::Redlock;
use redlock_cron::{BoxError, Overlap, SingletonJob, SingletonScheduler, inspect};
use redlock_sandbox::ServerOptions;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::kit::{Answer, get, post, servers};

const BY_ALICE: &str = "reason=the+ledger+moves&by=alice";

async fn console(client: &Redlock) -> Router {
    let console = Console::builder(client.clone()).access(|_| Access::Operate);
    router(console.build().unwrap())
}

/// A scheduler with a job that has a tick each day, and one whose run lasts until it is stopped.
async fn scheduler(client: &Redlock, runs: &Arc<AtomicUsize>) -> SingletonScheduler {
    let jobs = SingletonScheduler::standalone(client.clone())
        .namespace("billing")
        .replica("pod-7");
    let jobs = jobs.build().unwrap();
    let count = Arc::clone(runs);
    let day = SingletonJob::cron("day", "0 0 2 * * *", "UTC", move |_run| {
        count.fetch_add(1, Ordering::Relaxed);
        async { Ok::<(), BoxError>(()) }
    });
    jobs.add(day).await.unwrap();
    let long = SingletonJob::cron("long", "0 0 2 * * *", "UTC", async |_run| {
        std::future::pending::<()>().await;
        Ok::<(), BoxError>(())
    });
    jobs.add(long.overlap(Overlap::CancelOther)).await.unwrap();
    jobs.start().await.unwrap();
    for name in ["day", "long"] {
        eventually("its registration", async || {
            let memory = inspect(client, "billing", name).await.unwrap();
            memory.registration().is_some()
        })
        .await;
    }
    jobs
}

fn done(answer: &Answer) -> String {
    let json: Value = serde_json::from_str(&answer.text).unwrap_or_else(|_| panic!("{answer:?}"));
    assert_eq!(
        (answer.status, &json["done"]),
        (StatusCode::OK, &true.into()),
        "{answer:?}"
    );
    json["message"].as_str().unwrap().to_owned()
}

#[track_caller]
fn refused(answer: &Answer, status: u16, words: &str) {
    let json: Value = serde_json::from_str(&answer.text).unwrap_or_else(|_| panic!("{answer:?}"));
    assert_eq!(
        (answer.status.as_u16(), &json["done"]),
        (status, &false.into()),
        "{answer:?}"
    );
    assert!(
        json["message"].as_str().unwrap().contains(words),
        "{answer:?}"
    );
}

async fn eventually(what: &str, is_so: impl AsyncFn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_so().await {
        assert!(Instant::now() < end, "not so: {what}");
        sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_are_paused_resumed_run_stopped_backfilled_and_forgotten() {
    let (_servers, client) = servers(3, &ServerOptions::default()).await;
    let runs = Arc::new(AtomicUsize::new(0));
    let jobs = scheduler(&client, &runs).await;
    let routes = console(&client).await;
    let of = async |name: &str| inspect(&client, "billing", name).await.unwrap();

    // The jobs are looked at every five seconds.
    assert_eq!(get(&routes, "/snapshot").await.snapshot().jobs.len(), 2);
    let paused = format!("job=billing/day&minutes=60&{BY_ALICE}");
    done(&post(&routes, "/actions/pause", &paused).await);
    let memory = of("day").await;
    let pause = memory.pause().unwrap();
    assert_eq!(
        (pause.by(), pause.reason()),
        (Some("alice"), Some("the ledger moves"))
    );
    assert!(pause.until().is_some(), "{pause:?}");
    // What was done is on the page at once.
    let snapshot = get(&routes, "/snapshot?q=billing/day").await.snapshot();
    assert_eq!(snapshot.jobs[0].state, "paused");
    assert_eq!(
        snapshot.jobs[0].pause.as_ref().unwrap().by.as_deref(),
        Some("alice")
    );
    let for_ever = format!("job=billing/day&{BY_ALICE}");
    done(&post(&routes, "/actions/resume", &for_ever).await);
    assert_eq!(of("day").await.is_paused(), Some(false));

    done(&post(&routes, "/actions/trigger", &for_ever).await);
    eventually("a run", async || runs.load(Ordering::Relaxed) == 1).await;

    let range = "from=2026-03-01T00:00:00Z&to=2026-03-03T23:59:59Z";
    let counted = get(
        &routes,
        &format!("/actions/backfill/count?job=billing/day&{range}"),
    )
    .await;
    assert!(done(&counted).contains("3 ticks"), "{counted:?}");
    assert_eq!(runs.load(Ordering::Relaxed), 1);
    let backfill = format!("job=billing/day&{range}&{BY_ALICE}");
    assert!(done(&post(&routes, "/actions/backfill", &backfill).await).contains("3 ticks"));
    eventually("three ticks", async || runs.load(Ordering::Relaxed) == 4).await;
    eventually("three ends", async || {
        let memory = of("day").await;
        memory.backfill().is_some_and(|it| {
            it.runs()
                .iter()
                .filter(|run| run.outcome() == Some("ok"))
                .count()
                == 3
        })
    })
    .await;
    let rerun = format!("job=billing/day&tick=2026-03-02T02:00:00Z&{BY_ALICE}");
    done(&post(&routes, "/actions/rerun", &rerun).await);
    eventually("the tick again", async || runs.load(Ordering::Relaxed) == 5).await;
    done(&post(&routes, "/actions/cancel", &for_ever).await);

    let long = format!("job=billing/long&{BY_ALICE}");
    done(&post(&routes, "/actions/trigger", &long).await);
    eventually("a long run", async || of("long").await.running().is_some()).await;
    let forgotten = post(&routes, "/actions/forget", &long).await;
    refused(&forgotten, 409, "runs on pod-7");
    assert!(done(&post(&routes, "/actions/stop", &long).await).contains("pod-7"));
    eventually("its end", async || of("long").await.running().is_none()).await;

    assert!(jobs.shutdown(Duration::from_secs(5)).await.is_clean());
    eventually("its lock is free", async || {
        of("day").await.in_use().is_none()
    })
    .await;
    done(&post(&routes, "/actions/forget", &for_ever).await);
    assert!(!of("day").await.is_remembered());

    let log = redlock_cron::actions(&client).await.unwrap();
    let verbs: Vec<_> = log
        .iter()
        .rev()
        .map(|action| action.verb().to_owned())
        .collect();
    let expected = [
        "pause",
        "resume",
        "trigger",
        "backfill",
        "backfill-again",
        "cancel",
        "trigger",
        "stop",
        "forget",
    ];
    assert_eq!(verbs, expected);
    for action in &log {
        assert_eq!(
            (action.by(), action.reason()),
            (Some("alice"), Some("the ledger moves")),
            "{action}"
        );
    }
}

#[tokio::test]
async fn a_key_is_released_by_force_and_that_is_in_the_log() {
    let (servers, client) = servers(3, &ServerOptions::default()).await;
    let owner = format!("{:032x} order@web-7", 7);
    for server in servers.iter() {
        let held = ["SET", "{redlock}:lock:order:7", &owner, "PX", "600000"];
        server.command(&held).unwrap();
    }
    let routes = console(&client).await;
    let form = format!("key=order:7&{BY_ALICE}");
    let message = done(&post(&routes, "/actions/release", &form).await);
    assert!(
        message.starts_with("released on ") && message.contains("order@web-7"),
        "{message}"
    );
    assert!(get(&routes, "/snapshot").await.snapshot().keys.is_empty());
    refused(
        &post(&routes, "/actions/release", &form).await,
        422,
        "nothing was done: order:7 was free already",
    );
    let log = redlock_cron::actions(&client).await.unwrap();
    let [action] = &*log else { panic!("{log:?}") };
    assert_eq!(
        (action.verb(), action.subject(), action.by()),
        ("release", "order:7", Some("alice"))
    );
}

#[tokio::test]
async fn what_cannot_be_done_is_refused_with_words_and_changes_nothing() {
    let (mut servers, client) = servers(3, &ServerOptions::default()).await;
    redlock_cron::pause(&client, "billing", "day")
        .await
        .unwrap();
    let routes = console(&client).await;
    let range = "from=2026-03-01T00:00:00Z&to=2026-03-03T23:59:59Z";
    for (action, form, status, words) in [
        ("resume", "job=billing/day", 422, "reason is missing"),
        (
            "resume",
            "job=billing/day&reason=+",
            422,
            "reason is missing",
        ),
        ("resume", "reason=r", 422, "job is missing"),
        ("resume", "job=day&reason=r", 422, "billing/close-day"),
        (
            "resume",
            "job=billing/dya&reason=r",
            422,
            "nothing is remembered of billing/dya",
        ),
        (
            "pause",
            "job=billing/day&until=soon&reason=r",
            422,
            "until is no instant",
        ),
        (
            "pause",
            "job=billing/day&minutes=-1&reason=r",
            422,
            "minutes",
        ),
        ("rerun", "job=billing/day&reason=r", 422, "tick is missing"),
        (
            "backfill",
            "job=billing/day&from=2026-03-01&to=x&reason=r",
            422,
            "from is no instant",
        ),
        (
            "backfill",
            "job=billing/day&from=2026-03-02T00:00:00Z&to=2026-03-01T00:00:00Z&reason=r",
            422,
            "before the beginning",
        ),
        ("release", "key=&reason=r", 422, "key is missing"),
        ("release", "key=a%0Ab&reason=r", 422, "control character"),
        ("explode", "job=billing/day&reason=r", 404, "no such action"),
    ] {
        refused(
            &post(&routes, &format!("/actions/{action}"), form).await,
            status,
            words,
        );
    }
    let counted = get(
        &routes,
        &format!("/actions/backfill/count?job=billing/day&{range}"),
    )
    .await;
    assert!(
        done(&counted).contains("do not know the schedule"),
        "{counted:?}"
    );
    let long = format!("job=billing/day&reason={}", "a".repeat(20_000));
    let refused_body = post(&routes, "/actions/resume", &long).await;
    assert_eq!(refused_body.status, StatusCode::PAYLOAD_TOO_LARGE);
    let memory = inspect(&client, "billing", "day").await.unwrap();
    assert_eq!(memory.is_paused(), Some(true));
    for server in servers.iter_mut().take(2) {
        server.kill().unwrap();
    }
    let unknown = post(&routes, "/actions/resume", "job=billing/day&reason=r").await;
    refused(&unknown, 503, "");
}

#[tokio::test]
async fn more_ticks_than_a_backfill_has_are_refused_before_it_begins() {
    let (_servers, client) = servers(3, &ServerOptions::default()).await;
    let runs = Arc::new(AtomicUsize::new(0));
    let jobs = scheduler(&client, &runs).await;
    let routes = console(&client).await;
    let range = "from=2026-01-01T00:00:00Z&to=2026-06-01T00:00:00Z";
    let form = format!("job=billing/day&{range}&reason=r");
    refused(
        &post(&routes, "/actions/backfill", &form).await,
        422,
        "more than 100 ticks",
    );
    let counted = get(
        &routes,
        &format!("/actions/backfill/count?job=billing/day&{range}"),
    )
    .await;
    refused(&counted, 422, "more than 100 ticks");
    let none = "from=2026-01-01T03:00:00Z&to=2026-01-01T04:00:00Z";
    let counted = get(
        &routes,
        &format!("/actions/backfill/count?job=billing/day&{none}"),
    )
    .await;
    refused(&counted, 422, "no tick");
    drop(jobs.shutdown(Duration::from_secs(5)).await);
    assert_eq!(runs.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn an_action_that_would_change_nothing_says_what_it_has_found() {
    let (_servers, client) = servers(3, &ServerOptions::default()).await;
    redlock_cron::pause(&client, "billing", "day")
        .await
        .unwrap();
    let routes = console(&client).await;
    let form = format!("job=billing/day&{BY_ALICE}");
    let ends = format!("{form}&until=2099-01-01T00:00:00Z");
    let act = async |verb: &str, form: &str| post(&routes, &format!("/actions/{verb}"), form).await;
    done(&act("resume", &form).await);
    let again = act("resume", &form).await;
    refused(&again, 422, "nothing was done: billing/day was not paused");
    done(&act("pause", &form).await);
    let again = act("pause", &form).await;
    refused(
        &again,
        422,
        "nothing was done: billing/day is paused since 2",
    );
    refused(&again, 422, " by alice: the ledger moves already");
    // Another end is another pause.
    let other = done(&act("pause", &ends).await);
    assert!(other.contains("; before, it was paused since 2"), "{other}");
    let again = act("pause", &ends).await;
    refused(
        &again,
        422,
        "until 2099-01-01T00:00:00Z: the ledger moves already",
    );
    let none = act("cancel", &form).await;
    assert!(
        done(&none).contains("no backfill of billing/day is known"),
        "{none:?}"
    );
    let log = redlock_cron::actions(&client).await.unwrap();
    let verbs: Vec<_> = log.iter().map(|action| action.verb().to_owned()).collect();
    assert_eq!(verbs, ["cancel", "pause", "pause", "resume", "pause"]);
}
