//! The one place where threads and tasks are started.
//!
//! The driver's task owns a set of link tasks; it ends them when it ends, and it ends when the last
//! handle is gone and nothing is left to clean up.

use std::{sync::Arc, thread};

use tokio::{
    runtime::{Builder, Handle},
    sync::{mpsc, watch},
    task::JoinSet,
};
use uuid::Uuid;

use super::{
    command::EngineHandle,
    driver::{Driver, EngineConfig, Outbox},
    link::{Link, LinkConfig, LinkState},
    owed::Owed,
};
use crate::{BuildError, node::Node};

/// Where the driver runs.
#[derive(Clone, Debug)]
pub(crate) enum Placement {
    /// On a thread of its own, so that work which blocks a runtime's thread cannot delay a renewal.
    OwnThread,
    /// On the caller's runtime, for tests with paused time.
    Runtime(Handle),
}

/// Starts a driver over `nodes`; returns its handle and the state of each link.
pub(crate) fn start(
    config: EngineConfig,
    links: LinkConfig,
    nodes: Vec<Arc<dyn Node>>,
    placement: Placement,
) -> Result<(EngineHandle, Vec<watch::Receiver<LinkState>>), BuildError> {
    let (handle, commands) = EngineHandle::new();
    let (done, results) = mpsc::unbounded_channel();
    let mut outboxes = Vec::new();
    let mut tasks = Vec::new();
    let mut states = Vec::new();
    for (index, node) in nodes.into_iter().enumerate() {
        let (ops, received) = mpsc::unbounded_channel();
        let (state, watched) = watch::channel(LinkState::Connecting);
        outboxes.push(Outbox::new(node.name(), ops, watched.clone()));
        states.push(watched);
        tasks.push(Link {
            index,
            node,
            config: links,
            ops: received,
            done: done.clone(),
            state,
            owed: Owed::default(),
        });
    }
    let handles = handle.downgrade();
    let driver = async move {
        let mut running = JoinSet::new();
        for link in tasks {
            running.spawn(link.run());
        }
        Driver::new(config, handles, outboxes)
            .run(commands, results)
            .await;
        // Kept until here, so that the driver never sees the end of results.
        drop(done);
        // The outboxes are gone with the driver, so the links end once they have sent what they have.
        running.shutdown().await;
    };
    match placement {
        Placement::Runtime(runtime) => drop(runtime.spawn(driver)),
        Placement::OwnThread => {
            let runtime = Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(|error| BuildError::system("runtime", error.to_string()))?;
            thread::Builder::new()
                .name("redlock".to_owned())
                .spawn(move || runtime.block_on(driver))
                .map_err(|error| BuildError::system("thread", error.to_string()))?;
        }
    }
    Ok((handle, states))
}

/// A random UUID (version 4, 122 random bits from the operating system), for an owner.
pub(super) fn random_owner() -> [u8; 16] {
    Uuid::new_v4().into_bytes()
}

/// 64 random bits, for a delay.
pub(super) fn random_bits() -> u64 {
    Uuid::new_v4().as_u64_pair().1 << 2 | 3
}
