use serde::Deserialize;

/// The rare and the dangerous settings of a client; all are off by default.
///
/// [`RedlockBuilder::expert`](crate::RedlockBuilder::expert) sets them, and so does the table `expert` of a
/// configuration file, by the same names.
/// The environment cannot set them.
/// If a setting whose name begins with `dangerous_` is not true of the nodes, two holders may have one lock, or a later
/// lease a lesser token.
///
/// # Examples
///
/// ```
/// use redlock_core::{Config, Redlock};
///
/// // Names are keys just as they are.
/// let builder = Redlock::builder().expert(|expert| expert.verbatim_keys = true);
/// assert_eq!(builder.node_keys()?.lock(&"order:42".parse()?)?, "order:42");
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("redlock.toml");
/// // Each node has a replica, and a Sentinel that may promote it.
/// std::fs::write(&path, "[expert]\naccept_replicas = true")?;
/// let config = Config::from_file(&path)?;
/// assert!(config.expert.accept_replicas);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[non_exhaustive]
#[serde(default, deny_unknown_fields)]
pub struct Expert {
    /// Uses names unchanged as keys, without a namespace.
    ///
    /// This client and other Redlock libraries that lock the same key with `SET key value NX PX ttl` then exclude each
    /// other.
    /// A namespace must not be given too, by `REDLOCK_NAMESPACE` for example: set `config.namespace = None`.
    /// Those libraries have no lines: their callers take a key that they find free, ahead of callers in line.
    /// While callers in line pass a key on without a break, it is never free: see the guide for
    /// [migration](crate::guide::migration#both-libraries-on-one-key).
    /// A key must not begin with `{redlock:verbatim}`, nor be the mark, the counters, the horizon or a tombstone of a
    /// namespace, such as `{redlock}:counters`: clients with a namespace may use the same nodes.
    pub verbatim_keys: bool,

    /// Lets a master that has replicas vote.
    ///
    /// By default it does not vote: a replica that takes its master's place has forgotten leases, and does not vote for
    /// `max_ttl` and a little more.
    /// With this setting, Sentinel may watch the masters, and replicas may copy them for other reasons.
    /// With every vote the node compares the run of the server and its data with its mark.
    /// So each promotion begins such a quarantine, and so does a master's return to its place.
    ///
    /// Exclusion then also rests on the old master: it must grant nothing after the promotion of another server, because the
    /// node would have two votes.
    /// A master that Sentinels cannot reach, and some clients can, goes on, unless it refuses to write by itself.
    /// So set `min-replicas-to-write` to the number of replicas of each master, and `min-replicas-max-lag` to less than
    /// `down-after-milliseconds` of the Sentinels, by a second or more.
    /// The client does not check this.
    ///
    /// A node's URL may have a name that leads to the promoted server after a failover: the client leaves a server that has
    /// become a replica within six seconds, also if the connection stands, and resolves the name again once a second.
    /// A master also seems to have other data when its first replica attaches, and when its last one has been gone for
    /// `repl-backlog-ttl` (an hour by default).
    /// So attach replicas to one master at a time, and set `repl-backlog-ttl 0`; otherwise a broken link to all replicas
    /// takes all votes at once, an hour later.
    pub accept_replicas: bool,

    /// Lets a node vote at once after a restart if it still has its data.
    ///
    /// By default a node that restarted, was promoted, or has lost its data does not vote for `max_ttl` and a
    /// little more, because it may have forgotten leases.
    /// Use this only if *every* node writes each command to disk before it answers (`appendonly yes` with
    /// `appendfsync always`) and has no replica that could take its place.
    /// With `no-appendfsync-on-rewrite yes`, a server does not do that while it rewrites its file.
    /// With `appendfsync everysec`, a single `kill -9` has lost thousands of acknowledged writes.
    /// All clients of a namespace must use the same setting; a node with `appendonly no` does not vote under it.
    /// The client refuses it together with `accept_replicas`.
    pub dangerous_trust_persistence: bool,

    /// Lets a node that lost its fencing counters vote again, although the client cannot reach enough other nodes to
    /// know their last values.
    ///
    /// By default such a node waits for a majority of nodes that have kept their counters.
    /// It also votes again when too few nodes have kept their counters for such a majority to come back.
    /// With this setting it waits for some seconds only.
    /// Then it continues from the greatest counter of the reachable nodes, or from the wall clock if that is greater.
    /// While one node has lost its data and another cannot be reached, this setting keeps leases available.
    /// In return, a later lease may not have the greater [`FencingToken`](crate::FencingToken), so use it where no resource
    /// checks tokens; the client logs a warning each time.
    /// One client with this setting is enough to let a node vote for all clients.
    pub dangerous_guess_fencing_floor: bool,
}

/// Returns what to do instead of a setting that there was before; `setting` may lack the word `dangerous_`.
pub(super) fn removed(setting: &str) -> Option<&'static str> {
    let setting = setting.to_ascii_lowercase();
    let setting = setting.strip_prefix("dangerous_").unwrap_or(&setting);
    let found = REMOVED.iter().find(|(name, _)| *name == setting);
    found.map(|(_, advice)| *advice)
}

const REMOVED: [(&str, &str); 1] = [(
    "trust_delayed_restarts",
    "was removed; leave it out: a master that delays its restarts is quarantined after them, too",
)];

impl Expert {
    /// Returns the settings that are on in one of the two.
    pub(super) fn union(self, other: Self) -> Self {
        Self {
            verbatim_keys: self.verbatim_keys | other.verbatim_keys,
            accept_replicas: self.accept_replicas | other.accept_replicas,
            dangerous_trust_persistence: self.dangerous_trust_persistence
                | other.dangerous_trust_persistence,
            dangerous_guess_fencing_floor: self.dangerous_guess_fencing_floor
                | other.dangerous_guess_fencing_floor,
        }
    }
}
