//! The questions of the command to each node, and the rights of its user, found by using each of them on a scratch key.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures_util::future::join_all;
use redlock_core::{
    NodeKeys,
    deadpool_redis::redis::{Cmd, RedisError, Value, cmd, from_redis_value},
    node::RedisNode,
};
use uuid::Uuid;

use super::{
    finding::Findings,
    lines::{RightsForLines, command_of, is_unknown_command},
};
use crate::look::{
    clock,
    probe::{self, Info, NodeProbe, ProbedNode, Timings, WallClockReading, words},
    settings::NodeSettings,
};

/// What a node has said of itself.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Facts {
    pub info: Info,
    /// How long a `PING` took.
    pub round_trip: Timings,
    /// How long a small script took.
    pub script: Timings,
    pub clock: Option<ClockFacts>,
    pub rights: Rights,
    /// Its `appendfsync`, if it lets that be asked.
    pub syncs: Option<String>,
    /// Its `save`, empty without snapshots, if it lets that be asked.
    pub saves: Option<String>,
    /// Its `repl-backlog-ttl` in seconds, if it lets that be asked.
    pub backlog_ttl: Option<u64>,
    /// The longest of its last slow commands, and how long ago it was.
    pub slowest: Option<(Duration, Duration)>,
    /// What its user may not ask.
    pub unverified: Vec<&'static str>,
}

impl Facts {
    /// Returns how long the server has run.
    pub fn up(&self) -> Option<Duration> {
        let seconds = self.info.number("uptime_in_seconds");
        seconds.map(Duration::from_secs)
    }
}

/// A node's clock, beside that of this machine.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ClockFacts {
    /// By how many seconds it is ahead of this machine's.
    pub ahead: f64,
    /// By how many parts of one it is faster than this machine's.
    pub rate_error: f64,
    /// By how much that may be wrong.
    pub uncertainty: f64,
}

/// Asks all nodes at once, and returns the facts of each; `None` for a node that did not answer everything.
///
/// Adds a finding for each such node.
pub async fn gather(
    places: &mut [ProbedNode],
    settings: &NodeSettings,
    findings: &mut Findings,
) -> Vec<Option<Facts>> {
    let all = places.iter_mut().enumerate().map(|(index, place)| {
        let answers = !findings.has(&place.name, "reachable");
        async move {
            let asked = at(place, settings).await;
            // It answered the client: a pause that is over, or one lost connection, is no reason to skip its checks.
            if asked.is_err()
                && answers
                && let Some(again) = probe::connect_to(settings, index).await
            {
                *place = again;
                return at(place, settings).await;
            }
            asked
        }
    });
    let all = join_all(all).await;
    let asked = places.iter().zip(all).map(|(place, asked)| {
        asked
            .map_err(|why| unexamined(&place.name, &why, findings))
            .ok()
    });
    asked.collect()
}

/// Adds a node of which nothing is known, unless the client could not reach it either.
fn unexamined(node: &Arc<str>, why: &str, findings: &mut Findings) {
    if !findings.has(node, "reachable") {
        findings.warn(Some(node),
            "reachable",
            format!("answers the client, and could not be examined: {why}"),
            "run the doctor again; if it stays so, look at the node's process, its log and its network",
        );
    }
}

async fn at(place: &ProbedNode, settings: &NodeSettings) -> Result<Facts, String> {
    let mut probe = place.probe.clone()?;
    let facts = of(&mut probe, place, settings).await?;
    // What had no answer would look as if nothing were wrong with it.
    match probe.unanswered() {
        Some(why) => Err(why.to_owned()),
        None => Ok(facts),
    }
}

