//! The nodes and their settings: from flags, the environment or a file, in this order.

use std::{path::PathBuf, time::Duration};

use redlock_core::{Config, Guarantee, NodeConfig, NodeKeys, Redlock, RedlockBuilder, ResourceKey};
use redlock_proto::{Keyspace, Quarantine};

use crate::{clock::duration, exit::CommandError};

/// The nodes and the policy of their namespace.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Nodes")]
pub(crate) struct ConnectionArgs {
    /// A file with the library's settings, as TOML
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// URLs of the nodes, with commas between them [env: REDLOCK_NODES]
    #[arg(long, value_name = "URLS")]
    nodes: Vec<String>,

    /// The prefix of all keys [env: REDLOCK_NAMESPACE] [default: redlock]
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,

    /// The longest lease of any client of the namespace [env: REDLOCK_MAX_TTL] [default: that which the nodes remember, or
    /// 30s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    max_ttl: Option<Duration>,

    /// The time that a node has to answer [env: REDLOCK_NODE_TIMEOUT] [default: 500ms]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    node_timeout: Option<Duration>,

    /// The time that a connection may take to open [env: REDLOCK_CONNECT_TIMEOUT] [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    connect_timeout: Option<Duration>,

    /// Uses names as keys without a prefix, as other Redlock libraries do
    #[arg(long)]
    verbatim_keys: bool,
}

impl ConnectionArgs {
    /// Reads all settings that are given.
    pub(crate) fn given(&self) -> Result<NodeSettings, CommandError> {
        let file = match &self.config {
            Some(path) => Config::from_file(path)?,
            None => Config::default(),
        };
        let environment = Config::from_env()?;
        let flags = self.flags();
        if !self.nodes.is_empty() && flags.nodes.is_empty() {
            // The user did not mean the nodes of the environment.
            return Err(CommandError::wrong(
                "--nodes names no node: leave it out, or give a URL",
            ));
        }
        let mut config = file.overridden_by(environment).overridden_by(flags);
        if self.verbatim_keys && self.namespace.is_none() {
            // The flag wins over a namespace of the environment, such as the sandbox's, or of the file.
            config.namespace = None;
        }
        if config.nodes.is_empty() {
            let message = "no node is given: set REDLOCK_NODES, or give --nodes or --config";
            return Err(CommandError::wrong(message));
        }
        config.nodes = config.nodes.iter().flat_map(NodeConfig::votes).collect();
        // Leases of a try-out can be shorter than the default.
        let max_ttl = config.max_ttl.unwrap_or(NodeSettings::MAX_TTL);
        let mut given = config.clone();
        if self.max_ttl.is_some() && given.ttl.is_none() {
            // No service has this flag and the default ttl, so their conflict is no error in the settings of a service.
            given.ttl = Some(NodeSettings::TTL.min(max_ttl));
        }
        config.ttl = Some(config.ttl.unwrap_or(NodeSettings::TTL).min(max_ttl));
        let keys = Redlock::builder().config(config.clone()).node_keys()?;
        Ok(NodeSettings {
            config,
            given,
            keys,
        })
    }

    fn flags(&self) -> Config {
        let mut config = Config::default();
        config.nodes = NodeConfig::list(&self.nodes.join(","));
        config.namespace.clone_from(&self.namespace);
        config.max_ttl = self.max_ttl;
        config.node_timeout = self.node_timeout;
        config.connect_timeout = self.connect_timeout;
        config.expert.verbatim_keys = self.verbatim_keys;
        config
    }
}

/// All that is known of the nodes before one of them was asked.
#[derive(Clone, Debug)]
pub(crate) struct NodeSettings {
    pub(crate) config: Config,
    /// The settings as they were given, of which no client can be built if `ttl` is longer than `max_ttl`.
    given: Config,
    pub(crate) keys: NodeKeys,
}

impl NodeSettings {
    const MAX_TTL: Duration = Duration::from_secs(30);
    /// The ttl of a client to which none was given.
    pub(crate) const TTL: Duration = Duration::from_secs(10);

    /// Returns a resource, of which every node has a key.
    pub(crate) fn key(&self, resource: &str) -> Result<ResourceKey, CommandError> {
        let key: ResourceKey = resource.parse()?;
        self.keys.lock(&key)?;
        Ok(key)
    }

    /// Describes a client.
    pub(crate) fn builder(&self) -> RedlockBuilder {
        Redlock::builder().config(self.config.clone())
    }

    /// Returns why a service with these settings cannot start.
    pub(crate) fn refused(&self) -> Option<CommandError> {
        let builder = Redlock::builder().config(self.given.clone());
        builder.check().err().map(CommandError::from)
    }

    /// Returns the namespace, as it is called in output.
    pub(crate) fn namespace(&self) -> &str {
        match &self.config.namespace {
            Some(namespace) => namespace,
            None if self.config.expert.verbatim_keys => "(verbatim keys)",
            None => "redlock",
        }
    }

