//! The one place where threads and tasks are started.
//!
//! The driver's task ends when the last handle is gone and nothing is left to clean up.

use std::{io, sync::Arc, thread};

use redlock_proto::{Link, LinkConfig};
use tokio::{
    runtime::{Builder, Handle, Runtime},
    sync::watch,
    task::coop::unconstrained,
};

use super::{
    driver::{Driver, EngineConfig, Seat},
    entropy::Source,
    handle::EngineHandle,
    link::{LinkState, NodeLink},
    log::Origin,
    owner::SharedDriver,
};
use crate::names::NodeNames;
use crate::{BuildError, node::Node, process::VirtualProcess};

/// Where the driver runs.
#[derive(Clone, Debug)]
pub(crate) enum Placement {
    /// On a thread of its own, so that work which blocks a runtime's thread cannot delay a renewal; for a lone caller on
    /// the runtime of this call.
    OwnThread,
    /// On the caller's runtime, for tests with paused time; it stands still with this process.
    Runtime(Handle, VirtualProcess),
}

/// Starts a driver over `nodes`; returns its handle and the state of each link.
pub(crate) fn start(
    config: EngineConfig,
    links: LinkConfig,
    nodes: Vec<Arc<dyn Node>>,
    names: NodeNames,
    placement: Placement,
) -> Result<(EngineHandle, Vec<watch::Receiver<LinkState>>), BuildError> {
    let (handle, commands) = EngineHandle::new(config.client.node_timeout, config.clock);
    let rung = Arc::default();
    let mut ends = Vec::new();
    let mut states = Vec::new();
    let origin = Origin {
        client: handle.client(),
        namespace: Arc::clone(&config.namespace),
    };
    let keyspace = Arc::new(config.client.keyspace.clone());
    for (index, node) in nodes.into_iter().enumerate() {
        let (state, watched) = watch::channel(LinkState::Connecting);
        states.push(watched);
        let entropy = config
            .seed
            .map_or(Source::System, |seed| Source::Seed(!seed ^ index as u64));
        let link = Link::new(links, entropy);
        ends.push(NodeLink::new(
            (node, Arc::clone(&names[index])),
            link,
            origin.clone(),
            config.meter.node(index),
            Arc::clone(&keyspace),
            config.clock,
            (state, &rung),
        ));
    }
    // Some runtimes refuse connections, which they say by a panic.
    let is_lent = matches!(placement, Placement::OwnThread) && cfg!(panic = "unwind");
    let driver = Driver::new(
        config,
        origin,
        handle.downgrade(),
        names,
        ends,
        rung,
        commands,
    );
    let shared = SharedDriver::new(driver, is_lent);
    // Unconstrained: a runtime that is out of budget would answer "pending" before a request was passed on, and the
    // next call would overtake this one.
    let driving = |seat| unconstrained(Arc::clone(&shared).drive(seat));
    let driver = driving(Seat::Thread);
    match placement {
        Placement::Runtime(runtime, process) => drop(runtime.spawn(process.run(driver))),
        Placement::OwnThread => {
            let runtime = Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(|error| BuildError::system("runtime", error.to_string()))?;
            let runtime = Dropped(Some(runtime));
            thread::Builder::new()
                .name("redlock".to_owned())
                .spawn(move || {
                    if let Some(runtime) = &runtime.0 {
                        // As a task: each time that a link wakes what a runtime blocks on, that is a call of the system.
                        drop(runtime.block_on(runtime.spawn(driver)));
                    }
                })
                .map_err(|error| BuildError::system("thread", no_thread(&error)))?;
            if is_lent {
                drop(Handle::current().spawn(driving(Seat::Runtime)));
            }
        }
    }
    Ok((handle, states))
}

/// A runtime that may be dropped anywhere, also where its caller must not block.
struct Dropped(Option<Runtime>);

impl Drop for Dropped {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Returns what an operator can do about a system that starts no thread.
fn no_thread(error: &io::Error) -> String {
    format!(
        "the system starts no thread for the client ({error}): raise the limit on its processes and threads (`ulimit -u`, `pids.max`, TasksMax), or give it memory"
    )
}
