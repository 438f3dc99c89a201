//! What is told of the time for which requests wait and hold.

use std::{
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{Router, routing::get};
use http_body_util::BodyExt;
use redlock_tower::{RedlockLayer, RequestLease};
use tower::ServiceExt;
use tracing::{Instrument, Level, info_span};
use tracing_subscriber::fmt::format::FmtSpan;

use crate::behaviour::kit::{KEY, Nodes, by_header, in_time, request, virtual_client};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// So short that the second request takes the lease over.
const WORK: Duration = Duration::from_millis(200);

#[tokio::test(start_paused = true)]
async fn the_time_for_which_a_request_waits_and_holds_is_told_within_its_span() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .without_time()
        .with_max_level(Level::DEBUG)
        .with_span_events(FmtSpan::CLOSE)
        .with_writer(move || writer.clone())
        .finish();
    let _capture = tracing::subscriber::set_default(subscriber);
    let redlock = virtual_client(&Nodes::new()).await;
    let handler = async |lease: RequestLease| {
        tokio::time::sleep(WORK).await;
        format!("{:?}", lease.waited())
    };
    let layer = RedlockLayer::new(redlock.clone(), by_header());
    let app: Router = Router::new().route("/", get(handler).route_layer(layer));
    let ask = |number: u64| {
        let answer = async {
            let response = app.clone().oneshot(request(KEY)).await.unwrap();
            let body = response.into_body().collect().await.unwrap();
            String::from_utf8(body.to_bytes().to_vec()).unwrap()
        };
        answer.instrument(info_span!("request", number))
    };
    // A span that another test meets for the first time while this one begins to listen may be kept from it.
    drop(in_time(app.clone().oneshot(request("another"))).await);
    tracing::callsite::rebuild_interest_cache();
    log.0.lock().unwrap().clear();
    let (first, second) = in_time(async { tokio::join!(ask(1), ask(2)) }).await;
    assert_eq!((first.as_str(), second.as_str()), ("0ns", "200ms"));

    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(!log.contains(KEY), "{log}");
    for (number, waited) in [(1, "0ns"), (2, "200ms")] {
        let span = format!("request{{number={number}}}:");
        let of_request: Vec<&str> = log.lines().filter(|line| line.contains(&span)).collect();
        for inner in ["redlock.acquire{", "redlock.hold{"] {
            let has_span = |line: &&str| line.contains(&format!("{span}{inner}"));
            assert!(of_request.iter().any(has_span), "{inner}: {log}");
        }
        let held = |line: &&&str| line.contains("DEBUG") && line.contains("redlock::http");
        let held: Vec<&&str> = of_request.iter().filter(held).collect();
        let [held] = held[..] else { panic!("{held:?}") };
        let times = format!("waited={waited} held=200ms");
        let origin = format!(
            "client={} namespace=\"redlock\" class=\"test\" token=",
            redlock.id()
        );
        assert!(held.contains(&times) && held.contains(&origin), "{held}");
    }
}