    /// Returns the namespace of the nodes' own keys.
    fn own_namespace(&self) -> &str {
        match self.config.expert.verbatim_keys {
            true => "redlock:verbatim",
            false => self.namespace(),
        }
    }

    /// Returns the pattern of the keys that a user of the nodes must be allowed to use.
    pub(crate) fn key_patterns(&self) -> String {
        let all = if self.config.expert.verbatim_keys && !self.has_votes_of_a_cluster() {
            "~* "
        } else {
            ""
        };
        format!("{all}~{}*", self.own_beginning())
    }

    /// Returns the pattern of the channels that a user of the nodes must be allowed to use, for callers that wait in line.
    pub(crate) fn channel_pattern(&self) -> String {
        let own = self.own_beginning();
        match self.has_votes_of_a_cluster() {
            true => format!("&{own}*"),
            false => format!("&{own}wake:*"),
        }
    }

    /// Returns with what all names of the nodes' own begin.
    fn own_beginning(&self) -> String {
        let namespace = self.own_namespace();
        match self.has_votes_of_a_cluster() {
            // Each vote has its own tag behind the namespace.
            true => format!("{{{namespace}:"),
            false => format!("{{{namespace}}}:"),
        }
    }

    fn has_votes_of_a_cluster(&self) -> bool {
        let mut nodes = self.config.nodes.iter();
        nodes.any(|node| node.node_keys(&self.keys) != self.keys)
    }

    /// Returns the key under which a node remembers with which policy clients use the namespace.
    pub(crate) fn mark(&self) -> String {
        let prefix = format!("{{{}}}", self.own_namespace());
        let keyspace = Keyspace::new(&prefix, self.policy());
        keyspace.mark().as_str().to_owned()
    }

    /// Returns the same on a node with these names, which are others if it is one vote of a Cluster.
    pub(crate) fn mark_of(&self, keys: &NodeKeys) -> String {
        let pattern = keys.pattern();
        let tag = pattern.split_inclusive('}').next();
        match tag.filter(|_| *keys != self.keys) {
            Some(tag) => self
                .mark()
                .replace(&format!("{{{}}}", self.own_namespace()), tag),
            None => self.mark(),
        }
    }

    pub(crate) fn ttl(&self) -> Duration {
        self.config.ttl.unwrap_or(Self::TTL)
    }

    /// Returns the ttl of a lease that a user has asked for, as it was given.
    ///
    /// # Errors
    ///
    /// It is longer than any lease of the namespace.
    pub(crate) fn whole_ttl(&self) -> Result<Duration, CommandError> {
        let max_ttl = self.max_ttl();
        match self.given.ttl {
            Some(ttl) if ttl > max_ttl => Err(CommandError::wrong(format!(
                "a ttl of {ttl:?} (REDLOCK_TTL, or the file of --config) is longer than max_ttl of {max_ttl:?}, the longest \
                 lease of the namespace: set it to {max_ttl:?} at most, or give --ttl"
            ))),
            _ => Ok(self.ttl()),
        }
    }

    pub(crate) fn max_ttl(&self) -> Duration {
        self.config.max_ttl.unwrap_or(Self::MAX_TTL)
    }

    /// Returns how long a node may take to answer, as the client has it.
    pub(crate) fn node_timeout(&self) -> Duration {
        let (least, most) = (Duration::from_millis(50), Duration::from_millis(500));
        let default = (self.ttl() / 10).clamp(least, most);
        self.config.node_timeout.unwrap_or(default)
    }

    pub(crate) fn connect_timeout(&self) -> Duration {
        let default = Duration::from_secs(1);
        self.config.connect_timeout.unwrap_or(default)
    }

    pub(crate) fn clock_rate_error(&self) -> f64 {
        self.config.clock_rate_error.unwrap_or(0.01)
    }

    /// Returns how long a node does not vote that may have forgotten leases.
    pub(crate) fn quarantine(&self) -> Duration {
        self.policy().length()
    }

    /// Returns what the length of a quarantine rests on.
    pub(crate) fn policy(&self) -> Quarantine {
        let quarantine = Quarantine::new(self.max_ttl(), self.clock_rate_error());
        if self.is_best_effort() {
            quarantine.best_effort()
        } else if self.config.nodes.iter().any(NodeConfig::follows_failovers) {
            quarantine.following_failovers()
        } else {
            quarantine
        }
    }

    /// Returns whether one server is trusted to keep its data.
    pub(crate) fn is_best_effort(&self) -> bool {
        self.config.guarantee == Some(Guarantee::BestEffort)
    }

    /// Returns the number of nodes that must grant.
    pub(crate) fn majority(&self) -> usize {
        self.config.nodes.len() / 2 + 1
    }
}
