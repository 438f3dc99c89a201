//! The check of a lock from end to end, on a key that no other client uses.

use std::{error::Error, time::Duration};

use redlock_core::{AcquireErrorKind, AcquireOptions, Redlock, Renewal, Wait};
use uuid::Uuid;

use super::finding::{Findings, Level};
use crate::{clock, output::rounded, probe::Timings};

/// How the lock did.
#[derive(Debug)]
pub(super) struct Scratch {
    /// How long an acquire took.
    pub(super) acquire: Timings,
    /// The least that was left of a lease when its holder had it.
    pub(super) least_validity: Duration,
}

/// Acquires, contends, extends and releases; adds what goes wrong.
pub(super) async fn check(
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
            findings.over_all(Level::Failure, "end-to-end", found, advice);
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
        findings.over_all(
            Level::Warning,
            "lease-budget",
            format!(
                "of a lease of {} as little as {} is left when it is won",
                rounded(ttl),
                rounded(left)
            ),
            "raise ttl, or find out which nodes are slow",
        );
    }
}

const ACQUIRES: usize = 30;
const LONGEST_MEASUREMENT: Duration = Duration::from_secs(2);
