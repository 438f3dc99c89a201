//! A look at every key: locks that never end, and keys of others.

use std::{sync::Arc, time::Duration};

use redlock_core::deadpool_redis::redis::{RedisResult, Value, cmd};

use super::finding::{Findings, Level};
use crate::{
    connection::Settings,
    output::rounded,
    probe::{Place, Probe, Scan, words},
};

/// What a look at the keys of one node has found.
#[derive(Default)]
struct Keys {
    endless: usize,
    too_long: usize,
    foreign: usize,
}

/// Adds what the nodes' keys show.
pub(super) async fn check(places: &[Place], settings: &Settings, findings: &mut Findings) {
    for place in places {
        let Ok(probe) = &place.probe else {
            // The check of whether the node can be reached has reported it.
            continue;
        };
        match look(&mut probe.clone(), settings).await {
            Ok(keys) => report(&place.name, &keys, settings.max_ttl(), findings),
            Err(why) => findings.at(
                &place.name,
                Level::Warning,
                "deep",
                format!("its keys cannot be looked at: {}", words(&why)),
                "a look at all keys takes +scan, beside what a client needs",
            ),
        }
    }
}

fn report(node: &Arc<str>, keys: &Keys, max_ttl: Duration, findings: &mut Findings) {
    let Keys {
        endless,
        too_long,
        foreign,
    } = *keys;
    if endless > 0 {
        findings.at(
            node,
            Level::Failure,
            "endless-locks",
            format!("has {endless} locks that never end"),
            "redlock ls shows them; redlock release KEY --force ends one",
        );
    }
    if too_long > 0 {
        findings.at(
            node,
            Level::Failure,
            "long-locks",
            format!(
                "has {too_long} locks that last longer than max_ttl, which is {}",
                rounded(max_ttl)
            ),
            "find the client that has another max_ttl: after a restart its leases are not waited for",
        );
    }
    if foreign > 0 {
        findings.at(
            node,
            Level::Warning,
            "shared",
            format!("has {foreign} keys that are no lock's: something else uses it too"),
            "give locks a server of their own: another's load, limits and FLUSHALL are theirs too",
        );
    }
}

async fn look(probe: &mut Probe, settings: &Settings) -> RedisResult<Keys> {
    let mut found = Keys::default();
    let mut scan = Scan::new(None);
    while let Some(keys) = scan.next(probe).await? {
        for key in keys {
            match key.as_deref() {
                Some(key) if settings.keys.resource(key).is_some() => {
                    match probe.ask(cmd("PTTL").arg(key)).await {
                        Ok(Value::Int(-1)) => found.endless += 1,
                        Ok(Value::Int(left)) => {
                            let left = Duration::from_millis(u64::try_from(left).unwrap_or(0));
                            found.too_long += usize::from(left > settings.max_ttl());
                        }
                        _ => {}
                    }
                }
                Some(key) if is_a_locks(key) => {}
                _ => found.foreign += 1,
            }
        }
    }
    Ok(found)
}

/// Returns whether a key has the form of a client's keys, in any namespace.
fn is_a_locks(key: &str) -> bool {
    let rest = key.strip_prefix('{').and_then(|key| key.split_once("}:"));
    rest.is_some_and(|(_, rest)| {
        let class = rest.split(':').next().unwrap_or_default();
        OWN.contains(&class)
    })
}

const OWN: [&str; 10] = [
    "mark",
    "fence",
    "horizon",
    "tomb",
    "lock",
    "lock-sha256",
    "job",
    "job-sha256",
    "slots",
    "slots-sha256",
];
