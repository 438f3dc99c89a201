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
//! | `naming_url` | the URL that names the informants |
//! | `testimony` | the answer of one of them |
//! | `greeting` | a connection to one of them, and why there is none |
//! | `round` | the answers of one inquiry |
//! | `poll` | inquiries, one at a time for all votes of a Cluster |
//! | `texts` | why a server is not counted on, in words |
//! | `report` | the answers of all of them, for tools |
//! | `tenure` | for how long a session may send, and under which term |
//!
//! Sources: <https://redis.io/docs/latest/develop/reference/sentinel-clients/>, which asks one Sentinel after the other,
//! and <https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/>, which asks one node.

mod address;
mod cluster_vote;
mod greeting;
mod location;
mod naming_url;
mod poll;
#[cfg(feature = "deadpool-redis")]
mod report;
mod round;
mod tenure;
mod testimony;
mod texts;

#[cfg(feature = "deadpool-redis")]
pub use self::report::{InformantAnswer, InformantReport, NamingReport};
#[cfg(test)]
pub(crate) use self::testimony::{Testimony, View};
pub(crate) use self::{
    address::Address,
    cluster_vote::slot_of,
    poll::Informants,
    tenure::{LastRoll, Named, Tenure},
};
pub use self::{cluster_vote::ClusterVote, location::Location, naming_url::NamingUrl, poll::Polls};
