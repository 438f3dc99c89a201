use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use redlock_proto::{ClientConfig, Keyspace, LinkConfig, Quorum, RetryPolicy};
use redlock_redis::Polls;
use tokio::{
    runtime::Handle,
    sync::watch,
    time::{Instant, timeout_at},
};

use super::RedlockBuilder;
use crate::{
    BuildError, Guarantee, HolderLabel, InvalidLabel, NodeAnswer, NodeConfig, NodeKeys, NodeReport,
    Redlock, Wait,
    client::{Settings, label_of_this_process},
    clock::{Clock, PauseDetector},
    config::NodeSpec,
    engine::{self, EngineConfig, LinkState, Placement},
    keyspace::{KeyScheme, Namespace},
    meter::Meter,
    names::NodeNames,
    node::{Node, RedisNode},
};

impl RedlockBuilder {
    /// Checks the settings, connects to the nodes and starts the client.
    ///
    /// It waits until the client has reached each node or has failed to, 100 ms more than `connect_timeout` at
    /// most.
    ///
    /// # Threads
    ///
    /// The client has a thread, which calls the nodes and renews leases.
    /// While its callers come one at a time, a task on the runtime of this call does that work: then a caller waits for no
    /// other thread.
    /// The thread takes over what that task leaves undone for 20 ms, and all of it once the runtime has ended.
    /// So a handler may block all threads of the runtime, and no lease is lost.
    /// A connection that was moved to the runtime keeps a second file descriptor, so that the thread can take it back when
    /// none is free.
    ///
    /// The thread does all the work
    ///
    /// - while callers come together, or the client has more than 64 leases;
    /// - after a lease was asked for whose time to live is a second or less;
    /// - if a connection has TLS or RESP3, or comes from a pool, or a node is one in memory or of another kind, is named by
    ///   Sentinels or a Cluster, or waits for replicas;
    /// - on systems other than Unix, in a program with `panic = "abort"`, and where the runtime has no `enable_io`: tokio
    ///   then panics, which the client catches, and the panic hook reports once.
    ///
    /// # Errors
    ///
    /// A setting is not valid, a node is given twice, tokio's time is paused without
    /// `virtual_time` (of the feature `test-util`), the operating system starts no thread for the client, or the client cannot
    /// reach a majority of nodes that are fit to vote.
    /// The error names the setting or what to do, or has a line per node.
    /// Nodes in quarantine are no error, because they vote later.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with its timer enabled.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future stops the client.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use redlock_core::{BuildErrorKind, Redlock};
    ///
    /// let nodes = ["redis://127.0.0.1:1", "redis://127.0.0.1:2", "redis://127.0.0.1:3"];
    /// match Redlock::builder().nodes(nodes).build().await {
    ///     Ok(redlock) => drop(redlock),
    ///     // Whether to try again or to end is the program's decision.
    ///     Err(error) if error.kind() == BuildErrorKind::NoQuorum => eprintln!("{error}"),
    ///     Err(error) => return Err(error.into()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn build(self) -> Result<Redlock, BuildError> {
        let settings = self.settings()?;
        let key_space = self.key_space()?;
        let nodes = self.open_nodes(&settings, &key_space)?;
        let Some(count) = NonZeroUsize::new(nodes.len()) else {
            let message = "no node is given; give one, or better three or five, independent masters, such as in REDLOCK_NODES";
            return Err(BuildError::misuse("nodes", message));
        };
        let quorum = Quorum::of(count);
        if settings.guarantee == Guarantee::BestEffort {
            tracing::info!(
                target: "redlock::quorum",
                namespace = &*key_space.name(),
                "best effort: leases last as long as their one server keeps its data, and a failover may forget some"
            );
        }
        let is_in_real_time = self.process.is_none();
        let (clock, placement) = match self.process {
            Some(process) => {
                let runtime = Handle::current();
                let clock = Clock::of_runtime(&runtime);
                (clock, Placement::Runtime(runtime, process))
            }
            None => (Clock::Boot, Placement::OwnThread),
        };
        let names = NodeNames::of(nodes.iter().map(|node| node.name()));
        let of_nodes: Vec<_> = names.iter().map(|node| Arc::clone(&node.name)).collect();
        let meter = Meter::new(&key_space.name(), quorum.majority(), &of_nodes);
        let keyspace = Keyspace::new(&key_space.prefix(), settings.quarantine());
        let config = EngineConfig {
            client: ClientConfig {
                quorum,
                keyspace,
                retry: settings.retry,
                node_timeout: settings.node_timeout,
                inspect_every: settings.heartbeat.max(ClientConfig::INSPECT_EVERY),
                fan_out: self.fan_out,
                most_unsent: MOST_UNSENT,
            },
            clock,
            meter: meter.clone(),
            namespace: key_space.name(),
            seed: self.seed,
        };
        let links = LinkConfig {
            heartbeat: settings.heartbeat,
            ..LinkConfig::new(settings.connect_timeout, settings.node_timeout)
        };
        let detector = PauseDetector::start();
        let (engine, mut states) =
            engine::start(config, links, nodes.clone(), names.clone(), placement)?;
        if !self.connect_lazily {
            connected(&mut states, settings.connect_timeout).await;
        }
        if is_in_real_time && detector.is_paused() {
            let message = "tokio's time is paused, and this client keeps real time: call `virtual_time()` of the \
                 feature `test-util`, with nodes in memory, or do not pause it";
            return Err(BuildError::misuse("virtual_time", message));
        }
        if !self.connect_lazily {
            let reports = NodeReport::of_all(&names, engine.standing().await);
            let up = reports.iter().filter(|report| may_vote(&report.answer));
            let (up, needed) = (up.count(), quorum.majority());
            if up < needed {
                return Err(BuildError::no_quorum(up, needed, reports));
            }
        }
        Ok(Redlock::new(
            engine, clock, nodes, names, key_space, settings, meter,
        ))
    }

    /// Checks the settings as [`build`](Self::build) does before it asks a node.
    ///
    /// # Errors
    ///
    /// A setting is not valid; the error names it.
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_core::Redlock;
    /// use std::time::Duration;
    ///
    /// let builder = Redlock::builder().in_memory_nodes(3).max_ttl(Duration::from_secs(5));
    /// let refused = builder.check().unwrap_err(); // the default ttl is longer
    /// assert_eq!(refused.field(), "ttl");
    /// assert!(builder.ttl(Duration::from_secs(5)).check().is_ok());
    /// ```
    pub fn check(&self) -> Result<(), BuildError> {
        let settings = self.settings()?;
        let key_space = self.key_space()?;
        self.open_nodes(&settings, &key_space)?;
        Ok(())
    }

    /// Returns the names of resources on the nodes, for tools that read the nodes with their own commands.
    ///
    /// # Errors
    ///
    /// The namespace is not valid, or is given together with `verbatim_keys`.
    ///
    /// # Examples
    ///
    /// ```
    /// use redlock_core::Redlock;
    ///
    /// let keys = Redlock::builder().namespace("billing").node_keys()?;
    /// assert_eq!(keys.lock(&"report".parse()?)?, "{billing}:lock:report");
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn node_keys(&self) -> Result<NodeKeys, BuildError> {
        self.key_space().map(NodeKeys::new)
    }

    fn settings(&self) -> Result<Settings, BuildError> {
        let config = &self.config;
        let ttl = config.ttl.unwrap_or(Duration::from_secs(10));
        let (ms, longest) = (Duration::from_millis(1), Duration::from_millis(500));
        let is_in_memory = config.nodes.iter().all(NodeConfig::is_in_memory);
        let connecting = Duration::from_secs(if is_in_memory { 10 } else { 1 });
        let settings = Settings {
            ttl,
            max_ttl: config.max_ttl.unwrap_or(Duration::from_secs(30)),
            wait: match config.wait {
                Some(wait) if wait.is_zero() => Wait::Never,
                Some(wait) => Wait::UpTo(wait),
                None => Wait::UpTo(Duration::from_secs(5)),
            },
            quorum_wait: config.quorum_wait.unwrap_or(Duration::from_secs(2)),
            clock_rate_error: config.clock_rate_error.unwrap_or(0.01),
            node_timeout: config
                .node_timeout
                .unwrap_or_else(|| (ttl / 10).clamp(50 * ms, longest)),
            connect_timeout: config.connect_timeout.unwrap_or(connecting),
            heartbeat: config.heartbeat.unwrap_or(Duration::from_secs(1)),
            retry: RetryPolicy::new(10 * ms, 100 * ms).expect("0 < 10 ms <= 100 ms"),
            max_waiters_per_key: config.max_waiters_per_key.unwrap_or(1_024),
            expert: config.expert,
            guarantee: config.guarantee.unwrap_or_default(),
            wait_for_replicas: config.wait_for_replicas.unwrap_or_default(),
            follows_failovers: config.nodes.iter().any(NodeConfig::follows_failovers),
            label: self.holder_label()?,
            config: config.clone(),
        };
        settings.check(config.ttl.is_some())
    }

    fn holder_label(&self) -> Result<Option<HolderLabel>, BuildError> {
        match &self.config.label {
            None => Ok(label_of_this_process()),
            Some(label) => label.parse().map(Some).map_err(|invalid: InvalidLabel| {
                BuildError::misuse("label", format!("{label:?} {invalid}"))
            }),
        }
    }

    fn key_space(&self) -> Result<KeyScheme, BuildError> {
        match (&self.config.namespace, self.config.expert.verbatim_keys) {
            (Some(namespace), true) => {
                let message = format!(
                    "{namespace:?} is given together with verbatim_keys, which have none: leave out REDLOCK_NAMESPACE, and the \
                     namespace of the file, or set `config.namespace = None` for this client"
                );
                Err(BuildError::misuse("namespace", message))
            }
            (None, true) => Ok(KeyScheme::Verbatim),
            (namespace, false) => {
                let namespace = namespace.as_deref().unwrap_or("redlock");
                Namespace::new(namespace)
                    .map(KeyScheme::Namespace)
                    .ok_or_else(|| {
                        let message = "is not 1 to 32 letters, digits, `.`, `_` or `-`";
                        BuildError::misuse("namespace", format!("{namespace:?} {message}"))
                    })
            }
        }
    }

    fn open_nodes(
        &self,
        settings: &Settings,
        key_space: &KeyScheme,
    ) -> Result<Vec<Arc<dyn Node>>, BuildError> {
        let mut nodes: Vec<Arc<dyn Node>> = Vec::new();
        let mut identities = Vec::new();
        let encoder = Arc::default();
        let keyspace = Keyspace::new(&key_space.prefix(), settings.quarantine());
        let namespace = match key_space {
            KeyScheme::Namespace(namespace) => Some(namespace.as_str()),
            KeyScheme::Verbatim => None,
        };
        let mut polls = Polls::default();
        let is_best_effort = self.config.guarantee == Some(Guarantee::BestEffort);
        let nodes_of_all = self.config.nodes.iter().flat_map(NodeConfig::votes);
        let configs: Vec<NodeConfig> = nodes_of_all.collect();
        if is_best_effort && configs.len() > 1 {
            let message = "is given with several nodes; give the one server, or leave it out: a majority of independent masters needs no best effort";
            return Err(BuildError::misuse("best_effort", message));
        }
        let replicas = settings.wait_for_replicas;
        if replicas > 0 && !is_best_effort {
            let message = "is given without best_effort; leave it out: a majority does not rest on the replicas of its nodes";
            return Err(BuildError::misuse("wait_for_replicas", message));
        }
        for (index, NodeConfig(spec)) in configs.iter().enumerate() {
            let field = format!("nodes[{index}]");
            if replicas > 0 && matches!(spec, NodeSpec::Memory(_) | NodeSpec::Other(_)) {
                let message = "is given with a node that has no replicas which the client can ask for; leave it out";
                return Err(BuildError::misuse("wait_for_replicas", message));
            }
            let (node, identity) = match spec {
                NodeSpec::Redis {
                    config,
                    credentials,
                } => {
                    let config = (&**config, credentials.as_ref());
                    let space = Some((namespace, &keyspace));
                    let limit = settings.connect_timeout;
                    let made = RedisNode::new(config, space, &mut polls, limit);
                    let (node, identity) =
                        made.map_err(|refused| BuildError::misuse(&*field, refused.to_string()))?;
                    let node = node.waiting_for(replicas, settings.node_timeout);
                    (node.encoding_by(&encoder), Some(identity))
                }
                #[cfg(feature = "deadpool-redis")]
                NodeSpec::Pool { name, pool } => {
                    let name = name
                        .clone()
                        .unwrap_or_else(|| format!("pool {index}").into());
                    let node = RedisNode::from_pool(name, pool.clone());
                    let node = node.waiting_for(replicas, settings.node_timeout);
                    (node.encoding_by(&encoder), None)
                }
                // Names of nodes in memory are unique.
                NodeSpec::Memory(node) => (
                    Arc::new(node.clone()) as Arc<dyn Node>,
                    Some(node.name().to_string()),
                ),
                NodeSpec::Other(node) => (Arc::clone(node), Some(node.name().to_string())),
            };
            if identity.is_some()
                && let Some(first) = identities.iter().position(|known| *known == identity)
            {
                let message = format!(
                    "is the same server as nodes[{first}], {}; each vote needs a server of its own",
                    node.name()
                );
                return Err(BuildError::misuse(field, message));
            }
            identities.push(identity);
            nodes.push(node);
        }
        Ok(nodes)
    }
}

