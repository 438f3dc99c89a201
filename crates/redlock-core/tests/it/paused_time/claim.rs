//! Claims of ticks: one start each, by the nodes' clocks, whatever the network does.

use std::time::{Duration, SystemTime};

use redlock_core::{
    AcquireErrorKind, Claim, ClaimOptions, ClaimOutcome, Redlock, RunState, Tick, Wait, Word,
};

use crate::paused_time::fixtures::{
    Faults, FaultyNode, MS, SECOND, client, faulty, keys, settle, soon,
};

/// What the nodes' clocks show when a test begins: a day in 2026, at noon.
const NOON: u64 = 1_795_262_400_000;

/// Returns three nodes at noon, and `N` clients of them.
async fn fleet<const N: usize>() -> (Vec<FaultyNode>, [Redlock; N]) {
    let nodes = faulty(3);
    set_clocks(&nodes, 0);
    let mut clients = Vec::new();
    for _ in 0..N {
        clients.push(client(&nodes).await);
    }
    let clients = clients.try_into().expect("there are so many");
    (nodes, clients)
}

fn set_clocks(nodes: &[FaultyNode], ahead: u64) {
    let noon = SystemTime::UNIX_EPOCH + Duration::from_millis(NOON + ahead);
    nodes.iter().for_each(|node| node.node.set_clock(noon));
}

/// Returns the tick `ms` milliseconds after noon.
fn tick(ms: u64) -> Tick {
    Tick::from_millis(NOON + ms).expect("it is this century")
}

fn options() -> ClaimOptions {
    ClaimOptions::new("pod").wait(Wait::Never)
}

async fn claim(client: &Redlock, ms: u64) -> ClaimOutcome {
    let claimed = client.claim("job", tick(ms), options()).await;
    claimed.expect("the nodes decide")
}

async fn won(client: &Redlock, ms: u64) -> Claim {
    let outcome = claim(client, ms).await;
    assert!(matches!(outcome, ClaimOutcome::Won(_)), "{outcome:?}");
    outcome.won().expect("it was won")
}

fn is_claimed(outcome: &ClaimOutcome) -> bool {
    matches!(outcome, ClaimOutcome::AlreadyClaimed { .. })
}

fn word(text: &str) -> Word {
    Word::new(text).expect("it is one")
}

#[tokio::test(start_paused = true)]
async fn a_quick_run_that_is_over_is_not_started_again() {
    let (nodes, [one, other]) = fleet().await;
    let run = won(&one, 0).await;
    run.finish(word("ok"), 5 * MS).await.unwrap();
    let outcome = claim(&other, 0).await;
    let ClaimOutcome::AlreadyClaimed { watermark, run } = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!((watermark, run.unwrap().replica), (tick(0), word("pod")));
    settle().await;
    assert_eq!(keys(&nodes), [0; 3]);
    won(&other, 1)
        .await
        .finish(word("ok"), 5 * MS)
        .await
        .unwrap();
    assert!(is_claimed(&claim(&one, 1).await));
    assert!(is_claimed(&claim(&one, 0).await));
}

