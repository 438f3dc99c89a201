//! The seam to a store: the traits that a client needs of a node.
//!
//! A client connects to a [`Node`]; a [`Session`] is one connection, over which calls travel in order.
//! No type of a Redis client crosses this seam.

use std::{fmt, sync::Arc, time::Duration};

use futures_util::{FutureExt, future::BoxFuture, stream::BoxStream};
use redlock_proto::{Answer, Gift, Keyspace, NodeKey, Request};

/// The result of a call: the node's standing and a reply or an error for each request, or an error for all of them.
pub type CallResult = Result<Answer, CallError>;

/// One of the independent stores that vote.
///
/// # Contract
///
/// * Calls of one session take effect in the order in which [`Session::call`] was called, and the
///   requests of one call in the order of the call.
/// * A call takes effect at most once.
/// * Each request has one outcome: the node's [`Reply`](redlock_proto::Reply), or an error that says whether the node may have
///   executed the request. If the error says that the node did not, that is a promise.
/// * The requests of a call take effect in one atomic step, together with the check of the node's standing.
/// * Dropping the future of a call may lose the answer, but never changes the order.
///
/// Time-outs, reconnection and the bound on calls in flight are the client's business.
pub trait Node: fmt::Debug + Send + Sync + 'static {
    /// Returns the name of the node in errors and logs: its address, without credentials.
    fn name(&self) -> Arc<str>;

    /// Opens a connection.
    ///
    /// # Errors
    ///
    /// The reason, in words for an operator: without credentials, and without the words of a server, which may
    /// repeat the request.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives the attempt up.
    fn connect(&self) -> BoxFuture<'static, Result<Box<dyn Session>, Arc<str>>>;
}

/// One connection to a node.
pub trait Session: Send {
    /// Returns the address of the server, without credentials, where others name it for the node: Sentinels, or the nodes
    /// of a Cluster.
    ///
    /// Reports and log lines show it beside the node's name.
    /// The default implementation returns `None`, because the name of most nodes is their server's address.
    fn server(&self) -> Option<Arc<str>> {
        None
    }

    /// Has the present runtime wake the calls of the session from now on; returns whether it does.
    ///
    /// A client moves its sessions to the runtime of a caller that is alone, and back; calls may be on their way then.
    /// It polls each of them again after the move.
    /// If a session answers `false`, the runtime in which it was opened wakes its calls as before, and the client polls all
    /// of its sessions on its own thread from then on.
    /// The default implementation returns `false`.
    fn move_here(&mut self) -> bool {
        false
    }

    /// Sends `requests` as one call, in the namespace that `keyspace` describes.
    ///
    /// The requests have their place in the order, and are on their way, once the future was polled.
    /// The rest of a dropped call may wait for the next call of the session.
    /// So a caller that gives up its last call must drop the session, or make another call.
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

