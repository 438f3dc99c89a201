//! A connection of the command's own to one node, for what no client asks.
//!
//! The client asks a node only for what a lock needs, in words that a user with the least rights may use.
//! An operator wants to know more: memory, disks, stalls, clocks.
//! So the command asks for that over a connection of its own, with a time limit for each step, and none of it changes
//! what the client does.

mod info;
mod scan;
mod timings;
mod wall_clock;

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use redlock_core::{
    NodeConfig,
    deadpool_redis::redis::{
        AsyncConnectionConfig, Client, Cmd, ConnectionInfo, ErrorKind, RedisError, RedisResult,
        Value,
        aio::{ConnectionLike, MultiplexedConnection},
        cmd,
    },
};

pub(crate) use self::{
    info::Info,
    scan::{Scan, may_not_scan},
    timings::{Percentiles, Timings},
    wall_clock::ClockReading,
};
use crate::{clock, connection::Settings};

/// A connection to one node.
#[derive(Clone)]
pub(crate) struct Probe {
    connection: MultiplexedConnection,
    /// Why the first command without an answer had none.
    unanswered: Option<String>,
}

/// A node, and a connection to it if there is one.
pub(crate) struct Place {
    /// The node's address, without credentials.
    pub(crate) name: Arc<str>,
    /// How the command connects to it.
    pub(crate) info: Option<ConnectionInfo>,
    /// The connection, or why there is none.
    pub(crate) probe: Result<Probe, String>,
}

/// Connects to all nodes at once, in their order.
pub(crate) async fn connect(settings: &Settings) -> Vec<Place> {
    let limit = settings.connect_timeout();
    let places = settings.config.nodes.iter().enumerate();
    join_all(places.map(|(index, node)| place(index, node, limit))).await
}

/// Connects to one node; `None` if there is no such node.
pub(crate) async fn connect_to(settings: &Settings, node: usize) -> Option<Place> {
    let config = settings.config.nodes.get(node)?;
    Some(place(node, config, settings.connect_timeout()).await)
}

async fn place(index: usize, node: &NodeConfig, limit: Duration) -> Place {
    let name = node
        .name()
        .unwrap_or_else(|| format!("nodes[{index}]").into());
    let info = node.connection_info();
    let probe = match info.clone() {
        Some(info) => Probe::open(info, limit).await,
        None => Err("its address cannot be read".to_owned()),
    };
    Place { name, info, probe }
}

impl Probe {
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
    pub(crate) async fn ask(&mut self, command: &Cmd) -> RedisResult<Value> {
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
    pub(crate) fn unanswered(&self) -> Option<&str> {
        self.unanswered.as_deref()
    }

    /// Sends a command again and again, and returns how long each answer took.
    pub(crate) async fn measure(&mut self, command: &Cmd) -> Timings {
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

    /// Returns what `INFO` says.
    pub(crate) async fn info(&mut self) -> RedisResult<Info> {
        match self.ask(&cmd("INFO")).await? {
            Value::BulkString(text) => Ok(Info::read(&String::from_utf8_lossy(&text))),
            // In another version of the protocol.
            Value::VerbatimString { text, .. } => Ok(Info::read(&text)),
            _ => Ok(Info::default()),
        }
    }
}

/// Returns an error in words that repeat nothing of what the node was asked, or has said.
pub(crate) fn words(error: &RedisError) -> String {
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
