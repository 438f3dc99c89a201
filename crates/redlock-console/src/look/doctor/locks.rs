//! The locks: every key that a node has, and a lock from end to end, on a key that no other client uses.

use std::{error::Error, sync::Arc, time::Duration};

use redlock_core::{
    AcquireErrorKind, AcquireOptions, NodeKeys, Redlock, Renewal, Wait,
    deadpool_redis::redis::{RedisResult, Value, cmd},
};
use uuid::Uuid;

use super::finding::Findings;
use crate::look::{
    clock::{self, rounded},
    probe::{NodeProbe, ProbedNode, Scan, Timings, words},
    settings::NodeSettings,
};

/// Adds what the nodes' keys show.
pub async fn check_keys(places: &[ProbedNode], settings: &NodeSettings, findings: &mut Findings) {
    for place in places {
        let Ok(probe) = &place.probe else {
            // The check of whether the node can be reached has reported it.
            continue;
        };
        match look(&mut probe.clone(), &place.keys, settings).await {
            Ok(keys) => report(&place.name, keys, settings.max_ttl(), findings),
            Err(why) => {
                let found = format!("its keys cannot be looked at: {}", words(&why));
                let advice = "a look at all keys takes +scan, beside what a client needs";
                findings.warn(Some(&place.name), "deep", found, advice);
            }
        }
    }
}

fn report(
    node: &Arc<str>,
    [endless, too_long, foreign]: [usize; 3],
    max_ttl: Duration,
    findings: &mut Findings,
) {
    if endless > 0 {
        let found = format!("has {endless} locks that never end");
        let advice = "redlock ls shows them; redlock release KEY --force ends one";
        findings.fail(Some(node), "endless-locks", found, advice);
    }
    if too_long > 0 {
        let max_ttl = rounded(max_ttl);
        let found =
            format!("has {too_long} locks that last longer than max_ttl, which is {max_ttl}");
        let advice = "find the client that has another max_ttl: after a restart its leases are not waited for";
        findings.fail(Some(node), "long-locks", found, advice);
    }
    if foreign > 0 {
        let found = format!("has {foreign} keys that are no lock's: something else uses it too");
        let advice =
            "give locks a server of their own: another's load, limits and FLUSHALL are theirs too";
        findings.warn(Some(node), "shared", found, advice);
    }
}

/// Counts the locks of a node that never end, those that last too long, and the keys that are no lock's.
async fn look(
    probe: &mut NodeProbe,
    names: &NodeKeys,
    settings: &NodeSettings,
) -> RedisResult<[usize; 3]> {
    let (mut endless, mut too_long, mut foreign) = (0, 0, 0);
    let mut scan = Scan::new(None);
    while let Some(keys) = scan.next(probe).await? {
        for key in keys {
            match key.as_deref() {
                Some(key) if names.resource(key).is_some() => {
                    match probe.ask(cmd("PTTL").arg(key)).await {
                        Ok(Value::Int(-1)) => endless += 1,
                        Ok(Value::Int(left)) => {
                            let left = Duration::from_millis(u64::try_from(left).unwrap_or(0));
                            too_long += usize::from(left > settings.max_ttl());
                        }
                        _ => {}
                    }
                }
                Some(key) if is_a_locks(key) => {}
                _ => foreign += 1,
            }
        }
    }
    Ok([endless, too_long, foreign])
}

/// Returns whether a key has the form of a client's keys, in any namespace.
fn is_a_locks(key: &str) -> bool {
    let rest = key.strip_prefix('{').and_then(|key| key.split_once("}:"));
    rest.is_some_and(|(_, rest)| {
        let class = rest.split(':').next().unwrap_or_default();
        OWN.split(' ').any(|own| own == class)
    })
}

/// How the lock did.
#[derive(Debug)]
#[non_exhaustive]
pub struct Scratch {
    /// How long an acquire took.
    pub acquire: Timings,
    /// The least that was left of a lease when its holder had it.
    pub least_validity: Duration,
}

/// Acquires, contends, extends and releases; adds what goes wrong.
pub async fn check_scratch(
    client: &Redlock,
    other: &Redlock,
    findings: &mut Findings,
) -> Option<Scratch> {
    let name = format!("redlock-doctor:{}", Uuid::new_v4().simple());
    let all = async {
        let scratch = measure(client, &name).await?;
        budget(&scratch, client.ttl(), findings);
        lock(client, other, &name).await.map(|()| scratch)
    };
    match all.await {
        Ok(scratch) => Some(scratch),
        Err(found) => {
            let advice = "see the lines of the nodes; a retry tells whether it lasts";
            findings.fail(None, "end-to-end", found, advice);
            None
        }
    }
}

/// Acquires and releases a few locks.
async fn measure(client: &Redlock, name: &str) -> Result<Scratch, String> {
    let mut times = Vec::new();
    let mut least_validity = client.ttl();
    let begun = clock::now();
    while times.len() < ACQUIRES && begun.elapsed() < LONGEST_MEASUREMENT {
        // A lease that was just released may be handed over, which asks no node.
        let key = format!("{name}:{}", times.len());
        let asked = clock::now();
        let acquired = client.acquire_with(&key, once()).await;
        times.push(asked.elapsed());
        let guard = match acquired {
            Ok(guard) => guard,
            // Nothing was left of it.
            Err(error) if error.kind() == AcquireErrorKind::Expired => {
                least_validity = Duration::ZERO;
                continue;
            }
            Err(error) => return Err(failed("acquired", &error)),
        };
        least_validity = least_validity.min(guard.lease().remaining());
        // The lock below shows whether releases are confirmed; here they end by themselves at the latest.
        drop(guard.release().await);
    }
    Ok(Scratch {
        acquire: Timings::new(times),
        least_validity,
    })
}

async fn lock(client: &Redlock, other: &Redlock, key: &str) -> Result<(), String> {
    let guard = client.acquire_with(key, once()).await;
    let guard = guard.map_err(|error| failed("acquired", &error))?;
    match other.acquire_with(key, once()).await {
        Err(error) if error.kind() == AcquireErrorKind::Contended => {}
        Err(error) => return Err(failed("contended", &error)),
        Ok(_) => return Err("two clients held one scratch lock".to_owned()),
    }
    let extended = guard.extend().await;
    extended.map_err(|error| failed("extended", &error))?;
    let released = guard.release().await;
    released.map_err(|error| failed("released", &error))
}

fn once() -> AcquireOptions {
    let once = AcquireOptions::new().wait(Wait::Never);
    once.renewal(Renewal::Manual)
}

fn failed(what: &str, error: &dyn Error) -> String {
    format!("a scratch lock could not be {what}: {error}")
}

fn budget(scratch: &Scratch, ttl: Duration, findings: &mut Findings) {
    let left = scratch.least_validity;
    // The client's own limits keep it from falling below a half, but for leases whose token must be stored first.
    if left < ttl * 3 / 4 {
        let (ttl, left) = (rounded(ttl), rounded(left));
        let found = format!("of a lease of {ttl} as little as {left} is left when it is won");
        let advice = "raise ttl, or find out which nodes are slow";
        findings.warn(None, "lease-budget", found, advice);
    }
}

/// The classes of keys that clients have.
const OWN: &str = "mark fence counters horizon tomb lock lock-sha256 job job-sha256 slots slots-sha256 line alive";

const ACQUIRES: usize = 30;
const LONGEST_MEASUREMENT: Duration = Duration::from_secs(2);
