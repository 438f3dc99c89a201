//! The seam to a store: what the client needs of a node, and the nodes it has.
//!
//! A [`Node`] is something that can be connected to; a [`Session`] is one connection, over which calls
//! travel in order.
//! No type of a Redis client crosses this seam.
//!
//! # Contract
//!
//! * Calls of one session take effect in the order in which [`Session::call`] was called, and the
//!   requests of one call in the order of the call.
//! * A call takes effect at most once.
//! * Each request has one outcome: the node's [`Reply`], or an error that says whether it may have
//!   been executed. An error that says it was not is a promise.
//! * The requests of a call take effect in one atomic step, together with the look at where the node stands.
//! * Dropping the future of a call may lose the answer, never the order.
//!
//! # A node of your own
//!
//! It hands requests on, to the session of another node or to a [`Store`], which is a whole node in memory; so it can
//! delay, count, lose and refuse calls.
//! A [`Request`] is not taken apart here: which there are, and what they ask for, changes with the protocol, and that is
//! no breaking change of this crate.
//! A node that carries requests out by itself is written against `redlock-proto`, in the very version that this crate
//! depends on.
//!
//! Time-outs, reconnection and the bound on calls in flight are the client's business.

mod memory;
mod redis;

use std::{fmt, sync::Arc};

use futures_util::{FutureExt, future::BoxFuture};
pub use redlock_proto::{
    Answer, Keyspace, NodeKey, NodeTime, Reply, Request, RunId, Standing, Store,
};

pub(crate) use self::redis::{Address, RedisNodeError, connection_info};
pub use self::{memory::MemoryNode, redis::RedisNode};

/// The result of a call: where the node stands and a reply or an error for each request, or an error for all of them.
pub type CallResult = Result<Answer, CallError>;

/// One of the independent stores that vote.
pub trait Node: fmt::Debug + Send + Sync + 'static {
    /// Returns how to call it in errors and logs: its address, without credentials.
    fn name(&self) -> Arc<str>;

    /// Opens a connection.
    ///
    /// # Errors
    ///
    /// The reason, in words for an operator: without credentials, and without the words of a server, which may
    /// repeat what it was asked.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives the attempt up.
    fn connect(&self) -> BoxFuture<'static, Result<Box<dyn Session>, Arc<str>>>;
}

/// One connection to a node.
pub trait Session: Send {
    /// Sends `requests` as one call, in the namespace that `keyspace` describes.
    ///
    /// The requests have their place in the order once the future was polled, and are on their way once it was polled
    /// again, or dropped.
    /// The rest of a call that was dropped may wait for the next call of the session.
    /// So a caller that gives up its last call drops the session, or goes on calling.
    ///
    /// # Errors
    ///
    /// [`CallError`] for the call as a whole; errors of single requests are in the answer, which has as
    /// many entries as there were requests.
    fn call(
        &mut self,
        keyspace: &Arc<Keyspace>,
        requests: &[Request],
    ) -> BoxFuture<'static, CallResult>;

    /// Deletes what is kept under these keys of jobs, and returns under how many of them there was anything.
    ///
    /// It is no call of the protocol, but what an operator does: see
    /// [`Redlock::dangerous_forget_jobs`](crate::Redlock::dangerous_forget_jobs).
    ///
    /// # Errors
    ///
    /// The reason, as for [`Node::connect`]; by default that this node cannot do it.
    fn forget_jobs(&mut self, jobs: &[NodeKey]) -> BoxFuture<'static, Result<usize, Arc<str>>> {
        let _ = jobs;
        std::future::ready(Err("this kind of node cannot forget jobs".into())).boxed()
    }
}

/// A call that was not answered.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct CallError {
    /// `true` if the call may have been executed, or may be yet.
    pub may_have_run: bool,
    /// `true` if the session is of no more use.
    pub session_lost: bool,
    /// `true` if the node said that it refuses to write, instead of executing the call.
    pub refuses_writes: bool,
    /// The reason, in words for an operator: without credentials, and without the words of a server, which may repeat
    /// the call.
    pub reason: Arc<str>,
}

impl CallError {
    /// Makes the error of a call that was not and will not be executed, on a session that goes on.
    pub fn not_executed(reason: impl Into<Arc<str>>) -> Self {
        Self {
            may_have_run: false,
            session_lost: false,
            refuses_writes: false,
            reason: reason.into(),
        }
    }

    /// Makes the error of a call that a node did not and will not execute, because it refuses to write, on a session
    /// that goes on.
    pub fn refuses_writes(reason: impl Into<Arc<str>>) -> Self {
        Self {
            refuses_writes: true,
            ..Self::not_executed(reason)
        }
    }

    /// Makes the error of a call that may have been executed, on a session that is lost.
    pub fn lost(reason: impl Into<Arc<str>>) -> Self {
        Self {
            may_have_run: true,
            session_lost: true,
            refuses_writes: false,
            reason: reason.into(),
        }
    }

    /// Makes the error of a call that may have been executed, on a session that goes on.
    pub fn unknown(reason: impl Into<Arc<str>>) -> Self {
        Self {
            may_have_run: true,
            session_lost: false,
            refuses_writes: false,
            reason: reason.into(),
        }
    }
}
