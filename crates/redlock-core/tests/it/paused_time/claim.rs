//! Claims of ticks: one start each, by the nodes' clocks, whatever the network does.

use std::time::{Duration, SystemTime};

use redlock_core::{
    AcquireErrorKind, Claim, ClaimOptions, ClaimOutcome, NodeAnswer, NodeReport, Redlock, RunState,
    Tick, Wait, Word,
};

use crate::paused_time::fixtures::{
    Faults, FaultyNode, MS, SECOND, client, client_of, faulty, keys, settle, soon,
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
async fn a_run_that_goes_on_is_waited_for_and_burns_no_tick() {
    let (nodes, [one, other, third]) = fleet().await;
    let run = won(&one, 0).await;
    let refused = other.claim("job", tick(1), options()).await.unwrap_err();
    assert_eq!(refused.kind(), AcquireErrorKind::Contended);
    let waiting = options().wait(Wait::UpTo(SECOND));
    let finishing = async {
        tokio::time::sleep(300 * MS).await;
        run.finish(word("ok"), SECOND).await.unwrap();
    };
    let (waited, ()) = tokio::join!(other.claim("job", tick(1), waiting), finishing);
    let claim = waited.unwrap().won().unwrap();
    // Its lock is that of the resource of the same name.
    let refused = third.try_acquire("job").await.unwrap_err();
    assert_eq!(refused.kind(), AcquireErrorKind::Contended);
    drop(claim);
    settle().await;
    assert_eq!(keys(&nodes), [0; 3]);
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
async fn the_nodes_clocks_judge_the_tick() {
    let (nodes, [one]) = fleet().await;
    let outcome = claim(&one, 3_600_000).await;
    let ClaimOutcome::TooEarly { by } = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(by, Duration::from_secs(3_595));
    set_clocks(&nodes, 10_001);
    let outcome = claim(&one, 0).await;
    assert!(
        matches!(outcome, ClaimOutcome::TooLate { by } if by == MS),
        "{outcome:?}"
    );
    assert_eq!(keys(&nodes), [0; 3]);
    // Neither has used the ticks up.
    won(&one, 10_000)
        .await
        .finish(word("ok"), MS)
        .await
        .unwrap();
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

// Shows: T4.7.
#[tokio::test(start_paused = true)]
async fn nodes_that_have_forgotten_give_away_nothing_that_was_claimed() {
    let (nodes, [one, other]) = fleet().await;
    won(&one, 0).await.finish(word("ok"), MS).await.unwrap();
    nodes.iter().for_each(|node| node.node.clear());
    let hour = options().start_within(Duration::from_secs(3_600));
    let waits = hour.clone().wait(Wait::UpTo(Duration::from_secs(60)));
    let refused = other.claim("job", tick(0), waits).await.unwrap();
    let ClaimOutcome::Forgotten { for_good, reports } = refused else {
        panic!("{refused:?}")
    };
    assert!(for_good);
    let forgot = |report: &&NodeReport| report.answer == NodeAnswer::Forgot;
    assert!(reports.iter().filter(forgot).count() >= 2, "{reports:?}");
    tokio::time::sleep(Duration::from_secs(60)).await;
    let later = other.claim("job", tick(60_000), hour).await.unwrap();
    assert!(later.won().is_some());
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

/// A majority remembers the tick, and the claimant never hears so: the tick is not started, and it is given back once
/// the nodes can be heard again.
#[tokio::test(start_paused = true)]
async fn a_claim_that_is_not_confirmed_is_not_won_and_gives_its_tick_back() {
    let nodes = faulty(3);
    set_clocks(&nodes, 0);
    let slow = Faults::late_requests(40 * MS);
    let one = client_of(&nodes)
        .node_timeout(100 * MS)
        .build()
        .await
        .unwrap();
    nodes.iter().for_each(|node| node.set(slow));
    let silent = Faults::SILENT;
    let falling_silent = async {
        // They have the claim, and what comes next is not heard of.
        tokio::time::sleep(20 * MS).await;
        nodes.iter().for_each(|node| node.set(silent));
    };
    let claiming = one.claim("job", tick(0), options());
    let (outcome, ()) = soon(async { tokio::join!(claiming, falling_silent) }).await;
    assert_eq!(outcome.unwrap_err().kind(), AcquireErrorKind::NoQuorum);
    nodes.iter().for_each(FaultyNode::heal);
    let other = client(&nodes).await;
    // What is owed to a node that was silent is made good once a second.
    tokio::time::sleep(2 * SECOND).await;
    assert_eq!(keys(&nodes), [0; 3]);
    assert!(claim(&other, 0).await.won().is_some());
    soon(one.close()).await;
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
