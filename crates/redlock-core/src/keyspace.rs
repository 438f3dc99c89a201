use std::sync::Arc;

use redlock_proto::NodeKey;
use sha2::{Digest, Sha256};

use crate::{InvalidKey, ResourceKey};

/// How the name of a resource becomes a key on the nodes.
#[derive(Clone, Debug)]
pub(crate) enum KeySpace {
    /// `{namespace}:lock:name`, with the namespace as hash tag.
    Namespace(Namespace),
    /// The name as it is, so that other Redlock libraries on the same key exclude us and we them.
    Verbatim,
}

/// 1 to 32 letters, digits, `.`, `_` or `-`.
#[derive(Clone, Debug)]
pub(crate) struct Namespace(Arc<str>);

impl Namespace {
    pub(crate) fn new(name: &str) -> Option<Self> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        ((1..=32).contains(&name.len()) && name.chars().all(allowed)).then(|| Self(name.into()))
    }
}

impl KeySpace {
    /// With what the nodes' own keys begin: the mark, the counters, the tombstones.
    pub(crate) fn prefix(&self) -> String {
        match self {
            Self::Namespace(Namespace(namespace)) => format!("{{{namespace}}}"),
            // No namespace has a colon.
            Self::Verbatim => VERBATIM.to_owned(),
        }
    }

    /// The key for a resource.
    ///
    /// Injective within a namespace: a long name becomes its SHA-256 under a prefix of its own, so
    /// that it can never meet a short name that looks like a hash.
    ///
    /// # Errors
    ///
    /// Names stay as they are, and this one could be that of a mark, a horizon or what is remembered of a job.
    pub(crate) fn encode(&self, key: &ResourceKey) -> Result<NodeKey, InvalidKey> {
        match self {
            Self::Verbatim if key.as_str().starts_with(VERBATIM) => Err(InvalidKey::reserved()),
            Self::Verbatim => Ok(key.as_str().into()),
            Self::Namespace(_) => Ok(self.own("lock", key)),
        }
    }

    /// The key of what nodes remember of a job; its lock is the resource of the same name.
    pub(crate) fn encode_job(&self, job: &ResourceKey) -> NodeKey {
        self.own("job", job)
    }

    fn own(&self, class: &str, key: &ResourceKey) -> NodeKey {
        let prefix = self.prefix();
        match key.as_str() {
            name if name.len() <= LONGEST_PLAIN_NAME => format!("{prefix}:{class}:{name}").into(),
            name => format!("{prefix}:{class}-sha256:{}", hex(&Sha256::digest(name))).into(),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

const LONGEST_PLAIN_NAME: usize = 128;

/// With what the nodes' own keys begin where names stay as they are.
const VERBATIM: &str = "{redlock:verbatim}";

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(keyspace: &KeySpace, name: &str) -> String {
        let key = keyspace.encode(&name.parse().unwrap()).unwrap();
        key.as_str().to_owned()
    }

    #[test]
    fn names_are_encoded_injectively() {
        let keyspace = KeySpace::Namespace(Namespace::new("billing").unwrap());
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
        let keyspace = KeySpace::Namespace(Namespace::new("billing").unwrap());
        assert_eq!(keyspace.encode_job(&job).as_str(), "{billing}:job:job");
        let verbatim = KeySpace::Verbatim.encode_job(&job);
        assert_eq!(verbatim.as_str(), "{redlock:verbatim}:job:job");
    }

    #[test]
    fn verbatim_keys_stay_as_they_are() {
        assert_eq!(encode(&KeySpace::Verbatim, "order:42"), "order:42");
        assert_eq!(
            encode(&KeySpace::Verbatim, &"x".repeat(500)),
            "x".repeat(500)
        );
    }

    #[test]
    fn a_verbatim_key_is_none_of_the_nodes_own() {
        let refused =
            |keyspace: &KeySpace, name: &str| keyspace.encode(&name.parse().unwrap()).is_err();
        let billing = KeySpace::Namespace(Namespace::new("billing").unwrap());
        for own in ["mark", "fence", "horizon", "tomb:0a", "job:nightly"] {
            let name = format!("{{redlock:verbatim}}:{own}");
            assert!(refused(&KeySpace::Verbatim, &name), "{name}");
            assert!(!refused(&billing, &name), "{name}");
        }
        assert!(!refused(&KeySpace::Verbatim, "redlock:verbatim:mark"));
    }

    #[test]
    fn namespaces_are_checked() {
        for bad in ["", "a b", "a{b", "a:b", &"n".repeat(33)] {
            assert!(Namespace::new(bad).is_none(), "{bad:?}");
        }
        assert!(Namespace::new("Billing-2.eu_west").is_some());
    }
}
