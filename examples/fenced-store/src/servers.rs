//! Where the nodes and the store are: in the environment, or on this machine.

use redlock_core::{Config, NodeAnswer, NodeConfig, Redlock};
use redlock_sandbox::{SERVER_VARIABLE, ServerBinary, ServerOptions, ServerSet};
use tokio::time::{Duration, sleep};

use crate::{BoxError, story::Story};

#[derive(Debug)]
pub(crate) struct Servers {
    /// What tells a process of the nodes.
    pub(crate) environment: Vec<(&'static str, String)>,
    /// The URL of the server that has the store.
    pub(crate) store: String,
    /// End with this value.
    _children: Option<ServerSet>,
}

const NODES: usize = 3;

impl Servers {
    /// Takes those of the environment or starts some, says which, and waits until the nodes vote.
    pub(crate) async fn choose(story: Story) -> Result<Self, BoxError> {
        let given = std::env::var("REDLOCK_NODES").unwrap_or_default();
        let namespace = std::env::var("REDLOCK_NAMESPACE").unwrap_or_default();
        let mut environment = Vec::new();
        if namespace.is_empty() {
            environment.push(("REDLOCK_NAMESPACE", "fenced-store".to_owned()));
        }
        let servers = match given.split(',').map(str::trim).find(|url| !url.is_empty()) {
            Some(first) => {
                story.tell(format_args!(
                    "nodes from REDLOCK_NODES, the first of which has the store too (unset it to use servers \
                     started here)"
                ));
                Self {
                    environment,
                    store: first.to_owned(),
                    _children: None,
                }
            }
            None => Self::start(environment, story)?,
        };
        servers.become_ready(!namespace.is_empty(), story).await?;
        Ok(servers)
    }

    fn start(mut environment: Vec<(&'static str, String)>, story: Story) -> Result<Self, BoxError> {
        let binary = ServerBinary::find().map_err(|missing| {
            format!(
                "two processes need servers that both can reach: install redis-server or valkey-server, name \
                 one by {SERVER_VARIABLE}, or set REDLOCK_NODES=redis://...; {missing}"
            )
        })?;
        let servers = ServerSet::start(&binary, NODES + 1, &ServerOptions::default())?;
        let mut nodes = servers.urls();
        let store = nodes.pop().ok_or("one more than the nodes was started")?;
        story.tell(format_args!(
            "{NODES} {} processes are the lock's nodes, and another one is the store (set REDLOCK_NODES=redis://... \
             to use others)",
            binary.path().display()
        ));
        environment.push(("REDLOCK_NODES", nodes.join(",")));
        Ok(Self {
            environment,
            store,
            _children: Some(servers),
        })
    }

    /// Waits until a majority of the nodes votes.
    ///
    /// Nodes that are new to a namespace may have forgotten leases in it, for all that a client can tell, and
    /// do not vote until the longest lease would be over.
    /// The example vouches for them in its own namespace, where nothing else is locked.
    /// In a given namespace it cannot.
    async fn become_ready(&self, given_namespace: bool, story: Story) -> Result<(), BoxError> {
        let mut config = Config::from_env()?;
        for (name, value) in &self.environment {
            match *name {
                "REDLOCK_NODES" => config.nodes = NodeConfig::list(value),
                _ => config.namespace = Some(value.clone()),
            }
        }
        let redlock = Redlock::builder().config(config).build().await?;
        if !given_namespace {
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
}
