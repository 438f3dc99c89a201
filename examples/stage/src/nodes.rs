//! Where the lock's nodes are: in the environment, or on this machine.

use std::time::Duration;

use redlock_core::{Config, NodeAnswer, Redlock};
use redlock_sandbox::{SERVER_VARIABLE, ServerBinary, ServerOptions, ServerSet};
use tokio::time::sleep;

use crate::{BoxError, Story};

/// The nodes of a lock that several processes use.
#[derive(Debug)]
#[non_exhaustive]
pub struct Nodes {
    /// The variables that tell a replica of them.
    pub environment: Vec<(&'static str, String)>,
    /// Those that were started here, which end with this value.
    children: Option<ServerSet>,
}

/// How many are started here.
const NODES: usize = 5;

impl Nodes {
    /// Takes those of the environment or starts some, says which, and waits until they vote.
    ///
    /// # Errors
    ///
    /// There is no server to start, or the environment cannot be read.
    pub async fn choose(namespace: &str, story: Story) -> Result<Self, BoxError> {
        let mut config = Config::from_env()?;
        let mut nodes = Self {
            environment: Vec::new(),
            children: None,
        };
        if config.nodes.is_empty() {
            let servers = start(story)?;
            config.nodes = servers.urls().into_iter().map(Into::into).collect();
            nodes
                .environment
                .push(("REDLOCK_NODES", servers.urls().join(",")));
            nodes.children = Some(servers);
        } else {
            story.tell(format_args!(
                "{} node(s) from REDLOCK_NODES (unset it to use servers started here)",
                config.nodes.len()
            ));
        }
        become_ready(config, namespace, story).await?;
        Ok(nodes)
    }

    /// Freezes a majority of them if they are ours to freeze; returns whether they were.
    ///
    /// # Errors
    ///
    /// A server has ended.
    pub fn freeze_majority(&self) -> Result<bool, BoxError> {
        let Some(servers) = &self.children else {
            return Ok(false);
        };
        for server in servers.iter().take(NODES / 2 + 1) {
            server.freeze()?;
        }
        Ok(true)
    }

    /// Lets a majority of them go on that was frozen.
    ///
    /// # Errors
    ///
    /// A server has ended.
    pub fn thaw_majority(&self) -> Result<(), BoxError> {
        for server in self.children.iter().flatten().take(NODES / 2 + 1) {
            server.thaw()?;
        }
        Ok(())
    }
}

fn start(story: Story) -> Result<ServerSet, BoxError> {
    let binary = ServerBinary::find().map_err(|missing| {
        format!(
            "replicas that are processes need nodes that all of them can reach, which nodes in memory are not: \
             install redis-server or valkey-server, name one by {SERVER_VARIABLE}, or set \
             REDLOCK_NODES=redis://...; {missing}"
        )
    })?;
    let servers = ServerSet::start(&binary, NODES, &ServerOptions::default())?;
    story.tell(format_args!(
        "{NODES} {} processes are the lock's nodes (set REDLOCK_NODES=redis://... to use others)",
        binary.path().display()
    ));
    Ok(servers)
}

/// Waits until a majority of the nodes votes, in this namespace unless the environment says another.
///
/// Nodes that are new to a namespace may have forgotten leases in it, for all that a client can tell, and do
/// not vote until the longest lease would be over.
/// The example vouches for them in its own namespace, where nothing that matters is locked.
/// In a given namespace it cannot.
///
/// # Errors
///
/// The client cannot be built.
pub async fn become_ready(
    mut config: Config,
    namespace: &str,
    story: Story,
) -> Result<(), BoxError> {
    let is_own = config.namespace.is_none();
    config.namespace.get_or_insert_with(|| namespace.to_owned());
    let redlock = Redlock::builder().config(config).build().await?;
    if is_own {
        redlock.dangerous_bless().await;
    }
    let mut told = false;
    loop {
        let reports = redlock.node_reports().await;
        let voting = reports.iter().filter(|r| r.answer == NodeAnswer::Reachable);
        if voting.count() >= redlock.majority() {
            redlock.close().await;
            return Ok(());
        }
        if !std::mem::replace(&mut told, true) {
            let lines = reports.iter().map(|report| format!("\n  {report}"));
            let lines = lines.collect::<String>();
            story.tell(format_args!("too few nodes vote so far:{lines}"));
        }
        sleep(Duration::from_millis(100)).await;
    }
}
