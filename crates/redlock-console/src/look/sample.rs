//! One look at the nodes, their keys and their jobs, and what has changed since the looks before.

use std::{
    collections::HashMap,
    time::{Duration, Instant, UNIX_EPOCH},
};

use futures_util::future::join_all;
use redlock_core::{InvalidKey, NodeReport, Redlock, deadpool_redis::redis::cmd};
use redlock_cron::SingletonScheduler;
use tokio::task::JoinSet;

use super::{
    clock::{self, millis},
    doctor::{examine, finding::Finding},
    history::History,
    keys::{self, HeldKey, Released},
    lookup::{self, Owner},
    nodes::{is_open, name, ready_in, settled, votes, voting, why_not},
    probe::{self, Info, ProbedNode, WallClockReading, median},
    settings::NodeSettings,
    slow::{SLOW_EVERY, SlowParts},
    status::KeyStatus,
};
use crate::snapshot::{
    ElectionSnapshot, KeyDetail, KeySnapshot, KeyStanding, NodeSnapshot, Snapshot, Verdict,
    VerdictState,
};

/// The source of snapshots, with the results of earlier looks for comparison.
///
/// It keeps its connections from one look to the next.
#[derive(Debug)]
pub struct Sampler {
    client: Redlock,
    settings: NodeSettings,
    options: SamplerOptions,
    places: Vec<ProbedNode>,
    slow: SlowParts,
    /// By key, the owner at the last look, and how often the key has changed hands.
    seen: HashMap<String, (Owner, u64)>,
    /// The examination that goes on.
    doctor: JoinSet<Vec<Finding>>,
    /// When the last one began, and how many nodes voted then.
    doctor_seen: Option<(Instant, usize)>,
    findings: Vec<Finding>,
    findings_at: Option<Duration>,
    history: History,
}

/// What a sampler looks at.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SamplerOptions {
    /// The beginning of the names of the keys.
    pub prefix: String,
    /// The names of the elections.
    pub elections: Vec<String>,
    /// The schedulers of this process, which know the next ticks of their jobs.
    pub schedulers: Vec<SingletonScheduler>,
    /// How many keys of each node are looked at, the first by name; all nodes have the same ones.
    pub most_keys: usize,
    /// How many jobs are looked at, the first by name.
    pub most_jobs: usize,
    /// How many of the last runs of each job are kept.
    pub most_runs: usize,
    /// How many callers of each line are kept.
    pub most_callers: usize,
}

impl Default for SamplerOptions {
    fn default() -> Self {
        Self {
            prefix: String::new(),
            elections: Vec::new(),
            schedulers: Vec::new(),
            most_keys: usize::MAX,
            most_jobs: usize::MAX,
            most_runs: usize::MAX,
            most_callers: usize::MAX,
        }
    }
}

/// What a node has said of itself at one look.
struct NodeAnswers {
    round_trip: Option<Duration>,
    info: Option<Info>,
    clock: Option<WallClockReading>,
}

impl Sampler {
    /// Returns a sampler that has not looked yet.
    pub fn new(client: Redlock, settings: NodeSettings, options: SamplerOptions) -> Self {
        Self {
            client,
            settings,
            options,
            places: Vec::new(),
            slow: SlowParts::default(),
            seen: HashMap::new(),
            doctor: JoinSet::new(),
            doctor_seen: None,
            findings: Vec::new(),
            findings_at: None,
            history: History::default(),
        }
    }

    /// Returns the client.
    pub fn client(&self) -> &Redlock {
        &self.client
    }

    /// Returns the settings of the nodes.
    pub fn settings(&self) -> &NodeSettings {
        &self.settings
    }

    /// Looks at all nodes at once.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives the look up; the next one starts over.
    pub async fn look(&mut self) -> Snapshot {
        self.connect().await;
        let reports = match self.slow.are_seen() {
            // Connections are made at the first look, which is one of what comes of that.
            false => settled(&self.client, &self.settings).await,
            true => self.client.node_reports().await,
        };
        let answers = join_all(self.places.iter().map(answers_of)).await;
        let (places, settings) = (&self.places, &self.settings);
        let (most_jobs, most_runs) = (self.options.most_jobs, self.options.most_runs);
        let (slow, client) = (&mut self.slow, &self.client);
        slow.look(client, places, settings, most_jobs, most_runs)
            .await;
        slow.schedule(&self.options.schedulers);
        let (prefix, most) = (&*self.options.prefix, self.options.most_keys);
        let (held, silent) = keys::list(&self.places, &self.settings, prefix, most).await;
        self.examine(&reports);
        let at = clock::wall();
        let silent: HashMap<_, _> = silent.into_iter().collect();
        let nodes = self.nodes(
            &reports,
            &answers,
            |place| silent.get(&place.name).cloned(),
            at,
        );
        // A server may have been replaced, or have lost its connection.
        for (place, answers) in self.places.iter_mut().zip(&answers) {
            if answers.round_trip.is_none() {
                place.probe = Err("its connection was lost".to_owned());
            }
        }
        let elections = self.elections(&reports, at).await;
        self.history.keys(&held, self.settings.majority(), at);
        let keys = self.changed(held);
        let keys_total = keys.len();
        let verdict = verdict(&reports, self.settings.majority());
        let margin = self.history.margin(verdict.votes, at);
        Snapshot {
            at_ms: whole_ms(at),
            namespace: self.settings.namespace().to_owned(),
            verdict,
            ahead_ms: self.ahead().await,
            nodes,
            margin,
            keys,
            keys_total,
            jobs: self.slow.jobs.clone(),
            jobs_total: self.slow.jobs_total,
            jobs_unknown: self.slow.jobs_unknown.map(str::to_owned),
            elections,
            findings: self.findings.clone(),
            findings_at_ms: self.findings_at.map(whole_ms),
            actions: self.slow.actions.clone(),
            actions_unknown: self.slow.actions_unknown.map(str::to_owned),
        }
    }

