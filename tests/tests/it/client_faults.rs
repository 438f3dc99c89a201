//! Client processes that are killed or paused while they hold a lease.

use std::time::Duration;

use redlock_core::{AcquireErrorKind, AcquireOptions, Renewal, Wait};
use redlock_tests::{
    ClientProcess, Connect, Event, History, HistoryWriter, HoldWork, Moment, Nodes, Work, client,
    eventually, now,
};

const CLIENT: &str = env!("CARGO_BIN_EXE_redlock-test-client");
const KEY: &str = "{redlock}:lock:a";
const TTL: Duration = Duration::from_secs(2);

/// A process that holds the lease, and has renewed it at least once.
async fn holder(nodes: &Nodes, history: &History) -> ClientProcess {
    let connect = Connect::to(nodes.urls(), TTL);
    let work = HoldWork::new(history.file("holder"), connect, "a");
    let holder = ClientProcess::start(CLIENT, &Work::Hold(work));
    let valid_until = || (first_valid_until(history), valid_until(history));
    eventually("a renewal", TTL * 5, valid_until, |(first, last)| {
        *first > Duration::ZERO && *last > *first + TTL / 4
    })
    .await;
    holder
}

/// Until when the lease was valid before its first renewal.
fn first_valid_until(history: &History) -> Duration {
    history
        .events()
        .first()
        .map_or(Duration::ZERO, |event| event.until)
}

/// Until when the holder knew its lease to be valid.
fn valid_until(history: &History) -> Duration {
    let events = history.events();
    let known = events.iter().filter(|event| event.is_valid());
    known.map(|event| event.until).max().unwrap_or_default()
}

// Shows: T1.6, T5.9.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_outlives_its_killed_holder_for_its_time_to_live_and_not_longer() {
    let nodes = Nodes::start(5);
    let history = History::new();
    let redlock = client(nodes.urls(), TTL).await;
    let holder = holder(&nodes, &history).await;
    holder.kill();
    let killed = now();
    let refused = redlock.try_acquire("a").await.unwrap_err();
    assert_eq!(refused.kind(), AcquireErrorKind::Contended);

    let wait = AcquireOptions::new().wait(Wait::UpTo(TTL * 3));
    let guard = redlock.acquire_with("a", wait).await.unwrap();
    let acquired = now();
    let valid_until = valid_until(&history);
    assert!(
        valid_until > killed,
        "the holder was killed while its lease was valid"
    );
    assert!(
        acquired > valid_until,
        "let in {:?} before the lease ended",
        valid_until - acquired
    );
    let late = acquired - killed;
    assert!(
        late < TTL + Duration::from_millis(500),
        "let in {late:?} after the kill"
    );
    drop(guard);
}

// Shows: T2.2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_that_was_paused_beyond_its_lease_does_nothing_more_under_it() {
    let nodes = Nodes::start(5);
    let history = History::new();
    let ours = HistoryWriter::open(&history.file("other")).unwrap();
    let redlock = client(nodes.urls(), TTL).await;
    let holder = holder(&nodes, &history).await;

    // Just after a poll of its work, so that it is stopped while it waits for the next.
    let polls = || history.events().len();
    let seen = polls();
    eventually("another poll", TTL, polls, |polls| *polls > seen).await;
    holder.freeze();

    let wait = AcquireOptions::new()
        .wait(Wait::UpTo(TTL * 3))
        .renewal(Renewal::Manual)
        .ttl(TTL * 4);
    let guard = redlock.acquire_with("a", wait).await.unwrap();
    let acquired = now();
    assert!(
        acquired > valid_until(&history),
        "let in while it was valid"
    );
    ours.write(&Event::of(guard.lease(), 0, Moment::Acquired));
    let before = (
        nodes.ask_all(&["GET", KEY]),
        nodes.ask_all(&["PEXPIRETIME", KEY]),
    );
    holder.thaw();
    let report: String = holder.finish(TTL * 2).await;
    assert_eq!(report, "Expired, Err(Lost)");
    let after = (
        nodes.ask_all(&["GET", KEY]),
        nodes.ask_all(&["PEXPIRETIME", KEY]),
    );
    assert_eq!(before, after, "the paused holder touched another's key");
    ours.write(&Event::of(guard.lease(), 0, Moment::Releasing));
    guard.release().await.unwrap();

    let holds = history.assert_exclusive();
    assert_eq!(holds.len(), 2);
    for event in history.events() {
        let in_time = event.moment == Moment::Lost || event.is_valid();
        assert!(in_time, "polled after the deadline: {event:?}");
    }
    let told = |event: &Event| event.moment == Moment::Lost;
    assert!(history.events().iter().any(told));
}
