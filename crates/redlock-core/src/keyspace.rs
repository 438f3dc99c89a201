use std::{cell::RefCell, sync::Arc};

use redlock_proto::{KeySet, NodeKey};
use redlock_redis::{ClusterVote, VERBATIM};
use sha2::{Digest, Sha256};

use crate::{InvalidKey, ResourceKey, ResourceKeys, key::SlotsOf};

/// How the name of a resource becomes a key on the nodes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum KeyScheme {
    /// `{namespace}:lock:name`, with the namespace as hash tag.
    Namespace(Namespace),
    /// The name as it is, so that other Redlock libraries on the same key exclude us and we them.
    Verbatim,
}

/// 1 to 32 letters, digits, `.`, `_` or `-`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Namespace(Arc<str>);

impl Namespace {
    pub(crate) fn new(name: &str) -> Option<Self> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        ((1..=32).contains(&name.len()) && name.chars().all(allowed)).then(|| Self(name.into()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl KeyScheme {
    /// Returns what the log calls the namespace.
    pub(crate) fn name(&self) -> Arc<str> {
        match self {
            Self::Namespace(Namespace(namespace)) => Arc::clone(namespace),
            Self::Verbatim => "verbatim".into(),
        }
    }

    /// Returns with what the nodes' own keys begin: the mark, the counters, the tombstones.
    pub(crate) fn prefix(&self) -> String {
        let mut text = String::new();
        self.write_prefix(&mut text);
        text
    }

    /// Writes that behind a text.
    fn write_prefix(&self, text: &mut String) {
        match self {
            Self::Namespace(Namespace(namespace)) => {
                text.push('{');
                text.push_str(namespace);
                text.push('}');
            }
            // No namespace has a colon.
            Self::Verbatim => text.push_str(VERBATIM),
        }
    }

    /// Checks that each of these resources has a key.
    ///
    /// # Errors
    ///
    /// As [`encode`](Self::encode).
    pub(crate) fn check(&self, keys: &ResourceKeys) -> Result<(), InvalidKey> {
        let is_verbatim = matches!(self, Self::Verbatim);
        match keys
            .iter()
            .any(|key| is_verbatim && is_reserved(key.as_str()))
        {
            true => Err(InvalidKey::reserved()),
            false => Ok(()),
        }
    }

    /// Returns the key for a resource.
    ///
    /// Injective within a namespace: a long name becomes its SHA-256 under a prefix of its own, so
    /// that it can never meet a short name that looks like a hash.
    ///
    /// # Errors
    ///
    /// Names stay as they are, and this one is that of a mark, a horizon, counters or a tombstone in some namespace, or of
    /// what is remembered of a job beside such names.
    pub(crate) fn encode(&self, key: &ResourceKey) -> Result<NodeKey, InvalidKey> {
        match self {
            Self::Verbatim if is_reserved(key.as_str()) => Err(InvalidKey::reserved()),
            Self::Verbatim => Ok(key.as_str().into()),
            Self::Namespace(_) => Ok(self.own("lock", key)),
        }
    }

    /// Returns the keys for the resources that a lease is on.
    ///
    /// # Errors
    ///
    /// As [`encode`](Self::encode).
    pub(crate) fn encode_all(&self, keys: &ResourceKeys) -> Result<KeySet, InvalidKey> {
        if !keys.is_several() {
            return self.encode(keys.first()).map(KeySet::from);
        }
        let encoded = keys.iter().map(|key| self.encode(key));
        let encoded: Vec<NodeKey> = encoded.collect::<Result<_, _>>()?;
        let count = encoded.len();
        KeySet::new(encoded).map_err(|_| InvalidKey::count(count))
    }

    /// Returns the key of one of `count` slots that have this name in common.
    ///
    /// # Errors
    ///
    /// As [`encode`](Self::encode).
    pub(crate) fn encode_slot(
        &self,
        key: &ResourceKey,
        slots: &SlotsOf,
    ) -> Result<KeySet, InvalidKey> {
        let place = self.own("slots", &slots.name);
        Ok(KeySet::slot(self.encode(key)?, place, slots.count))
    }

    /// Returns the key of what nodes remember of a job; its lock is the resource of the same name.
    pub(crate) fn encode_job(&self, job: &ResourceKey) -> NodeKey {
        self.own("job", job)
    }

    fn own(&self, class: &str, key: &ResourceKey) -> NodeKey {
        let name = key.as_str();
        TEXT.with_borrow_mut(|text| {
            text.clear();
            self.write_prefix(text);
            text.push(':');
            text.push_str(class);
            if name.len() <= LONGEST_PLAIN_NAME {
                text.push(':');
                text.push_str(name);
            } else {
                text.push_str("-sha256:");
                text.push_str(&hex(&Sha256::digest(name)));
            }
            text.as_str().into()
        })
    }
}

thread_local! {
    /// Where a key is written before it is given memory of its own.
    static TEXT: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The names of resources on the nodes, for tools that read a node with their own commands.
///
/// [`RedlockBuilder::node_keys`](crate::RedlockBuilder::node_keys) makes it.
///
/// # Examples
///
/// ```
/// use redlock_core::Redlock;
///
/// let keys = Redlock::builder().namespace("billing").node_keys()?;
/// let key = keys.lock(&"invoice:7".parse()?)?;
/// assert_eq!(key, "{billing}:lock:invoice:7");
/// assert_eq!(keys.resource(&key).as_deref(), Some("invoice:7"));
/// assert_eq!(keys.line(&key), "{billing}:line:{billing}:lock:invoice:7");
/// assert_eq!(keys.channel(42), "{billing}:wake:000000000000002a");
///
/// let job = keys.job(&"close-day".parse()?);
/// assert_eq!(keys.job_of(&job).as_deref(), Some("close-day"));
/// assert_eq!(keys.slots(&"export".parse()?), "{billing}:slots:export");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NodeKeys(KeyScheme);

impl NodeKeys {
    pub(crate) const fn new(key_space: KeyScheme) -> Self {
        Self(key_space)
    }

    /// Returns the names under one vote of a Cluster.
    pub(crate) fn of_vote(&self, vote: ClusterVote) -> Self {
        match &self.0 {
            KeyScheme::Namespace(namespace) => {
                let tag = vote.tag(namespace.as_str()).into();
                Self(KeyScheme::Namespace(Namespace(tag)))
            }
            KeyScheme::Verbatim => self.clone(),
        }
    }

    /// Returns the key under which a node keeps the lock on a resource.
    ///
    /// # Errors
    ///
    /// Names stay unchanged as keys, and this name is that of one of the nodes' own keys.
    pub fn lock(&self, key: &ResourceKey) -> Result<String, InvalidKey> {
        self.0.encode(key).map(|key| key.as_str().to_owned())
    }

    /// Returns the key of the lock on a resource of which only the hash is known, as [`resource`](Self::resource) returns
    /// it: `sha256:` and 64 digits; `None` if it is not that.
    ///
    /// A resource may have such a name, too; then [`lock`](Self::lock) returns its key.
    pub fn lock_of_hash(&self, name: &str) -> Option<String> {
        let hash = name.strip_prefix("sha256:")?;
        let is_digit = |digit: u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
        let is_hash = hash.len() == 64 && hash.bytes().all(is_digit);
        let is_hashed = matches!(self.0, KeyScheme::Namespace(_));
        (is_hash && is_hashed).then(|| format!("{}:lock-sha256:{hash}", self.0.prefix()))
    }

    /// Returns the key of the line of callers that wait for a lock, given the lock's key.
    pub fn line(&self, lock: &str) -> String {
        let prefix = self.0.prefix();
        let of_namespace = |rest: &str| {
            // One vote of a Cluster has more behind a colon.
            let namespace = prefix.split([':', '}']).next().unwrap_or_default();
            format!("{prefix}:line:{namespace}}}{rest}")
        };
        let is_verbatim = matches!(self.0, KeyScheme::Verbatim);
        let rest = lock.strip_prefix(&*prefix).filter(|_| !is_verbatim);
        rest.map_or_else(|| format!("{prefix}:line:{lock}"), of_namespace)
    }

    /// Returns the key under which a node remembers how many [slots](crate::Redlock::slots) a resource has, while one of
    /// them is held; slot 0 is the resource `NAME#0`.
    pub fn slots(&self, key: &ResourceKey) -> String {
        self.0.own("slots", key).as_str().to_owned()
    }

    /// Returns the channel on which a node tells the client of this number that it has given a key to one of its callers.
    pub fn channel(&self, client: u64) -> String {
        format!("{}:wake:{client:016x}", self.0.prefix())
    }

    /// Returns the key under which a node remembers a job.
    pub fn job(&self, job: &ResourceKey) -> String {
        self.0.encode_job(job).as_str().to_owned()
    }

    /// Returns a pattern for `SCAN` that matches the key of each remembered job.
    pub fn job_pattern(&self) -> String {
        format!("{}:job*", self.0.prefix())
    }

    /// Returns the job that a node remembers under this key; `None` if it is no job's key.
    ///
    /// A node keeps only the hash of a long name: this returns `sha256:` and 64 digits for it.
    pub fn job_of(&self, node_key: &str) -> Option<String> {
        named(node_key.strip_prefix(&*self.0.prefix())?, "job")
    }

    /// Returns a pattern for `SCAN` that matches each lock's key; it may match other keys too.
    pub fn pattern(&self) -> String {
        match &self.0 {
            KeyScheme::Namespace(_) => format!("{}:lock*", self.0.prefix()),
            KeyScheme::Verbatim => "*".to_owned(),
        }
    }

    /// Returns the resource whose lock a node keeps under this key; `None` if it is no lock's key.
    ///
    /// A node keeps only the hash of a long name: this returns `sha256:` and 64 digits for it.
    /// With [`verbatim_keys`](crate::Expert::verbatim_keys), any key may be a lock's, except those of the form that
    /// a node's own keys have in some namespace.
    pub fn resource(&self, node_key: &str) -> Option<String> {
        let name = match &self.0 {
            KeyScheme::Verbatim if is_reserved(node_key) || is_remembered(node_key) => return None,
            KeyScheme::Verbatim => return Some(node_key.to_owned()),
            KeyScheme::Namespace(_) => node_key.strip_prefix(&*self.0.prefix())?,
        };
        named(name, "lock")
    }
}

/// Returns the name behind the class of a key, or its hash.
fn named(key: &str, class: &str) -> Option<String> {
    let rest = key.strip_prefix(':')?.strip_prefix(class)?;
    match rest.strip_prefix("-sha256:") {
        Some(hash) => Some(format!("sha256:{hash}")),
        None => rest.strip_prefix(':').map(str::to_owned),
    }
}

/// Returns whether a key is one that nodes need for their work, in any namespace.
fn is_reserved(key: &str) -> bool {
    let is_one = |rest: &str| match rest.split_once(':') {
        None => ["mark", "counters", "fence", "horizon"].contains(&rest),
        Some((class, _)) => class == "tomb",
    };
    key.starts_with(VERBATIM) || behind_a_namespace(key).is_some_and(is_one)
}

/// Returns whether a key has the form of what nodes remember of a job, of slots or of callers in line, in whatever
/// namespace; a lock of others may have it, too.
fn is_remembered(key: &str) -> bool {
    let is_one = |rest: &str| {
        let class = rest.split_once(':').map(|(class, _)| class);
        let classes = [
            "job",
            "job-sha256",
            "slots",
            "slots-sha256",
            "line",
            "alive",
        ];
        class.is_some_and(|class| classes.contains(&class))
    };
    behind_a_namespace(key).is_some_and(is_one)
}

/// Returns what a key has behind a namespace, if it begins with one.
fn behind_a_namespace(key: &str) -> Option<&str> {
    let (tag, rest) = key.strip_prefix('{')?.split_once("}:")?;
    // One vote of a Cluster has more behind a colon.
    let namespace = tag.split(':').next()?;
    Namespace::new(namespace).map(|_| rest)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

const LONGEST_PLAIN_NAME: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(keyspace: &KeyScheme, name: &str) -> String {
        let key = keyspace.encode(&name.parse().unwrap()).unwrap();
        key.as_str().to_owned()
    }

    #[test]
    fn names_are_encoded_injectively() {
        let keyspace = KeyScheme::Namespace(Namespace::new("billing").unwrap());
        assert_eq!(encode(&keyspace, "order:42"), "{billing}:lock:order:42");
        let long = "x".repeat(129);
        let encoded = encode(&keyspace, &long);
        assert_eq!(encoded.len(), "{billing}:lock-sha256:".len() + 64);
        assert_ne!(encoded, encode(&keyspace, &"x".repeat(130)));
        let looks_alike = encoded.strip_prefix("{billing}:lock-sha256:").unwrap();
        assert_ne!(encoded, encode(&keyspace, looks_alike));
    }

    #[test]
    fn what_is_remembered_of_a_job_is_not_its_lock() {
        let job: ResourceKey = "job".parse().unwrap();
        let keyspace = KeyScheme::Namespace(Namespace::new("billing").unwrap());
        assert_eq!(keyspace.encode_job(&job).as_str(), "{billing}:job:job");
        let verbatim = KeyScheme::Verbatim.encode_job(&job);
        assert_eq!(verbatim.as_str(), "{redlock:verbatim}:job:job");
    }

    #[test]
    fn verbatim_keys_stay_as_they_are() {
        assert_eq!(encode(&KeyScheme::Verbatim, "order:42"), "order:42");
        assert_eq!(
            encode(&KeyScheme::Verbatim, &"x".repeat(500)),
            "x".repeat(500)
        );
    }

    #[test]
    fn a_verbatim_key_is_none_of_the_nodes_own() {
        let refused =
            |keyspace: &KeyScheme, name: &str| keyspace.encode(&name.parse().unwrap()).is_err();
        let billing = KeyScheme::Namespace(Namespace::new("billing").unwrap());
        for own in [
            "mark",
            "counters",
            "fence",
            "horizon",
            "tomb:0a",
            "job:nightly",
            "line:{billing}:lock:a",
            "alive:000000000000002a",
        ] {
            let name = format!("{{redlock:verbatim}}:{own}");
            assert!(refused(&KeyScheme::Verbatim, &name), "{name}");
            assert!(!refused(&billing, &name), "{name}");
            // Its clients may use the same nodes.
            let of_others = format!("{{billing}}:{own}");
            // What is remembered of a job, or a line, looks like a lock that other libraries may have.
            let is_refused = refused(&KeyScheme::Verbatim, &of_others);
            let may_be_a_lock = ["job", "line", "alive"]
                .iter()
                .any(|class| own.starts_with(class));
            assert_eq!(is_refused, !may_be_a_lock, "{of_others}");
            let keys = NodeKeys::new(KeyScheme::Verbatim);
            assert_eq!(keys.resource(&of_others), None);
        }
        for lock in [
            "{billing}:lock:a",
            "{no namespace}:mark",
            "{billing}:marks",
            "mark",
        ] {
            assert!(!refused(&KeyScheme::Verbatim, lock), "{lock}");
        }
        assert!(!refused(&KeyScheme::Verbatim, "redlock:verbatim:mark"));
    }

    #[test]
    fn a_lock_is_found_by_its_key_and_nothing_else_is_one() {
        let billing = Namespace::new("billing").unwrap();
        let keys = NodeKeys::new(KeyScheme::Namespace(billing));
        let long: ResourceKey = "x".repeat(129).parse().unwrap();
        for name in ["order:42", "a:lock:b", "sha256:00", "{other}:lock:a"] {
            let key = keys.lock(&name.parse().unwrap()).unwrap();
            assert_eq!(keys.resource(&key).as_deref(), Some(name));
            assert!(key.starts_with(keys.pattern().trim_end_matches('*')));
        }
        let job = keys.job(&"order:42".parse().unwrap());
        assert_eq!(keys.job_of(&job).as_deref(), Some("order:42"));
        assert!(
            keys.job_of(&keys.job(&long))
                .unwrap()
                .starts_with("sha256:")
        );
        assert_eq!(
            (keys.resource(&job), keys.job_of("{billing}:lock:a")),
            (None, None)
        );
        let hashed = keys.resource(&keys.lock(&long).unwrap()).unwrap();
        assert_eq!(hashed.len(), "sha256:".len() + 64);
        for other in ["{billing}:mark", "{billing}:job:lock:a", "{b}:lock:a", ""] {
            assert_eq!(keys.resource(other), None, "{other}");
        }
        let verbatim = NodeKeys::new(KeyScheme::Verbatim);
        assert_eq!(verbatim.resource("{redlock:verbatim}:mark"), None);
        assert_eq!(verbatim.resource("order:42").as_deref(), Some("order:42"));
    }

    #[test]
    fn lines_and_channels_are_where_clients_have_them() {
        let quarantine = redlock_proto::Quarantine::new(std::time::Duration::from_secs(1), 0.01);
        let name: ResourceKey = "order:42".parse().unwrap();
        let billing = KeyScheme::Namespace(Namespace::new("billing").unwrap());
        for scheme in [billing, KeyScheme::Verbatim] {
            let keyspace = redlock_proto::Keyspace::new(&scheme.prefix(), quarantine);
            let line = keyspace.line(&scheme.encode(&name).unwrap());
            let keys = NodeKeys::new(scheme);
            assert_eq!(keys.line(&keys.lock(&name).unwrap()), line.as_str());
            assert_eq!(keys.channel(42), keyspace.channel(42));
        }
        let billing = KeyScheme::Namespace(Namespace::new("billing").unwrap());
        let keyspace = redlock_proto::Keyspace::new(&billing.prefix(), quarantine);
        let line = |keyspace: &redlock_proto::Keyspace| {
            let key = billing.encode(&name).unwrap();
            keyspace.line(&key).as_str().to_owned()
        };
        let vote = ClusterVote::read("1of3").unwrap();
        let keys = NodeKeys::new(billing.clone()).of_vote(vote);
        let key = keys.lock(&name).unwrap();
        assert_eq!(keys.line(&key), line(&keyspace.under(&vote.tag("billing"))));
    }

    #[test]
    fn namespaces_are_checked() {
        for bad in ["", "a b", "a{b", "a:b", &"n".repeat(33)] {
            assert!(Namespace::new(bad).is_none(), "{bad:?}");
        }
        assert!(Namespace::new("Billing-2.eu_west").is_some());
    }
}