#[tokio::test(start_paused = true)]
async fn tokens_grow_from_run_to_run_and_each_sees_the_one_before() {
    let (_nodes, [one, other]) = fleet().await;
    let mut last = None;
    for (number, client) in [&one, &other, &one].into_iter().enumerate() {
        let number = u64::try_from(number).unwrap();
        let options = options().fingerprint(number);
        let claim = client.claim("job", tick(number), options).await.unwrap();
        let claim = claim.won().unwrap();
        let before = claim.last().map(|run| (run.token, run.fingerprint));
        assert_eq!(before, last.map(|token| (token, number - 1)));
        assert!(last.is_none_or(|last| last < claim.token()));
        last = Some(claim.token());
        claim.finish(word("ok"), MS).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn jobs_with_one_lock_do_not_run_at_once_and_have_one_order_of_tokens() {
    let (_nodes, [one, other]) = fleet().await;
    let run = won(&one, 0).await;
    let shared = || options().lock("job".parse().unwrap());
    let refused = other.claim("twin", tick(0), shared()).await.unwrap_err();
    assert_eq!(refused.kind(), AcquireErrorKind::Contended);
    let token = run.token();
    run.finish(word("ok"), MS).await.unwrap();
    let twin = other.claim("twin", tick(0), shared()).await.unwrap();
    let twin = twin.won().unwrap();
    assert!(twin.token() > token);
    assert!(twin.last().is_none(), "a job of its own");
}

// Shows: R6.3.
#[tokio::test(start_paused = true)]
async fn runs_with_different_locks_overlap_and_no_tick_is_claimed_twice() {
    let (_nodes, [one, other]) = fleet().await;
    let under = |ms: u64| options().lock(format!("job@{ms}").parse().unwrap());
    let first = one.claim("job", tick(0), under(0)).await.unwrap();
    let second = other.claim("job", tick(1), under(1)).await.unwrap();
    assert!(first.won().is_some() && second.won().is_some());
    for ms in [0, 1] {
        let again = other.claim("job", tick(ms), under(ms)).await.unwrap();
        assert!(is_claimed(&again), "{again:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_run_is_read_back() {
    let (_nodes, [one, other]) = fleet().await;
    let empty = other.job_status("job").await.unwrap();
    let empty = empty.state().unwrap();
    assert_eq!((empty.watermark, empty.runs.len()), (None, 0));
    let run = won(&one, 0).await;
    let status = other.job_status("job").await.unwrap();
    let state = status.state().unwrap();
    assert_eq!(state.watermark, Some(tick(0)));
    assert_eq!(state.runs[0].state, RunState::Claimed);
    assert!(state.free_in.unwrap() > SECOND);
    run.finish(word("failed"), 1_234 * MS).await.unwrap();
    drop(won(&one, 1).await);
    settle().await;
    // No task waits for the report.
    drop(won(&one, 2).await.finish(word("ok"), 5 * MS));
    settle().await;
    let status = other.job_status("job").await.unwrap();
    let state = status.state().unwrap();
    let ended = |run: usize| match &state.runs[run].state {
        RunState::Ended { outcome, took } => (outcome.as_str().to_owned(), *took),
        other => panic!("{other:?}"),
    };
    assert_eq!(ended(2), ("failed".to_owned(), 1_234 * MS));
    assert_eq!(ended(1), ("dropped".to_owned(), Duration::ZERO));
    assert_eq!(ended(0), ("ok".to_owned(), 5 * MS));
    assert_eq!(state.free_in, Some(Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn without_a_majority_nothing_starts_and_nobody_says_what_was() {
    let (nodes, [one]) = fleet().await;
    nodes[..2].iter().for_each(|node| node.node.stop());
    let refused = one.claim("job", tick(0), options()).await.unwrap_err();
    assert_eq!(refused.kind(), AcquireErrorKind::NoQuorum, "{refused}");
    let status = one.job_status("job").await.unwrap();
    assert!(status.state().is_none());
    assert_eq!(status.reports().len(), 3);
    nodes[0].node.start();
    tokio::time::sleep(2 * SECOND).await;
    drop(won(&one, 0).await);
}

#[tokio::test(start_paused = true)]
async fn bad_options_are_refused_before_any_node_is_asked() {
    let (nodes, [one]) = fleet().await;
    let before = nodes[0].requests();
    for bad in [
        ClaimOptions::new("two words"),
        ClaimOptions::new(""),
        options().ttl(MS),
    ] {
        let refused = one.claim("job", tick(0), bad).await.unwrap_err();
        assert_eq!(refused.kind(), AcquireErrorKind::Misuse, "{refused}");
    }
    assert!(one.job_status("").await.is_err());
    assert_eq!(nodes[0].requests(), before);
    one.close().await;
    let refused = one.claim("job", tick(0), options()).await.unwrap_err();
    assert_eq!(refused.kind(), AcquireErrorKind::Closed);
}

/// Dropped at any moment, a claim leaves no lock; and if the tick is gone it was not started by another either.
// Shows: T5.1.
#[tokio::test(start_paused = true)]
async fn a_claim_that_is_dropped_at_any_moment_leaves_no_lock() {
    let (mut burnt, mut free) = (0, 0);
    for after in 0..30 {
        let nodes = faulty(3);
        set_clocks(&nodes, 0);
        let delays = Faults {
            request_delay: 3 * MS,
            reply_delay: 2 * MS,
            ..Faults::default()
        };
        let (one, other) = (client(&nodes).await, client(&nodes).await);
        nodes.iter().for_each(|node| node.set(delays));
        let claiming = one.claim("job", tick(0), options());
        let won = tokio::time::timeout(after * MS, claiming).await;
        drop(won);
        nodes.iter().for_each(FaultyNode::heal);
        soon(one.close()).await;
        assert_eq!(keys(&nodes), [0; 3], "after {after} ms");
        match claim(&other, 0).await {
            ClaimOutcome::Won(_) => free += 1,
            outcome if is_claimed(&outcome) => burnt += 1,
            outcome => panic!("after {after} ms: {outcome:?}"),
        }
    }
    assert!(burnt >= 10 && free >= 3, "{burnt} burnt, {free} free");
}

#[tokio::test(start_paused = true)]
async fn a_call_to_finish_records_the_outcome_and_its_future_releases_the_lock() {
    let (nodes, [one, other]) = fleet().await;
    let finish = won(&one, 0).await.finish(word("ok"), 5 * MS);
    tokio::time::sleep(60 * SECOND).await;
    let status = other.job_status("job").await.unwrap();
    let outcome = word("ok");
    let took = 5 * MS;
    assert_eq!(
        status.state().unwrap().runs[0].state,
        RunState::Ended { outcome, took }
    );
    // The lease is renewed for as long as no task polls the future.
    assert_eq!(keys(&nodes), [1; 3]);
    drop(finish);
    settle().await;
    assert_eq!(keys(&nodes), [0; 3]);
}
