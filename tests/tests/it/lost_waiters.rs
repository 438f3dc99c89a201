//! Callers in line whose processes or nodes are lost while they wait.

use std::time::Duration;

use redlock_core::{AcquireOptions, LockGuard, Redlock, Wait};
use redlock_tests::{
    ClientProcess, Connect, Event, History, HoldWork, Moment, Nodes, Work, client, eventually, now,
};
use tokio::{sync::oneshot, task::JoinSet, time::sleep};

const CLIENT: &str = env!("CARGO_BIN_EXE_redlock-test-client");
const TTL: Duration = Duration::from_secs(10);
const SOON: Duration = Duration::from_secs(20);
const LINE: &str = "{redlock}:line:{redlock}:lock:a";
/// For how long a node remembers a sign of life.
const SIGN: Duration = Duration::from_secs(3);
/// What a hand-over may take on a busy machine; it takes a second more if a lost caller is given the key first.
const AT_ONCE: Duration = Duration::from_millis(700);

/// A line for the key `a`, some of whose callers are in processes of their own.
struct Line {
    nodes: Nodes,
    history: History,
    length: usize,
    callers: JoinSet<()>,
}

impl Line {
    fn start(nodes: usize) -> Self {
        Self {
            nodes: Nodes::start(nodes),
            history: History::new(),
            length: 0,
            callers: JoinSet::new(),
        }
    }

    /// Acquires the key by a client of its own.
    async fn held(&self) -> LockGuard {
        let client = client(self.nodes.urls(), TTL).await;
        client.acquire("a").await.unwrap()
    }

    fn process(&self, ttl: Duration) -> ClientProcess {
        let connect = Connect::to(self.nodes.urls(), ttl);
        let mut work = HoldWork::new(self.history.file("waits"), connect, "a");
        work.wait = 3 * SOON;
        ClientProcess::start(CLIENT, &Work::Hold(work))
    }

    /// Adds a process that holds the key once it has its turn.
    async fn add_process(&mut self) -> ClientProcess {
        let process = self.process(TTL);
        self.has_grown().await;
        process
    }

    /// Adds a caller that releases the key once it has had its turn, and says when that was.
    async fn add(&mut self) -> oneshot::Receiver<Duration> {
        let client = client(self.nodes.urls(), TTL).await;
        let (says, caller) = oneshot::channel();
        self.callers.spawn(async move {
            let guard = client.acquire_with("a", patient()).await.unwrap();
            let had = now();
            guard.release().await.unwrap();
            says.send(had).unwrap();
        });
        self.has_grown().await;
        caller
    }

    async fn has_grown(&mut self) {
        self.length += 1;
        let length = self.length;
        eventually(
            "it is in line",
            SOON,
            || self.lengths(),
            |lengths| lengths.iter().all(|callers| *callers >= length),
        )
        .await;
        // Each client estimates the nodes' time by answers that may have been slow.
        sleep(Duration::from_millis(300)).await;
    }

    /// Returns how many callers are in line at each node.
    fn lengths(&self) -> Vec<usize> {
        let lines = self.nodes.ask_all(&["GET", LINE]);
        lines.iter().map(|line| line.lines().count()).collect()
    }

    /// Waits for a process to hold the key.
    async fn holds(&self, process: &ClientProcess) {
        let is_held = |event: &Event| {
            event.process == process.id() && event.moment == Moment::Acquired && event.is_valid()
        };
        let events = || self.history.events();
        eventually("it holds the key", SOON, events, |events| {
            events.iter().any(is_held)
        })
        .await;
    }
}

fn patient() -> AcquireOptions {
    AcquireOptions::new().wait(Wait::UpTo(3 * SOON))
}

