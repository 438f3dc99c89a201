//! The wait for the lock, and what is said meanwhile.

use std::{pin::pin, time::Duration};

use redlock_core::{
    AcquireError, AcquireErrorKind, AcquireOptions, LockGuard, NodeAnswer, NotAVote, Redlock,
    ResourceKey,
};

use crate::{context::Context, exit::Exit};

/// Acquires the lock; says what it waits for if that takes long.
pub(super) async fn acquire(
    client: &Redlock,
    key: ResourceKey,
    options: AcquireOptions,
    context: &Context,
) -> Result<LockGuard, AcquireError> {
    let mut acquired = pin!(client.acquire_with(key, options));
    tokio::select! {
        biased;
        acquired = &mut acquired => return acquired,
        () = tokio::time::sleep(PATIENCE) => {}
    }
    if let Some(ready_in) = quarantine(client).await {
        let seconds = ready_in.as_secs_f64();
        let message = format!(
            "waits: nodes that may have forgotten leases do not vote for {seconds:.1} s more"
        );
        // Standard error may be closed: the command gets the lock all the same.
        drop(context.output.complain(&message));
    }
    acquired.await
}

/// Returns for how long a majority is missing because of nodes in quarantine, if it is.
async fn quarantine(client: &Redlock) -> Option<Duration> {
    let reports = client.node_reports().await;
    let mut waits: Vec<Duration> = reports
        .iter()
        .map(|report| match &report.answer {
            NodeAnswer::Reachable => Some(Duration::ZERO),
            NodeAnswer::NotAVote {
                reason: NotAVote::Quarantined { ready_in },
            } => Some(*ready_in),
            _ => None,
        })
        .collect::<Option<_>>()
        .unwrap_or_default();
    waits.sort_unstable();
    let last = waits.get(client.majority() - 1)?;
    (!last.is_zero()).then_some(*last)
}

/// Returns how the command ends without the lock.
pub(super) fn exit(error: &AcquireError, conflict: u8) -> Exit {
    match error.kind() {
        AcquireErrorKind::Contended => Exit::Child(conflict),
        AcquireErrorKind::NoQuorum | AcquireErrorKind::Quarantined => Exit::Unavailable,
        _ => Exit::Wrong,
    }
}

/// How long it takes until an acquire is worth a word.
const PATIENCE: Duration = Duration::from_millis(500);
