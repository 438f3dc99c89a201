//! The seam to a store: the traits that the client needs of a node, and the nodes of this crate.
//!
//! A client connects to a [`Node`], whose page has the contract; a [`Session`] is one connection, over which calls
//! travel in order.
//! No type of a Redis client crosses this seam.
//!
//! # A node of your own
//!
//! Such a node passes requests on, to the session of another node or to a [`Store`], which is a whole node in memory.
//! So it can delay, count, lose and refuse calls.
//! This crate does not describe the content of a [`Request`].
//! The kinds of requests and their content change with the protocol, and such a change is no breaking change of this
//! crate.
//! A node that executes requests by itself depends on `redlock-proto`, in exactly the version that this crate depends
//! on.

mod memory;

pub use redlock_proto::{
    Answer, Gift, Keyspace, NodeKey, NodeTime, Reply, Request, RunId, Standing, Store,
};
pub use redlock_redis::{
    CallError, CallResult, KeyEntry, Node, RedisNode, RedisNodeError, Session,
};
#[cfg(feature = "deadpool-redis")]
pub use redlock_redis::{InformantAnswer, InformantReport, NamingReport};

pub use self::memory::MemoryNode;
