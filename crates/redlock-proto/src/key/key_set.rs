use std::{error::Error, fmt, slice, sync::Arc};

use super::{LockMode, NodeKey, Shard};

/// The keys of one lock: one, or several that are granted together or not at all.
///
/// They are in order, each of them once, so that two sets of the same keys are equal.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KeySet {
    keys: KeyList,
    slots: Option<Arc<SlotCount>>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum KeyList {
    One(CountedKey),
    // invariant: 2 to MAX_LEN keys, in order, each once
    Several(Arc<[CountedKey]>),
}

/// The number of slots to which a locked slot belongs; each client that locks one of them must give it.
///
/// A node remembers it as long as the longest of the leases on those slots lasts.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SlotCount {
    key: NodeKey,
    count: u8,
}

/// A key, and which counter counts the leases on it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CountedKey {
    key: NodeKey,
    shard: Shard,
}

impl KeySet {
    /// The most keys of a set.
    pub const MAX_LEN: usize = 16;

    /// Returns the set of these keys, in whatever order, duplicates being one key.
    ///
    /// # Errors
    ///
    /// There is no key, or there are more than [`MAX_LEN`](Self::MAX_LEN).
    pub fn new(keys: impl IntoIterator<Item = NodeKey>) -> Result<Self, InvalidKeySet> {
        let mut keys: Vec<NodeKey> = keys.into_iter().collect();
        keys.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
        keys.dedup();
        if keys.len() > Self::MAX_LEN {
            return Err(InvalidKeySet { len: keys.len() });
        }
        if keys.len() > 1 {
            let keys = keys.into_iter().map(CountedKey::from);
            return Ok(Self::of(KeyList::Several(keys.collect())));
        }
        keys.pop().map(Self::from).ok_or(InvalidKeySet { len: 0 })
    }

    /// Returns the key of one of `count` slots, a number that nodes remember under `remembered`.
    pub fn slot(key: NodeKey, remembered: NodeKey, count: u8) -> Self {
        Self {
            keys: KeyList::One(key.into()),
            slots: Some(Arc::new(SlotCount {
                key: remembered,
                count,
            })),
        }
    }

    const fn of(keys: KeyList) -> Self {
        Self { keys, slots: None }
    }

    /// Returns the number of slots, if the key is that of one.
    pub fn slots(&self) -> Option<&SlotCount> {
        self.slots.as_deref()
    }

    /// Returns the number of slots, if the key is that of one and is held alone: others may share no slot.
    pub fn slots_in(&self, mode: LockMode) -> Option<&SlotCount> {
        self.slots().filter(|_| mode == LockMode::Exclusive)
    }

    /// Returns the first key, which is the only one but for sets.
    pub fn first(&self) -> &NodeKey {
        &self.first_counted().key
    }

    /// Returns which counter counts the leases on the first key.
    pub fn first_shard(&self) -> Shard {
        self.first_counted().shard
    }

    /// Returns whether there are several.
    pub const fn is_several(&self) -> bool {
        matches!(self.keys, KeyList::Several(_))
    }

    /// Returns the keys, in order.
    pub fn iter(&self) -> slice::Iter<'_, CountedKey> {
        match &self.keys {
            KeyList::One(key) => slice::from_ref(key).iter(),
            KeyList::Several(keys) => keys.iter(),
        }
    }

    fn first_counted(&self) -> &CountedKey {
        match &self.keys {
            KeyList::One(key) => key,
            KeyList::Several(keys) => &keys[0],
        }
    }
}

impl SlotCount {
    /// Returns the key under which nodes remember it.
    pub const fn key(&self) -> &NodeKey {
        &self.key
    }

    /// Returns the number.
    pub const fn count(&self) -> u8 {
        self.count
    }
}

impl CountedKey {
    /// Returns the key as the nodes know it.
    pub const fn key(&self) -> &NodeKey {
        &self.key
    }

    /// Returns which counter counts the leases on it.
    pub const fn shard(&self) -> Shard {
        self.shard
    }
}

impl From<NodeKey> for CountedKey {
    fn from(key: NodeKey) -> Self {
        let shard = Shard::of(&key);
        Self { key, shard }
    }
}

impl From<NodeKey> for KeySet {
    fn from(key: NodeKey) -> Self {
        Self::of(KeyList::One(key.into()))
    }
}

impl From<&str> for KeySet {
    fn from(key: &str) -> Self {
        NodeKey::from(key).into()
    }
}

impl<'a> IntoIterator for &'a KeySet {
    type Item = &'a CountedKey;
    type IntoIter = slice::Iter<'a, CountedKey>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The error for a number of different keys that cannot be locked together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct InvalidKeySet {
    len: usize,
}

impl fmt::Display for InvalidKeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} keys: a lock has 1 to {} different keys",
            self.len,
            KeySet::MAX_LEN
        )
    }
}

impl Error for InvalidKeySet {}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> Result<KeySet, InvalidKeySet> {
        KeySet::new(names.iter().map(|name| NodeKey::from(*name)))
    }

    fn names(set: &KeySet) -> Vec<&str> {
        set.iter().map(|key| key.key().as_str()).collect()
    }

    #[test]
    fn keys_are_in_order_and_each_is_there_once() {
        let keys = set(&["b", "a", "b", "c"]).unwrap();
        assert_eq!(names(&keys), ["a", "b", "c"]);
        assert_eq!(keys, set(&["c", "b", "a"]).unwrap());
        assert_eq!(keys.first().as_str(), "a");
        assert!(keys.is_several());
    }

    #[test]
    fn a_set_of_one_key_is_that_key() {
        let one = set(&["a", "a"]).unwrap();
        assert_eq!(one, KeySet::from("a"));
        assert!(!one.is_several());
        assert_eq!(one.first_shard(), Shard::of(one.first()));
    }

    #[test]
    fn no_key_and_too_many_are_no_set() {
        let many: Vec<String> = (0..17).map(|key| key.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(set(&many[..16]).is_ok());
        let refused = set(&many).unwrap_err().to_string();
        assert_eq!(refused, "17 keys: a lock has 1 to 16 different keys");
        assert!(set(&[]).unwrap_err().to_string().starts_with("0 keys"));
    }
}
