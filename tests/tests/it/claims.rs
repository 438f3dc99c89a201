//! A tick is started once, by the masters' clocks, whatever becomes of the masters.
#![cfg(target_os = "linux")]

use std::time::{Duration, SystemTime};

use redlock_core::{
    AcquireErrorKind, Claim, ClaimOptions, ClaimOutcome, NodeAnswer, NodeReport, Redlock, Tick,
    Wait, Word,
};
use redlock_sandbox::ServerOptions;
use redlock_tests::{Connect, Nodes, Proxies, eventually, now, voting, within};
use tokio::task::JoinSet;

/// Of all clients here; masters that forgot do not vote for as long.
const MAX_TTL: Duration = Duration::from_millis(1_000);
const SOON: Duration = Duration::from_secs(20);
/// So long that what else a busy machine does is little of it.
const ROUND_TRIP: Duration = Duration::from_millis(200);
const HOUR: u64 = 3_600_000;
/// The command by which the script reads a node's counters.
const SURVEY: &str = "zrange";
/// Of these surveys one is quick enough that a node may be told to vote after it.
const MANY: u64 = 10;

/// The milliseconds since the epoch, as masters without a clock of their own have them too.
fn millis() -> u64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "masters judge ticks by the wall clock"
    )]
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    u64::try_from(since.unwrap().as_millis()).unwrap()
}

fn tick(millis: u64) -> Tick {
    Tick::from_millis(millis).unwrap()
}

fn options() -> ClaimOptions {
    ClaimOptions::new("replica").wait(Wait::Never)
}

/// Claims that neither come too late nor go without an answer because the machine is busy.
fn patient() -> ClaimOptions {
    let window = options().start_within(Duration::from_millis(HOUR));
    window.wait(Wait::UpTo(SOON))
}

async fn connect(nodes: &Nodes, vouches: bool) -> Redlock {
    let connect = Connect {
        max_ttl: MAX_TTL,
        vouches,
        ..Connect::to(nodes.urls(), MAX_TTL)
    };
    connect.client().await
}

async fn finish(claim: Claim) {
    let ok = Word::new("ok").unwrap();
    claim.finish(ok, Duration::ZERO).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_takes_two_round_trips() {
    let nodes = Nodes::start(3);
    let proxies = Proxies::start(nodes.iter().map(|node| node.address())).await;
    let connect = Connect::to(proxies.urls(), SOON);
    let redlock = connect.client().await;
    for proxy in &proxies.0 {
        proxy.delay_replies(ROUND_TRIP);
    }
    let (began, mut claims) = (millis(), Vec::new());
    // What else the machine does makes it longer and never shorter, so that one quick claim decides.
    let best = loop {
        let due = tick(began + claims.len() as u64);
        let asked = now();
        let claim = redlock.claim("job", due, patient()).await;
        let took = (now() - asked).div_duration_f64(ROUND_TRIP);
        claims.push(took);
        finish(claim.unwrap().won().unwrap()).await;
        if took < 2.5 || claims.len() == 20 {
            break took;
        }
    };
    println!("in round trips: {claims:.2?}");
    assert!((2.0..2.5).contains(&best), "{claims:?}");
}

/// The commit is on its way when a master dies that has granted the claim, whichever of the three it is.
// Shows: T4.14.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_dies_between_claim_and_commit_neither_burns_the_tick_nor_blocks_the_job() {
    for dies in 0..3 {
        let mut nodes = Nodes::start(3);
        let proxies = Proxies::start(nodes.iter().map(|node| node.address())).await;
        let patient = Connect::to(proxies.urls(), MAX_TTL * 10).builder();
        let redlock = patient.node_timeout(MAX_TTL).build().await.unwrap();
        redlock.dangerous_bless().await;
        for proxy in &proxies.0 {
            proxy.delay_requests(ROUND_TRIP * 3);
        }
        let began = millis();
        let mut claiming = JoinSet::new();
        claiming.spawn({
            let redlock = redlock.clone();
            async move { redlock.claim("job", tick(began), options()).await }
        });
        let has_granted = || nodes.pttl(dies, "{redlock}:lock:job").is_some();
        eventually("it has granted", SOON, has_granted, |granted| *granted).await;
        nodes.kill(dies..dies + 1);
        let outcome = within("an answer", SOON, claiming.join_next()).await;
        let claim = outcome.unwrap().unwrap().unwrap().won();
        finish(claim.expect("two of three are left")).await;
        let next = redlock.claim("job", tick(began + 1), options()).await;
        finish(next.unwrap().won().expect("nothing is in its way")).await;
    }
}

// Shows: T4.9.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_tick_is_started_once_by_replicas_that_come_to_it_at_once_and_later() {
    let nodes = Nodes::start(3);
    let mut replicas = Vec::new();
    for replica in 0..4 {
        let connect = Connect {
            vouches: replica == 0,
            ..Connect::to(nodes.urls(), SOON)
        };
        replicas.push(connect.client().await);
    }
    let began = millis();
    let mut tokens = Vec::new();
    for number in 0..25 {
        let due = tick(began + number);
        let claims = replicas.iter().map(|r| r.claim("job", due, patient()));
        let mut started = 0;
        for outcome in futures_util::future::join_all(claims.map(|claim| async {
            match claim.await.unwrap() {
                ClaimOutcome::Won(claim) => {
                    let token = claim.token();
                    finish(*claim).await;
                    Some(token)
                }
                ClaimOutcome::AlreadyClaimed { .. } => None,
                other => panic!("{other:?}"),
            }
        }))
        .await
        {
            started += usize::from(outcome.is_some());
            tokens.extend(outcome);
        }
        assert_eq!(started, 1, "tick {number}");
        // The run is over, and a replica that is late comes to the tick.
        let late = replicas[0].claim("job", due, patient()).await.unwrap();
        assert!(
            matches!(late, ClaimOutcome::AlreadyClaimed { .. }),
            "{late:?}"
        );
    }
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
}

