//! Nodes, a `redlock console` that looks at them, and what happens there.

use std::{
    io::{BufRead, BufReader},
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use redlock_console::Access;
use redlock_core::{AcquireOptions, Redlock, Wait};
use redlock_cron::{BoxError, Run, SingletonJob, SingletonScheduler};
use redlock_sandbox::Process;
use redlock_tests::Nodes;
use tokio::{net::TcpListener, task::JoinSet};

/// The longest lease, which is also how long a node that has forgotten all does not vote.
pub(crate) const MAX_TTL: Duration = Duration::from_secs(4);

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// Servers that vote.
pub(crate) async fn voting(count: usize) -> Nodes {
    let nodes = Nodes::start(count);
    let client = named(&nodes, "kit").await;
    client.dangerous_bless().await;
    client.close().await;
    nodes
}

/// A client with a label.
pub(crate) async fn named(nodes: &Nodes, label: &str) -> Redlock {
    let builder = Redlock::builder().nodes(nodes.urls()).label(label);
    let client = builder.ttl(MAX_TTL).max_ttl(MAX_TTL).build().await;
    client.expect("the servers have just been started")
}

/// A running `redlock console`, which ends with this value.
pub(crate) struct Console {
    process: Process,
    pub(crate) url: String,
}

impl Console {
    /// Starts it, and waits until it says where it listens.
    pub(crate) fn start(nodes: &Nodes, arguments: &[&str]) -> Self {
        let anywhere = [&["--listen", "127.0.0.1:0"], arguments].concat();
        Self::start_with(nodes, MAX_TTL, &anywhere)
    }

    /// The same, for a longest lease and with an address.
    pub(crate) fn start_with(nodes: &Nodes, max_ttl: Duration, arguments: &[&str]) -> Self {
        let mut command = Process::command(env!("CARGO_BIN_EXE_redlock"));
        command
            .arg("console")
            .args(arguments)
            .env("REDLOCK_NODES", nodes.urls().join(","))
            .env("REDLOCK_TTL", format!("{}ms", max_ttl.as_millis()))
            .env("REDLOCK_MAX_TTL", format!("{}ms", max_ttl.as_millis()))
            .env("REDLOCK_NODE_TIMEOUT", "1s")
            .env("USER", "alice")
            .stdout(Stdio::piped());
        let mut process = Process::spawn(command).unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(process.take_stdout().unwrap());
        out.read_line(&mut line).unwrap();
        let begin = line
            .find("http://")
            .unwrap_or_else(|| panic!("no address in {line:?}"));
        let url = line[begin..].split_whitespace().next().unwrap().to_owned();
        Self { process, url }
    }

    /// Asks it to end, as a supervisor does; returns how it ended.
    pub(crate) fn terminate(mut self, limit: Duration) -> ExitStatus {
        self.process.terminate().unwrap();
        self.process.finish(limit).expect("it ends in time")
    }
}

/// A service of this process that has the console below a prefix, behind an authentication of its own.
pub(crate) struct Mounted {
    console: redlock_console::Console,
    /// Ends with this value.
    _server: JoinSet<()>,
    pub(crate) url: String,
}

impl Mounted {
    /// Mounts the console of a client where it is asked for, with this access.
    pub(crate) async fn start(client: Redlock, access: Arc<Mutex<Access>>) -> Self {
        let console = redlock_console::Console::builder(client).elections(["importer"]);
        let console = console
            .access(move |_| *access.lock().unwrap())
            .build()
            .unwrap();
        let routes =
            axum::Router::new().nest("/ops/locks", redlock_console::router(console.clone()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/ops/locks", listener.local_addr().unwrap());
        let mut server = JoinSet::new();
        server.spawn(async { axum::serve(listener, routes).await.unwrap() });
        Self {
            console,
            _server: server,
            url,
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        self.console.close();
    }
}

/// A scheduler of one replica, in the namespace `billing`.
pub(crate) async fn scheduler(
    nodes: &Nodes,
    replica: &str,
    jobs: Vec<SingletonJob>,
) -> SingletonScheduler {
    let client = named(nodes, replica).await;
    let builder = SingletonScheduler::standalone(client).namespace("billing");
    let scheduler = builder.replica(replica).build().unwrap();
    for job in jobs {
        scheduler.add(job).await.unwrap();
    }
    scheduler.start().await.unwrap();
    scheduler
}

/// A job that does nothing, each hour.
pub(crate) fn hourly(name: &str) -> SingletonJob {
    SingletonJob::cron(name, "0 0 * * * *", "UTC", |_: Run| async {
        Ok::<(), BoxError>(())
    })
}

/// Callers that wait in line for a key until this is dropped, each a client of its own with this label.
pub(crate) async fn waiting(nodes: &Nodes, key: &'static str, labels: &[&str]) -> JoinSet<()> {
    let mut callers = JoinSet::new();
    for label in labels {
        let client = named(nodes, label).await;
        let patient = AcquireOptions::new().wait(Wait::UpTo(Duration::from_secs(300)));
        callers.spawn(async move { drop(client.acquire_with(key, patient).await) });
        // One after the other, so that their places are known.
        tokio::time::sleep(SECOND / 20).await;
    }
    callers
}
