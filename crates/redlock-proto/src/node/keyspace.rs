use crate::{NamedMark, NodeKey, OwnerId, Quarantine};

/// The part that all requests of a client have in common: the node's own keys of its namespace, and the quarantine.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Keyspace {
    mark: NodeKey,
    fence: NodeKey,
    horizon: NodeKey,
    tombstones: String,
    lines: String,
    messages: String,
    signs: String,
    /// What stands in place of the namespace on this node, with its braces, if there is something.
    tag: Option<String>,
    quarantine: Quarantine,
    /// Under which epoch the node's server is named, if others name it.
    term: Option<NamedMark>,
    /// What the mark says of both.
    policy: String,
}

impl Keyspace {
    /// Returns the keyspace whose own keys begin with `prefix`, such as `{namespace}`.
    pub fn new(prefix: &str, quarantine: Quarantine) -> Self {
        Self {
            mark: format!("{prefix}:mark").into(),
            fence: format!("{prefix}:counters").into(),
            horizon: format!("{prefix}:horizon").into(),
            tombstones: format!("{prefix}:tomb:"),
            lines: format!("{prefix}:line:"),
            messages: format!("{prefix}:wake:"),
            signs: format!("{prefix}:alive:"),
            tag: None,
            policy: quarantine.to_wire(),
            quarantine,
            term: None,
        }
    }

    /// Returns the keyspace of a node that has keys under another hash tag than the namespace.
    pub fn under(&self, tag: &str) -> Self {
        let tag = format!("{{{tag}}}");
        Self {
            tag: Some(tag.clone()),
            term: self.term.clone(),
            policy: self.policy.clone(),
            ..Self::new(&tag, self.quarantine)
        }
    }

    /// Returns the keyspace for calls of a session with a server that others name.
    pub fn in_term(&self, term: NamedMark) -> Self {
        Self {
            policy: format!("{} {term}", self.quarantine.to_wire()),
            term: Some(term),
            ..self.clone()
        }
    }

    /// Returns the epoch under which the node's server is named, and the roll, if others name it.
    pub const fn term(&self) -> Option<&NamedMark> {
        self.term.as_ref()
    }

    /// Returns the policy and the term, as a mark has them.
    pub fn policy(&self) -> &str {
        &self.policy
    }

    /// Returns the parts of which a resource's key consists on the node.
    pub fn parts_of<'a>(&'a self, key: &'a NodeKey) -> [&'a str; 2] {
        let key = key.as_str();
        match &self.tag {
            // invariant: a namespace has no brace
            Some(tag) => [tag, key.find('}').map_or(key, |end| &key[end + 1..])],
            None => ["", key],
        }
    }

    /// Returns the key that says which run of the server may vote, and since when.
    pub const fn mark(&self) -> &NodeKey {
        &self.mark
    }

    /// Returns the key of the fencing counters.
    pub const fn fence(&self) -> &NodeKey {
        &self.fence
    }

    /// Returns the key that says since when the node remembers which ticks were claimed, if it ever forgot.
    pub const fn horizon(&self) -> &NodeKey {
        &self.horizon
    }

    /// Returns the key that says that this owner has given up.
    pub fn tombstone(&self, owner: OwnerId) -> NodeKey {
        let mut key = String::new();
        self.write_tombstone(owner, &mut key);
        key.into()
    }

    /// Writes that key behind a text.
    pub fn write_tombstone(&self, owner: OwnerId, text: &mut String) {
        text.push_str(&self.tombstones);
        owner.write_secret(text);
    }

    /// Returns the key of the line of callers that wait for a key.
    pub fn line(&self, key: &NodeKey) -> NodeKey {
        self.line_parts(key).concat().into()
    }

    /// Returns the parts of which that key consists.
    pub fn line_parts<'a>(&'a self, key: &'a NodeKey) -> [&'a str; 2] {
        [&self.lines, key.as_str()]
    }

    /// Returns the channel on which nodes tell this client of keys that they give to its callers.
    pub fn channel(&self, client: u64) -> String {
        format!("{}{client:016x}", self.messages)
    }

    /// Returns the key that is there while this client gives signs of life.
    pub fn sign(&self, client: u64) -> NodeKey {
        format!("{}{client:016x}", self.signs).into()
    }

    /// Returns for how long nodes that may have forgotten leases do not vote.
    pub const fn quarantine(&self) -> &Quarantine {
        &self.quarantine
    }
}
