//! The one place where threads and tasks are started.
//!
//! The driver's task owns a set of link tasks; it ends them when it ends, and it ends when the last
//! handle is gone and nothing is left to clean up.

use std::{sync::Arc, thread};

use redlock_proto::{Link, LinkConfig};
use tokio::{
    runtime::{Builder, Handle},
    sync::{mpsc, watch},
    task::JoinSet,
};

use super::{
    command::EngineHandle,
    driver::{Driver, EngineConfig, Outbox},
    entropy::Source,
    holding::Won,
    link::{LinkState, LinkTask},
};
use crate::{BuildError, VirtualProcess, node::Node};

/// Where the driver runs.
#[derive(Clone, Debug)]
pub(crate) enum Placement {
    /// On a thread of its own, so that work which blocks a runtime's thread cannot delay a renewal.
    OwnThread,
    /// On the caller's runtime, for tests with paused time; it stands still with this process.
    Runtime(Handle, VirtualProcess),
}

/// Starts a driver over `nodes`; returns its handle and the state of each link.
pub(crate) fn start(
    config: EngineConfig,
    links: LinkConfig,
    nodes: Vec<Arc<dyn Node>>,
    placement: Placement,
) -> Result<(EngineHandle<Won>, Vec<watch::Receiver<LinkState>>), BuildError> {
    let (handle, commands) = EngineHandle::new();
    let (event, events) = mpsc::unbounded_channel();
    let mut outboxes = Vec::new();
    let mut tasks = Vec::new();
    let mut states = Vec::new();
    let names = nodes.iter().map(|node| node.name()).collect();
    let keyspace = Arc::new(config.client.keyspace.clone());
    for (index, node) in nodes.into_iter().enumerate() {
        let (ops, received) = mpsc::unbounded_channel();
        let (state, watched) = watch::channel(LinkState::Connecting);
        outboxes.push(Outbox::new(ops));
        states.push(watched);
        let entropy = config
            .seed
            .map_or(Source::System, |seed| Source::Seed(!seed ^ index as u64));
        tasks.push(LinkTask {
            index,
            node,
            link: Link::new(links, entropy),
            ops: received,
            events: event.clone(),
            keyspace: Arc::clone(&keyspace),
            clock: config.clock,
            state,
        });
    }
    let handles = handle.downgrade();
    let process = match &placement {
        Placement::Runtime(_, process) => Some(process.clone()),
        Placement::OwnThread => None,
    };
    let driver = async move {
        let mut running = JoinSet::new();
        for link in tasks {
            match &process {
                Some(process) => running.spawn(process.run(link.run())),
                None => running.spawn(link.run()),
            };
        }
        Driver::new(config, handles, names, outboxes)
            .run(commands, events)
            .await;
        // Kept until here, so that the driver never sees the end of events.
        drop(event);
        // The outboxes are gone with the driver, so the links end once they have sent what they have.
        running.shutdown().await;
    };
    match placement {
        Placement::Runtime(runtime, process) => drop(runtime.spawn(process.run(driver))),
        Placement::OwnThread => {
            let runtime = Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(|error| BuildError::system("runtime", error.to_string()))?;
            thread::Builder::new()
                .name("redlock".to_owned())
                // As a task: each time that a link wakes what a runtime blocks on, that is a call of the system.
                .spawn(move || drop(runtime.block_on(runtime.spawn(driver))))
                .map_err(|error| BuildError::system("thread", error.to_string()))?;
        }
    }
    Ok((handle, states))
}
