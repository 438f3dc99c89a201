//! The questions of the command to each node.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures_util::future::join_all;
use redlock_core::deadpool_redis::redis::{Value, cmd, from_redis_value};

use super::{
    finding::{Findings, Level},
    rights::{self, Rights},
};
use crate::{
    clock,
    connection::Settings,
    probe::{self, ClockReading, Info, Place, Probe, Timings, words},
};

/// What a node has said of itself.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) info: Info,
    /// How long a `PING` took.
    pub(super) round_trip: Timings,
    /// How long a small script took.
    pub(super) script: Timings,
    pub(super) clock: Option<ClockFacts>,
    pub(super) rights: Rights,
    /// Its `appendfsync`, if it lets that be asked.
    pub(super) syncs: Option<String>,
    /// Its `save`, empty without snapshots, if it lets that be asked.
    pub(super) saves: Option<String>,
    /// Its `repl-backlog-ttl` in seconds, if it lets that be asked.
    pub(super) backlog_ttl: Option<u64>,
    /// The longest of its last slow commands, and how long ago it was.
    pub(super) slowest: Option<(Duration, Duration)>,
    /// What its user may not ask.
    pub(super) unverified: Vec<&'static str>,
}

/// A node's clock, beside that of this machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockFacts {
    /// By how many seconds it is ahead of this machine's.
    pub(super) ahead: f64,
    /// By how many parts of one it is faster than this machine's.
    pub(super) rate_error: f64,
    /// By how much that may be wrong.
    pub(super) uncertainty: f64,
}

/// Asks all nodes at once, and returns the facts of each; `None` for a node that did not answer everything.
///
/// Adds a finding for each such node.
pub(super) async fn gather(
    places: &mut [Place],
    settings: &Settings,
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
        findings.at(
            node,
            Level::Warning,
            "reachable",
            format!("answers the client, and could not be examined: {why}"),
            "run the doctor again; if it stays so, look at the node's process, its log and its network",
        );
    }
}

async fn at(place: &Place, settings: &Settings) -> Result<Facts, String> {
    let mut probe = place.probe.clone()?;
    let facts = of(&mut probe, settings).await?;
    // What had no answer would look as if nothing were wrong with it.
    match probe.unanswered() {
        Some(why) => Err(why.to_owned()),
        None => Ok(facts),
    }
}

async fn of(probe: &mut Probe, settings: &Settings) -> Result<Facts, String> {
    let first = probe.read_clock(CLOCK_READINGS).await;
    let begun = clock::now();
    let info = probe.info().await.map_err(|error| words(&error))?;
    let round_trip = probe.measure(&cmd("PING")).await;
    let mut script = cmd("EVAL");
    script.arg("return 0").arg(0);
    let script = probe.measure(&script).await;
    let rights = rights::of(probe, settings).await;
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
fn compare(first: &ClockReading, last: &ClockReading) -> ClockFacts {
    let here = last.at.duration_since(first.at).as_secs_f64();
    let here = here.max(f64::EPSILON);
    ClockFacts {
        ahead: last.ahead(),
        rate_error: (last.shown - first.shown) / here - 1.0,
        uncertainty: (first.give_or_take + last.give_or_take).as_secs_f64() / here,
    }
}

/// Returns a setting of the server, if it lets that be asked.
async fn setting(probe: &mut Probe, name: &str) -> Option<String> {
    let mut command = cmd("CONFIG");
    command.arg("GET").arg(name);
    // A list or a map, by the version of the protocol.
    let mut pairs: HashMap<String, String> =
        from_redis_value(probe.ask(&command).await.ok()?).ok()?;
    pairs.remove(name)
}

/// Returns how long each of the last slow commands took, and how long ago it was.
async fn slow_commands(probe: &mut Probe) -> Option<Vec<(Duration, Duration)>> {
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
pub(super) fn known<'a>(
    places: &'a [Place],
    facts: &'a [Option<Facts>],
) -> impl Iterator<Item = (&'a Arc<str>, &'a Place, &'a Facts)> {
    let pairs = places.iter().zip(facts);
    pairs.filter_map(|(place, facts)| Some((&place.name, place, facts.as_ref()?)))
}

const CLOCK_READINGS: usize = 5;
/// In this time, a rate that is off by half a per cent shows as five milliseconds.
const LOOK_AT_CLOCKS: Duration = Duration::from_secs(1);
