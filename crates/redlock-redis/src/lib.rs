#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(test)]
mod any_input;
mod boot_clock;
mod connect;
mod credentials;
mod discover;
mod error;
mod keys;
mod node;
mod redis_node;
mod script;
mod speak;
mod tasks;

#[cfg(feature = "deadpool-redis")]
pub use self::discover::{InformantAnswer, InformantReport, NamingReport};
pub use self::{
    credentials::Credentials,
    error::RedisNodeError,
    node::{CallError, CallResult, KeyEntry, Node, Session},
    redis_node::RedisNode,
};
// For `redlock-core`, which configures nodes.
#[doc(hidden)]
pub use self::{
    boot_clock::since_boot,
    credentials::CredentialsProvider,
    discover::{ClusterVote, Location, NamingUrl, Polls},
    keys::VERBATIM,
    speak::wire::Encoder,
};
