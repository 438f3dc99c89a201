//! A connection of the command's own to one node, for what no client asks.
//!
//! The client asks a node only for what a lock needs, in words that a user with the least rights may use.
//! An operator wants to know more: memory, disks, stalls, clocks.
//! So the command asks for that over a connection of its own, with a time limit for each step, and none of it changes
//! what the client does.

mod answers;

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use redlock_core::{
    NodeConfig, NodeKeys,
    deadpool_redis::redis::{
        AsyncConnectionConfig, Client, Cmd, ConnectionInfo, ErrorKind, RedisError, RedisResult,
        Value,
        aio::{ConnectionLike, MultiplexedConnection},
        cmd, from_redis_value,
    },
};

pub use self::answers::{Info, Timings, median};
use crate::look::{clock, settings::NodeSettings};

/// A connection to one node.
#[derive(Clone, Debug)]
pub struct NodeProbe {
    connection: MultiplexedConnection,
    /// Why the first command without an answer had none.
    unanswered: Option<String>,
}

/// A node, and a connection to it if there is one.
#[non_exhaustive]
pub struct ProbedNode {
    /// The node's address, without credentials.
    pub name: Arc<str>,
    /// Whether Sentinels or a Cluster name its server, and promote another when that fails.
    pub follows_failovers: bool,
    /// The names of resources there.
    pub keys: NodeKeys,
    /// How the command connects to it.
    pub info: Option<ConnectionInfo>,
    /// The connection, or why there is none.
    pub probe: Result<NodeProbe, String>,
}

/// It shows the name alone: the rest has credentials.
impl fmt::Debug for ProbedNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProbedNode").field(&self.name).finish()
    }
}

impl ProbedNode {
    /// Returns the database in which clients keep their keys.
    pub fn database(&self) -> i64 {
        let info = self.info.as_ref();
        info.map_or(0, |info| info.redis_settings().db())
    }

    /// Subscribes to a channel over a connection that ends with that; an error of the node's is its answer.
    pub async fn subscribe(&self, channel: &str) -> RedisResult<()> {
        let Some(info) = self.info.clone() else {
            return Ok(());
        };
        let subscribed = tokio::time::timeout(PATIENCE, async {
            let mut messages = Client::open(info)?.get_async_pubsub().await?;
            messages.subscribe(channel).await
        });
        subscribed.await.unwrap_or(Ok(()))
    }
}

/// Connects to all nodes at once, in their order.
pub async fn connect(settings: &NodeSettings) -> Vec<ProbedNode> {
    let places = settings.config.nodes.iter().enumerate();
    join_all(places.map(|(index, node)| place(settings, index, node))).await
}

/// Connects to one node; `None` if there is no such node.
pub async fn connect_to(settings: &NodeSettings, node: usize) -> Option<ProbedNode> {
    let config = settings.config.nodes.get(node)?;
    Some(place(settings, node, config).await)
}

async fn place(settings: &NodeSettings, index: usize, node: &NodeConfig) -> ProbedNode {
    let limit = settings.connect_timeout();
    let name = node
        .name()
        .unwrap_or_else(|| format!("nodes[{index}]").into());
    let located = node.locate(settings.namespace(), limit).await;
    let info = located.as_ref().ok().cloned();
    let probe = match located {
        Ok(info) => NodeProbe::open(info, limit).await,
        Err(why) => Err(why),
    };
    ProbedNode {
        name,
        follows_failovers: node.follows_failovers(),
        keys: node.node_keys(&settings.keys),
        info,
        probe,
    }
}

