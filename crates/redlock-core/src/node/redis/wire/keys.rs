//! The keys of a call, one behind the other.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use redlock_proto::{Keyspace, NodeKey, OwnerId};

/// The keys of a call, in order.
///
/// They are in one text, so that a call needs no more memory for many than for one.
#[derive(Debug, Default)]
pub(super) struct Keys {
    text: String,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Keys {
    /// Returns none, with room for those of so many requests.
    pub(super) fn with_room(requests: usize) -> Self {
        Self {
            text: String::with_capacity(ROOM * requests),
            ends: Vec::with_capacity(2 * requests),
        }
    }

    pub(super) fn push(&mut self, key: &NodeKey) {
        self.text.push_str(key.as_str());
        self.ends.push(self.text.len());
    }

    /// Adds the key that says that this owner has given up.
    pub(super) fn push_tombstone(&mut self, keyspace: &Keyspace, owner: OwnerId) {
        keyspace.write_tombstone(owner, &mut self.text);
        self.ends.push(self.text.len());
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        let bounds = starts.zip(self.ends.iter().copied());
        bounds.map(|(start, end)| &self.text[start..end])
    }

    /// Returns whether two of them are the same; by chance also if they are not, which costs the node a little time.
    pub(super) fn have_twins(&self) -> bool {
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        let mut hashes = Vec::with_capacity(self.len());
        hashes.extend(self.iter().map(|key| hasher.hash_one(key)));
        hashes.sort_unstable();
        hashes.windows(2).any(|two| two[0] == two[1])
    }
}

/// How many bytes the keys of a request have, as a rule.
const ROOM: usize = 128;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use redlock_proto::Quarantine;

    use super::*;

    #[test]
    fn keys_are_told_as_they_came_and_twins_wherever_they_are() {
        let keyspace = Keyspace::new("{a}", Quarantine::new(Duration::from_secs(1), 0.01));
        let owner = OwnerId::from_random([0xab; 16]);
        let mut keys = Keys::default();
        assert!(!keys.have_twins());
        keys.push(&"one".into());
        keys.push_tombstone(&keyspace, owner);
        keys.push(&"".into());
        assert!(!keys.have_twins());
        keys.push(&"one".into());
        assert!(keys.have_twins());
        let tombstone = keyspace.tombstone(owner);
        let told: Vec<&str> = keys.iter().collect();
        assert_eq!(told, ["one", tombstone.as_str(), "", "one"]);
        assert_eq!(keys.len(), 4);
    }
}