    /// Sends `requests` as one call, as [`call`](Self::call) does; the node may answer [`Reply::Unclear`](redlock_proto::Reply::Unclear).
    ///
    /// The node then may have carried the request out, or not, and the client asks again by [`call`](Self::call).
    /// It also asks again if the call fails and the node has not carried it out.
    /// The default implementation is [`call`](Self::call).
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    fn transact(
        &mut self,
        keyspace: &Arc<Keyspace>,
        requests: &[Request],
    ) -> BoxFuture<'static, CallResult> {
        self.call(keyspace, requests)
    }

    /// Listens to the node's messages to the client of this number: each tells of a key that the node has given to a caller
    /// that waited in line for it.
    ///
    /// The stream ends when the node can no longer be heard.
    /// Dropping it ends the listening.
    ///
    /// # Errors
    ///
    /// The reason, as for [`Node::connect`]; the default implementation says that this node sends no messages.
    /// The client's callers then wait as those of clients without lines: they ask again after random pauses.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives the attempt up.
    fn listen(
        &mut self,
        keyspace: &Arc<Keyspace>,
        client: u64,
    ) -> BoxFuture<'static, Result<BoxStream<'static, Gift>, Arc<str>>> {
        let _ = (keyspace, client);
        std::future::ready(Err("this kind of node sends no messages".into())).boxed()
    }

    /// Deletes these keys of jobs, and returns how many of them existed.
    ///
    /// It is no call of the protocol, but an operation for an operator: `Redlock::dangerous_forget_jobs` of
    /// `redlock-core` makes it.
    ///
    /// # Errors
    ///
    /// The reason, as for [`Node::connect`]; the default implementation says that this node cannot do it.
    fn forget_jobs(&mut self, jobs: &[NodeKey]) -> BoxFuture<'static, Result<usize, Arc<str>>> {
        let _ = jobs;
        std::future::ready(Err("this kind of node cannot forget jobs".into())).boxed()
    }

    /// Reads the value of a lock's key and its time to live; `None` if there is no such key.
    ///
    /// It is no call of the protocol, and it changes nothing on the node: `Redlock::holder` of `redlock-core` makes it.
    ///
    /// # Errors
    ///
    /// The reason, as for [`Node::connect`]; the default implementation says that this node cannot do it.
    fn read_key(
        &mut self,
        key: &NodeKey,
    ) -> BoxFuture<'static, Result<Option<KeyEntry>, Arc<str>>> {
        let _ = key;
        std::future::ready(Err("this kind of node cannot read a key".into())).boxed()
    }
}

/// The value of a lock's key on a node.
///
/// A client that knows the value can release the key, so `Debug` does not show it.
#[derive(Clone, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "a node makes it")]
pub struct KeyEntry {
    /// The value.
    pub value: String,
    /// The time until the node deletes the key; `None` if the key never expires.
    pub remaining: Option<Duration>,
}

impl fmt::Debug for KeyEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyEntry")
            .field("remaining", &self.remaining)
            .finish_non_exhaustive()
    }
}

/// A call that the node did not answer.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct CallError {
    /// `true` if the node may have executed the call, or may still execute it.
    pub may_have_run: bool,
    /// `true` if the session cannot be used any more.
    pub session_lost: bool,
    /// `true` if the node said that it refuses to write, instead of executing the call.
    pub refuses_writes: bool,
    /// `true` if the server said that it cannot vote because of what it is, such as a replica: the client then closes
    /// the session and connects to the node again, at most once a second.
    pub wrong_server: bool,
    /// The reason, in words for an operator: without credentials, and without the words of a server, which may repeat
    /// the call.
    pub reason: Arc<str>,
}

impl CallError {
    /// Makes the error of a call that the node did not and will not execute, on a session that continues.
    pub fn not_executed(reason: impl Into<Arc<str>>) -> Self {
        Self {
            may_have_run: false,
            session_lost: false,
            refuses_writes: false,
            wrong_server: false,
            reason: reason.into(),
        }
    }

    /// Makes the error of a call that a server did not and will not execute, because it cannot vote as what it is, such
    /// as a replica; the client closes the session soon.
    pub fn wrong_server(reason: impl Into<Arc<str>>) -> Self {
        Self {
            wrong_server: true,
            ..Self::not_executed(reason)
        }
    }

    /// Makes the error of a call that a node did not and will not execute, because it refuses to write, on a session
    /// that continues.
    pub fn refuses_writes(reason: impl Into<Arc<str>>) -> Self {
        Self {
            refuses_writes: true,
            ..Self::not_executed(reason)
        }
    }

    /// Makes the error of a call that the node may have executed, on a session that is lost.
    pub fn lost(reason: impl Into<Arc<str>>) -> Self {
        Self {
            may_have_run: true,
            session_lost: true,
            refuses_writes: false,
            wrong_server: false,
            reason: reason.into(),
        }
    }

    /// Makes the error of a call that the node may have executed, on a session that continues.
    pub fn unknown(reason: impl Into<Arc<str>>) -> Self {
        Self {
            may_have_run: true,
            session_lost: false,
            refuses_writes: false,
            wrong_server: false,
            reason: reason.into(),
        }
    }
}
