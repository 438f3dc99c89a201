use std::{fmt, sync::Arc, time::Duration};

use crate::{NodeTime, Quarantine};

/// The identity of one run of a server: a restart, and nothing else, makes a new one.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RunId(Arc<str>);

impl RunId {
    /// Returns the identity as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for RunId {
    fn from(id: &str) -> Self {
        Self(id.into())
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The description that a node gives of itself.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "whoever makes a node must fill in every fact"
)]
pub struct ServerInfo {
    /// The run of the server.
    pub run: RunId,
    /// The version of the Redis protocol and commands that it speaks, such as 7.0.
    pub version: (u32, u32),
    /// `true` if it is a master.
    pub is_master: bool,
    /// The number of its replicas, which may be put in its place with less than it knows.
    pub replicas: u32,
    /// `true` if it is part of a cluster.
    pub is_cluster: bool,
    /// The way in which it makes room when its memory is full, if it has a limit: anything but `noeviction` drops keys.
    pub eviction: Option<Arc<str>>,
    /// `true` if it writes every command to a file.
    pub appends: bool,
    /// The moment at which it makes sure that its writes are on disk, its `appendfsync`, if it lets that be asked.
    pub syncs: Option<Arc<str>>,
}

/// The reason for which a node does not vote, whatever it answers, until an operator changes it.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Unfit {
    /// It is a replica: its master may overwrite its grants.
    Replica,
    /// It has replicas, one of which may take its place.
    HasReplicas,
    /// It is part of a cluster, whose nodes take each other's place.
    Cluster,
    /// It drops keys when its memory is full.
    Evicts {
        /// Its `maxmemory-policy`.
        policy: Arc<str>,
    },
    /// Its version is too old.
    TooOld {
        /// Its version.
        version: (u32, u32),
    },
    /// The client trusts its persistence, and it has none.
    NotPersistent,
    /// The client trusts its persistence, and it answers before its writes are on disk.
    SyncsLate {
        /// Its `appendfsync`.
        policy: Arc<str>,
    },
}

impl ServerInfo {
    /// The oldest version that is supported.
    pub const OLDEST: (u32, u32) = (6, 2);

    /// Returns what keeps it from voting, if anything: the first reason of several.
    pub fn unfit(&self, quarantine: &Quarantine) -> Option<Unfit> {
        if let Some(unfit) = self.wrong_server() {
            return Some(unfit);
        }
        if self.replicas > 0 && !quarantine.accepts_replicas() {
            return Some(Unfit::HasReplicas);
        }
        if self.version < Self::OLDEST {
            return Some(Unfit::TooOld {
                version: self.version,
            });
        }
        self.forgets(quarantine)
    }

    /// Returns what keeps it from voting in its place among other servers: another server may be there for it, to which
    /// the node's name may lead by now.
    pub(crate) const fn wrong_server(&self) -> Option<Unfit> {
        if !self.is_master {
            return Some(Unfit::Replica);
        }
        if self.is_cluster {
            return Some(Unfit::Cluster);
        }
        None
    }

    /// Returns what may make it lose a part of its data that its mark does not tell of, if anything.
    pub(crate) fn forgets(&self, quarantine: &Quarantine) -> Option<Unfit> {
        if let Some(policy) = self.eviction.as_ref().filter(|p| &***p != "noeviction") {
            return Some(Unfit::Evicts {
                policy: Arc::clone(policy),
            });
        }
        if !quarantine.trusts_persistence() {
            return None;
        }
        let late = self.syncs.as_ref().filter(|policy| &***policy != "always");
        match late {
            _ if !self.appends => Some(Unfit::NotPersistent),
            Some(policy) => Some(Unfit::SyncsLate {
                policy: Arc::clone(policy),
            }),
            None => None,
        }
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replica => f.write_str(
                "it is a replica; give the address of a master that nothing else replaces, or name its Sentinels or its Cluster in the URL (redis+sentinel://, redis+cluster://)",
            ),
            Self::HasReplicas => f.write_str(
                "it has replicas, and a replica that takes its place has forgotten leases; remove them, or name its Sentinels or its Cluster in the URL (redis+sentinel://, redis+cluster://), or use best_effort",
            ),
            Self::Cluster => {
                f.write_str("it is part of a cluster; the URL of a Cluster begins with redis+cluster://")
            }
            Self::Evicts { policy } => write!(
                f,
                "it drops keys when its memory is full (maxmemory-policy {policy}); set it to noeviction"
            ),
            Self::TooOld {
                version: (major, minor),
            } => {
                let (oldest_major, oldest_minor) = ServerInfo::OLDEST;
                write!(
                    f,
                    "its version {major}.{minor} is too old; {oldest_major}.{oldest_minor} is the oldest supported"
                )
            }
            Self::SyncsLate { policy } => write!(
                f,
                "dangerous_trust_persistence is set and it has appendfsync {policy}; set it to always, and no-appendfsync-on-rewrite to no"
            ),
            Self::NotPersistent => f.write_str(
                "dangerous_trust_persistence is set and it has appendonly no; set it to yes, with appendfsync always",
            ),
        }
    }
}

/// The standing of a node, read in the same atomic step as the requests of a call.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a client must handle every part of it"
)]
pub struct Standing {
    /// The state of its mark: it votes, or it does not.
    pub state: MarkState,
    /// Its wall clock.
    pub time: NodeTime,
    /// The run of the server, so that one server with two addresses has one vote.
    pub run: RunId,
}

/// The state of a node's mark in a namespace, by which it votes or does not.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a client must handle every state")]
pub enum MarkState {
    /// It votes.
    Voting,
    /// It may have forgotten leases, and may vote after this time.
    Quarantined {
        /// The time that is left.
        ready_in: Duration,
        /// The beginning of the quarantine, by the node's clock.
        since: NodeTime,
    },
    /// Its quarantine has ended; it votes once it is given the floor of its counters.
    Aged {
        /// The beginning of the quarantine, by the node's clock.
        since: NodeTime,
    },
    /// Clients with another [`Quarantine`](crate::Quarantine) use it.
    PolicyMismatch {
        /// Theirs, as [`Quarantine::to_wire`](crate::Quarantine::to_wire) writes it.
        theirs: Arc<str>,
    },
}
