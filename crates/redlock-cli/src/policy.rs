//! The policy of a namespace, as its nodes remember it.

use std::time::Duration;

use futures_util::future::join_all;
use redlock_core::deadpool_redis::redis::{cmd, from_redis_value};
use redlock_proto::Quarantine;

use crate::{
    connection::{Connection, Settings},
    exit::Failure,
    probe,
};

/// Reads all settings, and asks the nodes for a `max_ttl` that is not given.
///
/// A command with another `max_ttl` than the clients would get no vote, and would leave it at a node that restarts.
pub(crate) async fn settings(connection: &Connection) -> Result<Settings, Failure> {
    let mut settings = connection.given()?;
    if settings.config.max_ttl.is_none() {
        settings.config.max_ttl = remembered_max_ttl(&settings).await;
        let ttl = settings.ttl().min(settings.max_ttl());
        settings.config.ttl = Some(ttl);
    }
    Ok(settings)
}

/// Returns the `max_ttl` of the namespace that a majority of the nodes remembers.
async fn remembered_max_ttl(settings: &Settings) -> Option<Duration> {
    let mark = settings.mark();
    let places = probe::connect(settings).await;
    let marks = places.into_iter().map(async |place| {
        let answer = place.probe.ok()?.ask(cmd("MGET").arg(&mark)).await.ok()?;
        let [mark]: [Option<String>; 1] = from_redis_value(answer).ok()?;
        // What it is, the run, the data, and then the policy.
        Quarantine::max_ttl_of(mark?.split(' ').nth(3)?)
    });
    let all: Vec<Duration> = join_all(marks).await.into_iter().flatten().collect();
    let count = |max_ttl: &Duration| all.iter().filter(|other| *other == max_ttl).count();
    let most = all.iter().max_by_key(|max_ttl| count(max_ttl))?;
    (count(most) >= settings.majority()).then_some(*most)
}