impl NodeProbe {
    async fn open(info: ConnectionInfo, limit: Duration) -> Result<Self, String> {
        let settings = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(limit))
            .set_response_timeout(Some(PATIENCE));
        let client = Client::open(info).map_err(|error| words(&error))?;
        let connected = client.get_multiplexed_async_connection_with_config(&settings);
        match tokio::time::timeout(limit + PATIENCE, connected).await {
            Ok(Ok(connection)) => Ok(Self {
                connection,
                unanswered: None,
            }),
            Ok(Err(error)) => Err(words(&error)),
            Err(_) => Err("it does not answer".to_owned()),
        }
    }

    /// Sends a command, and returns what the node answers.
    pub async fn ask(&mut self, command: &Cmd) -> RedisResult<Value> {
        let answer = self.connection.req_packed_command(command).await;
        let answer = answer.and_then(Value::extract_error);
        if let Err(error) = &answer
            // A refusal is an answer.
            && error.code().is_none()
        {
            self.unanswered.get_or_insert_with(|| words(error));
        }
        answer
    }

    /// Returns why a command had no answer, if one had none; an error of the node's is an answer.
    pub fn unanswered(&self) -> Option<&str> {
        self.unanswered.as_deref()
    }

    /// Sends a command again and again, and returns how long each answer took.
    pub async fn measure(&mut self, command: &Cmd) -> Timings {
        let mut times = Vec::new();
        let begun = clock::now();
        while times.len() < MEASUREMENTS && begun.elapsed() < LONGEST_MEASUREMENT {
            let asked = clock::now();
            if self.ask(command).await.is_err() {
                break;
            }
            times.push(asked.elapsed());
        }
        Timings::new(times)
    }

    /// Returns the names of the keys that a pattern matches; the words of an error name the verb that scans.
    pub async fn keys(
        &mut self,
        pattern: String,
        verb: &str,
        most: usize,
    ) -> Result<Vec<String>, String> {
        let refused = |error: RedisError| match error.code() {
            Some("NOPERM") => may_not_scan(verb),
            _ => words(&error),
        };
        let mut scan = Scan::new(Some(pattern));
        let mut keys: Vec<String> = Vec::new();
        let first = |keys: &mut Vec<String>| {
            keys.sort();
            // A scan may tell of a key twice.
            keys.dedup();
            keys.truncate(most);
        };
        while let Some(some) = scan.next(self).await.map_err(refused)? {
            keys.extend(some.into_iter().flatten());
            if keys.len() / 2 > most {
                first(&mut keys);
            }
        }
        first(&mut keys);
        Ok(keys)
    }

    /// Returns what `INFO` says.
    pub async fn info(&mut self) -> RedisResult<Info> {
        match self.ask(&cmd("INFO")).await? {
            Value::BulkString(text) => Ok(Info::read(&String::from_utf8_lossy(&text))),
            // In another version of the protocol.
            Value::VerbatimString { text, .. } => Ok(Info::read(&text)),
            _ => Ok(Info::default()),
        }
    }

    /// Returns what `INFO` says, and what the node's clock showed then.
    pub async fn info_at(&mut self) -> RedisResult<(Info, Option<WallClockReading>)> {
        let asked = clock::now();
        let info = self.info().await?;
        let shown = info.number("server_time_usec");
        Ok((
            info,
            shown.map(|micros| WallClockReading::of(micros, asked)),
        ))
    }

    /// Reads the node's clock several times, and returns the reading whose moment is known best.
    pub async fn read_clock(&mut self, times: usize) -> Option<WallClockReading> {
        // `TIME` is a right of its own; every client may ask for `INFO`.
        let mut command = cmd("INFO");
        command.arg("server");
        let mut best: Option<WallClockReading> = None;
        for _ in 0..times {
            let asked = clock::now();
            let answer = self.ask(&command).await.ok()?;
            let text: String = from_redis_value(answer).ok()?;
            let micros = text
                .lines()
                .find_map(|line| line.strip_prefix("server_time_usec:"));
            let micros: f64 = micros?.trim().parse().ok()?;
            let reading = WallClockReading::of(micros, asked);
            if best.is_none_or(|best| reading.give_or_take < best.give_or_take) {
                best = Some(reading);
            }
        }
        best
    }
}