/// All masters forget the tick, one after the other, so that there is a majority that votes at every moment.
// Shows: T4.7.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tick_is_not_started_again_when_every_master_has_come_back_empty() {
    let mut nodes = Nodes::start(3);
    let one = connect(&nodes, true).await;
    let other = connect(&nodes, false).await;
    let began = millis();
    // Its window is longer than all that follows, and begins when it is due: a master that came back gives nothing
    // away that could have been claimed before.
    let hour = || patient().early(Duration::ZERO);
    let claim = one.claim("job", tick(began), hour()).await.unwrap();
    finish(claim.won().expect("nobody else wants it")).await;
    for node in 0..3 {
        nodes[node].restart().unwrap();
        voting(&other, 2, SOON).await;
        voting(&other, 3, SOON).await;
        let again = other.claim("job", tick(began), hour()).await;
        match again {
            Ok(ClaimOutcome::AlreadyClaimed { .. }) => assert!(node < 2),
            Ok(ClaimOutcome::Forgotten { reports, .. }) => {
                let forgot = |report: &NodeReport| report.answer == NodeAnswer::Forgot;
                assert!(reports.iter().any(forgot), "{reports:?}");
            }
            other => panic!("after master {node} came back: {other:?}"),
        }
    }
    let later = other.claim("job", tick(millis()), hour()).await;
    assert!(later.unwrap().won().is_some());
}

// Shows: T4.2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clock_is_a_majority_of_the_masters() {
    let nodes = Nodes::start_with(3, &ServerOptions::default().own_clock());
    let clock = |node: usize| nodes[node].clock().unwrap();
    let redlock = connect(&nodes, true).await;
    let options = || patient().start_within(Duration::from_millis(HOUR / 2));
    let due = millis();
    // One that is an hour ahead would give away what is due in an hour.
    clock(0).advance(Duration::from_millis(HOUR)).unwrap();
    voting(&redlock, 2, SOON).await;
    let early = redlock.claim("job", tick(due + HOUR), options()).await;
    let early = early.unwrap();
    assert!(matches!(early, ClaimOutcome::TooEarly { .. }), "{early:?}");
    let claim = redlock.claim("job", tick(due), options()).await.unwrap();
    finish(claim.won().expect("it is due")).await;
    // When they all are, it is what time it is.
    for node in 1..3 {
        clock(node).advance(Duration::from_millis(HOUR)).unwrap();
    }
    voting(&redlock, 3, SOON).await;
    let late = redlock
        .claim("job", tick(due + 1), options())
        .await
        .unwrap();
    assert!(matches!(late, ClaimOutcome::TooLate { .. }), "{late:?}");
    let claim = redlock.claim("job", tick(due + HOUR), options()).await;
    assert!(claim.unwrap().won().is_some());
}

/// A machine that starts with a wrong clock, and whose time service sets it right after a while.
// Shows: T4.8.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn masters_that_come_back_empty_with_a_wrong_clock_give_no_tick_away_again() {
    let mut nodes = Nodes::start_with(3, &ServerOptions::default().own_clock());
    let redlock = connect(&nodes, true).await;
    let due = tick(millis());
    let hour = Duration::from_millis(HOUR);
    let options = || patient().early(Duration::ZERO);
    let claim = redlock.claim("job", due, options()).await.unwrap();
    finish(claim.won().expect("it is due")).await;
    for node in 0..3 {
        nodes[node].restart().unwrap();
        nodes[node].clock().unwrap().set_back(hour).unwrap();
        nodes.ask(node, &["FLUSHALL"]);
        nodes.ask(node, &["CONFIG", "RESETSTAT"]);
        // A client that may let it vote reads the nodes' counters first, and only once its quarantine is over; it
        // reads them again when that did not come of it.
        let chances = || match nodes.ask(node, &["GET", "{redlock}:mark"]) {
            mark if mark.starts_with("voting") => MANY,
            _ => nodes.calls(node, SURVEY),
        };
        eventually("chances to vote", SOON, chances, |had| *had >= MANY).await;
        voting(&redlock, 2, SOON).await;
        nodes[node].clock().unwrap().advance(hour).unwrap();
        voting(&redlock, 3, SOON).await;
    }
    let again = redlock.claim("job", due, options()).await;
    assert!(
        matches!(again, Ok(ClaimOutcome::Forgotten { .. })),
        "all masters have forgotten it: {again:?}"
    );
    let later = redlock.claim("job", tick(millis()), options()).await;
    assert!(later.unwrap().won().is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_master_down_costs_nothing_and_a_majority_is_a_clear_error() {
    let mut nodes = Nodes::start(3);
    let redlock = connect(&nodes, true).await;
    nodes.kill(0..1);
    let due = millis();
    let claim = within("a claim", SOON, redlock.claim("job", tick(due), patient())).await;
    finish(claim.unwrap().won().expect("two are a majority")).await;
    let status = redlock.job_status("job").await.unwrap();
    let state = status.state().expect("two are a majority");
    assert_eq!(state.watermark, Some(tick(due)));
    nodes.kill(1..2);
    let error = redlock.claim("job", tick(due + 1), options()).await;
    assert_eq!(error.unwrap_err().kind(), AcquireErrorKind::NoQuorum);
    assert!(redlock.job_status("job").await.unwrap().state().is_none());
}
