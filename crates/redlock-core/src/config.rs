use std::{env, fmt, sync::Arc, time::Duration};

use deadpool_redis::{Pool, redis::ConnectionInfo};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor, value::MapAccessDeserializer},
};

use crate::{
    BuildError, MemoryNode,
    node::{Address, Node, connection_info},
    variables,
};

/// The settings of a client, for a configuration file or the environment.
///
/// What is left out has the builder's default.
/// Durations are written as `"30s"` or `"250ms"`; a node is a URL or a table as
/// [`deadpool_redis::Config`] reads it.
/// `Debug` shows no password.
///
/// # Examples
///
/// ```
/// let config: redlock_core::Config = toml::from_str(
///     r#"
///     namespace = "billing"
///     ttl = "5s"
///     nodes = [
///         "redis://:secret@10.0.0.1",
///         "redis://:secret@10.0.0.2",
///         { url = "redis://:secret@10.0.0.3" },
///     ]
///     "#,
/// )?;
/// assert!(!format!("{config:?}").contains("secret"));
/// let builder = redlock_core::Redlock::builder().config(config);
/// # Ok::<_, toml::de::Error>(())
/// ```
#[derive(Clone, Debug, Default, Deserialize)]
#[non_exhaustive]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The nodes: one, or better three or five, independent masters.
    pub nodes: Vec<NodeConfig>,
    /// As [`RedlockBuilder::namespace`](crate::RedlockBuilder::namespace).
    pub namespace: Option<String>,
    /// As [`RedlockBuilder::verbatim_keys`](crate::RedlockBuilder::verbatim_keys).
    pub verbatim_keys: bool,
    /// As [`RedlockBuilder::label`](crate::RedlockBuilder::label).
    pub label: Option<String>,
    /// As [`RedlockBuilder::ttl`](crate::RedlockBuilder::ttl).
    #[serde(with = "humantime_serde")]
    pub ttl: Option<Duration>,
    /// As [`RedlockBuilder::max_ttl`](crate::RedlockBuilder::max_ttl).
    #[serde(with = "humantime_serde")]
    pub max_ttl: Option<Duration>,
    /// As [`RedlockBuilder::wait`](crate::RedlockBuilder::wait); zero makes one attempt.
    #[serde(with = "humantime_serde")]
    pub wait: Option<Duration>,
    /// As [`RedlockBuilder::quorum_wait`](crate::RedlockBuilder::quorum_wait).
    #[serde(with = "humantime_serde")]
    pub quorum_wait: Option<Duration>,
    /// As [`RedlockBuilder::node_timeout`](crate::RedlockBuilder::node_timeout).
    #[serde(with = "humantime_serde")]
    pub node_timeout: Option<Duration>,
    /// As [`RedlockBuilder::connect_timeout`](crate::RedlockBuilder::connect_timeout).
    #[serde(with = "humantime_serde")]
    pub connect_timeout: Option<Duration>,
    /// As [`RedlockBuilder::clock_rate_error`](crate::RedlockBuilder::clock_rate_error).
    pub clock_rate_error: Option<f64>,
    /// As [`RedlockBuilder::dangerous_trust_persistence`](crate::RedlockBuilder::dangerous_trust_persistence).
    pub trust_persistence: bool,
    /// As [`RedlockBuilder::dangerous_trust_delayed_restarts`](crate::RedlockBuilder::dangerous_trust_delayed_restarts).
    pub delayed_restarts: bool,
    /// As [`RedlockBuilder::accept_replicas`](crate::RedlockBuilder::accept_replicas).
    pub accept_replicas: bool,
    /// As [`RedlockBuilder::dangerous_guess_fencing_floor`](crate::RedlockBuilder::dangerous_guess_fencing_floor).
    pub guess_fencing_floor: bool,
}

impl Config {
    /// Returns these settings, with those of another configuration in their place as far as it has them.
    ///
    /// Its nodes take the place of these if it has any; what one of the two trusts or accepts is trusted or accepted.
    #[must_use]
    pub fn overridden_by(self, other: Self) -> Self {
        let nodes = if other.nodes.is_empty() {
            self.nodes
        } else {
            other.nodes
        };
        Self {
            nodes,
            namespace: other.namespace.or(self.namespace),
            verbatim_keys: other.verbatim_keys | self.verbatim_keys,
            label: other.label.or(self.label),
            ttl: other.ttl.or(self.ttl),
            max_ttl: other.max_ttl.or(self.max_ttl),
            wait: other.wait.or(self.wait),
            quorum_wait: other.quorum_wait.or(self.quorum_wait),
            node_timeout: other.node_timeout.or(self.node_timeout),
            connect_timeout: other.connect_timeout.or(self.connect_timeout),
            clock_rate_error: other.clock_rate_error.or(self.clock_rate_error),
            trust_persistence: other.trust_persistence | self.trust_persistence,
            delayed_restarts: other.delayed_restarts | self.delayed_restarts,
            accept_replicas: other.accept_replicas | self.accept_replicas,
            guess_fencing_floor: other.guess_fencing_floor | self.guess_fencing_floor,
        }
    }

