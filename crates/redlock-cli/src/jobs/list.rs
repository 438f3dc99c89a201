//! All jobs that the nodes remember.

use std::{collections::BTreeSet, sync::Arc};

use futures_util::future::join_all;
use redlock_core::{Redlock, deadpool_redis::redis::RedisError};
use redlock_cron::job_remembered_under;
use serde::Serialize;

use super::{Job, Memory, client, memory::Json};
use crate::{
    connection::Settings,
    context::Context,
    exit::{Exit, Failure},
    output::Mark,
    probe::{self, Place, Scan, may_not_scan},
};

/// The jobs of all schedulers in the namespace of the nodes.
pub(crate) struct Listed {
    pub(crate) jobs: Vec<(String, Memory)>,
    /// How many have a name that is too long to be kept.
    pub(crate) nameless: usize,
    /// The nodes that did not say, and why.
    pub(crate) silent: Vec<(Arc<str>, String)>,
}

#[derive(Serialize)]
struct Line<'a> {
    job: &'a str,
    #[serde(flatten)]
    memory: Json,
}

pub(super) async fn run(settings: &Settings, context: &Context) -> Result<Exit, Failure> {
    let client = client(context, settings).await?;
    let places = probe::connect(settings).await;
    let listed = list(&client, &places, settings).await?;
    let output = context.output;
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
                |run| format!("last run {run}"),
            );
            output.line(&format!("{job}  {}; {last}", memory.state()))?;
        }
    }
    if listed.nameless > 0 {
        let words = format!(
            "{} more are remembered under a hash, because their names are long: redlock jobs NAMESPACE/NAME shows them",
            listed.nameless
        );
        if !output.is_json() {
            output.marked(Mark::Note, &words)?;
        }
    }
    let answered = places.len() - listed.silent.len();
    for (node, why) in listed.silent {
        if output.is_json() {
            output.complain(&format!("{node}: {why}"))?;
        } else {
            output.marked(Mark::Bad, &format!("{node} {why}"))?;
        }
    }
    Ok(if answered < settings.majority() {
        Exit::NoQuorum
    } else {
        Exit::Yes
    })
}

/// Asks all nodes which jobs they remember, and what of them.
pub(crate) async fn list(
    client: &Redlock,
    places: &[Place],
    settings: &Settings,
) -> Result<Listed, Failure> {
    let found = join_all(places.iter().map(|place| on_node(place, settings))).await;
    let (mut jobs, mut nameless) = (BTreeSet::new(), BTreeSet::new());
    let mut silent = Vec::new();
    for (place, found) in places.iter().zip(found) {
        match found {
            Ok(resources) => {
                for resource in resources {
                    if let Some((namespace, name)) = job_remembered_under(&resource) {
                        jobs.insert((namespace.to_owned(), name.to_owned()));
                    } else if resource.starts_with("sha256:") {
                        nameless.insert(resource);
                    }
                }
            }
            Err(why) => silent.push((Arc::clone(&place.name), why)),
        }
    }
    let mut remembered = Vec::new();
    for (namespace, name) in jobs {
        let job = Job { namespace, name };
        remembered.push((job.to_string(), Memory::of(client, &job).await?));
    }
    Ok(Listed {
        jobs: remembered,
        nameless: nameless.len(),
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