// Shows: R9.7.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_whose_process_was_killed_is_passed_over_in_the_same_step() {
    for place in 0..3 {
        let mut line = Line::start(3);
        let held = line.held().await;
        let (mut others, mut killed) = (Vec::new(), None);
        for at in 0..3 {
            if at == place {
                killed = Some(line.add_process().await);
            } else {
                others.push(line.add().await);
            }
        }
        killed.unwrap().kill();
        sleep(Duration::from_millis(100)).await;
        let mut freed = now();
        held.release().await.unwrap();
        for other in others {
            let had = other.await.unwrap();
            let took = had.saturating_sub(freed);
            assert!(took < AT_ONCE, "killed at {place}: {took:?}");
            freed = had;
        }
    }
}

// Shows: R9.7.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_whose_process_stands_still_is_passed_over_and_has_its_turn_later() {
    let mut line = Line::start(3);
    let held = line.held().await;
    let frozen = line.add_process().await;
    let next = line.add().await;
    frozen.freeze();
    // Its connections stand, so messages to it are sent.
    sleep(SIGN + Duration::from_millis(200)).await;
    let freed = now();
    held.release().await.unwrap();
    let took = next.await.unwrap().saturating_sub(freed);
    assert!(took < AT_ONCE, "{took:?}");
    let held = line.held().await;
    frozen.thaw();
    sleep(SIGN).await;
    held.release().await.unwrap();
    line.holds(&frozen).await;
}

// Shows: R9.8.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_is_given_the_key_while_its_process_stands_still_delays_the_next_by_the_gift()
{
    let mut line = Line::start(3);
    let held = line.held().await;
    let frozen = line.add_process().await;
    let next = line.add().await;
    // The next one asks rarely by now.
    sleep(2 * SIGN).await;
    frozen.freeze();
    let freed = now();
    held.release().await.unwrap();
    let took = next.await.unwrap().saturating_sub(freed);
    assert!(took < SIGN, "{took:?}");
}

// Shows: R9.8.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_second_in_line_has_its_turn_when_the_holder_and_the_first_are_killed_together() {
    let mut line = Line::start(3);
    let holder = line.process(SIGN);
    line.holds(&holder).await;
    let first = line.add_process().await;
    let second = line.add().await;
    sleep(2 * SIGN).await;
    let killed = now();
    holder.kill();
    first.kill();
    let took = second.await.unwrap().saturating_sub(killed);
    // Its ttl, and a second for the place.
    assert!(took < SIGN + Duration::from_secs(2), "{took:?}");
}

// Shows: R9.7.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_are_in_line_again_at_a_node_that_has_forgotten_them() {
    let mut line = Line::start(3);
    let holder: Redlock = client(line.nodes.urls(), TTL).await;
    let held = holder.acquire("a").await.unwrap();
    let waiting = client(line.nodes.urls(), TTL).await;
    let mut kept = Vec::new();
    let mut callers = JoinSet::new();
    for at in 0..20 {
        let (client, key) = (waiting.clone(), format!("b{at}"));
        kept.push(holder.acquire(key.as_str()).await.unwrap());
        callers.spawn(async move {
            drop(client.acquire_with(key.as_str(), patient()).await.unwrap());
        });
    }
    let other = line.add().await;
    sleep(3 * SIGN).await;
    let count = |pattern: &str| {
        let script = "return #redis.call('KEYS', ARGV[1])";
        let keys = line.nodes.ask(0, &["EVAL", script, "0", pattern]);
        keys.parse::<usize>().unwrap()
    };
    let forget =
        "for _, key in ipairs(redis.call('KEYS', ARGV[1])) do redis.call('DEL', key) end return 1";
    for pattern in ["{redlock}:line:*", "{redlock}:alive:*"] {
        line.nodes.ask(0, &["EVAL", forget, "0", pattern]);
    }
    let in_line = || count("{redlock}:line:*");
    // They ask once their client's next sign of life has shown that; else the longest times are 22 s.
    eventually("they are in line again", SIGN, in_line, |lines| {
        *lines == 21
    })
    .await;
    held.release().await.unwrap();
    other.await.unwrap();
    drop(kept);
    callers.join_all().await;
}