    /// Looks at one key, and begins to note what becomes of it.
    ///
    /// # Errors
    ///
    /// The name is not valid.
    pub async fn look_at(&mut self, name: &str) -> Result<KeyDetail, InvalidKey> {
        self.settings.key(name)?;
        self.connect().await;
        let (_, said) = lookup::find(&self.places, &self.settings, name).await?;
        let reports = self.client.node_reports().await;
        let majority = self.settings.majority();
        let status = KeyStatus::of(&said, &reports, majority);
        let at = clock::wall();
        let has_majority = said.iter().filter(|said| said.is_known()).count() >= majority;
        let held = HeldKey::of(name.to_owned(), &said, majority, has_majority);
        let most = self.options.most_callers;
        Ok(KeyDetail {
            at_ms: whole_ms(at),
            name: name.to_owned(),
            state: status.state(),
            sentence: status.verdict(),
            key: held.as_ref().map(|held| {
                let changed = self.seen.get(name).map_or(0, |(_, count)| *count);
                KeySnapshot::of(held, changed, self.places.len(), most)
            }),
            nodes: status.answers(),
            timeline: self.history.timeline(name, held.as_ref(), majority, at),
        })
    }

    /// Takes a key away from its holder, although that may still work.
    ///
    /// # Errors
    ///
    /// The name is not valid.
    pub async fn release(&mut self, name: &str) -> Result<Released, InvalidKey> {
        self.settings.key(name)?;
        self.connect().await;
        let (keys, said) = lookup::find(&self.places, &self.settings, name).await?;
        let majority = self.settings.majority();
        Ok(keys::release(&self.places, &keys, &said, majority).await)
    }

    /// Lets the next look ask for jobs and actions.
    pub fn look_at_jobs_again(&mut self) {
        self.slow.look_again();
    }

    /// Connects to the nodes to which it has no connection, and to those whose server others name.
    async fn connect(&mut self) {
        if self.places.is_empty() {
            self.places = probe::connect(&self.settings).await;
            return;
        }
        let settings = &self.settings;
        let again = self.places.iter().enumerate();
        let again = again.filter(|(_, place)| place.probe.is_err() || place.follows_failovers);
        let again = again.map(async |(at, _)| (at, probe::connect_to(settings, at).await));
        for (at, place) in join_all(again).await {
            if let Some(place) = place {
                self.places[at] = place;
            }
        }
    }

    fn nodes(
        &mut self,
        reports: &[NodeReport],
        answers: &[NodeAnswers],
        keys_unknown: impl Fn(&ProbedNode) -> Option<String>,
        at: Duration,
    ) -> Vec<NodeSnapshot> {
        let ahead = |answers: &NodeAnswers| answers.clock.as_ref().map(WallClockReading::ahead);
        let middle = median(answers.iter().filter_map(ahead));
        let nodes = reports.iter().zip(answers).zip(&self.places);
        let nodes = nodes
            .enumerate()
            .map(|(index, ((report, answers), place))| {
                let info = answers.info.as_ref();
                let number = |name| info.and_then(|info| info.number::<u64>(name));
                NodeSnapshot {
                    node: report.node.to_string(),
                    server: report.server().map(str::to_owned),
                    votes: votes(report),
                    why: why_not(report),
                    ready_in_ms: ready_in(report).map(millis),
                    round_trip_ms: answers.round_trip.map(millis),
                    round_trips: self.history.round_trips(
                        index,
                        answers.round_trip.map(millis),
                        at,
                    ),
                    clock_ahead_ms: (ahead(answers).zip(middle))
                        .map(|(ahead, middle)| (ahead - middle) * 1_000.0),
                    version: info.map(Info::version),
                    up_ms: number("uptime_in_seconds").map(|up| millis(Duration::from_secs(up))),
                    memory_bytes: number("used_memory"),
                    memory_limit_bytes: number("maxmemory").filter(|limit| *limit > 0),
                    connections: number("connected_clients"),
                    keys_unknown: keys_unknown(place),
                }
            });
        nodes.collect()
    }