/// Waits until each link knows whether its node can be reached.
async fn connected(states: &mut [watch::Receiver<LinkState>], limit: Duration) {
    // Links have that limit themselves; a little more lets them report.
    let until = Instant::now() + limit + Duration::from_millis(100);
    for state in states {
        let known = state.wait_for(|state| *state != LinkState::Connecting);
        // What is not known by then is reported as such.
        drop(timeout_at(until, known).await);
    }
}

/// Returns whether a node votes, or will by itself.
fn may_vote(answer: &NodeAnswer) -> bool {
    match answer {
        NodeAnswer::Reachable => true,
        NodeAnswer::NotAVote { reason } => reason.ready_in().is_some(),
        _ => false,
    }
}

/// While more requests than this wait to be sent to a node, new acquires wait in the client: enough for full calls, and
/// few enough for a renewal to be sent within milliseconds.
const MOST_UNSENT: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_whose_nodes_are_all_in_memory_gives_them_ten_seconds() {
        let limit = |builder: RedlockBuilder| builder.settings().unwrap().connect_timeout.as_secs();
        let memory = || Redlock::builder().in_memory_nodes(3);
        assert_eq!(limit(memory()), 10);
        assert_eq!(limit(memory().node("redis://127.0.0.1")), 1);
        let given = memory().connect_timeout(Duration::from_secs(2));
        assert_eq!(limit(given), 2);
    }
}
