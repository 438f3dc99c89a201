//! Where the lock's nodes are: in the environment, or on this machine.

use std::time::Duration;

use redlock_core::{Config, NodeAnswer, Redlock};
use redlock_sandbox::{SERVER_VARIABLE, ServerBinary, ServerOptions, ServerSet};
use tokio::time::sleep;

use crate::{BoxError, server::NAMESPACE, story::Story};

#[derive(Debug)]
pub(crate) struct Nodes {
    /// What tells a replica of them.
    pub(crate) environment: Vec<(&'static str, String)>,
    /// Those that were started here.
    children: Option<ServerSet>,
}

/// How many are started here.
const NODES: usize = 5;

impl Nodes {
    /// Takes those of the environment or starts some, says which, and waits until they vote.
    pub(crate) async fn choose(story: Story) -> Result<Self, BoxError> {
        let mut config = Config::from_env()?;
        let given_namespace = config.namespace.is_some();
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
        config.namespace.get_or_insert_with(|| NAMESPACE.to_owned());
        let redlock = Redlock::builder().config(config).build().await?;
        become_ready(&redlock, given_namespace, story).await?;
        redlock.close().await;
        Ok(nodes)
    }

    /// Freezes a majority of them if they are ours to freeze; says whether they were.
    pub(crate) fn freeze_majority(&self) -> Result<bool, BoxError> {
        let Some(servers) = &self.children else {
            return Ok(false);
        };
        for server in servers.iter().take(NODES / 2 + 1) {
            server.freeze()?;
        }
        Ok(true)
    }

    pub(crate) fn thaw_majority(&self) -> Result<(), BoxError> {
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

/// Waits until a majority of the nodes votes.
///
/// Nodes that are new to a namespace may have forgotten leases in it, for all that a client can tell, and do
/// not vote until the longest lease would be over.
/// The example vouches for them in its own namespace, where nothing that matters is locked.
/// In a given namespace it cannot.
async fn become_ready(
    redlock: &Redlock,
    given_namespace: bool,
    story: Story,
) -> Result<(), BoxError> {
    if !given_namespace {
        redlock.dangerous_bless().await;
    }
    let mut told = false;
    loop {
        let reports = redlock.node_reports().await;
        let voting = reports.iter().filter(|r| r.answer == NodeAnswer::Reachable);
        if voting.count() >= redlock.majority() {
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
