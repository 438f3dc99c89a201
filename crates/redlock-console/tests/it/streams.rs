//! Streams of events, and their ends.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::http::StatusCode;
use redlock_console::{Access, Console, router};
use redlock_core::Redlock;
use serde_json::Value;
use tokio::time::{Instant, timeout};

use crate::kit::{Events, answer, get, in_memory, request};

const PATIENCE: Duration = Duration::from_secs(20);

async fn next(events: &mut Events) -> Value {
    let event = timeout(PATIENCE, events.next()).await;
    let event = event.expect("an event comes").expect("the stream goes on");
    serde_json::from_str(&event).unwrap()
}

#[tokio::test]
async fn streams_end_when_the_console_is_closed_and_no_other_begins() {
    let (routes, console) = in_memory().await;
    let mut events = Vec::new();
    for _ in 0..3 {
        let mut stream = Events::open(&routes, "/events").await;
        next(&mut stream).await;
        events.push(stream);
    }
    let closed = Instant::now();
    console.close();
    for stream in &mut events {
        timeout(PATIENCE, stream.ended()).await.unwrap();
    }
    assert!(closed.elapsed() < Duration::from_millis(500));
    let refused = get(&routes, "/events").await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn a_stream_ends_when_access_is_withdrawn() {
    let may = Arc::new(AtomicBool::new(true));
    let client = Redlock::builder().in_memory_nodes(3).build().await.unwrap();
    let asks = Arc::clone(&may);
    let console = Console::builder(client).access(move |parts| {
        let of_alice = parts.headers.contains_key("x-alice");
        match asks.load(Ordering::Relaxed) || of_alice {
            true => Access::Read,
            false => Access::None,
        }
    });
    let routes = router(console.build().unwrap());
    let mut stream = Events::open(&routes, "/events").await;
    next(&mut stream).await;
    may.store(false, Ordering::Relaxed);
    timeout(PATIENCE, stream.ended()).await.unwrap();
    let refused = answer(&routes, request("GET", "/events")).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_by_itself_after_five_minutes_and_is_never_silent_for_long() {
    let client = Redlock::builder().in_memory_nodes(3).virtual_time();
    let client = client.build().await.unwrap();
    let routes = router(Console::builder(client).build().unwrap());
    let begun = Instant::now();
    let answer = crate::kit::send(&routes, request("GET", "/events")).await;
    let mut body = answer.into_body().into_data_stream();
    let (mut last, mut longest) = (begun, Duration::ZERO);
    while let Some(part) = futures_util::StreamExt::next(&mut body).await {
        part.unwrap();
        longest = longest.max(last.elapsed());
        last = Instant::now();
    }
    let lasted = begun.elapsed();
    assert!(
        (Duration::from_secs(300)..Duration::from_secs(302)).contains(&lasted),
        "{lasted:?}"
    );
    assert!(longest <= Duration::from_secs(16), "{longest:?}");
}

#[tokio::test]
async fn a_stream_has_all_sections_first_and_then_only_those_that_change_once_a_second() {
    let client = Redlock::builder().in_memory_nodes(3).build().await.unwrap();
    let routes = router(Console::builder(client.clone()).build().unwrap());
    let mut stream = Events::open(&routes, "/events").await;
    let sections = |event: &Value| -> Vec<String> {
        event["html"].as_object().unwrap().keys().cloned().collect()
    };
    let first = next(&mut stream).await;
    let all = [
        "actions",
        "elections",
        "findings",
        "jobs",
        "keys",
        "nodes",
        "verdict",
    ];
    let mut seen = sections(&first);
    seen.sort();
    assert_eq!(seen, all);
    redlock_cron::log_action(
        &client,
        "deploy",
        "billing 7.2",
        &redlock_cron::Action::by("ci"),
    )
    .await
    .unwrap();
    let mut before = None::<Instant>;
    loop {
        let Ok(Some(event)) = timeout(PATIENCE, stream.next()).await else {
            panic!("the action is not in the stream");
        };
        let event: Value = serde_json::from_str(&event).unwrap();
        let since = before
            .replace(Instant::now())
            .map(|before| before.elapsed());
        let is_soon = since.is_some_and(|since| since < Duration::from_millis(990));
        assert!(!is_soon, "{since:?}");
        let changed = sections(&event);
        assert!(!changed.contains(&"verdict".to_owned()), "{changed:?}");
        if changed.contains(&"actions".to_owned()) {
            let html = event["html"]["actions"].as_str().unwrap();
            break assert!(html.contains("billing 7.2"), "{html}");
        }
    }
}

#[tokio::test]
async fn viewers_share_one_look() {
    let (routes, _console) = in_memory().await;
    let (one, other) = (
        Events::open(&routes, "/events"),
        Events::open(&routes, "/events"),
    );
    let (mut one, mut other) = tokio::join!(one, other);
    let (one, other) = tokio::join!(next(&mut one), next(&mut other));
    assert_eq!(one["at_ms"], other["at_ms"]);
    let page = get(&routes, "/snapshot").await.snapshot();
    assert_eq!(Some(page.at_ms), one["at_ms"].as_u64());
}