    /// Counts how often each key has changed hands, and puts the most contended ones first.
    fn changed(&mut self, keys: Vec<HeldKey>) -> Vec<KeySnapshot> {
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
        let contention = |(key, count): &(HeldKey, u64)| {
            let line = key.in_line();
            let longest = line.iter().map(|caller| caller.waited).max();
            (line.len(), longest, *count)
        };
        counted.sort_by(|a, b| {
            let since = |(key, _): &(HeldKey, u64)| key.owner.since().unwrap_or(Duration::MAX);
            let by_contention = contention(b).cmp(&contention(a));
            by_contention
                .then_with(|| since(a).cmp(&since(b)))
                .then_with(|| a.0.key.cmp(&b.0.key))
        });
        let (nodes, most) = (self.places.len(), self.options.most_callers);
        let keys = counted.iter();
        keys.map(|(key, count)| KeySnapshot::of(key, *count, nodes, most))
            .collect()
    }

    async fn elections(&mut self, reports: &[NodeReport], at: Duration) -> Vec<ElectionSnapshot> {
        let (places, settings) = (&self.places, &self.settings);
        let most = self.options.most_callers;
        let names = self.options.elections.iter();
        let found = names.map(async |name| {
            let (_, said) = lookup::find(places, settings, name).await.ok()?;
            let status = KeyStatus::of(&said, reports, settings.majority());
            let holder = status.holder();
            Some(ElectionSnapshot {
                name: name.clone(),
                state: status.state(),
                leader: holder.and_then(Owner::shown),
                since_ms: holder.and_then(Owner::since).map(millis),
                remaining_ms: holder.and(status.remaining).map(millis),
                candidates: status.line.as_ref().map(|line| line.snapshot(most)),
                terms: Vec::new(),
            })
        });
        let mut elections: Vec<_> = join_all(found).await.into_iter().flatten().collect();
        for election in &mut elections {
            let is_known = election.state != KeyStanding::Unknown;
            let term = (election.state == KeyStanding::Held)
                .then(|| (election.leader.clone(), election.since_ms));
            election.terms = self.history.terms(&election.name, is_known, term, at);
        }
        elections
    }

    /// Takes over what the doctor has found, and lets it look now and then, and soon after another number of nodes votes.
    fn examine(&mut self, reports: &[NodeReport]) {
        if let Some(found) = self.doctor.try_join_next() {
            self.findings = found.unwrap_or_default();
            self.findings_at = Some(clock::wall());
        }
        let (now, votes) = (clock::now(), voting(reports));
        let is_due = |(at, of_then): (Instant, usize)| {
            let since = now.duration_since(at);
            since >= DOCTOR_EVERY || votes != of_then && since >= SLOW_EVERY
        };
        if self.doctor.is_empty() && self.doctor_seen.is_none_or(is_due) {
            self.doctor_seen = Some((now, votes));
            let (settings, reports) = (self.settings.clone(), reports.to_vec());
            self.doctor.spawn(async move {
                let mut places = probe::connect(&settings).await;
                let examined = examine(&mut places, &reports, &settings, false).await;
                examined.findings.worst_first()
            });
        }
    }

    async fn ahead(&self) -> Option<f64> {
        let nodes = self.client.node_time().await?;
        let nodes = nodes.duration_since(UNIX_EPOCH).ok()?;
        Some(1_000.0 * (clock::wall().as_secs_f64() - nodes.as_secs_f64()))
    }
}

/// Returns the state of the whole in a sentence.
fn verdict(reports: &[NodeReport], majority: usize) -> Verdict {
    let nodes = reports.len();
    let (count, are_open) = (voting(reports), reports.iter().any(is_open));
    let (state, consequence) = match count {
        _ if count < majority && are_open => (
            VerdictState::Unknown,
            "; the others have not said yet where they stand.",
        ),
        _ if count < majority => (VerdictState::NoQuorum, ": nothing can be locked."),
        _ if count == nodes => (VerdictState::Ok, "."),
        _ if count == majority => (
            VerdictState::Critical,
            ": if one more fails, nothing can be locked.",
        ),
        _ => (VerdictState::Degraded, "."),
    };
    let advice = reports.iter().find_map(|report| {
        let why = why_not(report)?;
        Some(format!("{}: {why}", name(report)))
    });
    Verdict {
        state,
        votes: count,
        majority,
        nodes,
        sentence: format!("{count} of {nodes} nodes vote; {majority} are needed{consequence}"),
        advice,
    }
}

/// Asks a node how it does; nothing is known of a node that does not answer.
async fn answers_of(place: &ProbedNode) -> NodeAnswers {
    let Ok(mut probe) = place.probe.clone() else {
        return NodeAnswers {
            round_trip: None,
            info: None,
            clock: None,
        };
    };
    let asked = clock::now();
    let ping = probe.ask(&cmd("PING")).await;
    let round_trip = ping.is_ok().then(|| asked.elapsed());
    let (info, clock) = match probe.info_at().await {
        Ok((info, clock)) => (Some(info), clock),
        Err(_) => (None, None),
    };
    NodeAnswers {
        round_trip,
        info,
        clock,
    }
}

fn whole_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The most free keys of which the count is kept.
const MOST_FREE: usize = 10_000;

/// The least time between two examinations, of which each sends some hundred commands to each node.
const DOCTOR_EVERY: Duration = Duration::from_secs(60);
