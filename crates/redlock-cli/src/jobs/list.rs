//! All jobs that the nodes remember.

use std::{collections::BTreeSet, fmt, io, sync::Arc};

use futures_util::{StreamExt, future::join_all, stream};
use redlock_core::{Redlock, deadpool_redis::redis::RedisError};
use redlock_cron::job_remembered_under;
use serde::Serialize;

use super::{
    Job, Memory, client,
    memory::{Json, line},
};
use crate::{
    connection::Settings,
    context::Context,
    exit::{Exit, Failure},
    output::{Mark, Output, printable},
    probe::{self, Place, Scan, may_not_scan},
};

/// The jobs of all schedulers in the namespace of the nodes.
pub(crate) struct Listed {
    pub(crate) jobs: Vec<(String, Memory)>,
    /// Set if there are names that are too long to be kept.
    ///
    /// A job has several keys under such a name, so the number of these jobs is not known.
    has_nameless: bool,
    /// The nodes that did not list their jobs, and why.
    silent: Silent,
}

/// Nodes that did not say which jobs they remember, and why.
type Silent = Vec<(Arc<str>, String)>;

/// Too few nodes said which jobs they remember.
pub(crate) struct TooFew(Silent);

#[derive(Serialize)]
struct Line<'a> {
    job: &'a str,
    #[serde(flatten)]
    memory: Json,
}

pub(super) async fn run(settings: &Settings, context: &Context) -> Result<Exit, Failure> {
    let client = client(context, settings).await?;
    let places = probe::connect(settings).await;
    let output = context.output;
    let listed = match list(&client, &places, settings).await {
        Ok(listed) => listed,
        Err(too_few) => {
            tell(too_few.0, output)?;
            return Ok(Exit::NoQuorum);
        }
    };
    if output.is_json() {
        let lines = listed.jobs.iter().map(|(job, memory)| Line {
            job,
            memory: memory.to_json(),
        });
        output.json(&lines.collect::<Vec<_>>())?;
    } else {
        for (job, memory) in &listed.jobs {
            let last = memory.last().map_or_else(
                || "no run is remembered".to_owned(),
                |run| format!("last run {}", line(run)),
            );
            output.line(&format!("{}  {}; {last}", printable(job), memory.state()))?;
        }
    }
    if listed.has_nameless {
        let words = "some names are too long to be shown: redlock jobs NAMESPACE/NAME shows what is under them";
        if output.is_json() {
            output.complain(words)?;
        } else {
            output.marked(Mark::Note, words)?;
        }
    }
    tell(listed.silent, output)?;
    Ok(Exit::Yes)
}

/// Reports the nodes that did not list their jobs, and why.
fn tell(silent: Silent, output: Output) -> io::Result<()> {
    for (node, why) in silent {
        if output.is_json() {
            output.complain(&format!("{node}: {why}"))?;
        } else {
            output.marked(Mark::Bad, &format!("{node} {why}"))?;
        }
    }
    Ok(())
}

/// Asks all nodes which jobs they remember, and what of them.
///
/// # Errors
///
/// No majority of the nodes said which jobs it remembers.
pub(crate) async fn list(
    client: &Redlock,
    places: &[Place],
    settings: &Settings,
) -> Result<Listed, TooFew> {
    let found = join_all(places.iter().map(|place| on_node(place, settings))).await;
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
        return Err(TooFew(silent));
    }
    let jobs = jobs.into_iter().map(async |(namespace, name)| {
        let job = Job { namespace, name };
        // What no job can be called was not written by a scheduler.
        let memory = Memory::of(client, &job).await.ok()?;
        Some((job.to_string(), memory))
    });
    let jobs = stream::iter(jobs).buffered(AT_ONCE);
    Ok(Listed {
        jobs: jobs.filter_map(async |job| job).collect().await,
        has_nameless,
        silent,
    })
}

/// Returns the resources under which a node remembers something.
async fn on_node(place: &Place, settings: &Settings) -> Result<Vec<String>, String> {
    let mut probe = place.probe.clone()?;
    let mut scan = Scan::new(Some(settings.keys.job_pattern()));
    let mut found = Vec::new();
    let refused = |error: RedisError| may_not_scan(&error, "jobs");
    while let Some(keys) = scan.next(&mut probe).await.map_err(refused)? {
        let jobs = keys.iter().flatten();
        found.extend(jobs.filter_map(|key| settings.keys.job_of(key)));
    }
    Ok(found)
}

impl fmt::Display for TooFew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("too few nodes say which jobs they remember")
    }
}

/// How many jobs the command reads at once, so that the time limits of an outage do not add up over the jobs.
///
/// A job takes a dozen questions to each node.
const AT_ONCE: usize = 16;
