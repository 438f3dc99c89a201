//! The settings of the nodes, for looks at them beside the client.

use std::time::Duration;

use redlock_core::{
    BuildError, Config, Guarantee, InvalidKey, NodeConfig, NodeKeys, Redlock, RedlockBuilder,
    ResourceKey,
};
use redlock_proto::{Keyspace, Quarantine};

/// All that is known of the nodes before one of them was asked.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NodeSettings {
    /// The settings, with one node for each vote and a `ttl` that is not longer than `max_ttl`.
    pub config: Config,
    /// The settings as they were given, of which no client can be built if `ttl` is longer than `max_ttl`.
    given: Config,
    /// The names of resources at nodes.
    pub keys: NodeKeys,
}

impl NodeSettings {
    /// The `max_ttl` of a client to which none was given.
    pub const MAX_TTL: Duration = Duration::from_secs(30);
    /// The ttl of a client to which none was given.
    pub const TTL: Duration = Duration::from_secs(10);

    /// Reads what was given.
    ///
    /// # Errors
    ///
    /// The namespace is not valid.
    pub fn new(given: Config) -> Result<Self, BuildError> {
        let mut config = given.clone();
        config.nodes = config.nodes.iter().flat_map(NodeConfig::votes).collect();
        let max_ttl = config.max_ttl.unwrap_or(Self::MAX_TTL);
        config.ttl = Some(config.ttl.unwrap_or(Self::TTL).min(max_ttl));
        let keys = Redlock::builder().config(config.clone()).node_keys()?;
        Ok(Self {
            config,
            given,
            keys,
        })
    }

    /// Returns a resource, of which every node has a key.
    ///
    /// # Errors
    ///
    /// The name is not valid.
    pub fn key(&self, resource: &str) -> Result<ResourceKey, InvalidKey> {
        let key: ResourceKey = resource.parse()?;
        self.keys.lock(&key)?;
        Ok(key)
    }

    /// Describes a client.
    pub fn builder(&self) -> RedlockBuilder {
        Redlock::builder().config(self.config.clone())
    }

    /// Returns why a service with these settings cannot start.
    pub fn refused(&self) -> Option<BuildError> {
        let builder = Redlock::builder().config(self.given.clone());
        builder.check().err()
    }

    /// Returns the namespace, as it is called in output.
    pub fn namespace(&self) -> &str {
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
    pub fn key_patterns(&self) -> String {
        let all = if self.config.expert.verbatim_keys && !self.has_votes_of_a_cluster() {
            "~* "
        } else {
            ""
        };
        format!("{all}~{}*", self.own_beginning())
    }

    /// Returns the pattern of the channels that a user of the nodes must be allowed to use, for callers that wait in line.
    pub fn channel_pattern(&self) -> String {
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
    pub fn mark(&self) -> String {
        let prefix = format!("{{{}}}", self.own_namespace());
        let keyspace = Keyspace::new(&prefix, self.policy());
        keyspace.mark().as_str().to_owned()
    }

    /// Returns the same on a node with these names, which are others if it is one vote of a Cluster.
    pub fn mark_of(&self, keys: &NodeKeys) -> String {
        let pattern = keys.pattern();
        let tag = pattern.split_inclusive('}').next();
        match tag.filter(|_| *keys != self.keys) {
            Some(tag) => self
                .mark()
                .replace(&format!("{{{}}}", self.own_namespace()), tag),
            None => self.mark(),
        }
    }

    /// Returns the time to live of a lease for which none is asked.
    pub fn ttl(&self) -> Duration {
        self.config.ttl.unwrap_or(Self::TTL)
    }

    /// Returns the time to live of a lease as it was given, which may be longer than any lease of the namespace.
    pub fn given_ttl(&self) -> Option<Duration> {
        self.given.ttl
    }

    /// Returns the longest lease of any client of the namespace.
    pub fn max_ttl(&self) -> Duration {
        self.config.max_ttl.unwrap_or(Self::MAX_TTL)
    }

    /// Returns how long a node may take to answer, as the client has it.
    pub fn node_timeout(&self) -> Duration {
        let (least, most) = (Duration::from_millis(50), Duration::from_millis(500));
        let default = (self.ttl() / 10).clamp(least, most);
        self.config.node_timeout.unwrap_or(default)
    }

    /// Returns how long a connection may take to open.
    pub fn connect_timeout(&self) -> Duration {
        let default = Duration::from_secs(1);
        self.config.connect_timeout.unwrap_or(default)
    }

    /// Returns by how many parts of one a clock's rate may be off.
    pub fn clock_rate_error(&self) -> f64 {
        self.config.clock_rate_error.unwrap_or(0.01)
    }

    /// Returns how long a node does not vote that may have forgotten leases.
    pub fn quarantine(&self) -> Duration {
        self.policy().length()
    }

    /// Returns what the length of a quarantine rests on.
    pub fn policy(&self) -> Quarantine {
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
    pub fn is_best_effort(&self) -> bool {
        self.config.guarantee == Some(Guarantee::BestEffort)
    }

    /// Returns the number of nodes that must grant.
    pub fn majority(&self) -> usize {
        self.config.nodes.len() / 2 + 1
    }
}
