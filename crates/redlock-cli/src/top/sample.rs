//! One look at the nodes and their keys, and what has changed since the one before.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use redlock_core::{Redlock, deadpool_redis::redis::cmd};
use serde::Serialize;

use crate::{
    clock,
    connection::Settings,
    jobs::{self, Memory},
    lookup::Owner,
    ls::{self, Line},
    output::millis,
    probe::{self, Place},
    processes::{Addresses, Measured},
    standing::{Standing, settled},
};

/// The source of samples, with the results of earlier looks for comparison.
pub(super) struct Sampler {
    client: Redlock,
    prefix: String,
    processes: Addresses,
    /// The jobs as they were at the last look at them, and when that was.
    jobs: Vec<Job>,
    jobs_seen: Option<Instant>,
    /// Why they could not be looked for since then.
    jobs_unknown: Option<String>,
    /// By key, the owner at the last look, and how often the key has changed hands.
    seen: HashMap<String, (Option<Owner>, u64)>,
}

/// The result of one look at the nodes, the keys and the jobs.
#[derive(Serialize)]
pub(super) struct Sample {
    pub(super) nodes: Vec<Node>,
    pub(super) keys: Vec<Key>,
    pub(super) jobs: Vec<Job>,
    /// Why the jobs are as they were at an earlier look.
    pub(super) jobs_unknown: Option<String>,
    /// The callers that wait; missing where no process is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) processes: Option<Measured>,
    /// By how much this machine's clock is ahead of those of the nodes.
    pub(super) ahead_ms: Option<f64>,
}

#[derive(Serialize)]
pub(super) struct Node {
    #[serde(flatten)]
    pub(super) standing: Standing,
    pub(super) round_trip_ms: Option<f64>,
    /// By how much its clock is ahead of the one in the middle of the nodes'.
    pub(super) clock_ahead_ms: Option<f64>,
    /// Why its keys are not known.
    pub(super) keys_unknown: Option<String>,
}

/// What is remembered of a job.
#[derive(Clone, Serialize)]
pub(super) struct Job {
    pub(super) job: String,
    #[serde(flatten)]
    memory: jobs::Json,
    /// When its next tick is, since 1970, as far as a process that was asked has said.
    pub(super) next_tick_ms: Option<f64>,
    /// How it stands, in words.
    #[serde(skip)]
    pub(super) state: String,
    /// Its last run, in words.
    #[serde(skip)]
    pub(super) last: Option<String>,
}

#[derive(Serialize)]
pub(super) struct Key {
    #[serde(flatten)]
    pub(super) line: Line,
    /// How often it was found with another holder than at the look before.
    pub(super) changed_hands: u64,
}

impl Sampler {
    pub(super) fn new(client: Redlock, prefix: String, processes: Addresses) -> Self {
        Self {
            client,
            prefix,
            processes,
            jobs: Vec::new(),
            jobs_seen: None,
            jobs_unknown: None,
            seen: HashMap::new(),
        }
    }

    /// Looks at all nodes at once.
    pub(super) async fn look(&mut self, settings: &Settings) -> Sample {
        let places = probe::connect(settings).await;
        let reports = match self.jobs_seen {
            // Connections are made at the first look, which is one of what comes of that.
            None => settled(&self.client, settings).await,
            Some(_) => self.client.node_reports().await,
        };
        let times = join_all(places.iter().map(round_trip)).await;
        let clocks = join_all(places.iter().map(clock_of)).await;
        let middle = middle(&clocks);
        self.look_at_jobs(&places, settings).await;
        let measured = self.processes.ask(settings.namespace()).await;
        let next_ticks = measured.as_ref().map(|measured| &measured.next_ticks);
        let jobs = self.jobs.iter().map(|job| Job {
            next_tick_ms: next_ticks.and_then(|next| next.get(&job.job)).copied(),
            ..job.clone()
        });
        let jobs = jobs.collect();
        let listed = ls::list(&places, settings, &self.prefix).await;
        let silent: HashMap<_, _> = listed.silent.into_iter().collect();
        let nodes = reports.iter().zip(times).zip(clocks).zip(&places);
        let nodes = nodes.map(|(((report, time), ahead), place)| Node {
            standing: Standing::of(report),
            round_trip_ms: time.map(millis),
            clock_ahead_ms: ahead
                .zip(middle)
                .map(|(ahead, middle)| (ahead - middle) * 1_000.0),
            keys_unknown: silent.get(&place.name).cloned(),
        });
        Sample {
            nodes: nodes.collect(),
            keys: self.keys(listed.lines),
            jobs,
            jobs_unknown: self.jobs_unknown.clone(),
            processes: measured,
            ahead_ms: self.ahead().await,
        }
    }

    /// Counts how often each key has changed hands, and puts the most frequent ones first.
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

    /// Looks at what is remembered of jobs, now and then: that takes a dozen questions for each of them.
    ///
    /// If the nodes cannot be asked, the jobs stay as they were.
    async fn look_at_jobs(&mut self, places: &[Place], settings: &Settings) {
        let now = clock::now();
        let is_due = |at: Instant| now.duration_since(at) >= JOBS_EVERY;
        if !self.jobs_seen.is_none_or(is_due) {
            return;
        }
        self.jobs_seen = Some(now);
        self.jobs_unknown = match jobs::list(&self.client, places, settings).await {
            Ok(listed) => {
                self.jobs = listed.jobs.into_iter().map(Job::of).collect();
                None
            }
            Err(too_few) => Some(too_few.to_string()),
        };
    }

    async fn ahead(&self) -> Option<f64> {
        let nodes = self.client.node_time().await?;
        let nodes = nodes.duration_since(std::time::UNIX_EPOCH).ok()?;
        Some(1_000.0 * (clock::wall().as_secs_f64() - nodes.as_secs_f64()))
    }
}

impl Job {
    fn of((job, memory): (String, Memory)) -> Self {
        Self {
            job,
            state: memory.state(),
            last: memory.last().map(ToString::to_string),
            next_tick_ms: None,
            memory: memory.to_json(),
        }
    }
}

/// Returns by how many seconds the clock in the middle is ahead of this machine's.
fn middle(clocks: &[Option<f64>]) -> Option<f64> {
    let mut known: Vec<f64> = clocks.iter().flatten().copied().collect();
    known.sort_by(f64::total_cmp);
    known.get(known.len() / 2).copied()
}

/// Returns by how many seconds a node's clock is ahead of this machine's.
async fn clock_of(place: &Place) -> Option<f64> {
    let mut probe = place.probe.clone().ok()?;
    Some(probe.read_clock(1).await?.ahead())
}

/// Returns how long a node takes to answer.
async fn round_trip(place: &Place) -> Option<Duration> {
    let mut probe = place.probe.clone().ok()?;
    let asked = clock::now();
    probe.ask(&cmd("PING")).await.ok()?;
    Some(asked.elapsed())
}

/// The most free keys of which the count is kept.
const MOST_FREE: usize = 10_000;

/// The least time between two looks at the jobs.
const JOBS_EVERY: Duration = Duration::from_secs(5);
