//! Masters with a replica each, and the Sentinels that watch them.

use std::{
    thread,
    time::{Duration, Instant},
};

use crate::{CommandError, Server, ServerBinary, ServerOptions, ServerSet, StartError, Value};

/// Independent masters with a replica each, and three Sentinels that watch all of them.
///
/// The masters are called `lock-0`, `lock-1` and so on.
/// The Sentinels promote a replica half a second after its master stopped answering.
///
/// ```
/// # use redlock_sandbox::{SentinelSet, ServerBinary};
/// let set = SentinelSet::start(&ServerBinary::find()?, 1)?;
/// println!("REDLOCK_NODES={}", set.urls().join(","));
/// set.fail_over(0)?; // as an operator does it: the old master becomes a replica
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct SentinelSet {
    /// The servers that were masters at the start.
    pub masters: ServerSet,
    /// The servers that were replicas at the start, in the order of their masters.
    pub replicas: ServerSet,
    /// The Sentinels.
    pub sentinels: ServerSet,
}

impl SentinelSet {
    /// Starts `count` masters, a replica for each, and three Sentinels, and waits until the Sentinels know all of them.
    ///
    /// # Errors
    ///
    /// The first [`StartError`]; the servers that have started are stopped.
    pub fn start(binary: &ServerBinary, count: usize) -> Result<Self, StartError> {
        // A master that loses its last replica keeps its replication id, and with it its vote.
        let options = ServerOptions::default()
            .argument("--repl-backlog-ttl")
            .argument("0");
        let set = Self {
            masters: ServerSet::start(binary, count, &options)?,
            replicas: ServerSet::start(binary, count, &options)?,
            sentinels: ServerSet::start(binary, SENTINELS, &options.sentinel())?,
        };
        set.connect().map_err(|error| StartError::refused(&error))?;
        set.await_watched()?;
        Ok(set)
    }

    /// Returns a URL for each master that names the Sentinels, in the form of `redlock-core`.
    pub fn urls(&self) -> Vec<String> {
        let sentinels = self
            .sentinels
            .iter()
            .map(|sentinel| sentinel.address().to_string());
        let sentinels = sentinels.collect::<Vec<_>>().join(",");
        let masters = 0..self.masters.len();
        masters
            .map(|master| format!("redis+sentinel://{sentinels}/{}", name(master)))
            .collect()
    }

    /// Has a Sentinel promote the replica of a master, and returns at once: the old master becomes a replica, and keeps
    /// its connections.
    ///
    /// # Errors
    ///
    /// [`CommandError`] if the Sentinel does not answer or refuses, because a failover is under way.
    pub fn fail_over(&self, master: usize) -> Result<(), CommandError> {
        let first = &self.sentinels[0];
        first.command(&["SENTINEL", "FAILOVER", &name(master)])?;
        Ok(())
    }

    /// Returns the port of the server that the first Sentinel names as this master now.
    ///
    /// # Errors
    ///
    /// [`CommandError`] if the Sentinel does not answer.
    pub fn master_port(&self, master: usize) -> Result<Option<u16>, CommandError> {
        let question = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", &name(master)];
        let answer = self.sentinels[0].command(&question)?;
        let port = answer.as_array().and_then(|parts| parts.get(1)?.as_text());
        Ok(port.and_then(|port| port.parse().ok()))
    }

    /// Makes the replicas copy their masters, and the Sentinels watch these.
    fn connect(&self) -> Result<(), CommandError> {
        for (index, (master, replica)) in self.masters.iter().zip(&self.replicas).enumerate() {
            let (name, port) = (name(index), master.port().to_string());
            replica.command(&["REPLICAOF", HOST, &port])?;
            for sentinel in &self.sentinels {
                sentinel.command(&["SENTINEL", "MONITOR", &name, HOST, &port, "2"])?;
                sentinel.command(&[
                    "SENTINEL",
                    "SET",
                    &name,
                    "down-after-milliseconds",
                    "500",
                    "failover-timeout",
                    "3000",
                ])?;
            }
        }
        Ok(())
    }

    /// Waits until each Sentinel knows the replicas, which are in sync, and the other Sentinels.
    #[expect(
        clippy::disallowed_methods,
        reason = "a patience limit, not the deadline of a lease"
    )]
    fn await_watched(&self) -> Result<(), StartError> {
        let started = Instant::now();
        while !self.is_watched() {
            if started.elapsed() >= LIMIT {
                return Err(StartError::timed_out(
                    LIMIT,
                    "the Sentinels find no replica",
                ));
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    fn is_watched(&self) -> bool {
        let others = (SENTINELS - 1).to_string();
        let knows = |sentinel: &Server, master: usize| {
            let known = sentinel.command(&["SENTINEL", "MASTER", &name(master)]);
            let field = |field: &str| {
                let known = known.as_ref().ok()?.as_array()?;
                let place = known
                    .iter()
                    .position(|text| text.as_text() == Some(field))?;
                known.get(place + 1).and_then(Value::as_text)
            };
            field("num-slaves") == Some("1") && field("num-other-sentinels") == Some(&*others)
        };
        let is_in_sync = |replica: &Server| {
            let info = replica.command(&["INFO", "replication"]);
            let info = info.as_ref().ok().and_then(Value::as_text);
            info.is_some_and(|info| info.contains("master_link_status:up"))
        };
        self.replicas.iter().all(is_in_sync)
            && self
                .sentinels
                .iter()
                .all(|sentinel| (0..self.masters.len()).all(|master| knows(sentinel, master)))
    }
}

fn name(master: usize) -> String {
    format!("lock-{master}")
}

const SENTINELS: usize = 3;
const HOST: &str = "127.0.0.1";
const LIMIT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);
