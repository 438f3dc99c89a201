mod env;
mod expert;
#[cfg(feature = "toml")]
mod file;
mod guarantee;
mod node;

use std::time::Duration;

use serde::Deserialize;

#[cfg(feature = "toml")]
pub use self::file::read_toml;
pub(crate) use self::node::NodeSpec;
pub use self::{expert::Expert, guarantee::Guarantee, node::NodeConfig};
use crate::BuildError;

/// The settings of a client, for a configuration file or the environment.
///
/// [`from_env`](Self::from_env) reads them from the environment, and `from_file` (with the feature `toml`) from a TOML file.
/// Other formats have them by serde; a parser's own errors may then show passwords.
/// A missing setting has the builder's default.
/// A duration is written as `"30s"` or `"250ms"`.
/// A node is a URL, or a table that `deadpool_redis::Config` can read.
/// `Debug` shows no password.
///
/// # Examples
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # std::env::set_current_dir(folder.path())?;
/// let file = r#"
///     namespace = "billing"
///     ttl = "5s"
///     nodes = [
///         "redis://:secret@10.0.0.1",
///         "redis://:secret@10.0.0.2",
///         { url = "redis://:secret@10.0.0.3" },
///     ]
/// "#;
/// std::fs::write("redlock.toml", file)?;
/// let config = redlock_core::Config::from_file("redlock.toml")?;
/// assert!(!format!("{config:?}").contains("secret"));
/// let builder = redlock_core::Redlock::builder().config(config);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, Deserialize)]
#[non_exhaustive]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The nodes: one, or better three or five, independent masters.
    pub nodes: Vec<NodeConfig>,
    /// The ground on which leases rest: `"quorum"` (the default) or `"best_effort"`.
    pub guarantee: Option<Guarantee>,
    /// As [`RedlockBuilder::wait_for_replicas`](crate::RedlockBuilder::wait_for_replicas).
    pub wait_for_replicas: Option<u8>,
    /// As [`RedlockBuilder::namespace`](crate::RedlockBuilder::namespace).
    pub namespace: Option<String>,
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
    /// As [`RedlockBuilder::heartbeat`](crate::RedlockBuilder::heartbeat).
    #[serde(with = "humantime_serde")]
    pub heartbeat: Option<Duration>,
    /// As [`RedlockBuilder::max_waiters_per_key`](crate::RedlockBuilder::max_waiters_per_key).
    pub max_waiters_per_key: Option<usize>,
    /// As [`RedlockBuilder::clock_rate_error`](crate::RedlockBuilder::clock_rate_error).
    pub clock_rate_error: Option<f64>,
    /// Rare and dangerous settings.
    pub expert: Expert,
}

impl Config {
    /// Returns these settings, replaced by those of `other` where `other` has them.
    ///
    /// The nodes of `other` replace these nodes if `other` has any.
    /// The result has each [`Expert`] setting that one of the two configurations has.
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_core::Config;
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("redlock.toml");
    /// # std::fs::write(&path, "namespace = 'billing'\nnodes = ['redis://10.0.0.1']")?;
    /// // redlock.toml: namespace = 'billing', nodes = ['redis://10.0.0.1']
    /// let config = Config::from_file(&path)?.overridden_by(Config::from_env()?);
    /// assert_eq!(config.namespace.as_deref(), Some("billing"));
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn overridden_by(self, other: Self) -> Self {
        let nodes = if other.nodes.is_empty() {
            self.nodes
        } else {
            other.nodes
        };
        Self {
            nodes,
            guarantee: other.guarantee.or(self.guarantee),
            wait_for_replicas: other.wait_for_replicas.or(self.wait_for_replicas),
            namespace: other.namespace.or(self.namespace),
            label: other.label.or(self.label),
            ttl: other.ttl.or(self.ttl),
            max_ttl: other.max_ttl.or(self.max_ttl),
            wait: other.wait.or(self.wait),
            quorum_wait: other.quorum_wait.or(self.quorum_wait),
            node_timeout: other.node_timeout.or(self.node_timeout),
            connect_timeout: other.connect_timeout.or(self.connect_timeout),
            heartbeat: other.heartbeat.or(self.heartbeat),
            max_waiters_per_key: other.max_waiters_per_key.or(self.max_waiters_per_key),
            clock_rate_error: other.clock_rate_error.or(self.clock_rate_error),
            expert: self.expert.union(other.expert),
        }
    }

