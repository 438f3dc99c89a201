//! One encoded request, the same for every node.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};

use redlock_proto::{Keyspace, LinePlace, NodeKey, OwnerId, Series};

use super::super::args::Args;

/// An encoded request: the part that it has in each section of a call.
#[derive(Default)]
pub(super) struct Encoded {
    /// Its keys, in the order in which the script expects them.
    pub(super) keys: Args,
    /// A number for each of them, the same for the same key.
    pub(super) hashes: Vec<u64>,
    /// The shards whose counters it needs.
    pub(super) counters: Vec<u16>,
    /// What is to be done, and with what.
    pub(super) args: Args,
    /// Room for one of them.
    text: String,
}

impl Encoded {
    /// Takes all away; of what was unusually long no memory stays.
    pub(super) fn clear(&mut self) {
        if self.keys.bytes() > LONG {
            *self = Self::default();
        }
        self.keys.clear();
        self.hashes.clear();
        self.counters.clear();
        self.args.clear();
    }

    /// Adds the key of a resource.
    pub(super) fn push_key(&mut self, keyspace: &Keyspace, key: &NodeKey) {
        self.add_key(keyspace.parts_of(key));
    }

    /// Adds a key of the node itself.
    pub(super) fn push_own_key(&mut self, key: &NodeKey) {
        self.add_key(["", key.as_str()]);
    }

    /// Adds the key of the line of callers that wait for a resource.
    pub(super) fn push_line(&mut self, keyspace: &Keyspace, key: &NodeKey) {
        let parts = keyspace.line_parts(key);
        self.keys.push_parts(parts);
        self.push_hash(&parts);
    }

    /// Adds the key that says that this owner has given up.
    pub(super) fn push_tombstone(&mut self, keyspace: &Keyspace, owner: OwnerId) {
        let mut key = std::mem::take(&mut self.text);
        key.clear();
        keyspace.write_tombstone(owner, &mut key);
        self.add_key(["", &key]);
        self.text = key;
    }

    fn add_key(&mut self, parts: [&str; 2]) {
        self.keys.push_parts(parts);
        self.push_hash(&parts[1]);
    }

    fn push_hash(&mut self, key: &impl Hash) {
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        self.hashes.push(hasher.hash_one(key));
    }

    /// Adds a place in a line to the arguments, so that the order of texts is the order of places.
    pub(super) fn push_place(&mut self, place: LinePlace) {
        let LinePlace { came, client } = place;
        let came = came.as_micros();
        self.args.push(format!("{came:016} {client:016x}"));
    }

    /// Adds a series of a job's lines to the arguments.
    pub(super) fn push_series(&mut self, series: Series) {
        self.args.push(series.to_string());
    }

    /// Adds an owner to the arguments.
    pub(super) fn push_owner(&mut self, owner: OwnerId) {
        self.text.clear();
        owner.write(&mut self.text);
        self.args.push(&self.text);
    }
}

/// More bytes than the keys of a usual request have.
const LONG: usize = 4 * 1024;
