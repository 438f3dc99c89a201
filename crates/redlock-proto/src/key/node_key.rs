use std::{fmt, sync::Arc};

/// A key on the nodes, already encoded.
///
/// It may carry the name of what is locked, which is the application's secret: `Debug` shows its length
/// only, and it has no `Display`.
#[derive(Clone, Eq, Hash, PartialEq)]
pub struct NodeKey(Arc<str>);

impl NodeKey {
    /// Returns the key as the nodes know it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for NodeKey {
    fn from(key: &str) -> Self {
        Self(key.into())
    }
}

impl From<String> for NodeKey {
    fn from(key: String) -> Self {
        Self(key.into())
    }
}

impl fmt::Debug for NodeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeKey({} bytes)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use crate::{Lock, Mode, OwnerId, Request, Verb};

    #[test]
    fn debug_of_a_request_shows_no_name() {
        let request = Request::Lock {
            verb: Verb::Release {
                ttl: std::time::Duration::ZERO,
            },
            lock: Lock {
                mode: Mode::Exclusive,
                keys: "{redlock}:lock:iban:DE02120300000000202051".into(),
                owner: OwnerId::from_random([1; 16]),
            }
            .into(),
        };
        assert!(!format!("{request:?}").contains("DE02"), "{request:?}");
    }
}
