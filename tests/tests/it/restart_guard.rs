//! A node that may have forgotten leases does not vote for as long as they could last.
//!
//! Kleppmann's scenario ("How to do distributed locking", 2016) on five masters: the first client has three of
//! them, one of which forgets; the second finds that one free, and the two that the first did not reach.

use std::time::Duration;

use redlock_sandbox::{Persistence, ServerOptions};
use redlock_tests::{
    ClientProcess, Connect, History, Hold, HoldWork, Moment, Nodes, Proxy, Relay, Work, eventually,
    now, voting, within,
};

const CLIENT: &str = env!("CARGO_BIN_EXE_redlock-test-client");
const KEY: &str = "{redlock}:lock:a";
/// Of all clients here; also the time to live of their leases.
const MAX_TTL: Duration = Duration::from_millis(1_500);
const SOON: Duration = Duration::from_secs(2);
/// No server listens there, so the first client is cut off from these two of its nodes.
const NOWHERE: [&str; 2] = ["redis://127.0.0.1:1", "redis://127.0.0.1:2"];
/// The node that forgets.
const FORGETFUL: usize = 2;

/// How it comes to forget the first client's lease.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Fault {
    /// SIGKILL, and a restart with nothing.
    Crash,
    /// SIGKILL, and a restart with a snapshot from before the lease.
    StaleSnapshot,
    /// SIGKILL, and a restart with an append-only file that is synced every second.
    AppendOnlyFile,
    /// `FLUSHALL`, while it runs.
    Flush,
    /// A replica that has not heard of the lease takes its place at the same address.
    Failover,
    /// Such a replica leads for a moment; then the node copies it and leads again, and never restarted.
    Failback,
}

/// What the second client takes the nodes for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Second {
    /// It lets every node that it reaches vote at once.
    ///
    /// A fair stand-in for a client without the guard: the mark says "voting" whatever the node has forgotten, which
    /// is what such a client takes for granted, and nothing else about it differs.
    Naive,
    /// It is as it is.
    Guarded,
}

/// When what happened.
#[derive(Debug)]
struct Outcome {
    forgot: Duration,
    /// Until when the first client knew its lease to be valid, and when it last worked under it.
    first: (Duration, Duration),
    second: Hold,
    overlaps: usize,
}

impl Outcome {
    /// Seconds from the moment at which the node forgot.
    fn tell(&self, fault: Fault, second: Second) {
        let since = |at: Duration| at.as_secs_f64() - self.forgot.as_secs_f64();
        eprintln!(
            "{fault:?}, {second:?}: the node forgets at 0 s, A's lease ends at {:.2} s, A works under it until \
             {:.2} s, B wins at {:.2} s: {}",
            since(self.first.0),
            since(self.first.1),
            since(self.second.from),
            match self.overlaps {
                0 => "one holder at a time",
                _ => "two holders at once",
            }
        );
    }
}

/// Five masters that an operator has vouched for, and for a failover a replica of the third.
struct Masters {
    nodes: Nodes,
    /// What leads to the third.
    address: Proxy,
}

impl Masters {
    async fn start(fault: Fault) -> Self {
        let options = match fault {
            Fault::AppendOnlyFile => ServerOptions::default()
                .persistence(Persistence::AppendOnly)
                .argument("--appendfsync")
                .argument("everysec"),
            // A replica's copy begins at once, without a wait for further replicas.
            Fault::Failover | Fault::Failback => ServerOptions::default()
                .argument("--repl-diskless-sync-delay")
                .argument("0"),
            _ => ServerOptions::default(),
        };
        let copied = matches!(fault, Fault::Failover | Fault::Failback);
        let count = if copied { 6 } else { 5 };
        let nodes = Nodes::start_with(count, &options);
        let address = Proxy::start(nodes[FORGETFUL].address()).await.unwrap();
        let masters = Self { nodes, address };
        let link = if copied {
            Some(masters.replicate().await)
        } else {
            None
        };
        let operator = masters.connect(Second::Naive).client().await;
        // A master that has a replica does not count, whatever its mark says.
        voting(&operator, if copied { 4 } else { 5 }, SOON).await;
        operator.close().await;
        match link {
            Some(link) => masters.cut_off(link).await,
            None if fault == Fault::StaleSnapshot => drop(masters.nodes.ask(FORGETFUL, &["SAVE"])),
            None => {}
        }
        masters
    }

    fn urls(&self) -> Vec<String> {
        let mut urls = self.nodes.urls();
        urls.truncate(5);
        urls[FORGETFUL] = self.address.url();
        urls
    }