    /// Reads the settings from the environment.
    ///
    /// `REDLOCK_NODES` is a list of URLs with commas between them, as [`NodeConfig::list`] reads it (a comma in a password
    /// is written `%2C`); `REDLOCK_GUARANTEE` is `quorum` or `best_effort`; `REDLOCK_NAMESPACE` and `REDLOCK_LABEL` are
    /// text; `REDLOCK_TTL`, `REDLOCK_MAX_TTL`, `REDLOCK_WAIT`, `REDLOCK_QUORUM_WAIT`, `REDLOCK_NODE_TIMEOUT`,
    /// `REDLOCK_CONNECT_TIMEOUT` and `REDLOCK_HEARTBEAT` are durations such as `30s`; `REDLOCK_WAIT_FOR_REPLICAS` and
    /// `REDLOCK_MAX_WAITERS_PER_KEY` are numbers.
    /// An empty variable counts as not set.
    /// It refuses a variable whose name differs from one of these by a slip or two.
    /// It also refuses a variable that names a setting which only a file or the builder has.
    /// It ignores other variables that begin with `REDLOCK_`, because they may belong to another program (Kubernetes
    /// sets `REDLOCK_PORT` for a service of this name), and an event at `DEBUG` names them.
    ///
    /// # Errors
    ///
    /// The error names the variable that cannot be read, or that is no setting.
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_core::{Config, Redlock};
    ///
    /// // REDLOCK_NODES=redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3 REDLOCK_TTL=5s
    /// let builder = Redlock::builder().config(Config::from_env()?);
    /// # drop(builder);
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_env() -> Result<Self, BuildError> {
        let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        env::check(names)?;
        Self::from_vars(|name| match std::env::var(name) {
            Ok(value) => Ok(Some(value).filter(|value| !value.is_empty())),
            Err(std::env::VarError::NotPresent) => Ok(None),
            Err(std::env::VarError::NotUnicode(_)) => Err(BuildError::misuse(name, "is not UTF-8")),
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
                    format!("{value:?} is not a time such as 30s: {error}"),
                )
            })
        };
        let number = |name: &str, of: &str, most: usize| {
            let Some(value) = var(name)? else {
                return Ok(None);
            };
            let parsed = value.parse().ok().filter(|number| *number <= most);
            parsed.map(Some).ok_or_else(|| {
                let message = format!("{value:?} is not a number of {of} from 0 to {most}");
                BuildError::misuse(name, message)
            })
        };
        let nodes = var("REDLOCK_NODES")?.unwrap_or_default();
        let nodes = NodeConfig::list(&nodes).into_iter().enumerate();
        let nodes = nodes.map(|(index, node)| {
            let refused = |why: String| {
                let message = format!("URL {} {why}; commas separate URLs", index + 1);
                BuildError::misuse("REDLOCK_NODES", message)
            };
            node.check().map(|()| node).map_err(refused)
        });
        Ok(Self {
            nodes: nodes.collect::<Result<_, _>>()?,
            guarantee: var("REDLOCK_GUARANTEE")?
                .as_deref()
                .map(Guarantee::read)
                .transpose()?,
            wait_for_replicas: number("REDLOCK_WAIT_FOR_REPLICAS", "replicas", u8::MAX.into())?
                .map(|count| u8::try_from(count).unwrap_or(u8::MAX)),
            namespace: var("REDLOCK_NAMESPACE")?,
            label: var("REDLOCK_LABEL")?,
            ttl: duration("REDLOCK_TTL")?,
            max_ttl: duration("REDLOCK_MAX_TTL")?,
            wait: duration("REDLOCK_WAIT")?,
            quorum_wait: duration("REDLOCK_QUORUM_WAIT")?,
            node_timeout: duration("REDLOCK_NODE_TIMEOUT")?,
            connect_timeout: duration("REDLOCK_CONNECT_TIMEOUT")?,
            heartbeat: duration("REDLOCK_HEARTBEAT")?,
            max_waiters_per_key: number("REDLOCK_MAX_WAITERS_PER_KEY", "callers", usize::MAX)?,
            clock_rate_error: None,
            expert: Expert::default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_file_is_read_or_refused_without_its_password(
            name in prop::sample::select(&["nodes", "ttl", "max_ttl", "expert.verbatim_keys", "namespace", "guarantee"][..]),
            value in "[\\[\\]\"{}=,a-z0-9:/ ]{0,24}",
        ) {
            let file = format!("nodes = [{{ url = \"redis://:hunter2@h\" }}]\n{name} = {value}\n");
            if let Ok(config) = toml::from_str::<Config>(&file) {
                let said = format!("{config:?}");
                prop_assert!(!said.contains("hunter2"), "{}", said);
            }
        }

        #[test]
        fn any_variable_is_read_or_refused(
            name in prop::sample::select(&["NODES", "TTL", "MAX_TTL", "WAIT", "GUARANTEE", "LABEL", "NAMESPACE"][..]),
            value in "\\PC{0,24}",
        ) {
            let name = format!("REDLOCK_{name}");
            let read = from_vars(&[(&name, &value)]);
            if let Err(refused) = read {
                prop_assert!(refused.to_string().contains(&name), "{}", refused);
            }
        }

        #[test]
        fn any_url_is_a_node_or_refused_without_its_password(
            scheme in prop::sample::select(&["redis", "rediss", "redis+sentinel", "redis+cluster", "http", "valkey"][..]),
            before in "[a-z:@/#?%]{0,4}",
            behind in "[a-z0-9:@/#?%&=,+\\[\\]]{0,24}",
        ) {
            let url = format!("{scheme}://{before}:hunter2@{behind}");
            let mut nodes = NodeConfig::list(&url);
            let votes: Vec<_> = nodes.iter().flat_map(NodeConfig::votes).collect();
            nodes.extend(votes);
            for node in nodes {
                let said = format!("{:?} {:?} {:?}", node, node.name(), node.check());
                prop_assert!(!said.contains("hunter2"), "{}: {}", url, said);
            }
        }
    }

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
            ("REDLOCK_GUARANTEE", "best_effort"),
            ("REDLOCK_MAX_WAITERS_PER_KEY", "50"),
            ("REDLOCK_WAIT_FOR_REPLICAS", "1"),
        ])
        .unwrap();
        assert_eq!(config.guarantee, Some(Guarantee::BestEffort));
        let refused = from_vars(&[("REDLOCK_GUARANTEE", "strong")]).unwrap_err();
        assert!(refused.to_string().contains("best_effort"), "{refused}");
        assert_eq!(config.nodes.len(), 3);
        assert_eq!(config.max_waiters_per_key, Some(50));
        assert_eq!(config.wait_for_replicas, Some(1));
        assert_eq!(config.ttl, Some(Duration::from_millis(2_500)));
        assert_eq!(config.namespace.as_deref(), Some("billing"));
        assert_eq!(config.wait, None);
    }

    #[test]
    fn the_sentinels_of_a_node_have_commas_between_them_too() {
        let nodes = "redis+sentinel://:pw@s1, s2:7000,s3/orders/1,redis://b,redis+sentinel://s1/x";
        let config = from_vars(&[("REDLOCK_NODES", nodes)]).unwrap();
        let names = config.nodes.iter().map(|node| node.name().unwrap());
        let names: Vec<_> = names.collect();
        assert_eq!(
            names.iter().map(|name| &**name).collect::<Vec<_>>(),
            ["orders@s1:26379", "b:6379", "x@s1:26379"]
        );
        let refused = from_vars(&[("REDLOCK_NODES", "redis+sentinel://s1,s2,redis://b")]);
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("URL 1 names no master"), "{refused}");
    }

    #[test]
    fn a_setting_for_experts_that_one_of_two_configurations_has_is_set() {
        let file = "[expert]\ndangerous_trust_persistence = true";
        let file = toml::from_str::<Config>(file).unwrap();
        let mut flags = Config::default();
        flags.expert.verbatim_keys = true;
        let Expert {
            verbatim_keys,
            dangerous_trust_persistence,
            dangerous_guess_fencing_floor,
        } = file.overridden_by(flags).expert;
        assert!(verbatim_keys && dangerous_trust_persistence);
        assert!(!dangerous_guess_fencing_floor);
    }

    #[test]
    fn a_bad_variable_is_named() {
        let error = from_vars(&[("REDLOCK_TTL", "soon")]).unwrap_err();
        assert_eq!(error.field(), "REDLOCK_TTL");
        assert!(error.to_string().contains("a time such as 30s"), "{error}");
        for (name, value) in [
            ("REDLOCK_WAIT_FOR_REPLICAS", "256"),
            ("REDLOCK_MAX_WAITERS_PER_KEY", "-1"),
        ] {
            let error = from_vars(&[(name, value)]).unwrap_err();
            assert_eq!(error.field(), name);
            assert!(error.to_string().contains("from 0 to "), "{error}");
        }
    }
}
