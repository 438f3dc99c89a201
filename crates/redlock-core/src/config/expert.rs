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
/// // Each node writes every command to disk before it answers.
/// std::fs::write(&path, "[expert]\ndangerous_trust_persistence = true")?;
/// let config = Config::from_file(&path)?;
/// assert!(config.expert.dangerous_trust_persistence);
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

    /// Lets a node vote at once after a restart if it still has its data.
    ///
    /// By default a node that restarted, was promoted, or has lost its data does not vote for `max_ttl` and a
    /// little more, because it may have forgotten leases.
    /// Use this only if *every* node writes each command to disk before it answers (`appendonly yes` with
    /// `appendfsync always`) and has no replica that could take its place.
    /// With `no-appendfsync-on-rewrite yes`, a server does not do that while it rewrites its file.
    /// With `appendfsync everysec`, a single `kill -9` has lost thousands of acknowledged writes.
    /// All clients of a namespace must use the same setting; a node with `appendonly no` does not vote under it.
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

const REMOVED: [(&str, &str); 2] = [
    (
        "trust_delayed_restarts",
        "was removed; leave it out: a master that delays its restarts is quarantined after them, too",
    ),
    (
        "accept_replicas",
        "was removed; leave it out, and name the Sentinels or the Cluster in the node's URL (redis+sentinel://, redis+cluster://), or use best_effort",
    ),
];

impl Expert {
    /// Returns the settings that are on in one of the two.
    pub(super) fn union(self, other: Self) -> Self {
        Self {
            verbatim_keys: self.verbatim_keys | other.verbatim_keys,
            dangerous_trust_persistence: self.dangerous_trust_persistence
                | other.dangerous_trust_persistence,
            dangerous_guess_fencing_floor: self.dangerous_guess_fencing_floor
                | other.dangerous_guess_fencing_floor,
        }
    }
}
