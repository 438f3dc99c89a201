//! The start of a row that measures several clients at once.

use redlock_core::Redlock;
use redlock_sandbox::{ServerBinary, ServerOptions, ServerSet};

use crate::failed::Result;

/// Starts servers and clients of them; the servers stop when their set is dropped.
pub(super) async fn start(nodes: usize, clients: usize) -> Result<(ServerSet, Vec<Redlock>)> {
    let binary = ServerBinary::find()?;
    let servers = ServerSet::start(&binary, nodes, &ServerOptions::default())?;
    // Each is what a process has: threads and connections of its own.
    let mut started = Vec::new();
    for _ in 0..clients {
        started.push(Redlock::builder().nodes(servers.urls()).build().await?);
    }
    // The servers were started for this, so they have forgotten nothing.
    if let Some(client) = started.first() {
        client.dangerous_bless().await;
    }
    Ok((servers, started))
}