    fn connect(&self, second: Second) -> Connect {
        Connect {
            max_ttl: MAX_TTL,
            vouches: second == Second::Naive,
            ..Connect::to(self.urls(), MAX_TTL)
        }
    }

    /// Makes the sixth server a replica of the third; returns what connects them.
    async fn replicate(&self) -> Proxy {
        let link = Proxy::start(self.nodes[FORGETFUL].address()).await.unwrap();
        let port = link.url().rsplit(':').next().unwrap().to_owned();
        self.nodes.ask(5, &["REPLICAOF", "127.0.0.1", &port]);
        let info = || self.nodes.ask(5, &["INFO", "replication"]);
        let is_up = |info: &String| info.contains("master_link_status:up");
        eventually("the replica has a copy", SOON * 5, info, is_up).await;
        link
    }

    /// Cuts the connection to the replica, which knows that the third votes.
    async fn cut_off(&self, link: Proxy) {
        let mark = || self.nodes.ask(5, &["GET", "{redlock}:mark"]);
        eventually("the mark is copied", SOON * 5, mark, |mark| {
            mark.starts_with("voting ")
        })
        .await;
        drop(link);
        let info = || self.nodes.ask(5, &["INFO", "replication"]);
        eventually("the replica is cut off", SOON * 5, info, |info| {
            info.contains("master_link_status:down")
        })
        .await;
        let replicas = || self.nodes.ask(FORGETFUL, &["INFO", "replication"]);
        eventually("the master knows", SOON * 5, replicas, |info| {
            info.contains("connected_slaves:0")
        })
        .await;
    }

    /// The third copies what the sixth has, and leads again.
    async fn fail_back(&self) {
        let run = || self.nodes.ask(FORGETFUL, &["INFO", "server"]);
        let its_run = |info: String| {
            let line = info.lines().find(|line| line.starts_with("run_id:"));
            line.map(str::to_owned)
        };
        let before = its_run(run());
        self.nodes.ask(5, &["REPLICAOF", "NO", "ONE"]);
        let url = self.nodes[5].url();
        let port = url.rsplit(':').next().unwrap();
        self.nodes.ask(FORGETFUL, &["REPLICAOF", "127.0.0.1", port]);
        let info = || self.nodes.ask(FORGETFUL, &["INFO", "replication"]);
        eventually("it has copied", SOON * 5, info, |info| {
            info.contains("master_link_status:up")
        })
        .await;
        self.nodes.ask(FORGETFUL, &["REPLICAOF", "NO", "ONE"]);
        assert!(before.is_some() && before == its_run(run()), "it lives on");
        let mark = self.nodes.ask(FORGETFUL, &["GET", "{redlock}:mark"]);
        assert!(mark.starts_with("voting "), "it says so: {mark}");
    }

    async fn forget(&mut self, fault: Fault) {
        match fault {
            Fault::Crash | Fault::StaleSnapshot | Fault::AppendOnlyFile => {
                self.nodes[FORGETFUL].restart().unwrap();
            }
            Fault::Flush => drop(self.nodes.ask(FORGETFUL, &["FLUSHALL"])),
            Fault::Failover => {
                self.nodes.kill(FORGETFUL..FORGETFUL + 1);
                self.nodes.ask(5, &["REPLICAOF", "NO", "ONE"]);
                self.address.lead_to(self.nodes[5].address());
            }
            Fault::Failback => self.fail_back().await,
        }
    }
}