    /// Reads the settings from the environment.
    ///
    /// `REDLOCK_NODES` is a list of URLs with commas between them (a comma in a password is written
    /// `%2C`); `REDLOCK_NAMESPACE` and `REDLOCK_LABEL` are text; `REDLOCK_TTL`, `REDLOCK_MAX_TTL`, `REDLOCK_WAIT`,
    /// `REDLOCK_QUORUM_WAIT`, `REDLOCK_NODE_TIMEOUT` and `REDLOCK_CONNECT_TIMEOUT` are durations such as `30s`.
    /// A variable that is empty counts as not set.
    /// A variable whose name is one of these but for a slip or two is refused, and so is one that names a setting which
    /// only a file or the builder has; others that begin with `REDLOCK_` are ignored, because they may be another
    /// program's (Kubernetes sets `REDLOCK_PORT` for a service of this name), and an event at `DEBUG` names them.
    ///
    /// # Errors
    ///
    /// Names the variable that cannot be read, or that is none.
    pub fn from_env() -> Result<Self, BuildError> {
        let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        variables::check(names)?;
        Self::from_vars(|name| match env::var(name) {
            Ok(value) => Ok(Some(value).filter(|value| !value.is_empty())),
            Err(env::VarError::NotPresent) => Ok(None),
            Err(env::VarError::NotUnicode(_)) => Err(BuildError::misuse(name, "is not UTF-8")),
        })
    }

    fn from_vars(
        var: impl Fn(&str) -> Result<Option<String>, BuildError>,
    ) -> Result<Self, BuildError> {
        let duration = |name: &str| {
            let Some(value) = var(name)? else {
                return Ok(None);
            };
            let parsed = humantime_serde::re::humantime::parse_duration(&value);
            parsed.map(Some).map_err(|error| {
                BuildError::misuse(
                    name,
                    format!("{value:?} is not a duration like 30s: {error}"),
                )
            })
        };
        let nodes = var("REDLOCK_NODES")?.unwrap_or_default();
        let urls = nodes
            .split(',')
            .map(str::trim)
            .filter(|url| !url.is_empty());
        Ok(Self {
            nodes: urls.map(NodeConfig::from).collect(),
            namespace: var("REDLOCK_NAMESPACE")?,
            verbatim_keys: false,
            label: var("REDLOCK_LABEL")?,
            ttl: duration("REDLOCK_TTL")?,
            max_ttl: duration("REDLOCK_MAX_TTL")?,
            wait: duration("REDLOCK_WAIT")?,
            quorum_wait: duration("REDLOCK_QUORUM_WAIT")?,
            node_timeout: duration("REDLOCK_NODE_TIMEOUT")?,
            connect_timeout: duration("REDLOCK_CONNECT_TIMEOUT")?,
            clock_rate_error: None,
            trust_persistence: false,
            delayed_restarts: false,
            accept_replicas: false,
            guess_fencing_floor: false,
        })
    }
}

/// One node: where it is, or what it is.
///
/// Made `From` a URL, a [`deadpool_redis::Config`], a ready [`deadpool_redis::Pool`] or a
/// [`MemoryNode`]; `Debug` shows no credentials.
#[derive(Clone)]
pub struct NodeConfig(pub(crate) NodeSpec);

#[derive(Clone)]
pub(crate) enum NodeSpec {
    Redis(Box<deadpool_redis::Config>),
    Pool { name: Option<Arc<str>>, pool: Pool },
    Memory(MemoryNode),
    Other(Arc<dyn Node>),
}

impl NodeConfig {
    /// Makes a node of a ready pool; `name` is what errors and logs call its server.
    ///
    /// One connection is taken out of the pool for good, and another whenever it breaks.
    /// A connection that the pool made before lives on the runtime that made it, so that runtime must
    /// outlive the client; the client's own are made on its thread.
    /// The pool's connections must have no `concurrency_limit`: it would let requests overtake each
    /// other.
    /// A pool cannot be asked for its server's address, so two pools of one server are not noticed.
    pub fn pool(name: impl Into<Arc<str>>, pool: Pool) -> Self {
        Self(NodeSpec::Pool {
            name: Some(name.into()),
            pool,
        })
    }

    /// Returns how to connect to the server, for tools that ask it for more than a client does.
    ///
    /// It has the password, which its `Debug` does not show.
    /// `None` for a pool, for nodes that are not Redis', and if the URL is malformed, of which
    /// [`build`](crate::RedlockBuilder::build) tells.
    pub fn connection_info(&self) -> Option<ConnectionInfo> {
        match &self.0 {
            NodeSpec::Redis(config) => connection_info(config).ok(),
            _ => None,
        }
    }