/// What a node's wall clock showed, and when.
#[derive(Clone, Copy, Debug)]
pub struct WallClockReading {
    /// In seconds since 1970.
    pub shown: f64,
    pub at: Instant,
    /// By how much that may be wrong.
    pub give_or_take: Duration,
    /// What this machine's clock showed then.
    wall: Duration,
}

impl WallClockReading {
    /// Returns the reading of a clock that was asked for at `asked`, and whose answer has come just now.
    fn of(micros: f64, asked: Instant) -> Self {
        let half = asked.elapsed() / 2;
        Self {
            shown: micros / 1e6,
            at: asked + half,
            give_or_take: half,
            wall: clock::wall() - half,
        }
    }

    /// Returns by how many seconds it was ahead of this machine's.
    pub fn ahead(&self) -> f64 {
        self.shown - self.wall.as_secs_f64()
    }
}

/// A look at the names of all keys of one node, a part at a time.
#[derive(Debug)]
pub struct Scan {
    pattern: Option<String>,
    /// Where the next part begins; `None` after the last one.
    cursor: Option<String>,
}

impl Scan {
    /// Returns a look at the keys that a pattern matches, or else at all, which has not begun.
    pub fn new(pattern: Option<String>) -> Self {
        Self {
            pattern,
            cursor: Some("0".to_owned()),
        }
    }

    /// Returns the next keys, with `None` for a name that is no text; a key may be among them twice.
    ///
    /// Returns `None` instead of a list when the look has ended.
    pub async fn next(
        &mut self,
        probe: &mut NodeProbe,
    ) -> RedisResult<Option<Vec<Option<String>>>> {
        let Some(cursor) = &self.cursor else {
            return Ok(None);
        };
        let mut scan = cmd("SCAN");
        scan.arg(cursor);
        if let Some(pattern) = &self.pattern {
            scan.arg("MATCH").arg(pattern);
        }
        let answer = probe.ask(scan.arg("COUNT").arg(PART)).await?;
        let (next, keys): (String, Vec<Value>) = from_redis_value(answer)?;
        self.cursor = (next != "0").then_some(next);
        let names = keys.into_iter().map(|key| from_redis_value(key).ok());
        Ok(Some(names.collect()))
    }
}

/// Returns what to do where the user of a node may not scan.
pub fn may_not_scan(verb: &str) -> String {
    format!(
        "its user may not scan; {verb} takes +scan beside what a client needs: add +scan to its rights"
    )
}

/// Returns an error in words that repeat nothing of what the node was asked, or has said.
pub fn words(error: &RedisError) -> String {
    match error.code() {
        Some(code) if code.bytes().all(|b| b.is_ascii_uppercase()) => format!("it says {code}"),
        Some(_) => "it answers with an error".to_owned(),
        None if error.is_timeout() => "it does not answer in time".to_owned(),
        None if error.is_io_error() => error.to_string(),
        None if error.kind() == ErrorKind::Parse => not_redis(error).to_owned(),
        None => error.category().to_owned(),
    }
}

/// Returns what answers in place of a server, in the words of the library.
fn not_redis(error: &RedisError) -> &'static str {
    // The parser names the byte with which the answer began.
    let begins_with = |byte: u8| {
        let detail = error.detail().unwrap_or_default();
        detail.contains(&format!("`{byte}`"))
    };
    if begins_with(b'H') {
        "an HTTP server answers; give the port of a Redis server"
    } else if begins_with(TLS_ALERT) {
        "it speaks TLS; give a rediss:// URL"
    } else {
        "what answers does not speak the protocol of Redis; give the port of a Redis server"
    }
}

/// The first byte of what a TLS server says to a client that does not speak it.
const TLS_ALERT: u8 = 0x15;

/// Enough measurements for a meaningful 99th percentile.
const MEASUREMENTS: usize = 100;
const LONGEST_MEASUREMENT: Duration = Duration::from_secs(2);

/// How long one answer may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// How many keys a node is asked for at a time, which keep it busy for less than a millisecond.
const PART: usize = 1_000;