async fn of(
    probe: &mut NodeProbe,
    place: &ProbedNode,
    settings: &NodeSettings,
) -> Result<Facts, String> {
    let first = probe.read_clock(CLOCK_READINGS).await;
    let begun = clock::now();
    let info = probe.info().await.map_err(|error| words(&error))?;
    let round_trip = probe.measure(&cmd("PING")).await;
    let mut script = cmd("EVAL");
    script.arg("return 0").arg(0);
    let script = probe.measure(&script).await;
    let rights = Rights {
        for_lines: RightsForLines::of(probe, place, settings).await,
        ..rights_of(probe, &place.keys).await
    };
    let mut unverified = Vec::new();
    let syncs = setting(probe, "appendfsync").await;
    let saves = setting(probe, "save").await;
    let backlog_ttl = setting(probe, "repl-backlog-ttl").await;
    if syncs.is_none() {
        unverified.push("CONFIG GET");
    }
    let slowest = match slow_commands(probe).await {
        Some(entries) => entries.into_iter().max_by_key(|(took, _)| *took),
        None => {
            unverified.push("SLOWLOG GET");
            None
        }
    };
    // A rate shows only after a while.
    tokio::time::sleep(LOOK_AT_CLOCKS.saturating_sub(begun.elapsed())).await;
    let last = probe.read_clock(CLOCK_READINGS).await;
    Ok(Facts {
        info,
        round_trip,
        script,
        clock: first.zip(last).map(|(first, last)| compare(&first, &last)),
        rights,
        syncs,
        saves,
        backlog_ttl: backlog_ttl.and_then(|seconds| seconds.parse().ok()),
        slowest,
        unverified,
    })
}

/// Compares what a clock showed first with what it showed last.
fn compare(first: &WallClockReading, last: &WallClockReading) -> ClockFacts {
    let here = last.at.duration_since(first.at).as_secs_f64();
    let here = here.max(f64::EPSILON);
    ClockFacts {
        ahead: last.ahead(),
        rate_error: (last.shown - first.shown) / here - 1.0,
        uncertainty: (first.give_or_take + last.give_or_take).as_secs_f64() / here,
    }
}

/// Returns a setting of the server, if it lets that be asked.
async fn setting(probe: &mut NodeProbe, name: &str) -> Option<String> {
    let mut command = cmd("CONFIG");
    command.arg("GET").arg(name);
    // A list or a map, by the version of the protocol.
    let mut pairs: HashMap<String, String> =
        from_redis_value(probe.ask(&command).await.ok()?).ok()?;
    pairs.remove(name)
}

/// Returns how long each of the last slow commands took, and how long ago it was.
async fn slow_commands(probe: &mut NodeProbe) -> Option<Vec<(Duration, Duration)>> {
    let mut command = cmd("SLOWLOG");
    command.arg("GET").arg(32);
    let Value::Array(entries) = probe.ask(&command).await.ok()? else {
        return None;
    };
    let now = clock::wall();
    let numbers = entries.into_iter().filter_map(|entry| match entry {
        // A number, when it began, and how long it took; what it was stays there.
        Value::Array(parts) => match (parts.get(1), parts.get(2)) {
            (Some(Value::Int(at)), Some(Value::Int(micros))) => {
                let at = Duration::from_secs(at.unsigned_abs());
                Some((
                    Duration::from_micros(micros.unsigned_abs()),
                    now.saturating_sub(at),
                ))
            }
            _ => None,
        },
        _ => None,
    });
    Some(numbers.collect())
}

/// Returns the nodes that were asked, with what they said.
pub fn known<'a>(
    places: &'a [ProbedNode],
    facts: &'a [Option<Facts>],
) -> impl Iterator<Item = (&'a ProbedNode, &'a Facts)> {
    let pairs = places.iter().zip(facts);
    pairs.filter_map(|(place, facts)| Some((place, facts.as_ref()?)))
}

/// What a user may not do, and what the node refuses.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Rights {
    /// In the words of `ACL SETUSER`.
    pub missing: Vec<String>,
    /// Those without which clients call the node by the script only.
    pub missing_for_transactions: Vec<&'static str>,
    /// The commands for that which the server does not know.
    pub unknown_for_transactions: Vec<String>,
    /// Those with which callers hear of their turn.
    pub for_lines: RightsForLines,
    /// Whether it may not use the namespace's keys.
    pub lacks_keys: bool,
    /// The code with which the node refuses to write.
    pub refuses_writes: Option<String>,
}

