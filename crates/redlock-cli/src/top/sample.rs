//! One look at the nodes and their keys, and what has changed since the one before.

use std::{
    collections::HashMap,
    time::{Duration, Instant, UNIX_EPOCH},
};

use futures_util::future::join_all;
use redlock_core::{NodeReport, Redlock, deadpool_redis::redis::cmd};
use redlock_cron::JobMemory;
use serde_json::{Value, json};

use crate::{
    clock::{self, millis},
    connection::NodeSettings,
    jobs,
    keys::{self, HeldKey},
    lookup::Owner,
    nodes::{settled, standing},
    output::with_fields,
    probe::{self, ProbedNode, median},
};

/// The source of samples, with the results of earlier looks for comparison.
pub(super) struct Sampler {
    client: Redlock,
    prefix: String,
    /// The jobs as they were at the last look at them, and when that was.
    jobs: Vec<(String, JobMemory)>,
    jobs_seen: Option<Instant>,
    /// Why they could not be looked for since then.
    jobs_unknown: Option<&'static str>,
    /// By key, the owner at the last look, and how often the key has changed hands.
    seen: HashMap<String, (Owner, u64)>,
}

/// The result of one look at the nodes, the keys and the jobs.
pub(super) struct Sample {
    pub(super) nodes: Vec<NodeSample>,
    /// The keys, and how often each was found with another holder than at the look before.
    pub(super) keys: Vec<(HeldKey, u64)>,
    pub(super) jobs: Vec<(String, JobMemory)>,
    /// Why the jobs are as they were at an earlier look.
    pub(super) jobs_unknown: Option<&'static str>,
    /// By how much this machine's clock is ahead of those of the nodes.
    pub(super) ahead_ms: Option<f64>,
}

/// The result of one look at a node.
pub(super) struct NodeSample {
    pub(super) report: NodeReport,
    pub(super) round_trip: Option<Duration>,
    /// By how much its clock is ahead of the one in the middle of the nodes'.
    pub(super) clock_ahead_ms: Option<f64>,
    /// Why its keys are not known.
    pub(super) keys_unknown: Option<String>,
}

impl Sample {
    /// Returns it for programs.
    pub(super) fn to_json(&self) -> Value {
        let nodes = self.nodes.iter().map(|node| {
            let more = json!({
                "round_trip_ms": node.round_trip.map(millis),
                "clock_ahead_ms": node.clock_ahead_ms,
                "keys_unknown": node.keys_unknown,
            });
            with_fields(standing(&node.report), more)
        });
        let keys = self.keys.iter().map(|(key, count)| {
            let mut json = key.to_json();
            json["changed_hands"] = json!(count);
            json
        });
        let jobs = self.jobs.iter().map(|(job, memory)| {
            let mut json = with_fields(json!({"job": job}), jobs::to_json(memory));
            json["next_tick_ms"] = json!(next_tick_ms(memory));
            json
        });
        json!({
            "nodes": nodes.collect::<Vec<_>>(),
            "keys": keys.collect::<Vec<_>>(),
            "jobs": jobs.collect::<Vec<_>>(),
            "jobs_unknown": self.jobs_unknown,
            "ahead_ms": self.ahead_ms,
        })
    }
}

impl Sampler {
    pub(super) fn new(client: Redlock, prefix: String) -> Self {
        Self {
            client,
            prefix,
            jobs: Vec::new(),
            jobs_seen: None,
            jobs_unknown: None,
            seen: HashMap::new(),
        }
    }

