//! Replicas as processes, over real servers.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    cell::RefCell,
    net::SocketAddr,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use redlock_core::Redlock;
use redlock_sandbox::{ServerBinary, ServerOptions, ServerSet};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines},
    join,
    net::TcpStream,
    process::{Child, ChildStderr, Command},
    time::{Instant, sleep, timeout},
};

const BANK_TAKES: Duration = Duration::from_secs(1);

/// Starts three masters that vote at once, and a client beside the replicas.
async fn nodes() -> (ServerSet, Redlock) {
    let binary = ServerBinary::find().unwrap_or_else(|error| panic!("{error}"));
    let servers = ServerSet::start(&binary, 3, &ServerOptions::default()).unwrap();
    let redlock = Redlock::builder().nodes(servers.urls());
    let redlock = redlock.build().await.unwrap();
    redlock.dangerous_bless().await;
    (servers, redlock)
}

struct Replica {
    child: Child,
    log: Lines<BufReader<ChildStderr>>,
    address: SocketAddr,
}

impl Replica {
    async fn start(servers: &ServerSet) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bookings"));
        for (variable, _) in std::env::vars_os() {
            if variable.to_string_lossy().starts_with("REDLOCK_") {
                command.env_remove(variable);
            }
        }
        let command = command
            .env("REDLOCK_NODES", servers.urls().join(","))
            .env("BOOKINGS_BANK_TAKES_MS", BANK_TAKES.as_millis().to_string())
            .env("NO_COLOR", "1")
            .kill_on_drop(true)
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = loop {
            let line = log.next_line().await.unwrap();
            let line = line.expect("it has ended before it listened");
            if let Some((_, address)) = line.split_once("listens address=") {
                break address.trim().parse().unwrap();
            }
        };
        Self {
            child,
            log,
            address,
        }
    }

    fn ask(&self, path: &str, body: &serde_json::Value) -> impl Future<Output = String> + use<> {
        let (body, address) = (body.to_string(), self.address);
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: hotel\r\nconnection: close\r\nidempotency-key: a-key\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        }
    }

    /// Asks it to end, and returns how it did and the last line of its log.
    async fn end(mut self) -> (ExitStatus, String) {
        let pid = Pid::from_raw(self.child.id().unwrap().cast_signed()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        let mut last = String::new();
        while let Some(line) = self.log.next_line().await.unwrap() {
            last = line;
        }
        (self.child.wait().await.unwrap(), last)
    }
}

async fn until_locked(redlock: &Redlock, resource: &str) {
    let locked = async {
        while redlock.try_acquire(resource).await.is_ok() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    let locked = timeout(Duration::from_secs(30), locked).await;
    locked.expect("nobody locks it");
}

#[tokio::test]
async fn a_replica_that_is_asked_to_end_answers_what_it_has_begun_and_releases_all() {
    let (servers, redlock) = nodes().await;
    let replica = Replica::start(&servers).await;
    let booking = json!({ "night": "2026-11-21", "guest": "Ada" });
    let booked = replica.ask("/rooms/7/bookings", &booking).await;
    assert!(booked.starts_with("HTTP/1.1 201"), "{booked}");

    let paid = replica.ask("/payments", &json!({ "booking": 1 }));
    let address = replica.address;
    let end = async {
        // Its second lock: then the bank is asked.
        until_locked(&redlock, "booking:1").await;
        replica.end().await
    };
    let (paid, (status, last)) = join!(paid, end);
    assert!(paid.starts_with("HTTP/1.1 200"), "{paid}");
    assert!(status.success(), "{status}");
    assert!(last.contains("ended in order"), "{last}");
    assert!(TcpStream::connect(address).await.is_err());
    // Nothing has to end by its time to live.
    drop(redlock.try_acquire("payment:a-key").await.unwrap());
}

#[tokio::test]
async fn of_two_replicas_one_pays_at_a_time() {
    let (servers, redlock) = nodes().await;
    let one = Replica::start(&servers).await;
    let other = Replica::start(&servers).await;
    // Each of them has a hotel of its own.
    for (replica, room) in [(&one, 7), (&other, 8)] {
        let booking = json!({ "night": "2026-11-21", "guest": "Ada" });
        let booked = replica
            .ask(&format!("/rooms/{room}/bookings"), &booking)
            .await;
        assert!(booked.starts_with("HTTP/1.1 201"), "{booked}");
    }
    let pay = json!({ "booking": 1 });
    let order = RefCell::new(Vec::new());
    let first = async {
        let answer = one.ask("/payments", &pay).await;
        order.borrow_mut().push("one");
        answer
    };
    let second = async {
        until_locked(&redlock, "payment:a-key").await;
        let answer = other.ask("/payments", &pay).await;
        order.borrow_mut().push("other");
        answer
    };
    let began = Instant::now();
    let (first, second) = join!(first, second);
    let took = began.elapsed();
    assert!(took >= 2 * BANK_TAKES, "both had the lock: {took:?}");
    assert!(first.starts_with("HTTP/1.1 200"), "{first}");
    assert!(second.starts_with("HTTP/1.1 200"), "{second}");
    assert_eq!(*order.borrow(), ["one", "other"]);
    for replica in [one, other] {
        assert!(replica.end().await.0.success());
    }
}
