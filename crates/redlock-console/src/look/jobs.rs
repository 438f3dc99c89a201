//! The jobs that the nodes remember.

use std::{collections::BTreeSet, fmt, str::FromStr, sync::Arc};

use futures_util::{StreamExt, future::join_all, stream};
use redlock_core::Redlock;
use redlock_cron::{
    JobMemory, JobRegistration, PastRun, SetupError,
    chrono::{DateTime, Utc},
    inspect, job_remembered_under,
};

use super::{clock::millis, probe::ProbedNode, settings::NodeSettings};
use crate::snapshot::{
    BackfillSnapshot, JobSnapshot, PauseSnapshot, RegistrationSnapshot, RunSnapshot,
};

/// A job, by the namespace of its scheduler and its name.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct JobName {
    /// The namespace of its scheduler.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// A name of a job without the namespace of its scheduler.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct InvalidJobName;

impl fmt::Display for InvalidJobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a job is called by its scheduler's namespace, a slash and its name, such as billing/close-day")
    }
}

impl FromStr for JobName {
    type Err = InvalidJobName;

    fn from_str(text: &str) -> Result<Self, InvalidJobName> {
        let (namespace, name) = text.split_once('/').ok_or(InvalidJobName)?;
        Ok(Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }
}

impl fmt::Display for JobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The jobs of all schedulers in the namespace of the nodes.
#[derive(Debug)]
#[non_exhaustive]
pub struct JobList {
    /// Each job and what is remembered of it.
    pub jobs: Vec<(String, JobMemory)>,
    /// Set if there are names that are too long to be kept.
    ///
    /// A job has several keys under such a name, so the number of these jobs is not known.
    pub has_nameless: bool,
    /// How many jobs there are, of which `jobs` has the first.
    pub total: usize,
    /// Nodes that did not list their jobs.
    pub silent: SilentNodes,
}

/// Nodes that did not say which jobs they remember, and why.
pub type SilentNodes = Vec<(Arc<str>, String)>;

/// The words for a list that no majority of the nodes gave.
pub const TOO_FEW: &str = "too few nodes say which jobs they remember";

/// Asks all nodes which jobs they remember, and what of the first `most` of them.
///
/// # Errors
///
/// No majority of the nodes said which jobs it remembers.
pub async fn list(
    client: &Redlock,
    places: &[ProbedNode],
    settings: &NodeSettings,
    most: usize,
) -> Result<JobList, SilentNodes> {
    let found = join_all(places.iter().map(on_node)).await;
    let (mut jobs, mut has_nameless) = (BTreeSet::new(), false);
    let mut silent = Vec::new();
    for (place, found) in places.iter().zip(found) {
        match found {
            Ok(resources) => {
                for resource in resources {
                    if let Some((namespace, name)) = job_remembered_under(&resource) {
                        jobs.insert((namespace.to_owned(), name.to_owned()));
                    } else {
                        has_nameless |= resource.starts_with("sha256:");
                    }
                }
            }
            Err(why) => silent.push((Arc::clone(&place.name), why)),
        }
    }
    if places.len() - silent.len() < settings.majority() {
        return Err(silent);
    }
    let total = jobs.len();
    let jobs = jobs.into_iter().take(most).map(async |(namespace, name)| {
        let job = JobName { namespace, name };
        // What no job can be called was not written by a scheduler.
        let memory = remembered(client, &job).await.ok()?;
        Some((job.to_string(), memory))
    });
    let jobs: Vec<_> = stream::iter(jobs).buffered(AT_ONCE).collect().await;
    Ok(JobList {
        jobs: jobs.into_iter().flatten().collect(),
        has_nameless,
        total,
        silent,
    })
}

/// Returns the resources under which a node remembers something.
async fn on_node(place: &ProbedNode) -> Result<Vec<String>, String> {
    let mut probe = place.probe.clone()?;
    let keys = probe
        .keys(place.keys.job_pattern(), "jobs", usize::MAX)
        .await?;
    let jobs = keys.iter().filter_map(|key| place.keys.job_of(key));
    Ok(jobs.collect())
}

/// Asks the nodes what they remember of a job.
///
/// # Errors
///
/// No job can have this name.
pub async fn remembered(client: &Redlock, job: &JobName) -> Result<JobMemory, SetupError> {
    inspect(client, &job.namespace, &job.name).await
}

/// Returns what the nodes remember of a job that an operator has named.
///
/// # Errors
///
/// That is nothing, in words: an operator that mistypes a name must not believe that something was done.
pub async fn known(client: &Redlock, job: &JobName) -> Result<JobMemory, String> {
    let memory = remembered(client, job)
        .await
        .map_err(|error| error.to_string())?;
    if memory.is_known() && !memory.is_remembered() {
        return Err(format!(
            "nothing was done: nothing is remembered of {job}; redlock jobs lists those that are known, and a scheduler \
             makes its jobs known when it starts"
        ));
    }
    Ok(memory)
}

/// Returns why the end of a pause would change nothing; `None` if the job is paused, or may be.
pub fn was_not_paused(job: &JobName, memory: &JobMemory) -> Option<String> {
    (memory.is_paused() == Some(false)).then(|| format!("nothing was done: {job} was not paused"))
}

/// Returns the pause that another one takes the place of, in words behind those for the new one.
pub fn paused_before(memory: &JobMemory) -> String {
    let pause = memory.pause();
    pause.map_or_else(String::new, |pause| format!("; before, it was {pause}"))
}

/// Returns whether the lock of a job is held.
pub fn is_locked(memory: &JobMemory) -> bool {
    memory.free_in().is_some_and(|left| !left.is_zero())
}

/// Returns whether no scheduler has the job any more.
pub fn is_gone(memory: &JobMemory) -> bool {
    memory.registration().is_some_and(JobRegistration::is_gone)
}

/// Returns the next tick of a job that a scheduler has, as far as it is known.
pub fn next_tick(memory: &JobMemory) -> Option<DateTime<Utc>> {
    let registration = memory.registration().filter(|it| !it.is_gone());
    registration.and_then(JobRegistration::next_tick)
}

/// Returns how a job stands, in a word or two.
pub fn state(memory: &JobMemory) -> String {
    let state = match (memory.running(), memory.is_paused()) {
        (Some(run), Some(true)) => format!("paused, runs on {}", run.replica()),
        (Some(run), _) => format!("runs on {}", run.replica()),
        (None, Some(true)) if is_gone(memory) => "gone, paused".to_owned(),
        (None, Some(true)) => "paused".to_owned(),
        (None, _) if is_locked(memory) => "locked".to_owned(),
        (None, _) if memory.free_in().is_none() => return "unknown".to_owned(),
        (None, Some(false)) if is_gone(memory) => "gone".to_owned(),
        (None, Some(false)) => "idle".to_owned(),
        (None, None) => "idle, paused or not".to_owned(),
    };
    if memory.is_known() {
        state
    } else {
        format!("{state}, a part is missing")
    }
}

impl JobSnapshot {
    /// Returns what is remembered of a job, with its last `most` runs.
    pub fn of(job: &str, memory: &JobMemory, most: usize) -> Self {
        let next = next_tick(memory);
        let text = |instant: DateTime<Utc>| instant.to_rfc3339();
        let mut backfill = memory.backfill().map(|backfill| BackfillSnapshot {
            asked: text(backfill.moment()),
            replica: backfill.replica().to_owned(),
            ticks: backfill.ticks(),
            begun: backfill.runs().len(),
            cancelled: backfill.is_cancelled(),
        });
        Self {
            job: job.to_owned(),
            known: match (memory.is_remembered(), memory.is_known()) {
                (true, _) => Some(true),
                (false, true) => Some(false),
                (false, false) => None,
            },
            complete: memory.is_known(),
            state: state(memory),
            paused: memory.is_paused(),
            pause: memory.pause().map(|pause| PauseSnapshot {
                since: text(pause.since()),
                until: pause.until().map(text),
                by: pause.by().map(str::to_owned),
                reason: pause.reason().map(str::to_owned),
            }),
            running_on: memory.running().map(|run| run.replica().to_owned()),
            registered: memory.registration().map(|it| RegistrationSnapshot {
                at: text(it.registered_at()),
                replica: it.replica().to_owned(),
                pattern: it.pattern().to_owned(),
                zone: it.zone().map(str::to_owned),
                schedule: it.schedule().map(ToString::to_string),
                policies: it.policies().map(str::to_owned),
                gone: it.is_gone(),
            }),
            next_tick: next.map(text),
            next_tick_ms: next.map(next_ms),
            later_ticks_ms: later(memory, next),
            newest_tick: memory.watermark().map(text),
            last_success: memory.last_success().map(|run| text(run.tick())),
            locked_ms: memory.free_in().map(millis),
            missed: None,
            backfill: backfill.take(),
            runs: memory
                .runs()
                .iter()
                .take(most)
                .map(RunSnapshot::of)
                .collect(),
        }
    }
}

/// Returns the ticks after the next one, as far as a reader needs to see how they go on.
fn later(memory: &JobMemory, next: Option<DateTime<Utc>>) -> Vec<f64> {
    let schedule = memory.registration().and_then(JobRegistration::schedule);
    let Some((next, schedule)) = next.zip(schedule) else {
        return Vec::new();
    };
    let ticks = schedule.ticks_after(next).take(3);
    ticks.map(|tick| next_ms(tick.to_utc())).collect()
}

impl JobSnapshot {
    /// Sets the next tick.
    pub(crate) fn set_next(&mut self, next: Option<DateTime<Utc>>) {
        self.next_tick = next.map(|tick| tick.to_rfc3339());
        self.next_tick_ms = next.map(next_ms);
    }
}

impl RunSnapshot {
    fn of(run: &PastRun) -> Self {
        Self {
            tick: run.tick().to_rfc3339(),
            attempt: run.attempt(),
            by_hand: run.is_manual(),
            backfill: run.is_backfill(),
            replica: run.replica().to_owned(),
            outcome: run.outcome().map(str::to_owned),
            not_started: run.why_not_started().map(str::to_owned),
            took_ms: run.took().map(millis),
            note: run.note().map(str::to_owned),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "no time here is that long")]
fn next_ms(tick: DateTime<Utc>) -> f64 {
    tick.timestamp_millis() as f64
}

/// How many jobs the command reads at once, so that the time limits of an outage do not add up over the jobs.
///
/// A job takes a dozen questions to each node.
const AT_ONCE: usize = 16;