/// Two client processes and the fault.
async fn run(fault: Fault, second: Second) -> Outcome {
    let mut masters = Masters::start(fault).await;
    let history = History::new();
    let hold = |name: &str, connect: Connect| {
        let work = HoldWork {
            wait: Duration::from_secs(10),
            period: Duration::from_millis(5),
            ..HoldWork::new(history.file(name), connect, "a")
        };
        ClientProcess::start(CLIENT, &Work::Hold(work))
    };

    let mut connect = masters.connect(Second::Guarded);
    connect.nodes.splice(3.., NOWHERE.map(str::to_owned));
    let first = hold("first", connect);
    let holds = || history.holds().len();
    eventually("the first has it", SOON * 5, holds, |holds| *holds == 1).await;
    assert!(masters.nodes.pttl(FORGETFUL, KEY).is_some());
    let process = history.events()[0].process;

    let forgot = now();
    masters.forget(fault).await;
    let kept = fault == Fault::AppendOnlyFile;
    let server = if fault == Fault::Failover {
        5
    } else {
        FORGETFUL
    };
    assert_eq!(masters.nodes.pttl(server, KEY).is_some(), kept);

    let other = hold("second", masters.connect(second));
    eventually("the second has it", SOON * 6, holds, |holds| *holds == 2).await;
    let report: String = first.finish(SOON * 2).await;
    assert!(
        report.starts_with("Expired") || report.starts_with("Revoked"),
        "{report}"
    );
    other.kill();

    let events = history.events();
    let until = |moment| {
        let of_first = events.iter().filter(|event| event.process == process);
        let of_first = of_first.filter(|event| event.is_valid() && event.moment == moment);
        of_first.map(|event| event.until).max()
    };
    let first_until = until(Moment::Polled).max(until(Moment::Acquired)).unwrap();
    let mut holds = history.holds();
    let second_hold = holds.pop().unwrap();
    let outcome = Outcome {
        forgot,
        first: (first_until, holds[0].to),
        second: second_hold,
        overlaps: history.overlaps().len(),
    };
    outcome.tell(fault, second);
    outcome
}

/// Two at once without the guard, and one at a time with it.
async fn breaks_without_the_guard_only(fault: Fault) {
    let naive = run(fault, Second::Naive).await;
    assert_eq!(naive.overlaps, 1, "the fault does no harm: {naive:?}");
    holds_with_the_guard(fault).await;
}

async fn holds_with_the_guard(fault: Fault) {
    let guarded = run(fault, Second::Guarded).await;
    assert_eq!(guarded.overlaps, 0, "{guarded:?}");
    assert!(guarded.first.0 < guarded.second.from, "{guarded:?}");
    let waited = guarded.second.from - guarded.forgot;
    assert!(waited < MAX_TTL * 2, "{guarded:?}");
}

// Shows: E1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s15_a_master_that_crashed_and_forgot_lets_no_second_holder_in() {
    breaks_without_the_guard_only(Fault::Crash).await;
}

// Shows: E2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s15_a_master_with_a_stale_snapshot_lets_no_second_holder_in() {
    breaks_without_the_guard_only(Fault::StaleSnapshot).await;
}

// Shows: E2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s15_an_append_only_file_that_is_synced_every_second_is_not_trusted() {
    // What the file has lost cannot be told, so here it has lost nothing, and it is waited for all the same.
    holds_with_the_guard(Fault::AppendOnlyFile).await;
}

// Shows: E7.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s15_a_master_that_was_flushed_lets_no_second_holder_in() {
    breaks_without_the_guard_only(Fault::Flush).await;
}

// Shows: E4.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s16_a_promoted_replica_lets_no_second_holder_in() {
    breaks_without_the_guard_only(Fault::Failover).await;
}

// Shows: E5, G2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s16_a_master_that_copied_its_own_replica_lets_no_second_holder_in() {
    breaks_without_the_guard_only(Fault::Failback).await;
}

// Shows: E3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s15_a_restart_behind_a_connection_that_stays_is_noticed_all_the_same() {
    let mut nodes = Nodes::start(3);
    let mut relays = Vec::new();
    for node in nodes.iter() {
        relays.push(Relay::start(node.address()).await.unwrap());
    }
    let mut connect = Connect {
        max_ttl: MAX_TTL,
        ..Connect::to(relays.iter().map(Relay::url).collect(), MAX_TTL)
    };
    let redlock = connect.client().await;
    voting(&redlock, 3, SOON).await;
    let other_nodes = [nodes[0].url(), nodes[1].url(), NOWHERE[0].to_owned()];
    connect.nodes = other_nodes.into();
    connect.vouches = false;
    let other = connect.client().await;
    let held = other.acquire("a").await.unwrap();
    let deadline = || now() + held.lease().remaining();

    let before = now();
    nodes[1].restart().unwrap();
    let mut valid_until = deadline();
    let won = async {
        loop {
            valid_until = valid_until.max(deadline());
            if let Ok(guard) = redlock.try_acquire("a").await {
                return (guard, now());
            }
        }
    };
    let (guard, at) = within("a lease", MAX_TTL * 3, won).await;
    assert!(!held.lease().is_held());
    assert!(at > valid_until && at - before > MAX_TTL);
    // The client never saw a connection break.
    let connections: Vec<u64> = relays.iter().map(Relay::connections).collect();
    assert_eq!(connections, [1; 3]);
    guard.release().await.unwrap();
}