/// Tries every right; nothing is left behind, and what a lost connection leaves there ends by itself.
async fn rights_of(probe: &mut NodeProbe, keys: &NodeKeys) -> Rights {
    let mut rights = Rights::default();
    let name = format!("redlock-doctor:{}", Uuid::new_v4().simple());
    let key = name.parse().ok().and_then(|name| keys.lock(&name).ok());
    let Some(key) = key else {
        return rights;
    };
    for right in RedisNode::RIGHTS.split_whitespace() {
        let Some(command) = trial(right, &key) else {
            continue;
        };
        match probe.ask(&command).await {
            Err(error) if error.code() == Some("NOPERM") => rights.lacks(right, &error),
            Err(error) if right == "+set" => rights.refuses_writes = refusal(&error),
            _ => {}
        }
        // Without the right to, it ends a second later.
        if right == "+set" {
            drop(probe.ask(cmd("DEL").arg(&key)).await);
        }
    }
    try_transactions(probe, &key, &mut rights).await;
    rights
}

/// Tries the rights without which clients call the node by the script only.
async fn try_transactions(probe: &mut NodeProbe, key: &str, rights: &mut Rights) {
    let (mut missing, mut unknown) = (Vec::new(), Vec::new());
    // From the last on: a transaction is begun only if it can be ended; if not, both rights are named.
    for right in RedisNode::RIGHTS_FOR_TRANSACTIONS.split_whitespace().rev() {
        let begins = right == "+multi";
        if begins && missing.contains(&"+exec") {
            missing.push(right);
            continue;
        }
        let Some(command) = trial(right, key) else {
            continue;
        };
        match probe.ask(&command).await {
            // A server gives the second in place of the first for EXEC.
            Err(error) if matches!(error.code(), Some("NOPERM" | "EXECABORT")) => {
                missing.push(right);
            }
            Err(error) if is_unknown_command(&error) => unknown.push(command_of(right)),
            Ok(_) if begins && unknown.iter().any(|name| name == "EXEC") => {
                drop(probe.ask(&cmd("DISCARD")).await);
            }
            Ok(_) if begins => drop(probe.ask(&cmd("EXEC")).await),
            _ => {}
        }
    }
    missing.reverse();
    unknown.reverse();
    rights.missing_for_transactions = missing;
    rights.unknown_for_transactions = unknown;
}

impl Rights {
    fn lacks(&mut self, right: &str, error: &RedisError) {
        // Versions say it in other words: "to run the 'set' command", or "access ... the keys used as arguments".
        let is_about_keys = error.detail().is_some_and(|words| words.contains("key"));
        if is_about_keys {
            self.lacks_keys = true;
        } else {
            self.missing.push(right.to_owned());
        }
    }
}

/// Returns a command that needs a right and changes nothing but the scratch key; `None` if there is none.
fn trial(right: &str, key: &str) -> Option<Cmd> {
    let name = right.trim_start_matches('+').to_ascii_uppercase();
    let mut words = name.split('|');
    let mut command = cmd(words.next().unwrap_or_default());
    for word in words {
        command.arg(word);
    }
    match name.as_str() {
        "PING" | "INFO" | "TIME" | "MULTI" | "EXEC" | "CLIENT|ID" => {}
        // No connection has this number.
        "CLIENT|KILL" => drop(command.arg("ID").arg(u32::MAX)),
        "EVAL" => drop(command.arg("return 0").arg(0)),
        "EVALSHA" => drop(command.arg("0".repeat(40)).arg(0)),
        "DEL" | "PTTL" | "MGET" => drop(command.arg(key)),
        "ZRANGE" => drop(command.arg(key).arg(0).arg(0)),
        "PEXPIRE" => drop(command.arg(key).arg(1_000)),
        "ZMSCORE" => drop(command.arg(key).arg("floor")),
        "SET" => drop(command.arg(key).arg("doctor").arg("PX").arg(1_000)),
        // A member that must be there to get its score: rights are looked at first, and then nothing is written, which would
        // have no end.
        "ZADD" => drop(command.arg(key).arg("XX").arg("0").arg("floor")),
        _ => return None,
    }
    Some(command)
}

fn refusal(error: &RedisError) -> Option<String> {
    let code = error.code()?;
    code.bytes()
        .all(|byte| byte.is_ascii_uppercase())
        .then(|| code.to_owned())
}

const CLOCK_READINGS: usize = 5;
/// In this time, a rate that is off by half a per cent shows as five milliseconds.
const LOOK_AT_CLOCKS: Duration = Duration::from_secs(1);