    /// Returns what errors and reports call the node: its address, without credentials.
    ///
    /// `None` for a pool without a name, and if the URL is malformed.
    pub fn name(&self) -> Option<Arc<str>> {
        match &self.0 {
            NodeSpec::Redis(_) => {
                let info = self.connection_info()?;
                Some(Address::of(&info).to_string().into())
            }
            NodeSpec::Pool { name, .. } => name.clone(),
            NodeSpec::Memory(node) => Some(node.name()),
            NodeSpec::Other(node) => Some(node.name()),
        }
    }

    /// Takes a node of your own.
    pub fn other(node: impl Node) -> Self {
        Self(NodeSpec::Other(Arc::new(node)))
    }
}

impl From<&str> for NodeConfig {
    fn from(url: &str) -> Self {
        deadpool_redis::Config::from_url(url).into()
    }
}

impl From<String> for NodeConfig {
    fn from(url: String) -> Self {
        deadpool_redis::Config::from_url(url).into()
    }
}

impl From<&String> for NodeConfig {
    fn from(url: &String) -> Self {
        url.as_str().into()
    }
}

impl From<deadpool_redis::Config> for NodeConfig {
    fn from(config: deadpool_redis::Config) -> Self {
        Self(NodeSpec::Redis(Box::new(config)))
    }
}

impl From<Pool> for NodeConfig {
    fn from(pool: Pool) -> Self {
        Self(NodeSpec::Pool { name: None, pool })
    }
}

impl From<MemoryNode> for NodeConfig {
    fn from(node: MemoryNode) -> Self {
        Self(NodeSpec::Memory(node))
    }
}

impl fmt::Debug for NodeConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            NodeSpec::Redis(_) => "NodeConfig(redis, ..)",
            NodeSpec::Pool { .. } => "NodeConfig(pool, ..)",
            NodeSpec::Memory(_) => "NodeConfig(memory)",
            NodeSpec::Other(_) => "NodeConfig(other)",
        })
    }
}

impl<'de> Deserialize<'de> for NodeConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct UrlOrTable;

        impl<'de> Visitor<'de> for UrlOrTable {
            type Value = NodeConfig;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a URL such as redis://host:6379, or a table with a url or a connection",
                )
            }

            fn visit_str<E: Error>(self, url: &str) -> Result<NodeConfig, E> {
                Ok(url.into())
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<NodeConfig, A::Error> {
                deadpool_redis::Config::deserialize(MapAccessDeserializer::new(map)).map(Into::into)
            }
        }

        deserializer.deserialize_any(UrlOrTable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_vars(vars: &[(&str, &str)]) -> Result<Config, BuildError> {
        Config::from_vars(|name| {
            let found = vars.iter().find(|(var, _)| *var == name);
            Ok(found.map(|(_, value)| (*value).to_owned()))
        })
    }

    #[test]
    fn the_environment_is_read() {
        let config = from_vars(&[
            ("REDLOCK_NODES", "redis://a, redis://b,redis://c,"),
            ("REDLOCK_TTL", "2s 500ms"),
            ("REDLOCK_NAMESPACE", "billing"),
        ])
        .unwrap();
        assert_eq!(config.nodes.len(), 3);
        assert_eq!(config.ttl, Some(Duration::from_millis(2_500)));
        assert_eq!(config.namespace.as_deref(), Some("billing"));
        assert_eq!(config.wait, None);
    }

    #[test]
    fn a_bad_variable_is_named() {
        let error = from_vars(&[("REDLOCK_TTL", "soon")]).unwrap_err();
        assert_eq!(error.field(), "REDLOCK_TTL");
        assert!(error.to_string().contains("30s"), "{error}");
    }

    #[test]
    fn a_bad_setting_in_a_file_is_named() {
        let error = toml::from_str::<Config>("tll = '3s'")
            .unwrap_err()
            .to_string();
        assert!(error.contains("tll") && error.contains("ttl"), "{error}");
        let error = toml::from_str::<Config>("nodes = [3]")
            .unwrap_err()
            .to_string();
        assert!(error.contains("a URL such as"), "{error}");
        let error = toml::from_str::<Config>("ttl = 'soon'")
            .unwrap_err()
            .to_string();
        assert!(error.contains("ttl"), "{error}");
    }

    #[test]
    fn a_node_is_named_without_its_password_and_connected_to_with_it() {
        let node = NodeConfig::from("redis://me:hunter2@Example.com:7000/1");
        assert_eq!(node.name().as_deref(), Some("example.com:7000"));
        let info = node.connection_info().unwrap();
        assert_eq!(info.redis_settings().password(), Some("hunter2"));
        assert!(!format!("{info:?}").contains("hunter2"));
        let malformed = NodeConfig::from("me:hunter2@host");
        assert!(malformed.connection_info().is_none() && malformed.name().is_none());
        assert!(NodeConfig::from(MemoryNode::new()).name().is_some());
    }

    #[test]
    fn debug_shows_no_password() {
        let url = "redis://me:hunter2@localhost";
        let config = Config {
            nodes: vec![url.into(), deadpool_redis::Config::from_url(url).into()],
            ..Config::default()
        };
        assert!(!format!("{config:?}").contains("hunter2"));
    }
}
