//! Where the nodes and the store are: in the environment, or on this machine.

use redlock_core::{Config, NodeConfig};
use redlock_sandbox::{SERVER_VARIABLE, ServerBinary, ServerOptions, ServerSet};
use stage::{BoxError, Story, become_ready};

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
const NODES_VARIABLE: &str = "REDLOCK_NODES";
const NAMESPACE: &str = "fenced-store";

impl Servers {
    /// Takes those of the environment or starts some, says which, and waits until the nodes vote.
    pub(crate) async fn choose(story: Story) -> Result<Self, BoxError> {
        let given = std::env::var("REDLOCK_NODES").unwrap_or_default();
        let namespace = std::env::var("REDLOCK_NAMESPACE").unwrap_or_default();
        let mut environment = Vec::new();
        if namespace.is_empty() {
            environment.push(("REDLOCK_NAMESPACE", NAMESPACE.to_owned()));
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
        let mut config = Config::from_env()?;
        for (_, nodes) in servers
            .environment
            .iter()
            .filter(|(name, _)| *name == NODES_VARIABLE)
        {
            config.nodes = NodeConfig::list(nodes);
        }
        become_ready(config, NAMESPACE, story).await?;
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
        environment.push((NODES_VARIABLE, nodes.join(",")));
        Ok(Self {
            environment,
            store,
            _children: Some(servers),
        })
    }
}