    /// Looks at all nodes at once.
    pub(super) async fn look(&mut self, settings: &NodeSettings) -> Sample {
        let places = probe::connect(settings).await;
        let reports = match self.jobs_seen {
            // Connections are made at the first look, which is one of what comes of that.
            None => settled(&self.client, settings).await,
            Some(_) => self.client.node_reports().await,
        };
        let times = join_all(places.iter().map(round_trip)).await;
        let clocks = join_all(places.iter().map(clock_of)).await;
        let middle = median(clocks.iter().flatten().copied());
        self.look_at_jobs(&places, settings).await;
        let (keys, silent) = keys::list(&places, settings, &self.prefix).await;
        let silent: HashMap<_, _> = silent.into_iter().collect();
        let nodes = reports.into_iter().zip(times).zip(clocks).zip(&places);
        let nodes = nodes.map(|(((report, round_trip), ahead), place)| NodeSample {
            report,
            round_trip,
            clock_ahead_ms: ahead
                .zip(middle)
                .map(|(ahead, middle)| (ahead - middle) * 1_000.0),
            keys_unknown: silent.get(&place.name).cloned(),
        });
        Sample {
            nodes: nodes.collect(),
            keys: self.changed(keys),
            jobs: self.jobs.clone(),
            jobs_unknown: self.jobs_unknown,
            ahead_ms: self.ahead().await,
        }
    }

    /// Counts how often each key has changed hands, and puts the most frequent ones first.
    fn changed(&mut self, keys: Vec<HeldKey>) -> Vec<(HeldKey, u64)> {
        let mut before = std::mem::take(&mut self.seen);
        let mut counted = Vec::with_capacity(keys.len());
        for key in keys {
            let mut count = 0;
            if let Some((owner, before)) = before.remove(&key.key) {
                count = before + u64::from(owner != key.owner);
            }
            let now = (key.owner.clone(), count);
            self.seen.insert(key.key.clone(), now);
            counted.push((key, count));
        }
        // A key that is free for a moment keeps its count.
        let free = before.into_iter().filter(|(_, (_, count))| *count > 0);
        self.seen.extend(free.take(MOST_FREE));
        counted.sort_by(|(a, changes), (b, others)| {
            others.cmp(changes).then_with(|| a.key.cmp(&b.key))
        });
        counted
    }

    /// Looks at what is remembered of jobs, now and then: that takes a dozen questions for each of them.
    ///
    /// If the nodes cannot be asked, the jobs stay as they were.
    async fn look_at_jobs(&mut self, places: &[ProbedNode], settings: &NodeSettings) {
        let now = clock::now();
        let is_due = |at: Instant| now.duration_since(at) >= JOBS_EVERY;
        if !self.jobs_seen.is_none_or(is_due) {
            return;
        }
        self.jobs_seen = Some(now);
        match jobs::list(&self.client, places, settings).await {
            Ok(listed) => (self.jobs, self.jobs_unknown) = (listed.jobs, None),
            Err(_) => self.jobs_unknown = Some(jobs::TOO_FEW),
        }
    }

    async fn ahead(&self) -> Option<f64> {
        let nodes = self.client.node_time().await?;
        let nodes = nodes.duration_since(UNIX_EPOCH).ok()?;
        Some(1_000.0 * (clock::wall().as_secs_f64() - nodes.as_secs_f64()))
    }
}

/// Returns when the next tick of a job is by its registration, in milliseconds since 1970.
#[expect(clippy::cast_precision_loss, reason = "no time here is that long")]
pub(super) fn next_tick_ms(memory: &JobMemory) -> Option<f64> {
    let next = jobs::next_tick(memory)?;
    Some(next.timestamp_millis() as f64)
}

/// Returns by how many seconds a node's clock is ahead of this machine's.
async fn clock_of(place: &ProbedNode) -> Option<f64> {
    let mut probe = place.probe.clone().ok()?;
    Some(probe.read_clock(1).await?.ahead())
}

/// Returns how long a node takes to answer.
async fn round_trip(place: &ProbedNode) -> Option<Duration> {
    let mut probe = place.probe.clone().ok()?;
    let asked = clock::now();
    probe.ask(&cmd("PING")).await.ok()?;
    Some(asked.elapsed())
}

/// The most free keys of which the count is kept.
const MOST_FREE: usize = 10_000;

/// The least time between two looks at the jobs.
const JOBS_EVERY: Duration = Duration::from_secs(5);
