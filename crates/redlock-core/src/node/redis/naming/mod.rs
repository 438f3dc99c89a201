//! A node whose server others name: the Sentinels of a master, or the nodes of a Cluster.
//!
//! These informants are asked before each connection, and once a second while it stands, all at once.
//! A server counts for as long as a majority of them names it under one epoch, by the roll of its mark:
//! `redlock_proto::Hearing` decides that.
//! One of them is not enough: one that was cut off from the others names a server that goes on beside the promoted one,
//! and the node would have two votes.
//!
//! | file | role |
//! |---|---|
//! | `directory` | the URL that names the informants |
//! | `testimony` | the answer of one of them |
//! | `greeting` | a connection to one of them, and why there is none |
//! | `poll` | inquiries, one at a time for all votes of a Cluster |
//! | `texts` | why a server is not counted on, in words |
//! | `report` | the answers of all of them, for tools |
//! | `tenure` | for how long a session may send, and under which term |
//!
//! Sources: <https://redis.io/docs/latest/develop/reference/sentinel-clients/>, which asks one Sentinel after the other,
//! and <https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/>, which asks one node.

mod directory;
mod greeting;
mod poll;
#[cfg(feature = "deadpool-redis")]
mod report;
mod tenure;
mod testimony;
mod texts;

#[cfg(feature = "deadpool-redis")]
pub use self::report::{InformantAnswer, InformantReport, NamingReport};
#[cfg(test)]
pub(super) use self::testimony::{Testimony, View};
pub(crate) use self::{directory::Directory, poll::Polls};
pub(super) use self::{
    poll::Informants,
    tenure::{LastRoll, Named, Tenure},
};
