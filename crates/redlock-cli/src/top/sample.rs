//! One look at the nodes and their keys, and what has changed since the one before.

use std::{collections::HashMap, time::Duration};

use futures_util::future::join_all;
use redlock_core::{NodeReport, Redlock, deadpool_redis::redis::cmd};
use serde::Serialize;

use crate::{
    clock,
    connection::Settings,
    lookup::Owner,
    ls::{self, Line},
    output::millis,
    probe::{self, Place},
    standing::Standing,
};

/// Looks again and again.
pub(super) struct Sampler {
    client: Redlock,
    prefix: String,
    /// Who had each key at the last look, and how often it has changed hands.
    seen: HashMap<String, (Option<Owner>, u64)>,
}

/// What there was to see.
#[derive(Default, Serialize)]
pub(super) struct Sample {
    pub(super) nodes: Vec<Node>,
    pub(super) keys: Vec<Key>,
    /// By how much this machine's clock is ahead of those of the nodes.
    pub(super) ahead_ms: Option<f64>,
}

#[derive(Serialize)]
pub(super) struct Node {
    #[serde(flatten)]
    pub(super) standing: Standing,
    pub(super) round_trip_ms: Option<f64>,
    /// Why its keys are not known.
    pub(super) keys_unknown: Option<String>,
}

#[derive(Serialize)]
pub(super) struct Key {
    #[serde(flatten)]
    pub(super) line: Line,
    /// How often it was found with another holder than at the look before.
    pub(super) changed_hands: u64,
}

impl Sampler {
    pub(super) fn new(client: Redlock, prefix: String) -> Self {
        Self {
            client,
            prefix,
            seen: HashMap::new(),
        }
    }

    /// Looks at all nodes at once.
    pub(super) async fn look(&mut self, settings: &Settings) -> Sample {
        let places = probe::connect(settings).await;
        let reports = self.client.node_reports().await;
        let times = join_all(places.iter().map(round_trip)).await;
        let listed = ls::list(&places, settings, &self.prefix).await;
        let silent: HashMap<_, _> = listed.silent.into_iter().collect();
        let nodes = reports.iter().zip(times).zip(&places);
        let nodes = nodes.map(|((report, time), place)| {
            let why = silent.get(&place.name);
            Node::of(report, time, why)
        });
        Sample {
            nodes: nodes.collect(),
            keys: self.keys(listed.lines),
            ahead_ms: self.ahead().await,
        }
    }

    /// Counts what has changed hands; what changes hands most comes first.
    fn keys(&mut self, lines: Vec<Line>) -> Vec<Key> {
        let mut before = std::mem::take(&mut self.seen);
        let mut keys: Vec<Key> = lines
            .into_iter()
            .map(|line| {
                let seen = before.remove(&line.key);
                let has_changed = seen.as_ref().is_some_and(|(owner, _)| *owner != line.owner);
                let changed_hands = seen.map_or(0, |(_, count)| count) + u64::from(has_changed);
                Key {
                    line,
                    changed_hands,
                }
            })
            .collect();
        for key in &keys {
            let now = (key.line.owner.clone(), key.changed_hands);
            self.seen.insert(key.line.key.clone(), now);
        }
        // A key that is free for a moment keeps its count.
        let free = before.into_iter().filter(|(_, (_, count))| *count > 0);
        self.seen.extend(free.take(MOST_FREE));
        keys.sort_by(|a, b| {
            let order = b.changed_hands.cmp(&a.changed_hands);
            order.then_with(|| a.line.key.cmp(&b.line.key))
        });
        keys
    }

    async fn ahead(&self) -> Option<f64> {
        let nodes = self.client.node_time().await?;
        let nodes = nodes.duration_since(std::time::UNIX_EPOCH).ok()?;
        Some(1_000.0 * (clock::wall().as_secs_f64() - nodes.as_secs_f64()))
    }
}

impl Node {
    fn of(report: &NodeReport, round_trip: Option<Duration>, why: Option<&String>) -> Self {
        Self {
            standing: Standing::of(report),
            round_trip_ms: round_trip.map(millis),
            keys_unknown: why.cloned(),
        }
    }
}

/// Returns how long a node takes to answer.
async fn round_trip(place: &Place) -> Option<Duration> {
    let mut probe = place.probe.clone().ok()?;
    let asked = clock::now();
    probe.ask(&cmd("PING")).await.ok()?;
    Some(asked.elapsed())
}

/// Of how many keys that are free the count is kept.
const MOST_FREE: usize = 10_000;
